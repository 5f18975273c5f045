"""The lines of the log that say what became of a mail, with the outcome as a field of its own."""

from __future__ import annotations

import logging
from typing import Any

from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.integrations.ports import MailMark
from guarantee_email_agent.ledger.tables import BY_TEMPLATE

logger = logging.getLogger(__name__)


def outcome_fields(outcome: str, code: str = "") -> dict[str, Any]:
    """As `extra` of a line. outcome: of the mail, or why it has none. code: why."""
    return {"fields": {"outcome": outcome, **({"code": code} if code else {})}}


def log_processed(mail_id: str, result: ProcessingResult, *, observes: bool, by_template: bool) -> tuple[MailMark, str]:
    """Log a mail that was processed; its outcome, and the code that the ledger keeps of it."""
    took_ms, would_be = result.processing_time_ms, "would be " if observes else ""
    scenario = str(result.scenario_used)
    outcome: MailMark
    if result.hand_over_reasons:
        outcome, code, line = "handed_over", result.hand_over_reasons[0], f"Email {would_be}handed over"
        told = ", ".join(result.hand_over_reasons)
    elif result.skip_reason:
        outcome, code, line, told = "not_answered", "no_reply", f"Email {would_be}not answered", result.skip_reason
    else:
        code, told = (f"{scenario}{BY_TEMPLATE}", f"{scenario}, by template") if by_template else (scenario, scenario)
        if result.drafted:
            outcome, line = "drafted", "Reply drafted"
        else:
            outcome, line = "answered", f"Email {would_be}answered"
            told += f", ticket {result.ticket_id}" if result.ticket_id else ", a ticket" if result.ticket_fields else ""
    fields = outcome_fields("observed" if observes else outcome, code)
    logger.info("%s: %s (%s) in %d ms", line, mail_id, told, took_ms, extra=fields)
    return outcome, code
