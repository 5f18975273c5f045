"""Where an attribution starts; what is quoted below one is tested with `quoting`, program by program."""

import pytest

from guarantee_email_agent.email.parsing.attributions import (
    find_attribution,
    is_attribution_between_dashes,
    is_attribution_with_text,
    is_attribution_without_colon,
)

ABOVE = "My drill stopped working."


def start(*lines: str, is_marked: bool = False) -> tuple[int, int] | None:
    """Line and column of the attribution that ends in the last line."""
    return find_attribution(list(lines), len(lines) - 1, is_marked=is_marked)


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (("On 5/1/2026 10:00, Support <support@example.com> wrote:",), 1),
        (("On 5/1/2026 10:00, Support", "<support@example.com> wrote:"), 1),
        (("On 5/1/2026", "at 10:00,", "Support <", "support@example.com>", "wrote:"), 1),
        (("", "Support <support@example.com> wrote:"), 2),
        (("On 5 May it broke, SN12345", "", "<support@example.com> wrote:"), 3),
        (("", "On 5/1/2026 10:00, Support wrote:"), 2),
    ],
)
def test_an_attribution_starts_at_its_opening(lines: tuple[str, ...], line: int) -> None:
    assert start(ABOVE, *lines) == (line, 0)


def test_an_attribution_has_at_most_five_lines() -> None:
    assert start("On 5/1/2026", "at", "10:00", "Dr.", "Support", "wrote:") is None


def test_behind_other_text_the_column_says_where_it_starts() -> None:
    assert start("  Yes. On 5/1/2026 10:00, Support wrote:") == (0, 7)


def test_a_sentence_of_the_customers_that_opens_like_one_stays_new() -> None:
    line = "On 3 February it broke. On Wed, Feb 4, 2026 at 3:59 PM, desk@example.net wrote:"
    assert start(line) == (0, line.index("On Wed"))


@pytest.mark.parametrize("line", ["Jane wrote:", "On 5/1/2026 you wrote:", "support <a@example.com> wrote:"])
def test_little_is_enough_above_marked_lines(line: str) -> None:
    assert (start(line), start(line, is_marked=True)) == (None, (0, 0))


@pytest.mark.parametrize(
    "line",
    [
        "On 5/1/2026 at 10:00 Amazon wrote:",
        "On 5/1/2026 at 10:00, my son wrote:",
        "On Monday support@example.com wrote:",
        "On 5 May 2024 I wrote to Jane <jane@example.com>:",
        "On 5 May 2024 we sent it to Jane <jane@example.com>:",
        "On Monday I bought from jane@example.com what she sent:",
        "Am Montag schrieb ich Jane <jane@example.com>:",
        "Am Montag schrieb mir Jane <jane@example.com>:",
        "Den 5. januar 2026 skrev jeg Jane <jane@example.com>:",
    ],
)
def test_what_people_tell_of_mails_is_no_attribution(line: str) -> None:
    assert start(ABOVE, line) is None


@pytest.mark.parametrize(
    ("line", "is_marked", "expected"),
    [
        ("On 5/1/2026 10:00 Jane <jane@example.com> wrote", False, True),
        ("On 5/1/2026 Jane <jane@example.com> wrote", False, False),
        ("This is what jane@example.com wrote", False, False),
        ("2026/1/5 Jane <jane@example.com>", True, True),
        ("2026/1/5 Jane <jane@example.com>", False, False),
    ],
)
def test_an_attribution_without_its_colon(line: str, is_marked: bool, expected: bool) -> None:
    assert is_attribution_without_colon(line, is_marked=is_marked) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("On 5/1/2026 10:00, Jane<jane@example.com> wrote:   Hello", True),
        ("On Monday jane@example.com wrote: it is SN12345", False),
        ("On 5/1/2026, Jane wrote:   Hello jane@example.com", False),
        ("Jane <jane@example.com> wrote:   Hello", False),
    ],
)
def test_an_attribution_with_the_earlier_text_behind_it(line: str, expected: bool) -> None:
    assert is_attribution_with_text(line) is expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("On 5/1/2026 10:00 jane@example.com wrote", True),
        ("Jane Doe wrote", True),
        ("what I wrote", False),
        ("what my son wrote", False),
        ("My number", False),
    ],
)
def test_an_attribution_between_dashes(words: str, expected: bool) -> None:
    assert is_attribution_between_dashes(words) is expected


@pytest.mark.parametrize(
    "words", ["It broke. Jane", "Really! Jane", "My number is 5 Jane", "One Two Three Four Five Six"]
)
def test_more_than_a_name_before_the_address_is_prose(words: str) -> None:
    assert start(f"{words} <jane@example.com> wrote:") is None
