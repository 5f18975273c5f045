"""Finds, reads and checks the configuration: one `Config`, or one error that names every problem."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from guarantee_email_agent.config.built_in_files import built_in_path
from guarantee_email_agent.config.settings import Config, InstructionSettings, Secrets
from guarantee_email_agent.files.problems import Problem, dotted_path, locate_problems
from guarantee_email_agent.files.text_file import InputFileError, read_text
from guarantee_email_agent.files.validation import build
from guarantee_email_agent.files.yaml import load_documents, locate
from guarantee_email_agent.utils.errors import ConfigurationError

logger = logging.getLogger(__name__)

MAX_CONFIG_BYTES: Final = 1_000_000

_LISTEN: Final = "write metrics.listen, such as 127.0.0.1:9464, in its place"
_REMOVED: Final = {
    **dict.fromkeys(("metrics.port", "metrics.address", "metrics.socket"), _LISTEN),
    "metrics.host_names": "remove it, any name will do",
    "agent.lease_s": "remove it, it follows from agent.mail_budget_s and mailbox.copy_wait_s",
    "llm.max_attempts": "remove it, a call is tried three times",
    "llm.temperature": "remove it, it is 0 for models that take one",
    "llm.force_tool": "remove it, models that refuse to be made to use a tool are asked to",
    "llm.tokens_per_minute": "remove it, the API tells how many there may be",
    "agent.max_mail_bytes": "remove it, mails of up to 25 MB are read",
    "mailbox.imap.mark_folders": "name the folder that holds the others as mailbox.imap.mark_folder",
    "tasks": "remove it, and pass what tasks may ask for to `grade` and `solve` with --allow",
    "*.timeout_s": "set agent.call_timeout_s, which holds for all services; the mailbox has three times as long",
    "warranty.grace_days": "remove it, there are 30",
    "summary": "remove it, and have cron mail what `log --summary --since yesterday` prints; times are in the zone $TZ",
}
"""What to do about a key of an earlier version. `*`: any MCP server."""

_SECRET_KEY: Final = re.compile(r"api_?key|passw|secret|credential|token|^key$|^auth(orization)?$", re.IGNORECASE)


class _Issue(NamedTuple):
    code: str
    file: str  # as shown, empty where no file is at fault
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, self.path, self.message) if part)


class _Source(NamedTuple):
    """The file's text and data; nothing of both where there is no file."""

    file: Path | None
    name: str  # as shown
    text: str
    data: dict[Any, Any]


