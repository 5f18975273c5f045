"""Whom `Authentication-Results` prove (RFC 8601), and everything that must not be taken for a proof."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.sender_authentication import (
    MethodResult,
    SenderVerdict,
    parse_authentication_results,
    sender_verdict,
)

OURS = "mx.shop.example"
PASS = f"{OURS}; dmarc=pass header.from=example.com"


def verdict(*values: str, sender: str = "jane@example.com", authserv_id: str = OURS) -> SenderVerdict:
    raw = {"from": sender, "subject": "x", "body": "x", "received": "", "message_id": "1"}
    return sender_verdict(parse_email(raw | {"headers": {"Authentication-Results": list(values)}}), authserv_id)


def verdict_of_bytes(header: str, authserv_id: str = OURS) -> SenderVerdict:
    return sender_verdict(parse_email(f"{header}\n\nx".encode()), authserv_id)


@pytest.mark.parametrize(
    "results",
    [
        "dmarc=pass header.from=example.com",
        "dmarc=pass (p=REJECT sp=REJECT dis=NONE) header.from=example.com",
        "dmarc = pass (a (nested \\) one)) header . from (of the mail) = example.com",
        'dmarc=pass reason="policy; met" header.from="example.com"',
        "dmarc=pass action=none header.from=example.com;compauth=pass reason=100",
        "dmarc=pass header.from=jane@example.com",
        "spf=fail smtp.mailfrom=evil.example; dkim=fail header.d=example.com; dmarc=pass header.from=example.com",
        "dkim=pass header.d=example.com",
        "dkim=pass (2048-bit key; unprotected) header.d=example.com header.i=@example.com header.b=aB/+c= header.s=s1",
        'dkim=pass header.i="jane doe"@example.com header.s=x header.b="k="',
        "dmarc=none header.from=example.com; dkim=pass header.i=@example.com",
        "spf=pass (domain of jane@example.com designates 192.0.2.1) smtp.mailfrom=jane@example.com",
        'spf=pass smtp.mailfrom="jane @home"@example.com',
    ],
)
def test_proofs(results: str) -> None:
    assert verdict(f"{OURS}; {results}") == "verified"


@pytest.mark.parametrize(
    "results",
    [
        "none",
        "",
        "dmarc=fail header.from=example.com",
        "dmarc=fail header.from=example.com; dkim=pass header.d=example.com; spf=pass smtp.mailfrom=example.com",
        "dkim=pass header.d=example.com; dmarc=temperror header.from=example.com",
        "dmarc=pass header.from=other.example",
        "dmarc=pass header.from=other.example; dkim=pass header.d=example.com",
        "dmarc=pass header.from=mail.example.com",
        "dmarc=pass",
        "dmarc=pass header.from=example.com header.from=other.example",
        "dmarc=pass header.from=example.com; dmarc=fail header.from=example.com",
        "dmarc=pass header.from=example.com; dmarc=pass header.from=example.com",
        "dmarc/2=pass header.from=example.com",
        "dkim=pass header.d=other.example header.i=@example.com",
        "dkim=pass header.d=mail.example.com",
        "dkim=pass",
        "dkim=fail (dkim=pass) header.d=example.com",
        'dkim=fail reason="dkim=pass" header.d=example.com',
        "dkim=pass header.d=example.com header.d=other.example",
        "arc=pass header.d=example.com",
        "spf=pass smtp.helo=example.com",
        'spf=pass smtp.mailfrom="jane@example.com"@evil.example',
        "spf=pass smtp.mailfrom=jane@example.com@evil.example",
    ],
)
def test_results_that_prove_nothing(results: str) -> None:
    assert verdict(f"{OURS}; {results}") == "unverified"


@pytest.mark.parametrize(
    "value",
    [
        f"{PASS}; (",
        f"{PASS} (never closed",
        f"{PASS} trailing words",
        f'{PASS}; spf=fail smtp.mailfrom="never closed',
        f"{PASS}; =pass",
        f"{PASS}\x00x",
        f"{OURS} 2; dmarc=pass header.from=example.com",
        f"{OURS} dmarc=pass header.from=example.com",
        f"{OURS} ( ; dmarc=pass header.from=example.com",
        OURS,
    ],
)
def test_a_header_of_ours_that_breaks_the_grammar_proves_nothing(value: str) -> None:
    assert verdict(value) == "unverified"
    assert verdict(value, PASS) == "unverified"  # nor does a second one


@pytest.mark.parametrize(
    "name",
    ["mx.evil.example", "shop.example", f"{OURS}.evil.example", f"x{OURS}", f"evil ({OURS})", f'"{OURS} "', ""],
)
def test_a_header_in_another_name_is_not_read(name: str) -> None:
    assert verdict(f"{name}; dmarc=pass header.from=example.com") == "unverified"
    assert verdict(f"{name}; dmarc=fail header.from=example.com", PASS) == "verified"


def test_only_the_topmost_of_ours_counts() -> None:
    assert verdict(f"{OURS}; none", PASS) == "unverified"
    assert verdict(f"{OURS}; dmarc=fail header.from=example.com", PASS) == "unverified"
    assert verdict(PASS, f"{OURS}; dmarc=fail header.from=example.com") == "verified"


def test_without_a_header_or_a_configured_name_nobody_is_verified() -> None:
    assert verdict() == "unverified"
    assert verdict(PASS, authserv_id="") == "unverified"
    assert verdict("; dmarc=pass header.from=example.com", authserv_id="") == "unverified"
    assert verdict("spf=pass smtp.mailfrom=example.com; dmarc=pass header.from=example.com") == "unverified"


@pytest.mark.parametrize(
    "sender",
    [
        "jane@example.com, bob@evil.example",
        "bob@evil.example, jane@example.com",
        "jane@evil.example",
        '"jane@example.com" <jane@evil.example>',
        "jane@example.com <jane@evil.example>",
        "jane@example.com.evil.example",
        "jane@[192.0.2.1]",
        "jane@localhost",
        "<>",
    ],
)
def test_a_sender_that_the_results_do_not_name(sender: str) -> None:
    assert verdict(PASS, sender=sender) == "unverified"
    assert verdict_of_bytes(f"Authentication-Results: {PASS}\nFrom: {sender}") == "unverified"


@pytest.mark.parametrize("domain", ["localhost", "com", "[192.0.2.1]", "", ".", "..", "a..b", "-"])
def test_what_is_no_public_domain_is_never_verified(domain: str) -> None:
    email = dataclasses.replace(parse_email(b"From: x@example.com\n\nx"), sender=f"jane@{domain}")
    headers = {"authentication-results": (f"{OURS}; dmarc=pass header.from={domain}",)}
    assert sender_verdict(dataclasses.replace(email, headers=headers), OURS) == "unverified"


def test_a_folded_header() -> None:
    folded = "Authentication-Results: mx.shop.example;\n\tdkim=pass header.d=other.example\n  (x\n y);\n dmarc=pass\n"
    assert verdict_of_bytes(f"{folded} header.from=example.com\nFrom: jane@example.com") == "verified"


@pytest.mark.parametrize(
    ("sender", "named", "expected"),
    [
        ("jane@grüße.example", "grüße.example", "verified"),
        ("jane@grüße.example", "xn--gre-hoa5g.example", "unverified"),
        ("jane@bücher.example", "xn--bcher-kva.example", "verified"),
        ("jane@xn--bcher-kva.example", "bücher.example", "verified"),
        ("jane@BÜCHER.example", "XN--BCHER-KVA.example", "verified"),
        ("jane@bu\u0308cher.example", "xn--bcher-kva.example", "verified"),
        ("jane@例え.テスト", "xn--r8jz45g.xn--zckzah", "verified"),
        ("jane@straße.example", "strasse.example", "unverified"),
        ("jane@exаmple.com", "example.com", "unverified"),  # a Cyrillic а
        ("jane@" + "ü" * 80 + ".example", "ü" * 80 + ".example", "unverified"),
    ],
)
def test_international_domains_are_compared_by_their_a_labels(sender: str, named: str, expected: str) -> None:
    assert verdict(f"{OURS}; dmarc=pass header.from={named}", sender=sender) == expected


@pytest.mark.parametrize(
    "filler",
    [
        "x" * 1_000_000,
        " " * 1_000_000,
        "; dkim=fail header.d=x.example" * 10_000,
        "(" * 10_000 + ")" * 10_000,
        "; spf=fail smtp.mailfrom=" + '"' * 20_001,
        "\\" * 20_000,
        "\n " * 20_000,
        "é" * 20_000,
    ],
)
def test_a_header_that_was_cut_proves_nothing(filler: str) -> None:
    value = f"{PASS} {filler}; dmarc=fail header.from=example.com"
    assert verdict(value) == "unverified"
    assert verdict_of_bytes(f"From: jane@example.com\nAuthentication-Results: {value}") == "unverified"
    assert verdict(f"{OURS} {filler}", PASS) == "unverified"


def test_so_many_headers_that_some_were_left_out() -> None:
    headers = f"Authentication-Results: {PASS}\nFrom: jane@example.com\n" + "X: y\n" * 2_000 + "From: x@evil.example"
    assert verdict_of_bytes(headers) == "unverified"
    assert verdict(*["other.example; none"] * 900, PASS) == "unverified"


WORDS = st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z0-9]", fullmatch=True).filter(lambda word: word != "none")
QUOTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f"), max_size=20)
GAPS = st.sampled_from(["", " ", "\t ", "(c)", " (a (b) \\) c) ", '(")', "(;)"])
RESULTS = st.builds(
    MethodResult,
    WORDS,
    WORDS,
    st.lists(st.tuples(st.builds("{}.{}".format, WORDS, WORDS), QUOTABLE), max_size=3).map(tuple),
)


@pytest.mark.slow
@given(WORDS, st.lists(RESULTS, max_size=4), st.data())
def test_what_is_written_by_the_grammar_is_read_back(
    name: str, results: list[MethodResult], data: st.DataObject
) -> None:
    def gap() -> str:
        return data.draw(GAPS)

    def quote(value: str) -> str:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    value = gap() + name + gap()
    for result in results:
        value += f";{gap()}{result.method}{gap()}={gap()}{result.result}"
        for key, content in result.properties:
            value += f" {gap()}{key.replace('.', gap() + '.' + gap())}{gap()}={gap()}{quote(content)}{gap()}"
    assert parse_authentication_results(value) == (name, tuple(results))


PIECES = st.lists(
    st.sampled_from(
        [
            *(
                "(",
                ")",
                '"',
                "\\",
                ";",
                "=",
                ".",
                "/",
                " ",
                "\t",
                "\x00",
                "@",
                "é",
                "1",
                OURS,
                "example.com",
                "x.example",
            ),
            *("dmarc", "dkim", "spf", "pass", "fail", "none", "header.d=", "header.from=", "smtp.mailfrom="),
            "; dkim=pass header.d=example.com",
        ]
    ),
    max_size=30,
).map("".join)


@given(PIECES | st.text())
def test_no_value_breaks_the_parser(value: str) -> None:
    assert verdict(value) in ("verified", "unverified")
    assert verdict(f"{OURS}; dmarc=fail header.from=example.com; x=y {value}") == "unverified"
