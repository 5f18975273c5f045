"""What the agent would do with one mail, as steps for people and as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.eval.dry_run import DryRun
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.llm.prompts import CHOICE_TOOL, TRIAGE_TOOL, element_in

SCHEMA_VERSION: Final = 1
_CHANGES: Final = frozenset({"send_email", "save_draft", "create_ticket", "add_note"})


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the way of a mail. good: whether the agent went on, or came to an outcome. lines: details."""

    name: str
    text: str
    lines: tuple[str, ...] = ()
    good: bool = True


def describe_steps(run: DryRun, instructions: Instructions, source: str) -> list[Step]:
    """The steps in their order. source: where the answers of the warranty system come from, in words."""
    return list(_steps(run, instructions, source))


def json_report(run: DryRun, steps: list[Step]) -> dict[str, Any]:
    """Everything about the run, for a machine."""
    report, reply = run.report, run.reply
    return {
        "schema_version": SCHEMA_VERSION,
        "outcome": run.outcome,
        "scenario_used": report.scenario_used,
        "skip_reason": report.skip_reason,
        "hand_over_reasons": list(report.hand_over_reasons),
        "failed_step": report.failed_step,
        "error": report.error_message,
        "reply": None if reply is None else {name: reply[name] for name in ("to", "subject", "body")},
        "ticket": None if run.ticket is None else ticket_fields(run.ticket),
        "steps": [{"step": step.name, "text": step.text, "lines": list(step.lines)} for step in steps],
        "conversation": run.trace.conversation,
        "calls": run.trace.execution_trace,
    }


def _steps(run: DryRun, instructions: Instructions, source: str) -> Iterator[Step]:
    report = run.report
    yield Step("mail", run.email.subject or "(no subject)", tuple(_mail_lines(run.email)))
    if report.skip_reason is not None:
        yield Step("may reply", f"no: {report.skip_reason}")
    elif report.failed_step not in ("parse", "instructions"):
        yield Step("may reply", "yes")
        yield from _steps_of_model(run, source)
    if report.scenario_used is not None:
        yield Step("scenario", report.scenario_used, tuple(_trigger_lines(instructions, report.scenario_used)))
    yield from _sentences(run)
    if run.ticket is not None:
        lines = tuple(f"{name}: {value}" for name, value in ticket_fields(run.ticket).items())
        yield Step("ticket", "would be opened", lines)
    if run.reply is not None:
        lines = (f"Subject: {run.reply['subject']}", "", *str(run.reply["body"]).splitlines())
        yield Step("reply", f"to {run.reply['to']}", lines)
    if report.failed_step is not None:
        yield Step("stopped", f"in step {report.failed_step}: {report.error_message}", good=False)


def _steps_of_model(run: DryRun, source: str) -> Iterator[Step]:
    reasons = ", ".join(run.report.hand_over_reasons)
    triages = [call for call in _tool_calls(run) if call[0] == TRIAGE_TOOL]
    if reasons and not triages:
        yield Step("for a person", f"yes, by the mail's words: {reasons}")
        return
    for _, answer, _ in triages[-1:]:
        yield Step("triage", "the model reads:", tuple(f"{name}: {_as_text(value)}" for name, value in answer.items()))
    if reasons:
        yield Step("for a person", f"yes: {reasons}")
    for entry in run.trace.execution_trace:
        action = dict(entry["action"])
        if (name := action.pop("action_type")) not in _CHANGES:
            asked = ", ".join(map(str, action.values()))
            yield Step("look-up", f"{name} {asked} ({source})", (str(entry["feedback"]["message"]),))


def _mail_lines(email: Email) -> Iterator[str]:
    yield f"from: {email.sender or '<>'}"
    if email.recipients:
        yield f"to: {', '.join(email.recipients)}"
    if email.received:
        yield f"received: {email.received}"
    for name, text in (("new", email.new_text), ("quoted", email.quoted_text), ("signature", email.signature_text)):
        if count := sum(1 for line in text.splitlines() if line.strip()):
            yield f"{name} text: {count} line{'' if count == 1 else 's'}"
    if email.attachments:
        yield f"attachments, by name only: {', '.join(email.attachments)}"
    for problem in email.problems:
        yield f"note: {problem}"


def _trigger_lines(instructions: Instructions, name: str) -> Iterator[str]:
    """Each condition of a scenario's trigger, with the parts that it gives."""
    for scenario in instructions.scenarios:
        if scenario.name == name:
            for condition in scenario.trigger:
                yield f"trigger: {_as_text(_given_fields(condition))}"


def _given_fields(condition: Any) -> dict[str, Any]:
    if not is_dataclass(condition):
        return dict(condition)
    return {each.name: getattr(condition, each.name) for each in fields(condition) if getattr(condition, each.name)}


def _sentences(run: DryRun) -> Iterator[Step]:
    """Which sentences the model chose, of those that it was offered."""
    for name, answer, request in _tool_calls(run):
        if name == CHOICE_TOOL:
            offered = element_in(request, "sentences") or []
            chosen = answer.get("ids", ())
            lines = [
                f"{'+' if each['id'] in chosen else '-'} {each['id']}: {' '.join(str(each.get('text', '')).split())}"
                for each in offered
            ]
            yield Step("sentences", f"{len(chosen)} of {len(offered)} offered were chosen (+)", tuple(lines))


def _tool_calls(run: DryRun) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Each tool that the model called, what it gave, and the request before it."""
    request = ""
    for message in run.trace.conversation:
        if message["role"] == "user":
            request = str(message["content"])
        for call in message.get("tool_calls", ()):
            function = call["function"]
            answer = json.loads(function["arguments"])
            if isinstance(answer, dict):
                yield function["name"], answer, request


def ticket_fields(ticket: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a captured ticket that the agent decided."""
    return {name: value for name, value in ticket.items() if name not in ("idempotency_key", "ticket_id")}


def _as_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_as_text(each)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
