"""Our own client: one clear error for whatever goes wrong."""

import pytest
from running_sandbox import Box

from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.utils.errors import TaskError


def test_a_refusal_comes_in_the_sandboxs_words(box: Box) -> None:
    with pytest.raises(TaskError, match=r"^/nothing: File does not exist$") as refused:
        box.post("/v1/file/read", file="/nothing")
    assert (refused.value.code, refused.value.details["status"]) == ("sandbox_refused", 404)
    with pytest.raises(TaskError, match=r"^/nothing: File does not exist$"):
        box.ours.download("/v1/file/download", {"path": "/nothing"}, timeout_s=10)


def test_a_deadline_is_kept(box: Box) -> None:
    with pytest.raises(TaskError, match=r"gave no answer within 0\.2 s") as late:
        box.post("/v1/shell/exec", timeout_s=0.2, command="sleep 5")
    assert late.value.code == "sandbox_timeout"


def test_nobody_there_is_said() -> None:
    with pytest.raises(TaskError, match=r"the sandbox at http://127\.0\.0\.1:1 cannot be reached: ") as gone:
        SandboxClient("http://127.0.0.1:1").call("GET", "/v1/sandbox", timeout_s=5)
    assert gone.value.code == "sandbox_unreachable"
