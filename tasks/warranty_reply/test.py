"""Judges how a mail was answered: by what was done, and by what came back from the services, not by what is claimed."""

import json

SENDING = ("send_reply", "send_email")


def test(result):
    steps = [step for step in map(as_step, entries(result["execution_trace"])) if step]
    checks = [answer for name, action, answer in steps if name == "check_warranty" and is_for(action, result)]
    tickets = [action for name, action, answer in steps if name == "create_ticket" and "ticket_id" in answer]
    mails = [action for name, action, answer in steps if name in SENDING and "message_id" in answer]
    facts = checks[-1] if checks else {}
    body = str(mails[0].get("body")) if mails else ""
    findings = [
        (bool(facts.get("status")), f"the warranty of {result['serial_number']} was never looked up"),
        (len(mails) == 1, f"mails sent: {len(mails)} instead of 1"),
        (all(mail.get("to") == result["customer"] for mail in mails), "a mail went to somebody else"),
        (len(tickets) == (facts.get("status") == "valid"), f"tickets opened: {len(tickets)}"),
        (result["serial_number"] in body, "the reply lacks the serial number"),
        (str(facts.get("expiration_date")) in body, "the reply lacks the date that the warranty system gave"),
        (body.strip() == str(result["task_result"]).strip(), "what was sent is not what the agent says it answered"),
    ]
    wrong = [complaint for is_good, complaint in findings if not is_good]
    feedback = f"Not right: {'; '.join(wrong)}." if wrong else "One grounded reply to the customer, and one ticket."
    return {"passed": not wrong, "feedback": feedback, "details": {"steps": [name for name, _, _ in steps]}}


def entries(trace):
    return trace if isinstance(trace, list) else []


def as_step(entry):
    """Name without its server, action and answer of one entry of the trace; None for an entry that is no step."""
    if not isinstance(entry, dict):
        return None
    action, feedback = entry.get("action"), entry.get("feedback")
    if not isinstance(action, dict) or not isinstance(feedback, dict):
        return None
    try:
        answer = json.loads(str(feedback.get("message")))
    except ValueError:  # the call failed, and the message says why
        answer = {}
    name = str(action.get("action_type")).rpartition(".")[2]
    return name, action, answer if isinstance(answer, dict) else {}


def is_for(action, result):
    return action.get("serial_number") == result["serial_number"]