def load_config(path: Path | None = None, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Config:
    """The configuration: defaults, overlaid with a file, with secrets from the environment.

    The file is `path`, else the one that `CONFIG_PATH` names, else `config.yaml` in `cwd`, else none. `.env` in `cwd`
    is read if present; the real environment wins. Relative paths in the file start at the file's folder.

    Raises ConfigurationError whose message has a line for each problem, such as
    `config.yaml:12: mailbox.server.comand: unknown key 'comand' – did you mean 'command'?`. Its code tells the
    problem, or is `config_invalid` for several; `details["problems"]` lists them as dicts.
    """
    cwd = _working_directory() if cwd is None else Path(os.path.abspath(cwd))
    issues: list[_Issue] = []
    environment = {**_dotenv(cwd, issues), **(os.environ if environ is None else environ)}
    source = _read(*_find(path, environment, cwd), cwd, issues)
    _take_over_mcp_gmail(source, issues)
    built = build(Config, source.data)
    if isinstance(built, list):
        issues += [_issue(problem, source) for problem in locate_problems(built, source.text)]
    folder = source.file.parent if source.file else cwd
    paths = _default_or_given_paths(source.data, folder, cwd)
    issues += _missing_instructions(paths, source, cwd)
    if issues or isinstance(built, list):
        raise _error(issues)
    config: Config = _with_absolute_paths(built, folder)
    ledger = re.sub(r"sqlite:///(?=[^:?]+$)", "", config.agent.ledger)  # a path like any other of the file
    return replace(
        config,
        agent=replace(config.agent, ledger=ledger if "://" in ledger else str(_absolute(folder, Path(ledger)))),
        instructions=InstructionSettings(paths["main"], paths["scenarios_dir"]),
        eval=replace(config.eval, test_suite_path=paths["test_suite_path"]),
        secrets=read_secrets(config, environment),
        source=source.file,
    )


def built_in_files(config: Config, cwd: Path | None = None) -> list[str]:
    """Which of `config`, `instructions` and `scenarios` come with the package, and are none of the user's folder."""
    cwd = _working_directory() if cwd is None else Path(os.path.abspath(cwd))
    found = ["config"] if config.source is None else []
    for name, shipped, used in (
        ("instructions", "instructions/main.md", config.instructions.main),
        ("scenarios", "evals/scenarios", config.eval.test_suite_path),
    ):
        if used == built_in_path(shipped) and not used.is_relative_to(cwd):
            found.append(name)
    return found


def _working_directory() -> Path:
    """Not resolved: a link's folder is where it stands. Raises ConfigurationError where somebody removed it."""
    try:
        return Path(os.path.abspath(os.getcwd()))
    except OSError as error:
        problem = f"the working directory cannot be used ({error.strerror}). Change to another"
        raise ConfigurationError(problem, "config_no_directory") from None


def _find(path: Path | None, environment: Mapping[str, str], cwd: Path) -> tuple[Path | None, str]:
    """The file, and what to do where it cannot be read."""
    if path is not None:
        return _absolute(cwd, Path(path)), "; correct the path"
    if named := environment.get("CONFIG_PATH", "").strip():
        return _absolute(cwd, Path(named)), "; correct CONFIG_PATH, or unset it"
    usual = cwd / "config.yaml"
    return usual if os.path.lexists(usual) else None, ""  # a broken link is an error, not the absence of a file


def _read(file: Path | None, remedy: str, cwd: Path, issues: list[_Issue]) -> _Source:
    if file is None:
        return _Source(None, "", "", {})
    name = _relative(file, cwd)
    nothing = _Source(file, name, "", {})
    try:
        text = read_text(file, MAX_CONFIG_BYTES)
        documents = load_documents(text)
    except InputFileError as error:
        code = error.code.replace("document_", "config_")
        issues.append(_Issue(code, name, error.line, "", error.message + (remedy if error.line is None else "")))
        return nothing
    if len(documents) > 1:
        issues.append(_Issue("config_invalid_document", name, None, "", "holds more than one YAML document; keep one"))
        return nothing
    data = documents[0] if documents else {}
    if not isinstance(data, dict):
        message = "must hold sections such as 'llm:' with keys and values"
        issues.append(_Issue("config_invalid_document", name, 1, "", message))
        return nothing
    return _Source(file, name, text, data)


def _take_over_mcp_gmail(source: _Source, issues: list[_Issue]) -> None:
    """The mailbox's server may have the name of earlier versions."""
    mcp, mailbox = source.data.get("mcp"), source.data.get("mailbox")
    if not isinstance(mcp, dict) or "gmail" not in mcp:
        return
    line, server = locate(source.text, ("mcp", "gmail")), mcp.pop("gmail")
    if isinstance(mailbox, dict) and "server" in mailbox:
        message = "is the earlier name of mailbox.server, which stands there, too; keep that one"
        issues.append(_Issue("config_removed_key", source.name, line, "mcp.gmail", message))
        return
    if isinstance(mailbox, dict | None):
        source.data["mailbox"] = {**(mailbox or {}), "server": server}
    logger.warning("%s:%s: mcp.gmail is read as mailbox.server, its name from now on. Rename it", source.name, line)


def _issue(problem: Problem, source: _Source) -> _Issue:
    code, message = f"config_{_CODES[problem.kind]}", problem.message
    key = problem.path[-1] if problem.path else ""
    if problem.kind == "unknown" and isinstance(key, str) and _SECRET_KEY.search(key) and "max" not in key:
        code, message = "config_secret_in_file", _where_secrets_belong(problem)
    is_timeout = key == "timeout_s" and problem.path[0] in ("mcp", "mailbox", "look_ups")
    removed = "*.timeout_s" if is_timeout else dotted_path(problem.path)
    if problem.kind == "unknown" and (remedy := _REMOVED.get(removed)) is not None:
        code, message = "config_removed_key", f"is no setting any more: {remedy}"
    return _Issue(code, source.name, problem.line, dotted_path(problem.path), message)


def _where_secrets_belong(problem: Problem) -> str:
    if problem.path[0] == "mcp" or problem.path[:2] == ("mailbox", "server"):
        server = dotted_path(problem.path[:2]) if len(problem.path) > 2 else "mcp.<service>"
        place = f"set a variable there and name it in {server}.env"
    elif problem.path[0] == "look_ups":
        place = "set a variable there and name it in the look-up's server.env"
    elif problem.path[:2] == ("mailbox", "oauth"):
        place = "set OAUTH_CLIENT_SECRET"
    elif problem.path[0] == "mailbox":
        place = "set SMTP_PASSWORD" if "smtp" in problem.path else "set IMAP_PASSWORD"
    else:
        place = "set ANTHROPIC_API_KEY"
    return f"secrets come from the environment: {place}, and remove this key"


_CODES: Final = {"missing": "missing_key", "unknown": "unknown_key", "type": "wrong_type", "value": "invalid_value"}


def _default_or_given_paths(data: Mapping[Any, Any], folder: Path, cwd: Path) -> dict[str, Path]:
    """Where the files are: as the user says, else in `cwd`, else as they come with the package."""
    local = cwd / "instructions"
    try:
        has_local = (local / "main.md").exists() or (local / "scenarios").exists()
    except PermissionError:  # which is told
        has_local = True
    instructions = local if has_local else built_in_path("instructions") or local
    suite = cwd / "evals" / "scenarios"
    paths = {
        "main": instructions / "main.md",
        "scenarios_dir": instructions / "scenarios",
        "test_suite_path": suite if suite.is_dir() else built_in_path("evals/scenarios") or suite,
    }
    for section, key in _PATH_KEYS:
        if (given := _given(data, section, key)) is not None:
            paths[key] = _absolute(folder, given)
    return paths


_PATH_KEYS: Final = (("instructions", "main"), ("instructions", "scenarios_dir"), ("eval", "test_suite_path"))


def _given(data: Mapping[Any, Any], section: str, key: str) -> Path | None:
    settings = data.get(section)
    value = settings.get(key) if isinstance(settings, dict) else None
    return Path(value) if isinstance(value, str) and value and "\0" not in value else None


def _missing_instructions(paths: Mapping[str, Path], source: _Source, cwd: Path) -> Iterator[_Issue]:
    for key, kind, exists in (("main", "file", Path.is_file), ("scenarios_dir", "folder", Path.is_dir)):
        path = paths[key]
        try:
            if exists(path):
                continue
            what = f"is no {kind}" if path.exists() else "does not exist"
        except PermissionError as error:
            what = f"cannot be reached ({error.strerror})"
        if _given(source.data, "instructions", key) is None:
            file, line, remedy = "", None, "create it, or name another one in config.yaml"
        else:
            file, line = source.name, locate(source.text, ("instructions", key))
            remedy = "correct the path, or remove the key to use the built-in instructions"
        message = f"the {kind} {_relative(path, cwd)} {what}; {remedy}"
        yield _Issue("config_path_not_found", file, line, f"instructions.{key}", message)


def _absolute(folder: Path, path: Path) -> Path:
    return Path(os.path.normpath(folder / path))


def _with_absolute_paths(section: Any, folder: Path) -> Any:
    changes: dict[str, Any] = {}
    for field in fields(section):
        value = getattr(section, field.name)
        if isinstance(value, Path):
            changes[field.name] = _absolute(folder, value)
        elif is_dataclass(value):
            changes[field.name] = _with_absolute_paths(value, folder)
        elif isinstance(value, Mapping):
            changes[field.name] = {
                key: _with_absolute_paths(item, folder) if is_dataclass(item) else item for key, item in value.items()
            }
    return replace(section, **changes)


def _relative(path: Path, cwd: Path) -> str:
    """A path as the user thinks of it: relative inside the working directory."""
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)


