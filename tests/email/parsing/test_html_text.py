import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guarantee_email_agent.email.parsing.html_text import html_to_text, looks_like_html


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>Hello</p><p>SN12345</p>", "Hello\n\nSN12345"),
        ("<div>Hello</div><div><br></div><div>SN12345</div>", "Hello\n\nSN12345"),
        ("Hello<br/>SN12345", "Hello\nSN12345"),
        ("<p>Hello<br>\n   SN12345</p>", "Hello\nSN12345"),
        ("<ul><li>one</li><li>two</li></ul>", "one\ntwo"),
        ("<p>one   \n two</p>", "one two"),
        ("<p>serial: <b> SN1 </b> !</p>", "serial: SN1 !"),
        ("<p>SN12345<sup><i>1</i></sup> is of the 21<sup>st</sup></p>", "SN12345^1 is of the 21st"),
        ("<pre>a  b\n  c</pre>", "a  b\n  c"),
        ("<p>Gr&uuml;&#223;e &amp; more &#x2713; &unknown; &</p>", "Grüße & more ✓ &unknown; &"),
        ("<p>unclosed <b>bold<p>next", "unclosed bold\n\nnext"),
    ],
)
def test_blocks_and_spaces(html: str, text: str) -> None:
    assert html_to_text(html) == text


@pytest.mark.parametrize(
    "row",
    [
        "<tr><td>Serial number</td><td>SN12345</td></tr>",
        "<tr>\n  <th>Serial number</th>\n  <td>SN12345</td>\n</tr>",
        "<tr><td><p>Serial number</p></td><td><p>SN12345</p></td></tr>",
        "<tr><td><div>Serial number<br></div></td><td><div><span>SN12345</span></div></td></tr>",
        "<tr><td>Serial number</td><td><table><tr><td>SN12345</td></tr></table></td></tr>",
    ],
)
def test_label_and_value_of_a_table_row_stand_on_one_line(row: str) -> None:
    html = f"<table><tr><td>Model</td><td>Barista</td></tr>{row}<tr><td>Order</td><td>4711</td></tr></table>"
    lines = [line for line in html_to_text(html).split("\n") if line]
    assert lines[1].split() == ["Serial", "number", "SN12345"]
    assert (lines[0], lines[2]) == ("Model\tBarista", "Order\t4711")


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>if (a < b) SECRET</script>",
        "<head><title>SECRET</title></head>",
        "<!-- SECRET -->",
        "<!--[if mso]><p>SECRET</p><![endif]-->",
        '<div style="display:none">SECRET</div>',
        "<div style='color:red; DISPLAY : NONE !important'><div>SECRET</div> SECRET</div>",
        '<span style="visibility: hidden">SECRET</span>',
        "<s>SECRET</s>",
        '<span style="text-decoration-line: underline line-through">SECRET</span>',
        '<div style="position:absolute; left: -9999px">SECRET</div>',
        '<p style="text-indent:-999em">SECRET</p>',
        '<span style="font-size:9pt; color: #FFFFFF">SECRET</span>',
        '<div style="background-color:white; color:rgb(255, 255, 255)">SECRET</div>',
        '<font color="white">SECRET</font>',
        '<table bgcolor="#ffffff"><tr><td><font color="white">SECRET</font></td></tr></table>',
        '<div style="OPACITY: 0.0 ! important">SECRET</div>',
        '<div style="max-height:0px; overflow:hidden"><p>SECRET</p></div>',
        '<span style="color:red; font-size:0pt">SECRET</span>',
        "<div hidden>SECRET</div>",
        '<img alt="SECRET" src="x.png">',
    ],
)
def test_what_a_reader_does_not_see_is_left_out(hidden: str) -> None:
    assert html_to_text(f"<p>before</p>{hidden}<p>after</p>") == "before\n\nafter"


