"""The text that a person reads in an HTML mail, with quotations marked by "> ".

Our own parser of one pass over the markup, without a tree and without recursion. Python's `html.parser` is quadratic
(32 s for 60 kB of "<a ", CVE-2025-6069) and reads broken markup differently from release to release.

- Table rows are lines, their cells separated by a tab, so that a label and its value stand on one line even where
  each cell wraps its content into a paragraph of its own, as Outlook does.
- Blocks and <br> break lines; runs of white space are one space, outside <pre>.
- What is not shown is left out: comments, style, script, title, and elements that are hidden by their own attributes:
  `hidden`, `display: none`, `visibility: hidden`, `mso-hide: all`, `opacity: 0`, a height of 0 with `overflow: hidden`.
  A font size of 0 hides inline elements only, since newsletters give it to what contains larger text. White hides where
  no background is named, unless all is white: so are mails that were written on a dark screen.
- What is struck out, or placed far beyond the edge, was taken back or is not seen, and is left out as well.
- Quotations are <blockquote> and the containers that mail programs put around an earlier mail.
- A "tag" that is an address, `<jane@example.com>`, is text that somebody forgot to escape, and stays.
"""

from __future__ import annotations

import re

_TAGS_AT_START = (
    "a|article|b|blockquote|body|br|center|div|dl|em|font|footer|form|h[1-6]|head|header|hr|html|i|img|li|link|main|meta|"
    "o:p|ol|p|pre|section|small|span|strong|style|sub|sup|table|tbody|td|th|title|tr|u|ul"
)
_STARTS_AS_HTML = re.compile(rf"<!--|<!doctype\s+html|<\?xml\s|<(?:{_TAGS_AT_START})(?=[\s/>])", re.IGNORECASE)
_HOLDS_HTML = re.compile(
    r"<br ?/?>|</(?:p|div|table|td|tr|span|body|html|li|ul|ol|blockquote|h[1-6]|b|strong|a|font)>", re.IGNORECASE
)

_MARKUP = re.compile(r"<(?:/?[A-Za-z]|[!?])")
_NAME = re.compile(r"/?([A-Za-z][^\s/>]*)")
_REST_OF_TAG = re.compile(r"""[^"'>]*(?:(?:"[^"]*"|'[^']*')[^"'>]*)*>""")
_ATTRIBUTE = re.compile(r"""([^\s=>"'/]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]*)))?""")
_ZERO = r"\s*:\s*0(?:\.0{1,4})?[a-z%]{0,4}\s*(?:!\s*important\s*)?(?:;|$)"
_MAY_HIDE = re.compile(r"hid|none|line-through|(?:opacity|font-size)\s*:\s*0|:\s*-\d{3}|white|#fff|255|transparent")
_WHITE_COLOR = r"(?:white\b|#fff(?:fff)?\b|rgba?\(\s*255\s*,\s*255\s*,\s*255\b|transparent\b)"
_WHITE = re.compile(rf"(?<![-\w])color\s*:\s*{_WHITE_COLOR}")
_DARK_BACKGROUND = re.compile(
    rf"(?:background(?:-color)?|bgcolor)\s*[:=]\s*+[\"']?+\s*+(?!{_WHITE_COLOR}|none|inherit|initial)", re.IGNORECASE
)
_HIDING_STYLE = re.compile(
    rf"display\s*:\s*none|visibility\s*:\s*hidden|mso-hide\s*:\s*all|(?<![-\w])opacity{_ZERO}"
    r"|text-decoration[\w-]*\s*:[^;]*\bline-through|(?:left|top|right|bottom|indent)\s*:\s*-(?:\d{4}|[5-9]\d\d)"
)
_NO_HEIGHT = re.compile(rf"(?<![-\w])(?:max-)?height{_ZERO}")
_HIDDEN_OVERFLOW = re.compile(r"overflow(?:-y)?\s*:\s*hidden")
_NO_FONT_SIZE = re.compile(rf"font-size{_ZERO}")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?")
_SPACES = re.compile(r"[ \t\n\r\f]+")

