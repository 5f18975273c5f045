"""How long a good mail waits for its answer beside ten that the IMAP server does not hand out.

Needs Dovecot, Postfix and root.

    python benchmarks/bench_bad_mails.py [--mails 5]

The agent runs on Dovecot behind a proxy that refuses a FETCH of the bad mails, or breaks the connection at it. The good
mails come one after the other; of each the time from its delivery to its reply counts.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from bench_run import NO_LIMITS, mail
from company import ADDRESS, Company
from mail_servers import MailServers
from tcp_proxy import TcpProxy
from withheld_mail import WithheldMail

BAD = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mails", type=int, default=5)
    options = parser.parse_args()
    with MailServers() as servers:
        os.environ |= {"IMAP_PASSWORD": servers.password, "SSL_CERT_FILE": str(servers.ca_file)}
        alone_s = measure(servers, options.mails, None, breaks=False)
        print(f"no bad mail: a good one is answered in {alone_s:.2f} s")
        for item in (b"RFC822.SIZE", b"BODY.PEEK[]"):
            for breaks in (False, True):
                took_s = measure(servers, options.mails, item, breaks=breaks)
                how = "breaks the connection at" if breaks else "refuses"
                print(f"{BAD} bad mails, {how} {item.decode()}: {took_s:.2f} s, {took_s / alone_s:.1f} times as long")


def measure(servers: MailServers, mails: int, item: bytes | None, *, breaks: bool) -> float:
    """The median, in seconds."""
    servers.empty()
    os.environ["LEDGER_KEY"] = secrets.token_hex()
    bad = WithheldMail(item or b"", "NO")
    if item is not None:
        servers.deliver(*(mail(1000 + number) for number in range(BAD)))
        bad.uids = set(servers.uids())
    withheld: dict[str, Any] = {"on_request": lambda request: bad(request) is None} if breaks else {"answer": bad}
    with tempfile.TemporaryDirectory() as place, TcpProxy(servers.imap_port, **withheld) as proxy:
        company = Company(Path(place))
        mailbox = {
            "from_address": ADDRESS,
            "imap": {"host": "localhost", "port": proxy.port, "security": "none"},
            "smtp": {"host": "localhost", "port": servers.smtps_port},
        }
        company.configure(mailbox=mailbox, agent={**NO_LIMITS, "max_attempts": 100, "poll_interval_s": 0.2})
        company.start()
        servers.deliver(mail(2000))  # once it is answered, the agent runs, and has met the bad ones
        times_s = []
        for number in range(mails + 1):
            began = time.perf_counter()
            if number:
                servers.deliver(mail(number))
            while len(servers.sent_to_customers()) <= number:
                time.sleep(0.01)
            times_s.append(time.perf_counter() - began)
        company.close()
    return statistics.median(times_s[1:])


if __name__ == "__main__":
    main()
