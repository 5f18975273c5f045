"""What a reader of a web page sees of its headings and tables."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """headings: the texts of all <h1>. rows: for each <tr> the texts of its <td>; rows of <th> alone are left out."""

    def __init__(self, source):
        super().__init__()
        self.headings, self.rows = [], []
        self._text = None
        self.feed(source)
        self.close()
        self.rows = [row for row in self.rows if row]

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "h1"):
            self._text = []

    def handle_data(self, data):
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag):
        if tag in ("td", "h1") and self._text is not None:
            text = " ".join("".join(self._text).split())
            if tag == "h1":
                self.headings.append(text)
            elif self.rows:
                self.rows[-1].append(text)
            self._text = None