_HIDDEN_ELEMENTS = frozenset({"script", "style", "title", "template", "svg", "math", "object", "iframe", "noframes"})
_STRUCK_OUT = frozenset({"s", "strike", "del"})
_NEVER_WHITE = frozenset({"html", "body", "table", "tbody"})  # what they hold may have a colour of its own
_INLINE_TEXT = frozenset({"span", "font", "a", "b", "i", "em", "strong", "small"})
_PARAGRAPHS = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "blockquote", "pre", "hr"})
_ROWS = frozenset({"table", "tbody", "thead", "tfoot", "tr", "caption"})
_CELLS = frozenset({"td", "th"})
_LINES = frozenset(
    {"address", "article", "aside", "body", "center", "dd", "details", "div", "dt", "fieldset", "figure", "footer"}
    | {"form", "header", "html", "li", "main", "nav", "option", "section", "summary"}
)
_BLOCKS = _PARAGRAPHS | _ROWS | _LINES
_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})

# Containers of an earlier mail, by class or id: up to the end of the first quotation inside them (Gmail puts what is
# written between quotations into the same container), or to their own end.
_CONTAINERS = frozenset(
    {"gmail_quote", "gmail_quote_container", "gmail_attr", "moz-cite-prefix", "moz-forward-container", "yahoo_quoted"}
    | {"protonmail_quote", "tutanota_quote", "zmail_extra"}
)
# Outlook's and Zimbra's dividers: what follows to the end of the mail is the earlier mail.
_DIVIDERS = frozenset({"divrplyfwdmsg", "x_divrplyfwdmsg", "mail-editor-reference-message-container", "zwchr"})

_NOTHING, _SPACE, _CELL, _LINE, _PARAGRAPH = range(5)
_TEXT_OR_NONE, _EMPTY, _NESTING = range(3)  # of the cell that is being read
_MAX_QUOTE_MARKS = 9


def looks_like_html(text: str) -> bool:
    """Whether a body without a content type is HTML: it starts with a known tag, or holds a <br> or an end tag."""
    return "<" in text and ">" in text and (_starts_as_html(text) or _HOLDS_HTML.search(text) is not None)


def truncate_html(html: str, limit: int) -> str:
    """The start of the HTML, at most `limit` characters, without a tag or comment that the cut went through."""
    cut = html[:limit]
    end = cut.rfind(">")
    return cut[: end + 1] if len(html) > limit and cut.rfind("<") > end >= 0 else cut


def html_to_text(html: str) -> str:
    """The text of an HTML mail or fragment. Linear in its length; whatever the markup, it never raises.

    A fragment that does not start with markup keeps its own line breaks: it is plain text with tags in it.
    """
    hides_white = _DARK_BACKGROUND.search(html) is None
    text = _read(html, hides_white=hides_white)
    return _read(html, hides_white=False) if hides_white and not text.strip() else text


def _read(html: str, *, hides_white: bool) -> str:
    builder = _TextBuilder(keeps_lines=not _starts_as_html(html), hides_white=hides_white)
    position = 0
    missing: set[str] = set()  # endings that no longer occur; to look for them again at each start would be quadratic
    while markup := _MARKUP.search(html, position):
        builder.add_text(html[position : markup.start()])
        position = _read_markup(html, markup.start(), builder, missing)
    builder.add_text(html[position:])
    return builder.result()


def _starts_as_html(text: str) -> bool:
    return _STARTS_AS_HTML.match(text[:2_000].lstrip("\ufeff \t\r\n")) is not None


