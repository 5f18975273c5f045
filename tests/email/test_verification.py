from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shipped_instructions import shipped_interpreter

from guarantee_email_agent.email.parsing.email import Email, Span
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.verification import verify_serial_numbers
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.interpreter.serial_numbers import canonical_serial_number
from guarantee_email_agent.llm.prompts import triage_request

LABELLED_MAILS = Path(__file__).parents[1] / "interpreter" / "mails"


def mail(new: str = "", *, subject: str = "", quoted: str = "", signature: str = "") -> Email:
    spans = (Span("new", new), Span("quoted", quoted), Span("signature", signature))
    return Email("m1", "c@example.com", (), subject, "", spans, ())


def every_candidate(text: str) -> list[str]:
    """All that a model could pick: every substring, with and without what stands between words, and SN before it."""
    words = text.split()
    joined = ["".join(words), " ".join(words), "".join(sign for sign in text if sign.isalnum())]
    spans = {one[i:j] for one in joined for i in range(len(one)) for j in range(i + 2, min(i + 30, len(one)) + 1)}
    return sorted(spans | {f"SN{span}" for span in spans})


@pytest.mark.parametrize("candidate", ["SN12345", "sn12345", " SN12345 ", "SN-12345", "12345", "ＳＮ１２３４５"])
def test_a_candidate_is_given_back_as_the_mail_has_it(candidate: str, lexicon: Lexicon) -> None:
    assert verify_serial_numbers([candidate], mail("My sn12345 broke."), lexicon) == ("SN12345",)


@pytest.mark.parametrize(
    ("candidates", "email", "kept"),
    [
        pytest.param(["SN99999", "SN12345"], mail("My SN12345 broke."), ("SN12345",), id="an invention is dropped"),
        *(
            pytest.param(["SN12345"], mail(written), ("SN12345",), id=repr(written))
            for written in ("SN 123 45", "SN 12345", "SN: 12345", "SN\n12345", "ＳＮ１２３４５", "SN12\u200b3\u00ad45")
        ),
        pytest.param(["SN12345"], mail("Serial number: 12345"), ("12345",), id="SN is no part of it"),
        pytest.param(["SN12345"], mail("It broke.", subject="SN12345"), ("SN12345",), id="in the subject"),
        pytest.param(
            ["SN222", "SN111", "SN333"],
            mail("It is SN111.", quoted="> e.g. SN222", signature="SN333"),
            ("SN111",),
            id="newly written before quoted text and signature",
        ),
        pytest.param(["SN222"], mail("Any news?", quoted="> SN222"), ("SN222",), id="quoted where nothing is new"),
        pytest.param(["SN222"], mail("It is SN111.", quoted="> SN222"), (), id="quoted where another is new"),
        pytest.param(
            ["SN12345", "SN-12345", "12345"], mail("SN-12345 or SN12345"), ("SN-12345",), id="spellings of one number"
        ),
        pytest.param(["SN111", "SN222"], mail("SN111 and SN222"), ("SN111", "SN222"), id="several devices"),
        pytest.param(["SN222"], mail("SN111 and SN222"), ("SN222", "SN111"), id="one of several devices is left out"),
        pytest.param(["SN111", "SN222"], mail("SN111/SN222"), ("SN111", "SN222"), id="several with a slash"),
        pytest.param(["AB12345"], mail("It is AB12345.Thanks"), ("AB12345",), id="a blank is missing"),
        pytest.param(["7719003"], mail("It's 7719003", quoted="> The serial number?"), ("7719003",), id="an answer"),
        pytest.param(
            ["7719003"], mail("The serial, so says my wife, seems 7719003"), ("7719003",), id="a label further off"
        ),
        pytest.param(
            ["7719003"],
            mail("The serial, so says my wife, seems 7719003. I have had it for 2 years."),
            ("7719003",),
            id="a label further off, and another number behind the sentence",
        ),
        pytest.param(["ABCD-123"], mail("My ABCD-123 broke."), ("ABCD-123",), id="three digits need no label"),
        pytest.param(["ABCDE-12"], mail("My ABCDE-12 broke."), (), id="two digits need one"),
        pytest.param(["KX200"], mail("My KX200, serial number 4711-A"), (), id="another number is the labelled one"),
        pytest.param(
            ["KX20055", "4711-A"], mail("My KX20055, S/N 4711-A"), ("KX20055", "4711-A"), id="one more than labelled"
        ),
    ],
)
def test_which_candidates_count(candidates: list[str], email: Email, kept: tuple[str, ...], lexicon: Lexicon) -> None:
    assert verify_serial_numbers(candidates, email, lexicon) == kept


@pytest.mark.parametrize(
    ("written", "serial_number"),
    [
        ("My drill ZX-9001-11 broke.", "ZX-9001-11"),
        ("My drill, 4C 7719 0033 X, is dead", "4C77190033X"),
        ("S/N 4C 7719 0033 X", "4C77190033X"),
        ("Serial no 00471-KL", "00471-KL"),
        ("Serial no 00471 KL", "00471KL"),
        ("Serial 1234 5678 9012", "123456789012"),
        ("Model KX200, serial FD 9804 00231.", "FD980400231"),
        ("Serial number 7719003, order 88120934, tel. 030 23125014", "7719003"),
        ("Bought on 2024-03-15 for 49.99 EUR (order 2025-4471): SN12345", "SN12345"),
        ("SN12345\n678 people wrote the same.", "SN12345"),
        ("S/N 4711-A 2 years old", "4711-A"),
    ],
)
def test_of_all_that_a_model_could_pick_only_the_whole_number_counts(
    written: str, serial_number: str, lexicon: Lexicon
) -> None:
    assert verify_serial_numbers(every_candidate(written), mail(written), lexicon) == (serial_number,)


