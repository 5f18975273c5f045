"""Judges an answer with the help of a module beside this file."""

from luhn import check_digit

NUMBERS = ("7992739871", "4026531840", "1000000007")


def test(result):
    wanted = [number + check_digit(number) for number in NUMBERS]
    answer = result["task_result"] if isinstance(result["task_result"], str) else ""
    said = answer.split() or last_words(result["conversation"]).split()
    right = [number for number in wanted if number in said]
    if said == wanted:
        return {"passed": True, "feedback": "All three check digits are right."}
    feedback = f"{len(right)} of {len(wanted)} numbers are right." if said else "There is no answer."
    if len(right) == len(wanted):
        feedback = "The numbers are right, but out of order or not alone."
    return {"passed": False, "feedback": feedback, "details": {"right": len(right)}}


def last_words(conversation):
    """The last thing that the agent itself said."""
    for message in reversed(conversation if isinstance(conversation, list) else []):
        if isinstance(message, dict) and message.get("role") == "assistant":
            content = message.get("content")
            if isinstance(content, str) and content.strip():
                return content
    return ""
