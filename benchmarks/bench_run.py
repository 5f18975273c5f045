"""How fast the agent answers, and what memory it takes: whole processes over a real mailbox, offline model.

    python benchmarks/bench_run.py                    10,000 mails in a Maildir
    python benchmarks/bench_run.py --mails 500 --imap  500 mails in Dovecot, replies over Postfix; needs both, and root
    python benchmarks/bench_run.py --idle 60           what an agent without mail costs in 60 s

Prints mails per second, milliseconds a mail (p50, p95: from claim to reply), the CPU time of the agent and of servers
that it started, and over the run the memory of them all, in which what they share counts once (PSS).
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from company import ADDRESS, Company

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TEXT = "Hello,\n\nmy dryer with the serial number SN12345 is broken. Is it still under warranty?\n\nThank you!"
NO_LIMITS = {"answer_since": "all", "limits": {"per_address": 10_000, "per_hour": 1_000_000}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mails", type=int, default=10_000)
    parser.add_argument("--imap", action="store_true")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--idle", type=float, metavar="SECONDS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if options.idle:
            idle(Company(Path(place)), options.idle)
        elif options.imap:
            from mail_servers import MailServers

            with MailServers() as servers:
                over_imap(Company(Path(place)), servers, options.mails, options.concurrency)
        else:
            over_maildir(Company(Path(place)), options.mails, options.concurrency)


def over_maildir(company: Company, mails: int, concurrency: int) -> None:
    for number in range(mails):
        company.receive_raw(f"{1_800_000_000 + number}.bench", mail(number).decode().replace("\r\n", "\n"))
    company.configure(agent={"concurrency": concurrency, **NO_LIMITS})
    measure(company, mails, {})
    assert len(company.replies()) == mails
    assert company.tickets() == mails


def over_imap(company: Company, servers: Any, mails: int, concurrency: int) -> None:
    servers.deliver_many(mail(number) for number in range(mails))
    mailbox = {
        "from_address": ADDRESS,
        "imap": {"host": servers.host, "port": servers.imaps_port, "ca_file": str(servers.ca_file)},
        "smtp": {"host": servers.host, "port": servers.smtps_port},
    }
    company.configure(mailbox=mailbox, agent={"concurrency": concurrency, **NO_LIMITS})
    measure(company, mails, {"IMAP_PASSWORD": servers.password})
    servers.wait_until_sent(120)
    assert len(servers.sent_to_customers()) == mails


def mail(number: int) -> bytes:
    """Each in words of its own: the same ones are answered three times a day."""
    name = "".join(2 * chr(ord("a") + int(digit)) for digit in str(number))  # "bbaadd": no word, as "bad" would be
    return (
        f"From: customer{number}@example.org\r\nTo: {ADDRESS}\r\nSubject: Dryer {number}\r\n"
        f"Date: Sun, 18 Jan 2026 10:00:00 +0000\r\nMessage-ID: <mail{number}@example.org>\r\n\r\n{TEXT}\r\n{name}\r\n"
    ).encode()


def measure(company: Company, mails: int, secrets: Mapping[str, str]) -> None:
    log = company.folder / "stdout"
    began = time.perf_counter()
    with log.open("w") as stdout:
        agent = subprocess.Popen(
            [sys.executable, "-m", "guarantee_email_agent", "run", "--once"],
            cwd=company.folder,
            stdout=stdout,
            env={**os.environ, **secrets},
        )
        memory: list[tuple[int, float]] = []
        cpu: dict[str, float] = {}
        while agent.poll() is None:
            time.sleep(0.5)
            memory.append((answered(log), memory_mib(agent.pid)))
            cpu |= {name: cpu_s(pid) for pid in family(agent.pid) if (name := program(pid))}
    took_s = time.perf_counter() - began
    times_ms = sorted(int(found) for found in re.findall(r"Email answered: .* in (\d+) ms", log.read_text()))
    print(f"{mails} mails in {took_s:.1f} s: {mails / took_s:.0f} mails/s, the start included")
    print(f"a mail: p50 {statistics.median(times_ms):.0f} ms, p95 {times_ms[len(times_ms) * 95 // 100]} ms")
    each = ", ".join(f"{name} {1000 * used / mails:.1f}" for name, used in cpu.items())
    print(f"CPU, ms a mail: {1000 * sum(cpu.values()) / mails:.1f} in all ({each}), the start included")
    print("answered   agent, MiB")
    step = max(1, len(memory) // 10)
    for done, mib in memory[step // 2 :: step]:
        print(f"{done:>8}   {mib:.0f}")


def idle(company: Company, seconds: float) -> None:
    company.configure(agent={})  # the default interval: tests look five times a second
    agent = company.start()
    time.sleep(10)
    before = {pid: cpu_s(pid) for pid in family(agent.pid)}
    time.sleep(seconds)
    used = sum(cpu_s(pid) - before[pid] for pid in before)
    mib = memory_mib(agent.pid)
    print(f"idle for {seconds:g} s: {used:.2f} s of CPU in {len(before)} processes, {mib:.0f} MiB")
    company.close()


def answered(log: Path) -> int:
    return log.read_text().count("Email answered")


def family(pid: int) -> list[int]:
    try:
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    except FileNotFoundError:  # it has just ended
        return []


def program(pid: int) -> str:
    """The name of one of our programs; empty once it has ended."""
    with suppress(OSError):
        for part in Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
            if part.startswith("guarantee_email_agent"):
                return part.rpartition(".")[2].replace("guarantee_email_agent", "agent")
    return ""


def memory_mib(pid: int) -> float:
    """Of the agent and its servers; what they share counts once."""
    total_kib = 0
    for member in family(pid):
        with suppress(OSError):  # it has just ended
            usage = Path(f"/proc/{member}/smaps_rollup").read_text()
            total_kib += int(found[1]) if (found := re.search(r"^Pss:\s+(\d+)", usage, re.MULTILINE)) else 0
    return total_kib / 1024


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


if __name__ == "__main__":
    main()
