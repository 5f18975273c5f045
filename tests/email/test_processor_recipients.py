"""Who is answered: conversations, hand-over, limits, senders that are not proved, and the modes of the agent."""

import json
from dataclasses import replace
from typing import Any

import pytest
from mocked_desk import Desk, History, desk, mail

from guarantee_email_agent.email.processor import OPEN_TICKET_NUMBER
from guarantee_email_agent.email.processor_models import AnswerPolicy
from guarantee_email_agent.services.ports import Thread
from guarantee_email_agent.utils.errors import IntegrationError

REPLY_ID = "<reply-1@example.com>"
ANSWERS_US = {"References": f"<m0@example.com> {REPLY_ID}"}


def thread(scenario: str = "valid-warranty", ticket_id: str | None = "T-7", follow_ups: int = 0) -> Thread:
    return Thread("thread-key", scenario, ticket_id, REPLY_ID, 1000.0, 1 + follow_ups, follow_ups)


def follow_up(body: str, known: Thread | None = None, **more: Any) -> tuple[Desk, Any]:
    agent = desk(history=History(known or thread()))
    return agent, agent.process(mail(body, subject="Re: My dryer", headers=ANSWERS_US, **more), 90_000.0)


def notes(agent: Desk) -> list[tuple[str, str]]:
    return list(agent.mocks["ticketing"].notes.values())


class TestForwardedMails:
    FIRE = "---------- Forwarded message ---------\nFrom: Kim <kim@example.org>\n\nMy dryer SN12345 caught fire."

    @pytest.mark.parametrize("comment", ["", "See below.\n\n", "FYI, Jane\n\n"])
    def test_the_words_of_a_mere_forward_are_those_that_it_forwards(self, comment: str) -> None:
        agent = desk()
        result = agent.process(mail(comment + self.FIRE, subject="Fwd: Dryer"))
        assert (result.hand_over_reasons, agent.sent, agent.tickets) == (("fire",), [], [])

    def test_who_writes_more_is_taken_at_his_own_words(self) -> None:
        comment = "This is about my other dryer, serial number SN54321, which only fails to turn.\n\n"
        agent = desk()
        assert agent.process(mail(comment + self.FIRE, subject="Fwd: Dryer")).hand_over_reasons == ()
        assert agent.asked == ["SN54321"]


class TestConversations:
    @pytest.mark.parametrize(
        "body",
        [
            "Thank you very much!",
            "Here is the photo.",
            "When will you call me?",
            "Please close the ticket.",
            "My lawyer will write to you.",
            "Delete my personal data, please (GDPR).",
            "It is SN12345, as I said.\n\n> Serial number: SN12345",
        ],
    )
    def test_a_reply_to_our_reply_is_no_new_claim(self, body: str) -> None:
        agent, result = follow_up(body)
        assert (result.success, result.scenario_used, bool(result.hand_over_reasons)) == (True, "hand-over", True)
        assert (agent.sent, agent.tickets, agent.asked) == ([], [], [])

    def test_it_is_noted_on_the_ticket_without_the_customers_words(self) -> None:
        agent, _ = follow_up("Here is the photo of my secret drawer.", attachments=["drawer.jpg"])
        ((ticket, note),) = notes(agent)
        assert ticket == "T-7"
        assert "<m1@example.com>" in note
        assert "drawer" not in note

    @pytest.mark.parametrize("scenario", ["missing-info", "graceful-degradation", "invalid-warranty"])
    def test_the_number_that_we_asked_for_is_answered(self, scenario: str) -> None:
        agent, result = follow_up("SN12345", thread(scenario, None))
        assert (result.scenario_used, result.email_sent, agent.asked) == ("valid-warranty", True, ["SN12345"])

    @pytest.mark.parametrize("body", ["But it is sn 12345!", "Serial number: 12345"])
    def test_a_number_that_our_reply_named_is_none_in_another_spelling(self, body: str) -> None:
        quoted = "\n\n> We looked for the serial number SN12345,\n> but it is not in our records."
        agent, result = follow_up(body + quoted, thread("invalid-warranty", None))
        assert (result.hand_over_reasons, agent.asked) == (("follow-up",), [])

    @pytest.mark.parametrize(
        ("body", "number"),
        [("12345678", "12345678"), ("00471-KL\n\nBest, Jane", "00471-KL"), ("It is 7781204.", "7781204")],
    )
    def test_a_bare_number_is_an_answer_whether_or_not_our_question_is_quoted(self, body: str, number: str) -> None:
        agent, result = follow_up(body, thread("missing-info", None))
        assert (result.scenario_used, agent.asked) == ("valid-warranty", [number])

    @pytest.mark.parametrize(
        "body", ["I cannot find it.", "SN12345 or SN54321", "Sure!\n\n> Hello\n> My serial number is SN12345"]
    )
    def test_what_is_no_answer_to_our_question_is_handed_over(self, body: str) -> None:
        agent, result = follow_up(body, thread("missing-info", None))
        assert (result.hand_over_reasons, agent.sent) == (("follow-up",), [])

    def test_a_second_follow_up_is_handed_over_whatever_it_says(self) -> None:
        _, result = follow_up("SN12345", thread("missing-info", None, follow_ups=1))
        assert result.hand_over_reasons == ("follow-up",)

    def test_what_answers_within_seconds_is_a_machine(self) -> None:
        agent = desk(history=History(thread()))
        result = agent.process(mail("I will be back on Monday, SN12345", headers=ANSWERS_US), 1003.0)
        assert (result.scenario_used, bool(result.skip_reason), agent.sent) == ("no-reply", True, [])

    def test_a_fire_in_a_mail_that_crossed_ours_is_handed_over(self) -> None:
        agent = desk(history=History(thread()))
        result = agent.process(mail("Meanwhile it caught fire!", headers=ANSWERS_US), 1003.0)
        assert (result.scenario_used, result.hand_over_reasons, agent.sent) == ("hand-over", ("fire",), [])

    def test_a_note_that_cannot_be_added_fails_the_mail_for_another_try(self) -> None:
        agent = desk(ticketing={"error": "unavailable"}, history=History(thread()))
        result = agent.process(mail("Thanks", headers=ANSWERS_US), 90_000.0)
        assert (result.success, result.failed_step) == (False, "hand_over")

    def test_a_ticket_that_is_gone_keeps_no_mail_from_a_person(self) -> None:
        agent = desk(history=History(thread()))
        agent.mocks["ticketing"].add_note = _refuse
        result = agent.process(mail("Thanks", headers=ANSWERS_US), 90_000.0)
        assert (result.success, result.hand_over_reasons) == (True, ("follow-up",))

    @pytest.mark.parametrize(
        "message_id",
        [
            "Pay the drawer back",
            "<pay the drawer@example.com>",
            "<drawer,pay>",
            "<drawer@b>pay",
            f"<{'drawer' * 50}@b>",
            "",
        ],
    )
    def test_a_message_id_that_may_be_a_sentence_is_not_noted(self, message_id: str) -> None:
        agent, _ = follow_up("Here is the photo.", message_id=message_id)
        ((_, note),) = notes(agent)
        assert note == "The customer wrote again (follow-up): a mail without a usable Message-ID"