def _dotenv(cwd: Path, issues: list[_Issue]) -> dict[str, str]:
    file = cwd / ".env"
    if file.is_dir() or not os.path.lexists(file):  # some name a folder with a Python environment so
        return {}
    try:
        values, problems = parse_dotenv(read_text(file, MAX_CONFIG_BYTES))
    except InputFileError as error:
        issues.append(_Issue("config_dotenv_invalid", ".env", error.line, "", error.message))
        return {}
    issues += [_Issue("config_dotenv_invalid", ".env", line, "", message) for line, message in problems]
    return values


def read_secrets(config: Config, environment: Mapping[str, str]) -> Secrets:
    """What a configuration needs of the environment."""
    servers = (
        *(config.mailbox.server, config.mcp.warranty_api, config.mcp.ticketing_system),
        *(each.server for each in config.look_ups.values()),
    )
    names = [name for server in servers for name in server.env]

    def secret(name: str) -> str | None:
        # What was pasted or mounted from a file often ends with a line break.
        return environment.get(name, "").strip() or None

    # With access tokens there is one way to log in to both servers, unless a password is meant for this one.
    other_password = secret("IMAP_PASSWORD") if config.mailbox.oauth.provider is None else None
    return Secrets(
        anthropic_api_key=secret("ANTHROPIC_API_KEY"),
        anthropic_base_url=secret("ANTHROPIC_BASE_URL"),
        openai_api_key=secret("OPENAI_API_KEY"),
        openai_base_url=secret("OPENAI_BASE_URL"),
        imap_password=secret("IMAP_PASSWORD"),
        smtp_password=secret("SMTP_PASSWORD") or other_password,
        oauth_client_secret=secret("OAUTH_CLIENT_SECRET"),
        ledger_key=secret("LEDGER_KEY"),
        ledger_url=secret("LEDGER_URL"),
        mcp_environment={name: environment[name] for name in names if name in environment},
    )


