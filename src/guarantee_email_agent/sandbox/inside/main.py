"""The first process of the sandbox: it reads requests from the socket to the outside until that closes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn

from guarantee_email_agent.isolation.processes import end_children

from .api import Api
from .api_request import ApiRequest, pack_reply, receive_request
from .memory_guard import MemoryGuard

_KILL_S: Final = 2.0
_BUFFER_BYTES: Final = 1 << 20


def run(channel: int, config: Mapping[str, Any]) -> None:
    """Serve until the outside is gone. channel: descriptor of the socket."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o022)
    try:
        asyncio.run(_serve(channel, config))
    finally:
        _end(config)


async def _serve(channel: int, config: Mapping[str, Any]) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def end(reason: str) -> None:
        """End the sandbox. The outside reads the reason from our standard error."""
        os.write(2, f"{reason}\n".encode())
        over.set()

    os.set_blocking(2, False)  # it is read at the end only
    api = Api(config)
    tasks = [asyncio.create_task(_answer_requests(channel, api))]
    if (lifeline := config["lifeline"]) is not None:
        os.set_inheritable(lifeline, False)
        # Its other end is held by the process outside that started us, and closes when that is gone.
        loop.add_reader(lifeline, over.set)
    if config["guard"] is not None:
        tasks.append(asyncio.create_task(_guard_memory(MemoryGuard(api.shell.note_kill, end, **config["guard"]))))
    for task in tasks:
        task.add_done_callback(lambda _: over.set())
    loop.call_later(config["time_s"], end, f"its time of {config['time_s']:g} s was over")
    await over.wait()
    _end(config)  # at once: nobody needs what the event loop would put in order first


def _end(config: Mapping[str, Any]) -> NoReturn:
    if not config["pid_namespace"]:
        end_children(_KILL_S)
        import shutil  # the other sandboxes never need it

        # Whoever started us may be gone.
        shutil.rmtree(config["home"], ignore_errors=True)
    os._exit(0)  # in a namespace of processes the kernel ends everything else with the first one


async def _guard_memory(guard: MemoryGuard) -> None:
    while True:
        await asyncio.sleep(guard.check())


async def _answer_requests(channel: int, api: Api) -> None:
    """The server outside sends requests, and takes the replies in any order."""
    os.set_inheritable(channel, False)
    reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=channel), limit=_BUFFER_BYTES)
    answers = set()

    async def answer(number: int, request: ApiRequest) -> None:
        writer.write(pack_reply(number, await api.reply(request)))

    with suppress(EOFError, OSError):
        while True:
            task = asyncio.create_task(answer(*await receive_request(reader)))
            answers.add(task)  # the event loop itself does not hold it
            task.add_done_callback(answers.discard)
