"""Judges a page that a server in the sandbox has to deliver; it is fetched from within, as nobody else can reach it."""

import json
from http.client import HTTPConnection, HTTPException

from page import Page

URL = "http://127.0.0.1:8765/"
WANTED = [["SN10017", "waiting for parts"], ["SN10058", "repaired"], ["SN10093", "on its way to the customer"]]
FETCH = f"import urllib.request as web; print(web.urlopen({URL!r}, timeout=5).read().decode())"


def test(result):
    source = page_in_sandbox(result["sandbox"], URL)
    if source is None:
        return {"passed": False, "feedback": f"Nothing answers at {URL}, or there is no sandbox to look into."}
    page = Page(source)
    if "Repairs" not in page.headings:
        return {"passed": False, "feedback": f"No first-level heading says Repairs, only {page.headings}."}
    missing = [row for row in WANTED if row not in page.rows]
    extra = [row for row in page.rows if row not in WANTED]
    if missing or extra:
        feedback = f"The table lacks {missing} and has {extra} besides." if extra else f"The table lacks {missing}."
        return {"passed": False, "feedback": feedback, "details": {"missing": missing, "extra": extra}}
    return {"passed": True, "feedback": "The page shows all three repairs as they stand."}


def page_in_sandbox(sandbox, url):
    """The page's source: from the sandbox while it runs, else as the record kept it under `pages`; None if neither."""
    if not isinstance(sandbox, dict):
        return None
    if type(port := sandbox.get("docker_port")) is int:
        try:
            return output_of_code(port, FETCH)
        except (OSError, HTTPException, ValueError) as error:
            print(f"the sandbox does not answer: {error}")
    pages = sandbox.get("pages")
    source = pages.get(url) if isinstance(pages, dict) else None
    return source if isinstance(source, str) else None


def output_of_code(port, code):
    """What Python code prints when it runs inside the sandbox; None where it fails."""
    connection = HTTPConnection("localhost", port, timeout=20)
    try:
        body = json.dumps({"language": "python", "code": code})
        connection.request("POST", "/v1/code/execute", body, {"Content-Type": "application/json"})
        reply = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    data = reply.get("data") if isinstance(reply, dict) and reply.get("success") else None
    return data.get("stdout") if isinstance(data, dict) and data.get("status") != "error" else None
