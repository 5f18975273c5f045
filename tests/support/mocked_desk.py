"""The agent between its mocks, as an evaluation has it, for single mails."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shipped_instructions import SHIPPED

from guarantee_email_agent.email.processor import EmailProcessor
from guarantee_email_agent.email.processor_models import AnswerPolicy, ModelSettings, ProcessingResult
from guarantee_email_agent.eval.mocks import create_mock_clients
from guarantee_email_agent.eval.models import EvalEmail, EvalExpectedOutput, EvalInput, EvalTestCase
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.services.ports import Admission, Limit, ReplyHistory, Thread
from guarantee_email_agent.utils.clock import SkippingClock

VALID: Mapping[str, Any] = {"status": "valid", "expiration_date": "2031-02-03", "coverage": "full"}


def case(**mock_responses: Mapping[str, Any]) -> EvalTestCase:
    """What the mocks answer; the mail comes from the test itself."""
    return EvalTestCase(
        "case_001",
        "d",
        "case",
        "2026-01-18",
        EvalInput(EvalEmail("s", "b", "c@example.com", "2026-01-18"), mock_responses),
        EvalExpectedOutput(True, True, "valid-warranty"),
    )


@dataclass
class History:
    """Knows one thread, and says the limit it is given."""

    thread: Thread | None = None
    limit: Limit | None = None
    admissions: list[Admission] = field(default_factory=list)

    async def find_thread(self, reply_message_ids: Sequence[str]) -> Thread | None:
        return self.thread if self.thread and self.thread.reply_message_id in reply_message_ids else None

    async def admit(self, admission: Admission) -> Limit | None:
        self.admissions.append(admission)
        return self.limit


@dataclass
class Desk:
    """The agent between its mocks, with the order in which things reached them."""

    mocks: dict[str, Any]
    policy: AnswerPolicy = field(default_factory=AnswerPolicy)
    history: ReplyHistory | None = None
    instructions: Any = field(default_factory=lambda: InstructionFiles(SHIPPED / "main.md", SHIPPED / "scenarios"))
    model: ModelSettings = field(default_factory=lambda: ModelSettings("some-model"))

    def process(self, raw_mail: Any, arrived_at: float | None = None) -> ProcessingResult:
        return asyncio.run(self.processor().process_email(raw_mail, arrived_at))

    def processor(self) -> EmailProcessor:
        return EmailProcessor(
            mail=self.mocks["gmail"],
            look_ups={"warranty_api": self.mocks["warranty"]},
            ticketing=self.mocks["ticketing"],
            llm=self.mocks["anthropic"],
            instructions=self.instructions,
            model=self.model,
            clock=SkippingClock(),
            policy=self.policy,
            history=self.history,
        )

    @property
    def sent(self) -> list[dict[str, Any]]:
        return list(self.mocks["gmail"].sent_emails)

    @property
    def tickets(self) -> list[dict[str, Any]]:
        return list(self.mocks["ticketing"].created_tickets)

    @property
    def asked(self) -> list[str]:
        """The serial numbers that the warranty system was asked for."""
        return list(self.mocks["warranty"].calls)


def desk(
    llm: Any = None,
    *,
    policy: AnswerPolicy = AnswerPolicy(),  # noqa: B008 - it is frozen
    history: ReplyHistory | None = None,
    **mock_responses: Mapping[str, Any],
) -> Desk:
    mocks = create_mock_clients(case(**({"warranty_api": VALID} | mock_responses)))
    if llm is not None:
        mocks["anthropic"] = llm
    return Desk(mocks, policy, history)


def mail(body: str = "My dryer with serial number SN12345 is broken.", **more: Any) -> dict[str, Any]:
    return {
        "subject": "My dryer",
        "body": body,
        "from": "Jane <jane@example.com>",
        "received": "2026-01-18T10:00:00Z",
        "message_id": "<m1@example.com>",
    } | more