def _error(issues: list[_Issue]) -> ConfigurationError:
    issues = sorted(issues, key=lambda issue: (issue.file, issue.line or 0))  # as they stand in the files
    code = issues[0].code if len(issues) == 1 else "config_invalid"
    problems = [issue._asdict() for issue in issues]
    return ConfigurationError("\n".join(map(str, issues)), code, {"problems": problems})


_ASSIGNMENT: Final = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_QUOTED: Final = re.compile(r"""(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:#.*)?""")
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


def parse_dotenv(text: str) -> tuple[dict[str, str], list[tuple[int, str]]]:
    """The variables, and the problems as (line from 1, what is wrong).

    Empty lines, `#` comments, `export`, 'literal' and "escaped" quotes are known; nothing is expanded.
    """
    values: dict[str, str] = {}
    problems: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        assignment = _ASSIGNMENT.fullmatch(line)
        if assignment is None:
            problems.append((number, "must be NAME=value, a comment or empty"))
            continue
        name, written = assignment.groups()
        if name in values:
            problems.append((number, f"{name} stands twice; keep one"))
        elif written.startswith(("“", "”", "„", "‘", "’", "«", "»")):  # as a word processor makes them
            problems.append((number, f"{name} begins with a typographic quote; write ' or none"))
        elif written[:1] in ("'", '"'):
            quoted = _QUOTED.fullmatch(written)
            if quoted is None:
                problems.append((number, f"the quotes of {name} do not close at the end of the line"))
                continue
            literal, escaped = quoted.groups()
            values[name] = (
                literal if literal is not None else _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), escaped)
            )
        else:
            values[name] = _COMMENT.sub("", written).rstrip()
    return values, problems
