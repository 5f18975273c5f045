"""Whatever a client sends gets an answer, and the sandbox goes on."""

import json
import socket

import httpx
import pytest
from running_sandbox import Box

pytestmark = pytest.mark.slow

HALF = "\ud800"


def _post(box: Box, path: str, body: bytes) -> httpx.Response:
    answer = httpx.post(f"{box.sandbox.base_url}{path}", content=body, timeout=30)
    assert box.output("echo alive") == "alive"
    return answer


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        ("/v1/file/read", {"file": HALF}),
        ("/v1/file/write", {"file": f"/tmp/{HALF}", "content": "x"}),
        ("/v1/file/write", {"file": "/tmp/x", "content": HALF}),
        ("/v1/file/replace", {"file": "/etc/passwd", "old_str": "gem", "new_str": HALF}),
        ("/v1/file/str_replace_editor", {"command": "create", "path": "/tmp/x", "file_text": HALF}),
        ("/v1/file/list", {"path": "/tmp", "file_types": [HALF]}),
        ("/v1/file/find", {"path": HALF, "glob": "*"}),
        ("/v1/shell/exec", {"command": f"echo {HALF}"}),
        ("/v1/shell/exec", {"command": "true", "exec_dir": HALF}),
        ("/v1/shell/exec", {"command": "true", "id": HALF}),
        ("/v1/code/execute", {"language": "python", "code": HALF}),
        ("/v1/code/execute", {"language": "python", "code": "1", "cwd": HALF}),
    ],
)
def test_half_a_surrogate_pair_is_refused(box: Box, path: str, arguments: dict[str, str]) -> None:
    escaped = json.dumps(arguments).encode()
    for body in (escaped, json.dumps(arguments, ensure_ascii=False).encode("utf-8", "surrogatepass")):
        answer = _post(box, path, body)
        assert (answer.status_code, answer.json()["success"]) == (422, False)
        assert "half of a surrogate pair" in answer.json()["message"]


def test_a_name_that_is_no_text_can_be_given_as_it_was_listed(box: Box) -> None:
    box.output(r"printf here > $'/tmp/odd-\xff'")
    (path,) = box.ours.call("POST", "/v1/file/find", {"path": "/tmp", "glob": "odd-*"}, timeout_s=10)["files"]
    assert box.post("/v1/file/read", file=path)["content"] == "here"


@pytest.mark.parametrize("target", ["/v1/\0sandbox", "/\0", "/v1/sandbox?\0=\0\0", "\0"])
def test_a_zero_byte_in_a_request_line_is_answered(box: Box, target: str) -> None:
    with socket.create_connection(("127.0.0.1", box.sandbox.docker_port), timeout=10) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: a\0b\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 ")
    assert box.output("echo alive") == "alive"


@pytest.mark.parametrize("method", ["HEAD", "PUT", "PATCH", "OPTIONS", "TRACE", "BREW", "get"])
def test_a_method_that_a_path_does_not_take_is_told(box: Box, method: str) -> None:
    answer = httpx.request(method, f"{box.sandbox.base_url}/v1/shell/exec", timeout=30)
    assert answer.status_code == 405
    if method != "HEAD":
        assert "POST" in answer.json()["message"]


def _exchange(box: Box, *parts: bytes) -> bytes:
    """All that comes back until the other end closes."""
    received = b""
    with socket.create_connection(("127.0.0.1", box.sandbox.docker_port), timeout=30) as connection:
        for part in parts:
            connection.sendall(part)
        while chunk := connection.recv(1 << 16):
            received += chunk
    return received


HEAD = b"POST /v1/file/read HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", 400),
        (HEAD + b"Content-Length: -2\r\n\r\n{}", 400),
        (HEAD + b"Content-Length: 2, 2\r\n\r\n{}", 400),
        (HEAD + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n{}", 413),
        (HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
        (HEAD + b"X: " + b"y" * 100_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/9.9\r\n\r\n", 505),
        (b"nonsense\r\n\r\n", 400),
    ],
    ids=str,
)
def test_what_is_no_request_is_told_in_json(box: Box, sent: bytes, status: int) -> None:
    answer = _exchange(box, sent)
    _, _, content = answer.partition(b"\r\n\r\n")
    # To what names no protocol that we know, the content alone is the answer, as in HTTP/0.9.
    assert answer.startswith((f"HTTP/1.1 {status} ".encode(), b"{"))
    assert json.loads(content or answer)["success"] is False
    assert box.output("echo alive") == "alive"


def test_more_than_a_request_may_have_is_refused_though_all_of_it_is_sent(box: Box) -> None:
    answer = _exchange(box, HEAD + b"Content-Length: %d\r\n\r\n" % (100 << 20), *[b"x" * (1 << 20)] * 100)
    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    "body",
    [b'{"file": ' * 100_000, b"[" * 100_000, b'{"file": 1e999}', b'{"file": NaN}', b"1" * 100_000, b"\xff\xfe", b"\0"],
    ids=["deep objects", "deep lists", "infinity", "no number", "many digits", "no text", "zero"],
)
def test_json_that_is_none_is_refused(box: Box, body: bytes) -> None:
    assert _post(box, "/v1/file/read", body).status_code == 422


@pytest.mark.parametrize(
    "path", ["/tmp", "/dev/zero", "/proc/1/mem", "/proc/self/mem", "/tmp/pipe", "/tmp/loop", "/dev/tty"]
)
@pytest.mark.parametrize("call", ["read", "write", "download", "view", "search", "list", "find"])
def test_what_is_no_file_keeps_nobody_waiting(box: Box, path: str, call: str) -> None:
    box.output("[ -p /tmp/pipe ] || mkfifo /tmp/pipe; ln -sfn loop /tmp/loop; ls /tmp/loop 2>&1")
    http, base = httpx.Client(timeout=20), box.sandbox.base_url
    answers = {
        "read": lambda: http.post(f"{base}/v1/file/read", json={"file": path}),
        "write": lambda: http.post(f"{base}/v1/file/write", json={"file": path, "content": "x"}),
        "download": lambda: http.get(f"{base}/v1/file/download", params={"path": path}),
        "view": lambda: http.post(f"{base}/v1/file/str_replace_editor", json={"command": "view", "path": path}),
        "search": lambda: http.post(f"{base}/v1/file/search", json={"file": path, "regex": "x"}),
        "list": lambda: http.post(f"{base}/v1/file/list", json={"path": path}),
        "find": lambda: http.post(f"{base}/v1/file/find", json={"path": path, "glob": "*"}),
    }
    with http:
        answer = answers[call]()
    assert answer.status_code < 500
    assert answer.json()["success"] is (answer.status_code == 200)
