"""What a model's answer comes to: the input of the tool call that was asked for, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from guarantee_email_agent.utils.errors import LLMError

_CATEGORY: Final = re.compile(r"[a-z_]{1,40}")


class WrongShapeError(LLMError):
    """The model answered, but not through the tool as asked: it may do so when asked again.

    `objection` is what to tell the model. Nothing that it wrote stands in it, since that may be the customer's words.
    """

    @property
    def objection(self) -> str:
        return str(self.details["objection"])


def tool_input(answer: Any, tool: str, is_wanted: Callable[[object], bool]) -> Mapping[str, Any]:
    """The input of the first call of `tool` that `is_wanted`.

    Raises WrongShapeError where there is none, and LLMError where asking again cannot help: `llm_refused`,
    `llm_truncated` (a call that was cut off may look complete), `llm_request_too_large`.
    """
    if answer.stop_reason == "refusal":
        category = getattr(getattr(answer, "stop_details", None), "category", None)
        why = f" ({category})" if isinstance(category, str) and _CATEGORY.fullmatch(category) else ""
        raise LLMError(f"The model refuses to deal with this mail{why}. Answer it yourself", "llm_refused")
    if answer.stop_reason == "max_tokens":
        raise LLMError("The model's answer was cut off. Raise llm.max_tokens", "llm_truncated")
    if answer.stop_reason == "model_context_window_exceeded":
        raise LLMError("The mail is too long for the model. Answer it yourself", "llm_request_too_large")
    objection = "It was text, and no call of the tool."
    for block in answer.content:
        if block.type != "tool_use":
            continue
        if block.name != tool:
            objection = "It was a call of another tool."
        elif is_wanted(block.input):
            return block.input  # type: ignore[no-any-return]
        else:
            objection = "The input of the call does not fit the tool's schema."
    what = f"The model did not answer through {tool} as asked. {objection}"
    raise WrongShapeError(what, "llm_wrong_shape", {"objection": objection})