async def _refuse(*_: object) -> bool:
    raise IntegrationError("there is no such ticket", "ticketing_unknown_ticket")


class TestHandOver:
    def test_a_fire_gets_no_good_news(self) -> None:
        agent = desk()
        result = agent.process(mail("Dryer SN12345 caught fire, my son is in hospital"))
        assert (result.scenario_used, result.success) == ("hand-over", True)
        assert {"fire", "injury"} <= set(result.hand_over_reasons)
        assert (agent.sent, agent.tickets, agent.asked, agent.mocks["anthropic"].requests) == ([], [], [], [])

    def test_a_subject_counts_in_a_conversation_that_is_not_ours(self) -> None:
        agent = desk()
        result = agent.process(mail("The number that you asked for is SN12345.", subject="Re: Fire in our kitchen"))
        assert (result.hand_over_reasons, agent.sent) == (("fire",), [])

    def test_what_is_quoted_is_not_what_the_customer_says(self) -> None:
        body = "Is SN12345 under warranty?\n\nOn 3 May, Bob wrote:\n> mine caught fire"
        assert desk().process(mail(body)).email_sent

    def test_the_model_may_add_a_reason(self) -> None:
        agent = desk()
        agent.mocks["anthropic"] = _Adding(agent.mocks["anthropic"], ["injury", "invented"])
        result = agent.process(mail())
        assert (result.hand_over_reasons, agent.sent, agent.asked) == (("injury",), [], [])

    def test_the_model_cannot_remove_one(self) -> None:
        agent = desk()
        agent.mocks["anthropic"] = _Adding(agent.mocks["anthropic"], [])
        assert agent.process(mail("SN12345 caught fire")).hand_over_reasons == ("fire",)


class _Adding:
    """A model that gives these reasons in triage."""

    def __init__(self, model: Any, reasons: list[str]) -> None:
        self._model, self._reasons = model, reasons

    @property
    def messages(self) -> Any:
        return self

    async def create(self, **request: Any) -> Any:
        answer = await self._model.create(**request)
        block = answer.content[0]
        if "topic" not in block.input:
            return answer
        return replace(answer, content=(replace(block, input={**block.input, "hand_over": self._reasons}),))


class TestLimits:
    @pytest.mark.parametrize("limit", ["address", "thread", "hour", "text"])
    def test_beyond_a_limit_a_mail_is_handed_over_before_anything_is_asked(self, limit: str) -> None:
        agent = desk(history=History(limit=limit))
        result = agent.process(mail())
        assert result.hand_over_reasons == (f"limit-{limit}",)
        assert (agent.sent, agent.asked, agent.mocks["anthropic"].requests) == ([], [], [])

    def test_one_address_is_counted_as_one(self) -> None:
        history = History()
        agent = desk(history=history)
        agent.process(mail(**{"from": "Jane <JANE@example.com>"}))
        agent.process(mail(message_id="<m2@example.com>"))
        first, second = history.admissions
        assert (first.sender_key, first.text_key) == (second.sender_key, second.text_key)

    def test_nothing_a_customer_wrote_is_handed_to_the_history(self) -> None:
        history = History()
        agent = desk(history=history)
        agent.process(mail("My dryer with serial number SN12345 is broken since the day before yesterday."))
        (admission,) = history.admissions
        assert all(
            len(key) == 32 and set(key) <= set("0123456789abcdef")
            for key in (admission.sender_key, admission.text_key or "")
        )


