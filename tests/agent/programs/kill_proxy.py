"""Stands between the agent and one of its MCP servers, and kills with SIGKILL at the calls that a plan names.

    python kill_proxy.py PLAN -- SERVER-COMMAND…

A line of the plan is `<tool> <before|after> <agent|both>`: kill when the call arrives, or when its answer does, the
agent alone (the server sees its input end, and finishes what it does) or the server with it. A line that was carried
out is removed; a call kills for one line at most.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

PLAN = Path(sys.argv[1])
SERVER = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
AGENT = os.getppid()
calls: dict[object, str] = {}


def kill_if_planned(tool: str, phase: str) -> None:
    with open(PLAN.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lines = PLAN.read_text().splitlines()
        victim = next((victim for victim in ("agent", "both") if f"{tool} {phase} {victim}" in lines), None)
        if victim is None:
            return
        lines.remove(f"{tool} {phase} {victim}")
        PLAN.write_text("".join(f"{line}\n" for line in lines))
        if victim == "both":
            SERVER.kill()
        os.kill(AGENT, signal.SIGKILL)
    SERVER.stdin.close()
    SERVER.wait()
    os._exit(0)


def answers() -> None:
    for line in SERVER.stdout:
        message = json.loads(line)
        if "method" not in message and (tool := calls.pop(message.get("id"), None)) is not None:
            kill_if_planned(tool, "after")
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    os._exit(SERVER.wait())


def main() -> None:
    threading.Thread(target=answers, daemon=True).start()
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message.get("method") == "tools/call":
            tool = message["params"]["name"]
            calls[message["id"]] = tool
            kill_if_planned(tool, "before")
        SERVER.stdin.write(line)
        SERVER.stdin.flush()
    SERVER.stdin.close()
    os._exit(SERVER.wait())


main()
