"""Judges in every way that they run."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import pytest

from guarantee_email_agent.judging.judge import DEFAULT_LIMITS, JudgePool
from guarantee_email_agent.judging.judge_protocol import Isolation, JudgeLimits
from guarantee_email_agent.judging.verdict import Verdict

PLAIN_USER = 65534
WAYS: dict[str, dict[str, bool]] = {
    "forked": {},
    "fresh": {"fresh": True},
    "without-namespaces": {"namespaces": False},
    "plain-user": {},
    "plain-user-without-namespaces": {"namespaces": False},
}


class PlainUserPool:
    """A `JudgePool` in a process that is not root, for tests that are."""

    # Reads requests and writes verdicts, a line of JSON each. Where Python or the project stands in a folder that is
    # closed to others, as that of root often is, they are put into an open one of the same name.
    PROGRAM = """if True:
        import json, os, sys
        from dataclasses import asdict
        from pathlib import Path
        from guarantee_email_agent.isolation import syscalls as kernel
        from guarantee_email_agent.judging.judge import JudgePool
        from guarantee_email_agent.judging.judge_protocol import JudgeLimits

        user, how = json.loads(sys.argv[1])
        package = Path(kernel.__file__).parents[2]
        closed = {}
        for place in {os.path.realpath(place) for place in (sys.prefix, sys.base_prefix, package)}:
            for parent in reversed(Path(place).parents):
                if not parent.stat().st_mode & 0o001:
                    closed.setdefault(parent, []).append(place)
                    break
        if closed:
            kernel.unshare(kernel.CLONE_NEWNS)
            kernel.mount("none", "/", "none", kernel.MS_REC | kernel.MS_PRIVATE)
        for parent, places in closed.items():
            opened = [(place, os.open(place, os.O_PATH)) for place in places]
            kernel.mount("tmpfs", str(parent), "tmpfs", 0, "mode=0755")
            for place, descriptor in opened:
                os.makedirs(place, exist_ok=True)
                kernel.mount(f"/proc/self/fd/{descriptor}", place, "none", 4096 | kernel.MS_REC)
                os.close(descriptor)
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        with JudgePool(**how) as pool:
            for line in sys.stdin:
                asked = json.loads(line)
                if "judge" not in asked:
                    print(json.dumps(asdict(pool.isolation())), flush=True)
                    continue
                verdict = pool.judge(
                    Path(asked["judge"]), asked["record"], asked["timeout_s"],
                    limits=JudgeLimits(**asked["limits"]), network=asked["network"], sandbox_port=asked["sandbox_port"],
                )
                print(json.dumps(asdict(verdict)), flush=True)
    """

    def __init__(self, **how: bool) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM, json.dumps([PLAIN_USER, how])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            text=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)

    def judge(
        self,
        path: Path,
        record: Mapping[str, Any],
        timeout_s: float,
        *,
        limits: JudgeLimits = DEFAULT_LIMITS,
        network: bool = False,
        sandbox_port: int | None = None,
    ) -> Verdict:
        asked = {"judge": str(path), "record": record, "timeout_s": timeout_s, "network": network}
        return Verdict(**self._ask(asked | {"limits": asdict(limits), "sandbox_port": sandbox_port}))

    def isolation(self) -> Isolation:
        return Isolation(**self._ask({}))

    def _ask(self, asked: Mapping[str, Any]) -> Any:
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@pytest.fixture(scope="module", params=["forked", "plain-user-without-namespaces"])
def pool(request: pytest.FixtureRequest) -> Iterator[JudgePool | PlainUserPool]:
    """Judges with the most and the least isolation, or as the test says; as a plain user even where we are root."""
    as_another = request.param.startswith("plain-user") and os.geteuid() == 0
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SOME_API_KEY", "open-sesame")  # before a server starts
        with (PlainUserPool if as_another else JudgePool)(**WAYS[request.param]) as pool:
            yield pool


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder that every user may read, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Path(place)


@pytest.fixture
def ask(pool: JudgePool | PlainUserPool, folder: Path) -> Iterator[Callable[..., Verdict]]:
    """Judge with the body of a `test(result)`; whatever it did, the next judge must find everything as it was."""
    file = folder / "test.py"

    def ask(*body: str, head: str = "", record: Any = None, timeout_s: float = 20, **how: Any) -> Verdict:
        lines = "".join(f"    {line}\n" for part in body for line in part.splitlines())
        source = f"{head}\ndef test(result):\n{lines}" if body else head
        file.write_text(source, encoding="utf-8")
        verdict = pool.judge(file, record or {}, timeout_s, **how)
        assert file.read_text(encoding="utf-8") == source
        return verdict

    yield ask
    keep = "open(os.path.join(tempfile.gettempdir(), 'mine'), 'w').write('x')"
    verdict = ask(keep, "return {'passed': True, 'feedback': ''}", head="import os, tempfile")
    assert (verdict.verdict, verdict.error) == ("passed", None)


@pytest.fixture
def succeed(ask: Callable[..., Verdict]) -> Callable[..., list[str]]:
    """Which of several attempts the system does not refuse to one judge."""

    def succeed(*attempts: str, **how: Any) -> list[str]:
        tries = (f"try: {attempt}\nexcept OSError: pass\nelse: done.append({attempt!r})" for attempt in attempts)
        verdict = ask("done = []", *tries, 'return {"passed": True, "feedback": "", "details": {"done": done}}', **how)
        assert verdict.verdict == "passed", verdict
        return list(verdict.details["done"])

    return succeed