@pytest.mark.parametrize(
    "written",
    [
        "Order number 88120934, ordered on 15 March 2024",
        "Order 88120934. Where is 88120934?",
        "My order AB-88120 has not come. AB-88120!",
        "Invoice RE-55810, customer no. 771204",
        "Please call me at (030) 231 25014 or +48 601 234 567",
        "My phone is 601-234-567",
        "Reach me: 0171 2345678",
        "555-123-4567",
        "Bank: DE89 3704 0044 0532 0130 00",
        "GB29NWBK60161331926819 or NL91 ABNA 0417 1643 00",
        "Bought in 2024, on 2024-03-15, 15.03.2024, 15/03/24, 20240315 or 15032024 at 12:30:45",
        "I live in D-10115 Berlin, 12345 Springfield, London SW1A 1AA, 1234 AB Amsterdam, 00-950 Warszawa, K1A 0B1",
        "The parcels 1Z999AA10123456784, RR123456785DE and 00340434292135100186",
        "It costs €1234567, 1234567€, 1,234,567 or 12'345'678",
        "The serial number is unreadable, but I paid 8812093 then",
        "See https://example.com/SN12345 and SN12345@example.com",
        "It looks like SN12345",
        "My KX200 shows E2001",
        "Photo4711889.jpg, IMG_20240315_112233",
        "\u0405N12345 and S\u041d-12345",  # Cyrillic letters that look like S and H
        "SN123²",
        "SN1234\u03365 and SN\u0661\u0662\u0663\u0664\u0665",
        "SN123-\n456",
    ],
)
def test_another_number_never_counts_however_a_model_cuts_it(written: str, lexicon: Lexicon) -> None:
    assert verify_serial_numbers(every_candidate(written), mail(written), lexicon) == ()


@pytest.mark.parametrize(
    "candidate",
    ["", " ", "abc", "-12345", "12345-", "1", "SN12345\nBcc: x", "SN<12345>", "SN--12345", "1" * 60, "{12}"],
)
def test_what_cannot_be_a_serial_number_is_dropped(candidate: str, lexicon: Lexicon) -> None:
    assert verify_serial_numbers([candidate], mail(f"It is {candidate}, yes."), lexicon) == ()


_SERIALS = st.one_of(
    st.from_regex(r"SN[1-9][0-9]{4,7}", fullmatch=True),
    st.from_regex(r"[BCFGHJK][A-Z]-[1-9][0-9]{3}-[0-9]{2}", fullmatch=True),
    st.from_regex(r"[A-Z]{2}[0-9]{3}[A-Z][0-9]{2}", fullmatch=True),
    st.from_regex(r"[1-9][0-9]{6,9}", fullmatch=True),
)
_OTHERS = st.one_of(
    st.from_regex(r"[0-9]{6,10}", fullmatch=True).map("Order number: {}".format),
    st.from_regex(r"[0-9]{3} [0-9]{3} [0-9]{3}", fullmatch=True).map("Phone +48 {}".format),
    st.from_regex(r"DE[0-9]{2}( [0-9]{4}){4} [0-9]{2}", fullmatch=True).map("IBAN {}".format),
    st.from_regex(r"20[0-9]{2}-0[1-9]-[12][0-9]", fullmatch=True).map("Bought {}".format),
    # Not alone on its line: below a number it could be the second of a list, and the agent asks back.
    st.from_regex(r"[1-9][0-9]{4}", fullmatch=True).map("I live in {} Berlin".format),
    st.from_regex(r"[0-9]{12,20}", fullmatch=True).map("Tracking number {}".format),
)


@settings(max_examples=50)
@given(_SERIALS, st.lists(_OTHERS, min_size=1, max_size=2), st.booleans())
def test_nothing_but_the_labelled_number_is_ever_kept(
    lexicon: Lexicon, serial_number: str, others: list[str], is_first: bool
) -> None:
    label = f"Serial number: {serial_number}"
    text = "\n".join([label, *others] if is_first else [*others, label])
    kept = verify_serial_numbers(every_candidate(text), mail(text), lexicon)
    assert set(map(canonical_serial_number, kept)) <= {canonical_serial_number(serial_number)}


@given(st.lists(st.text(max_size=70), max_size=5), st.text(max_size=100))
def test_whatever_is_kept_is_short_plain_and_stands_in_the_mail(
    lexicon: Lexicon, candidates: list[str], text: str
) -> None:
    for number in verify_serial_numbers([*candidates, text, *text.split()], mail(text), lexicon):
        assert number.isascii()
        assert number.isprintable()
        assert len(number) <= 60
        assert any(sign.isdigit() for sign in number)


def test_no_right_extraction_of_the_interpreter_is_lost_or_respelled(
    instructions: Instructions, lexicon: Lexicon
) -> None:
    async def lost() -> list[str]:
        wrong = []
        for path in sorted(LABELLED_MAILS.glob("*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                labelled = json.loads(line)
                headers = {"Content-Type": "text/html"} if labelled.get("html") else {}
                raw = {"subject": labelled["subject"], "body": labelled["body"], "from": "c@example.com"}
                email = parse_email({**raw, "message_id": labelled["id"], "headers": headers})
                answer = await shipped_interpreter().create(**triage_request(email, instructions))
                found = answer.content[0].input["serial_numbers"]
                right = {canonical_serial_number(number) for number in labelled.get("serials", ())}
                if set(map(canonical_serial_number, found)) == right:
                    kept = verify_serial_numbers(found, email, lexicon)
                    wrong.extend([f"{labelled['id']}: {found} became {kept}"] if list(kept) != list(found) else [])
        return wrong

    assert asyncio.run(lost()) == []
