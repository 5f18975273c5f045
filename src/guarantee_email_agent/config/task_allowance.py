"""What the operator allows: the most that the folder of a task may ask for itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.files.validation import build, number, setting
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable

_MOST = 10_000_000


@dataclass(frozen=True, slots=True)
class TaskAllowance:
    """The most that a task may ask for; what it does not ask for is no more than that, either."""

    network: bool = setting(
        False, "Whether sandboxes get this machine's network but where their task says no, and judges where it asks."
    )
    compose_host: bool = setting(
        False, "Whether a compose file may use what leads out of its containers, such as `privileged` or host folders."
    )
    memory_mb: int = number(2048, "MiB of memory for one sandbox.", 1, _MOST)
    disk_mb: int = number(1024, "MiB that an agent may write.", 1, _MOST)
    files: int = number(200_000, "Files that an agent may make.", 1, _MOST)
    processes: int = number(256, "Processes and threads of one sandbox.", 1, _MOST)
    time_s: float = number(7200.0, "Seconds that a sandbox may exist.", 1, _MOST)
    command_s: float = number(600.0, "Seconds for one command.", 1, _MOST)
    judge_timeout_s: float = number(600.0, "Seconds for one judge.", 0, 86_400, above=True)

    def excess(self, asked: Mapping[str, bool | float], section: str = "") -> str | None:
        """What is asked for beyond this, and how to allow it, in one line; None where nothing is.

        asked: values by the names of the fields. section: where in `task.yaml` they stand, such as `sandbox.`.
        """
        allowed = asdict(self)
        beyond = {name: value for name, value in asked.items() if value > allowed[name]}
        if not beyond:
            return None
        problems = [
            f"{section}{name} is true, which is not allowed"
            if value is True
            else f"{section}{name} asks for {_shown(value)}, and {_shown(allowed[name])} is allowed"
            for name, value in beyond.items()
        ]
        options = [
            f"--allow {name}" if value is True else f"--allow {name}={math.ceil(value)}"
            for name, value in beyond.items()
        ]
        return f"{'; '.join(problems)}. Pass {' '.join(options)}"


NOTHING_MORE = TaskAllowance()
"""What holds where the operator says nothing."""


def with_options(texts: Iterable[str]) -> TaskAllowance:
    """`NOTHING_MORE` with what the options `--allow NAME` and `--allow NAME=VALUE` say.

    Raises ConfigurationError(code="cli_bad_usage").
    """
    values = asdict(NOTHING_MORE)
    for text in texts:
        name, equals, value = text.partition("=")
        if name not in values:
            near = suggestion(name, values, listing=True)
            raise _bad_usage(text, f"there is no '{name}' to allow{near}")
        if not equals and type(values[name]) is not bool:
            raise _bad_usage(text, f"a number is missing, such as {name}={_shown(values[name])}")
        values[name] = _value(value) if equals else True
        built = build(TaskAllowance, values)
        if isinstance(built, list):
            raise _bad_usage(text, f"{name} {built[0].message}")
    return TaskAllowance(**values)


def _value(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            pass
    return text


def _shown(value: float) -> str:
    return str(int(value) if value == int(value) else value)


def _bad_usage(text: str, problem: str) -> ConfigurationError:
    return ConfigurationError(printable(f"--allow {text[:80]}: {problem}"), "cli_bad_usage")
