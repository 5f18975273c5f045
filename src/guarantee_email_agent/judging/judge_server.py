"""The judge's server: a small interpreter, started once, that forks a supervisor for each judge and knows nothing else.

Neither record nor answer nor what a judge prints passes through it, so that no judge finds another's in the memory
that it gets from here; with namespaces no judge can name it either. Our process sends it a byte with a socket for each
judge, over which it speaks to the supervisor, see `judge_supervisor`. One judge at a time: what still runs afterwards
is that judge's, and is killed.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
from contextlib import suppress
from dataclasses import asdict

from guarantee_email_agent.judging import judge_protocol
from guarantee_email_agent.judging.judge_isolation import (
    JudgeEnvironment,
    NamespacesUnavailableError,
    enter_namespaces,
    without_namespaces,
)
from guarantee_email_agent.judging.judge_supervisor import supervise


def main(control_fd: int, temp_parent: str, *, network: bool, no_namespaces_because: str | None) -> None:
    """Say hello, `{"isolation", "folder", "user"}` or `{"unavailable": reason}`; serve until the other end is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where our caller ignores it, no child could be waited for
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which as process 1 is the one signal that a judge could send us
    control = socket.socket(fileno=control_fd)
    folder = os.path.join(temp_parent, f"judge-{os.getpid()}-{os.urandom(4).hex()}")
    os.mkdir(folder, 0o711)
    try:
        if no_namespaces_because is None:
            environment = enter_namespaces(network, folder)
        else:
            environment = without_namespaces(network, folder, no_namespaces_because)
    except NamespacesUnavailableError as error:
        judge_protocol.send(control, {"unavailable": str(error)})
        if os.getpid() != 1:
            os.rmdir(folder)
        os._exit(1)
    gc.collect()
    gc.freeze()
    hello = {"isolation": asdict(environment.isolation), "folder": folder, "user": environment.user}
    try:
        judge_protocol.send(control, hello)
        while True:
            _, [conversation] = judge_protocol.receive_descriptors(control, 1)
            _have_judged(environment, control, conversation)
    except (EOFError, BrokenPipeError):
        pass
    finally:
        if no_namespaces_because is not None:
            with suppress(FileNotFoundError):
                os.rmdir(folder)


def _have_judged(environment: JudgeEnvironment, control: socket.socket, conversation: int) -> None:
    """Fork the supervisor that speaks over `conversation`, and wait until nothing is left of its judge."""
    environment.prepare_supervisor()
    supervisor = os.fork()
    if supervisor == 0:
        try:
            control.close()
            with socket.socket(fileno=conversation) as asker, suppress(EOFError, BrokenPipeError):
                supervise(environment, asker)
        finally:
            os._exit(0)
    os.close(conversation)
    os.waitpid(supervisor, 0)
    environment.clean_up()
