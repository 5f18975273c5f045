import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guarantee_email_agent.utils.safe_regex import UnsafeRegexError, compile_safe_regex, may_search


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("[A-Z]{1,4}[-]?[0-9]{5,15}", "ht-20491"),
        (r"SN[-_]?(?=.{0,19}[0-9]{2})[A-Z0-9]{4,20}", "SN-AB12"),
        ("(?:19|20)[0-9]{2}", "2024"),
        (r"\d{4}(?:-\d{4}){2}", "1234-5678-9012"),
        ("A|B|C", "c"),
    ],
)
def test_takes_what_people_write(pattern: str, matching: str) -> None:
    assert compile_safe_regex(pattern).fullmatch(matching)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(A{1,9}){1,9}B", "may hang"),
        ("(?:[A-Z]{1,5}[0-9]{0,5}){1,9}", "may hang"),
        ("A{1,30}A{1,30}A{1,30}", "may hang"),
        ("(?:A?){0,30}A{5}", "may hang"),
        (r"(A{1,5})\1", "may hang"),
        ("(A)?(?(1)B|C)", "may hang"),
        ("(?=A)*B", "may hang"),
        ("[A-Z]+", "more than 100 characters"),
        ("[A-Z]{1,101}", "more than 100 characters"),
        (".*?X", "more than 100 characters"),
        ("[0-9]{0,4}", "matches nothing"),
        ("(?=A)", "matches nothing"),
        ("[A-Z", "does not compile"),
        ("[[A-Z]", "does not compile"),  # Python warns that it may come to mean a nested set
        ("(?i)A", "does not compile"),
        ("(?P<number>[0-9]{5})", "names a group"),
        ("A)|(?:B", "does not compile"),  # cannot break out of its group
        pytest.param("(" * 5_000 + "A" + ")" * 5_000, "does not compile", id="thousands of groups"),
    ],
)
def test_refuses_what_could_hang_or_mislead(pattern: str, why: str) -> None:
    with pytest.raises(UnsafeRegexError, match=why):
        compile_safe_regex(pattern)


PIECES = st.sampled_from(
    [
        *("A", "[A-Z0-9]", "[0-9]", ".", r"\w", "-", "(?:", "(", ")", "|", "?", "{1,3}", "{0,9}", "{2,20}", "{3}"),
        *("+", "*", "(?=", "(?!", "(?>", "++", r"\1", "??"),
    ]
)
TOKENS = ["A" * 60, "A" * 59 + "!", "0" * 59 + "-", "A0" * 30, "-" * 60, "AAAAAAAAA-" * 6]


@settings(max_examples=400)
@given(st.lists(PIECES, min_size=1, max_size=12).map("".join))
def test_what_is_accepted_decides_on_any_token(pattern: str) -> None:
    try:
        compiled = compile_safe_regex(pattern)
    except UnsafeRegexError:
        return
    for token in TOKENS:
        matched = compiled.fullmatch(token)
        assert matched is None or matched[0] == token


@pytest.mark.parametrize(
    ("pattern", "longest"),
    [
        ("B-[0-9]+", 1_000_000),
        ("^A-[0-9]+$", 1_000_000),
        ("booked|(?:not )?found", 1_000_000),
        ("(?i)booked.*10:00", 30_000),
        (r"a[^b]*b.*c", 900),
        ("(a+)+b", 0),
        ("(?:a|ab)*c", 0),
        ("(x|xx)+y", 0),
        ("a*b*c*d*e", 0),
    ],
)
def test_how_long_a_text_may_be_searched(pattern: str, longest: int) -> None:
    assert not longest or may_search(pattern, longest)
    assert not may_search(pattern, max(50 * longest, 200)) or longest == 1_000_000


@settings(max_examples=100)
@given(st.text("ab*+?(|){1,}", max_size=8))
def test_what_may_be_searched_ends_soon(pattern: str) -> None:
    try:
        compiled = re.compile(pattern)
    except re.error:
        return
    if may_search(pattern, 60):
        compiled.search("ab" * 15 + "a" * 30)
