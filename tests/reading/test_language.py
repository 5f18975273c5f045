import pytest

from guarantee_email_agent.reading.language import Language, read_language


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("My dishwasher has stopped draining and I would like to know if it is covered.", "en"),
        ("Mein Geschirrspüler pumpt nicht mehr ab, ist das noch von der Garantie gedeckt?", "de"),
        ("Ma machine à laver fuit depuis hier, est-elle encore sous garantie ?", "fr"),
        ("Mi lavadora pierde agua desde ayer, ¿sigue en garantía?", "es"),
        ("Moja pralka przecieka od wczoraj, czy jest jeszcze na gwarancji?", "pl"),
        ("Min tvättmaskin läcker vatten sedan igår, gäller garantin fortfarande?", "sv"),
        ("Моя пральна машина протікає, чи діє ще гарантія?", "uk"),
        ("洗濯機から水が漏れています。保証期間内でしょうか。", "ja"),
    ],
)
def test_a_text_of_some_length_has_a_language(text: str, code: str) -> None:
    found = read_language(text)
    assert (found.code, found.certainty > 0) == (code, True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "KT-77120-9",
        "SN 4711",
        "KT-77120-9, 50 Ω",
        "\x00\x01\ud800",
        "\U0010ffff" * 40,
        "S/N: TR20-B-008812\n\nVG\nR. Achterfeld\nmobil 0151 00990",
    ],
)
def test_what_is_too_short_to_tell_has_none(text: str) -> None:
    assert read_language(text) == Language(None, 0)


@pytest.mark.parametrize("text", ["Kettle\n\nЧайник сломался", "S/N KT-77120-9 壊れました、保証は"])
def test_what_is_mostly_of_another_script_is_in_some_language(text: str) -> None:
    assert read_language(text).code is not None
