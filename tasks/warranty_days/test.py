"""Judges the answer alone; the number wanted is computed here and stands nowhere in the instruction."""

from datetime import date


def test(result):
    wanted = (date.fromisoformat(result["end"]) - date.fromisoformat(result["start"])).days
    lines = answer_of(result).splitlines()
    if not lines:
        return {"passed": False, "feedback": "There is no answer."}
    said = lines[-1].strip()
    passed = said == str(wanted)
    feedback = f"{wanted} days, as it should be." if passed else f"The last line says {said[:80]!r}, not {wanted}."
    return {"passed": passed, "feedback": feedback, "details": {"wanted": wanted, "said": said}}


def answer_of(result):
    """The final answer, else the last words of the agent; never what it was told."""
    if isinstance(answer := result["task_result"], str) and answer.strip():
        return answer.strip()
    conversation = result["conversation"] if isinstance(result["conversation"], list) else []
    for message in reversed(conversation):
        if isinstance(message, dict) and message.get("role") == "assistant":
            content = message.get("content")
            if isinstance(content, str) and content.strip():
                return content.strip()
    return ""
