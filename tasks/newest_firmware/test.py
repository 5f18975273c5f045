# /// script
# dependencies = ["packaging>=24"]
# ///
"""Judges an answer with a package that is not installed here: the block above declares it (PEP 723)."""

from packaging.version import Version

RELEASED = ("2.10.0rc1", "2.9.10", "2.10.0", "2.9.10.post1", "2.10.0.dev3", "1!0.9")


def test(result):
    wanted = sorted(RELEASED, key=Version, reverse=True)
    answer = result["task_result"] if isinstance(result["task_result"], str) else ""
    answer = answer.strip() or last_words(result["conversation"]).strip()
    if not answer:
        return {"passed": False, "feedback": "There is no answer."}
    said = [version.strip() for version in answer.split(",")]
    if said == wanted:
        return {"passed": True, "feedback": "All six versions are in order."}
    if sorted(said) != sorted(wanted):
        return {"passed": False, "feedback": "The answer is no list of exactly these six versions."}
    first = next(place for place in range(len(wanted)) if said[place] != wanted[place])
    return {"passed": False, "feedback": f"{said[first]} stands where {wanted[first]} belongs."}


def last_words(conversation):
    """The last thing that the agent itself said."""
    for message in reversed(conversation if isinstance(conversation, list) else []):
        if isinstance(message, dict) and message.get("role") == "assistant":
            content = message.get("content")
            if isinstance(content, str) and content.strip():
                return content
    return ""