class TestSenders:
    NEUTRAL = AnswerPolicy(sender_check="neutral", authserv_id="mx.example.com")

    def test_another_gets_no_status_no_date_no_ticket_and_no_look_up(self) -> None:
        agent = desk(policy=self.NEUTRAL)
        result = agent.process(mail(subject="SN12345 and a rude word"))
        assert (result.scenario_used, result.email_sent) == ("unverified-sender", True)
        assert (agent.asked, agent.tickets) == ([], [])
        (reply,) = agent.sent
        assert not {"SN12345", "2031-02-03"} & set(reply["body"].split())
        assert reply["subject"] == "Re: your message"

    def test_it_is_held_for_a_person_where_that_is_wanted(self) -> None:
        agent = desk(policy=replace(self.NEUTRAL, sender_check="hold"))
        result = agent.process(mail())
        assert (result.hand_over_reasons, agent.sent) == (("unverified-sender",), [])

    @pytest.mark.parametrize(
        ("owner", "scenario"), [("JANE@example.com", "valid-warranty"), ("o@x.org", "unverified-sender")]
    )
    def test_the_owner_alone_is_told(self, owner: str, scenario: str) -> None:
        agent = desk(warranty_api={"status": "valid", "expiration_date": "2031-02-03", "owner_email": owner})
        result = agent.process(mail())
        assert (result.scenario_used, bool(agent.tickets)) == (scenario, scenario == "valid-warranty")

    def test_a_stranger_hears_the_same_of_every_device_of_somebody_else(self) -> None:
        bodies = set()
        for status in ("valid", "expired"):
            agent = desk(warranty_api={"status": status, "expiration_date": "2031-02-03", "owner_email": "o@x.org"})
            agent.process(mail())
            bodies.add(agent.sent[0]["body"])
        assert len(bodies) == 1

    def test_a_trusted_form_is_answered_at_its_reply_to(self) -> None:
        agent = desk(policy=AnswerPolicy(trusted_forms=frozenset({"noreply@shop.example"})))
        form = {"from": "noreply@shop.example", "headers": {"Reply-To": "buyer@example.org"}}
        agent.process(mail(**form))
        assert [reply["to"] for reply in agent.sent] == ["buyer@example.org"]
        assert [ticket["customer_email"] for ticket in agent.tickets] == ["buyer@example.org"]

    @pytest.mark.parametrize("form", ["form@shop.example", "noreply@shop.example"])
    @pytest.mark.parametrize("sender_check", ["neutral", "hold"])
    def test_a_form_that_is_not_proved_is_left_to_a_person(self, form: str, sender_check: Any) -> None:
        agent = desk(policy=replace(self.NEUTRAL, sender_check=sender_check, trusted_forms=frozenset({form})))
        result = agent.process(mail(**{"from": form, "headers": {"Reply-To": "victim@example.org"}}))
        assert (result.hand_over_reasons, agent.sent) == (("unverified-sender",), [])


class TestModes:
    def test_a_draft_has_all_that_a_person_needs_and_nothing_else_happens(self) -> None:
        agent = desk(policy=AnswerPolicy(mode="drafts"))
        result = agent.process(mail())
        assert (result.success, result.drafted, result.email_sent, result.ticket_created) == (True, True, False, False)
        assert (agent.sent, agent.tickets) == ([], [])
        (draft,) = agent.mocks["gmail"].drafts
        assert (draft["to"], draft["in_reply_to"]) == ("jane@example.com", "<m1@example.com>")
        assert "Auto-Submitted" not in draft["headers"]
        assert json.loads(draft["headers"]["X-Agent-Ticket"])["serial_number"] == "SN12345"
        assert OPEN_TICKET_NUMBER in draft["body"]

    def test_observing_leaves_no_trace(self) -> None:
        agent = desk(policy=AnswerPolicy(mode="observe"))
        result = agent.process(mail())
        assert (result.success, result.observed, result.scenario_used) == (True, True, "valid-warranty")
        assert (agent.sent, agent.tickets, agent.mocks["gmail"].drafts) == ([], [], [])

    @pytest.mark.parametrize("mode", ["drafts", "observe"])
    def test_no_note_is_added(self, mode: Any) -> None:
        agent = desk(policy=AnswerPolicy(mode=mode))
        agent.history = History(thread())
        result = agent.process(mail("Thanks!", headers=ANSWERS_US), 90_000.0)
        assert (result.hand_over_reasons, notes(agent)) == (("follow-up",), [])
