import pytest

from guarantee_email_agent.email.people_answers import likeness, words_of


@pytest.mark.parametrize(
    ("first", "second", "percent"), [("a b", "A  b", 100), ("a b c d", "a b x d", 75), ("a", "b", 0), ("a", "", None)]
)
def test_likeness_counts_words_in_their_order(first: str, second: str, percent: int | None) -> None:
    assert likeness(words_of(first), words_of(second)) == percent