@pytest.mark.parametrize(
    "shown",
    [
        '<div style="overflow:hidden; line-height:0; min-height:0">SN12345</div>',
        '<div style="height:0">SN12345</div>',
        '<td style="font-size:0px"><span style="font-size:14px">SN12345</span></td>',
        '<span style="font-size:0.9em; color:#ffffff">SN12345</span>',
        '<div class="hidden-xs">SN12345</div>',
        '<body bgcolor="#000000">Hello <span style="color:white">SN12345</span>',
        '<div style="background: #222">Hello <span style="color:#fff">SN12345</span></div>',
        '<body style="color:white"><p>Hello</p><p style="color:black">SN12345</p>',
        '<p>Hello</p><p style="color:#fff3e0; border-color:white">SN12345</p>',
        '<p>Hello</p><p style="text-indent:-141.6pt" title="color:white">SN12345</p>',
        '<div title="display:none">SN12345</div>',
        '<img hidden><div id="none">SN12345</div>',
        '<a title="a > b" href="x">SN12345</a>',
        '<div title="unclosed>SN12345</div>',
        "<title>SN12345",
        "<div <p>SN12345</p>",
        "< SN12345",
    ],
)
def test_what_a_reader_sees_stays(shown: str) -> None:
    assert "SN12345" in html_to_text(shown)


def test_an_address_that_nobody_escaped_stays() -> None:
    assert html_to_text("<p>Jane <jane@example.com> wrote:</p>") == "Jane <jane@example.com> wrote:"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>new</p><blockquote>old<br>older</blockquote><p>again</p>", "new\n\n> old\n> older\n\nagain"),
        ("<blockquote>a<blockquote>b</blockquote>c</blockquote>", "> a\n\n> > b\n\n> c"),
        (
            (
                '<div>new</div><div class="gmail_quote"><div class="gmail_attr">On some day somebody wrote:<br></div>'
                '<blockquote class="gmail_quote">old</blockquote><div>between</div>'
                "<blockquote>old2</blockquote></div><div>end</div>"
            ),
            "new\n> On some day somebody wrote:\n\n> old\n\nbetween\n\n> old2\n\nend",
        ),
        ('<div>new</div><div class="yahoo_quoted x"><div>old</div></div>', "new\n> old"),
        ('<div>new</div><hr><div id="divRplyFwdMsg">From: x</div><div>old</div>', "new\n\n> From: x\n> old"),
        ('<div>new</div><div name="quote">old</div><div>again</div>', "new\n> old\nagain"),
    ],
)
def test_quotations_are_marked(html: str, text: str) -> None:
    assert html_to_text(html) == text


def test_quote_marks_do_not_grow_with_the_nesting() -> None:
    assert html_to_text("<blockquote>" * 5_000 + "x") == "> " * 9 + "x"


def test_a_fragment_within_plain_text_keeps_the_lines() -> None:
    assert html_to_text("Hello,\nserial:<br />\nSN12345\n\nBye") == "Hello,\nserial:\n\nSN12345\n\nBye"


@pytest.mark.parametrize(
    ("text", "is_html"),
    [
        ("<html><body>x", True),
        ("<p>x</p>", True),
        ("Hello<br>world", True),
        ("<div class='x'>y</div>", True),
        ("plain", False),
        ("a < b and c > d", False),
        ("Jane <jane@example.com> wrote", False),
        ("<SN12345>", False),
        ("see <https://example.com/p>", False),
    ],
)
def test_html_is_told_from_plain_text(text: str, is_html: bool) -> None:
    assert looks_like_html(text) is is_html


TAGS = "<p> </p> <td> <tr> </div> <blockquote> </blockquote> <pre> <script> </script>"
SCRAPS = "< > </ <!-- --> \" ' = &# &amp text <br /> <! <?"
PIECES = st.sampled_from([*TAGS.split(), *SCRAPS.split(), "<div hidden>", "<a ", "\n", " "])


@settings(max_examples=200)
@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=200))
def test_no_markup_breaks_the_reader(html: str) -> None:
    text = html_to_text(html)
    assert not text.startswith("\n")


HOSTILE = "< <! <!-- </div> <div> <td> <a=\"' & &#"


@pytest.mark.slow
@pytest.mark.parametrize("piece", [*HOSTILE.split(), "<a ", '<a "', "<a '", "<p hidden>", "<pre> \n"])
def test_a_megabyte_of_hostile_markup_is_read_to_its_end(piece: str) -> None:
    # Each of these took `html.parser`, or a pattern with overlapping repeats, minutes.
    html = piece * (1_000_000 // len(piece))
    assert len(html_to_text(html)) <= len(html)