def _read_markup(html: str, start: int, builder: _TextBuilder, missing: set[str]) -> int:
    """Read the markup at `start`, and return the position after it."""
    if html.startswith("<!--", start) and (end := _find(html, "-->", start + 4, missing)) >= 0:
        return end + 3
    name = _NAME.match(html, start + 1, start + 350)
    close = _find(html, ">", start + 1, missing)
    if close < 0:  # no tag ends any more: the rest is text
        builder.add_text(html[start:])
        return len(html)
    if name is None:  # a declaration or a processing instruction
        return close + 1
    tag = name[1].lower()
    if "@" in tag or tag.startswith(("http:", "https:", "mailto:")):
        builder.add_text(html[start : close + 1])
        return close + 1
    end = close + 1
    if "quotes" not in missing and ('"' in html[start:close] or "'" in html[start:close]):
        rest = _REST_OF_TAG.match(html, name.end())
        if rest is None:
            missing.add("quotes")  # a quotation mark was forgotten somewhere: from here on the next ">" ends a tag
        else:
            end = rest.end()
    if html[start + 1] == "/":
        builder.end_tag(tag)
        return end
    builder.start_tag(tag, html[name.end() : end - 1])
    return _skip_hidden_content(html, tag, end, missing) if tag in _HIDDEN_ELEMENTS else end


def _skip_hidden_content(html: str, tag: str, position: int, missing: set[str]) -> int:
    """Where the end tag of an element that is not shown begins."""
    ending = f"</{tag}"
    if ending not in missing:
        if match := re.compile(ending, re.IGNORECASE).search(html, position):
            return match.start()
        missing.add(ending)
    # As mail programs do: an endless script or style hides the rest, anything else is shown.
    return len(html) if tag in ("script", "style") else position


def _find(html: str, ending: str, position: int, missing: set[str]) -> int:
    if ending in missing:
        return -1
    found = html.find(ending, position)
    if found < 0:
        missing.add(ending)
    return found


