"""Judges a file that the agent was to leave in its sandbox; what the agent says of the file counts for nothing."""

import json
from http.client import HTTPConnection, HTTPException

PATH = "/tmp/inventory.json"
WANTED = {"kettle": ["SN10017", "SN10058", "SN10071"], "mixer": ["SN10093"], "toaster": ["SN10044"]}


def test(result):
    text = file_in_sandbox(result["sandbox"], PATH)
    if text is None:
        return {"passed": False, "feedback": f"There is no file {PATH}, or no sandbox to look for it."}
    try:
        inventory = json.loads(text)
    except ValueError as error:
        return {"passed": False, "feedback": f"{PATH} is no JSON: {error}"}
    wrong = [kind for kind in WANTED if not isinstance(inventory, dict) or inventory.get(kind) != WANTED[kind]]
    if wrong:
        return {"passed": False, "feedback": f"{PATH} is wrong for {', '.join(wrong)}.", "details": {"wrong": wrong}}
    if extra := sorted(inventory.keys() - WANTED.keys()):
        return {"passed": False, "feedback": f"{PATH} has kinds that did not come back: {', '.join(extra)[:80]}."}
    return {"passed": True, "feedback": f"{PATH} lists all five devices by kind."}


def file_in_sandbox(sandbox, path):
    """The text of a file: from the sandbox while it runs, else as the record kept it under `files`; None if neither."""
    if not isinstance(sandbox, dict):
        return None
    if type(port := sandbox.get("docker_port")) is int:
        try:
            return read_over_http(port, path)
        except (OSError, HTTPException, ValueError) as error:
            print(f"the sandbox does not answer: {error}")
    files = sandbox.get("files")
    text = files.get(path) if isinstance(files, dict) else None
    return text if isinstance(text, str) else None


def read_over_http(port, path):
    connection = HTTPConnection("localhost", port, timeout=10)
    try:
        body = json.dumps({"file": path})
        connection.request("POST", "/v1/file/read", body, {"Content-Type": "application/json"})
        reply = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    data = reply.get("data") if isinstance(reply, dict) and reply.get("success") else None
    return data.get("content") if isinstance(data, dict) else None
