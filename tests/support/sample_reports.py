"""Reports of runs to be shown: a small one with everything in it, what strangers may write, and large ones."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from stored_runs import stored_run

from guarantee_email_agent.runlog.records import Case, CaseResult, Check, Nearest
from guarantee_email_agent.runlog.views.report import Report
from guarantee_email_agent.runlog.views.stored_report import suite_report

MISSING = Check("response_body_contains", "missing phrase 'type plate'", "'type plate'", "'Hello, Thank you …'")
HOSTILE = (
    '</div></details><script>document.title="owned"</script><img src=x onerror=alert(1)> {{ 7 * 7 }} '
    "\x1b[31mred\x1b[0m \u202egnp.exe\u202c `code` ```fence | cell @octocat #1 https://evil.example "
    "[link](javascript:alert(1)) ::error::forged \ud800 \x00 --> ]]> & ' \""
)
REPLY = "Hello,\n\nThank you for your message. We are sorry that your device is giving you trouble.\n\nKind regards"


class Past(NamedTuple):
    """A run from before."""

    passed: int
    total: int
    id: str = "20260118T100000-5f3a9c1e"
    started: str = "2026-01-18T10:00:00Z"
    outcome: str = "passed"


def case(number: int = 1, *, passed: bool = True, **changes: Any) -> Case:
    """A scenario as it mostly is."""
    return Case((result(number, passed=passed, **changes),))


def result(number: int = 1, *, passed: bool = True, **changes: Any) -> CaseResult:
    """The only run of it."""
    values = {
        "name": f"valid_warranty_{number:03}",
        "position": number,
        "verdict": "passed" if passed else "failed",
        "duration_ms": 3.0,
        "checks": () if passed else (MISSING,),
        "category": "valid-warranty",
        "language": "en",
        "description": "Customer with valid warranty requests status check",
        "file": f"evals/scenarios/valid_warranty_{number:03}.yaml",
        "request": {
            "subject": "Warranty status inquiry",
            "from": "customer@example.com",
            "received": "2026-01-18T10:00:00Z",
            "body": "Hi, I need to check my warranty status for serial number SN12345. Thanks!",
        },
        "response": {
            "email_sent": True,
            "recipients": ["customer@example.com"],
            "response_body": REPLY,
            "ticket_created": True,
            "ticket_fields": {"serial_number": "SN12345", "priority": "normal"},
            "scenario_used": "valid-warranty",
            "calls": [
                {"server": "warranty", "tool": "check_warranty", "arguments": {"serial_number": "SN12345"}},
                {"server": "mail", "tool": "send_reply", "arguments": {"to": "customer@example.com"}},
            ],
        },
    }
    return CaseResult(**values | changes)


def hostile_case(number: int = 1, **changes: Any) -> Case:
    """A failed scenario in which strangers wrote whatever could do harm, also into names."""
    return case(
        number,
        passed=False,
        name=HOSTILE,
        category=HOSTILE,
        language=HOSTILE,
        description=HOSTILE,
        file=HOSTILE,
        checks=(Check(HOSTILE, HOSTILE, HOSTILE, HOSTILE),),
        harm=(HOSTILE,),
        nearest=(Nearest(HOSTILE, HOSTILE, HOSTILE),),
        request={"subject": HOSTILE, "body": HOSTILE, HOSTILE: HOSTILE},
        response={"response_body": HOSTILE, "ticket_created": True, "ticket_fields": {HOSTILE: HOSTILE}},
        trace={"conversation": [{"role": "user", "content": HOSTILE}]},
        judgement={"feedback": HOSTILE, "output": HOSTILE},
        **changes,
    )


def report(*cases: Case, of_run: Mapping[str, Any] = MappingProxyType({}), **changes: Any) -> Report:
    """The report of these cases; of a small suite with one of each kind if there are none. of_run: of its run."""
    cases = cases or (
        case(1),
        case(2, passed=False),
        case(3, name="garantie_001", category="missing-info", language="de", description="Frage ohne Seriennummer"),
        case(
            4,
            passed=False,
            name="missing_info_003",
            category="missing-info",
            verdict="invalid",
            checks=(Check("Invalid eval file", "missing_info_003.yaml - Missing field: created"),),
            request=None,
            response=None,
        ),
    )
    run = stored_run(
        id="20260118T100000-5f3a9c1e",
        duration_s=0.41,
        model="instruction-interpreter",
        threshold=99.0,
        planned=len(cases),
        outcome="passed" if all(each.passed for each in cases) else "failed",
    )
    history = tuple(
        Past(
            35 - day % 3,
            35,
            f"2026010{day}T100000-0000000{day}",
            f"2026-01-0{day}T10:00:00Z",
            "failed" if day % 3 else "passed",
        )
        for day in range(1, 10)
    )
    return replace(suite_report(run, cases, history), run=run._replace(**of_run), **changes)


def large_report(count: int, *, failed: int = 0) -> Report:
    """The report of so many scenarios."""
    first = result(1)
    broken = result(1, passed=False)
    cases = [
        Case(((broken if number <= failed else first)._replace(name=f"valid_warranty_{number:06}"),))
        for number in range(count)
    ]
    return report(*cases)