class _TextBuilder:
    """The text so far. A break is only remembered, and written before the next text, so that breaks never pile up."""

    def __init__(self, *, keeps_lines: bool, hides_white: bool) -> None:
        self._out: list[str] = []
        self._hides_white = hides_white
        self._keeps_lines = keeps_lines
        self._break = _NOTHING
        self._row_has_text = False
        self._cell: int = _TEXT_OR_NONE
        self._pre = 0
        self._quotes = 0
        self._divs = 0
        self._container: int | None = None  # how many <div> are open at the container of an earlier mail
        self._divided = False
        self._raised = False
        self._hidden: str | None = None
        self._hidden_depth = 0

    def result(self) -> str:
        return "".join(self._out)

    def add_text(self, raw: str) -> None:
        if self._hidden:
            return
        if not (self._pre or self._keeps_lines):
            self._add_words(_SPACES.sub(" ", raw))
            return
        for number, line in enumerate(raw.replace("\r\n", "\n").split("\n")):
            if number:
                self._add_line_break()
            if not self._pre:
                self._add_words(_SPACES.sub(" ", line))
            elif line.strip():
                self._write(line.rstrip())

    def _add_words(self, words: str) -> None:
        """Text whose white space is collapsed: its outer spaces count once, and not at all beside a line break."""
        content = words.strip(" ")
        if self._break == _NOTHING and words[:1] == " ":
            self._break = _SPACE
        if content:
            self._write(content)
            if words[-1] == " ":
                self._break = _SPACE

    def _write(self, content: str) -> None:
        pending, out = self._break, self._out
        if pending >= _LINE or not out:
            earlier = self._divided or (self._container is not None and not self._quotes)
            if out:
                out.append("\n\n" if pending == _PARAGRAPH else "\n")
            out.append("> " * min(self._quotes + earlier, _MAX_QUOTE_MARKS))
        elif pending == _CELL:
            out.append("\t")
        elif pending == _SPACE:
            out.append(" ")
        elif self._raised and content[0].isdigit():  # the mark of a footnote is no digit of the number before it
            out.append("^")
        out.append(_ENTITY.sub(_unescape_entity, content) if "&" in content else content)
        self._break, self._raised = _NOTHING, False
        self._row_has_text, self._cell = True, _TEXT_OR_NONE

    def start_tag(self, tag: str, attributes: str) -> None:
        if self._hidden:
            if tag == self._hidden:
                self._hidden_depth += 1
            if self._hidden != "p" or tag not in _BLOCKS:
                return
            self._hidden = None  # a paragraph needs no end tag: the next block ends it
        if tag in _STRUCK_OUT or (attributes and tag not in _VOID and self._is_hidden(tag, attributes)):
            self._hidden, self._hidden_depth = tag, 1
            return
        if self._cell == _NESTING and (tag in _ROWS or tag in _CELLS):
            pass  # a table that starts a cell starts on the line of that cell
        elif tag == "table" and self._cell == _EMPTY:
            self._cell = _NESTING
        else:
            self._add_element_break(tag)
        self._raised = self._raised or tag == "sup"
        if tag == "br":
            self._add_line_break()
        elif tag == "tr":
            self._row_has_text = False
        elif tag in _CELLS:
            self._cell = _EMPTY
        elif tag == "pre":
            self._pre += 1
        elif tag == "blockquote":
            self._quotes += 1
        elif tag == "div":
            self._divs += 1
        if attributes and tag in ("div", "hr"):
            self._detect_quotation_container(attributes)

    def _is_hidden(self, tag: str, attributes: str) -> bool:
        if not _MAY_HIDE.search(attributes.lower()):
            return False
        hides_white = self._hides_white and tag not in _NEVER_WHITE
        for name, value in _parse_attributes(attributes):
            style = value.lower() if name == "style" else f"color:{value.lower()}" if name == "color" else ""
            if name == "hidden" or _hides(tag, style) or (hides_white and _WHITE.search(style)):
                return True
        return False

    def end_tag(self, tag: str) -> None:
        if self._hidden:
            if tag == self._hidden:
                self._hidden_depth -= 1
            if not self._hidden_depth or tag in ("body", "html"):
                self._hidden = None
            return
        self._add_element_break(tag)
        if tag == "pre":
            self._pre = max(self._pre - 1, 0)
        elif tag == "blockquote" and self._quotes:
            self._quotes -= 1
            if not self._quotes:
                self._container = None
        elif tag == "div" and self._divs:
            if self._container == self._divs:
                self._container = None
            self._divs -= 1

    def _add_element_break(self, tag: str) -> None:
        if tag in _CELLS:
            # Whatever paragraphs ended in a cell: the next one follows on the same line.
            self._break = _CELL if self._row_has_text else max(self._break, _LINE)
            self._cell = _TEXT_OR_NONE
        elif tag in _ROWS:
            self._break = max(self._break, _LINE)
            self._cell = _TEXT_OR_NONE
        elif self._cell:
            return  # a paragraph that starts a cell must not part the value from its label
        elif tag in _PARAGRAPHS:
            self._break = _PARAGRAPH
        elif tag in _LINES:
            self._break = max(self._break, _LINE)

    def _add_line_break(self) -> None:
        if not self._cell:
            self._break = _PARAGRAPH if self._break >= _LINE else _LINE

    def _detect_quotation_container(self, attributes: str) -> None:
        for name, value in _parse_attributes(attributes):
            if name in ("class", "id"):
                words = value.lower().split()
                self._divided = self._divided or not _DIVIDERS.isdisjoint(words)
                is_container = not _CONTAINERS.isdisjoint(words)
            else:
                is_container = name == "name" and value.lower() == "quote"  # GMX and WEB.DE
            if is_container and self._container is None:
                self._container = self._divs


def _hides(tag: str, style: str) -> bool:
    if _HIDING_STYLE.search(style) or (_HIDDEN_OVERFLOW.search(style) and _NO_HEIGHT.search(style)):
        return True
    return tag in _INLINE_TEXT and _NO_FONT_SIZE.search(style) is not None


def _parse_attributes(text: str) -> list[tuple[str, str]]:
    return [(name.lower(), double or single or bare) for name, double, single, bare in _ATTRIBUTE.findall(text)]


def _unescape_entity(match: re.Match[str]) -> str:
    from html import unescape  # its table of 2,231 names is loaded for the first entity only

    return unescape(match[0])
