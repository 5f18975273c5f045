import json
import logging
import os
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scenario_folder import TEMPLATE

from guarantee_email_agent.eval.loader import (
    MAX_SCENARIO_BYTES,
    EvalLoader,
    InvalidScenario,
    names_twice,
    path_order,
    position_in,
    select_scenarios,
)
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.utils.errors import EvalError

ONE_DOCUMENT = TEMPLATE.partition("\n")[2]  # without the line for editors
FRONTMATTER, BODY = ONE_DOCUMENT[: ONE_DOCUMENT.index("input:")], ONE_DOCUMENT[ONE_DOCUMENT.index("input:") :]
TWO_DOCUMENTS = f"---\n{FRONTMATTER}---\n{BODY}"
REQUIRED = [
    "scenario_id",
    "description",
    "category",
    "created",
    "input",
    "input.email",
    "input.email.subject",
    "input.email.body",
    "input.email.from",
    "input.email.received",
    "expected_output",
    "expected_output.email_sent",
    "expected_output.ticket_created",
    "expected_output.scenario_instruction_used",
]

WRONG_TYPES: list[tuple[str, object]] = [
    ("scenario_id", 12),
    ("description", ["a"]),
    ("created", None),
    ("input", "text"),
    ("input.email", []),
    ("input.email.subject", True),
    ("input.email.body", 1.5),
    ("input.email.headers", ["a"]),
    ("input.email.headers", {"Precedence": 1}),
    ("input.email.attachments", "a.pdf"),
    ("input.email.attachments", [1]),
    ("input.mock_responses", []),
    ("input.mock_responses", {"gmail": "timeout"}),
    ("input.mock_responses.warranty_api.status", True),
    ("input.mock_responses.warranty_api.status", None),
    ("input.mock_responses.warranty_api.expiration_date", 20251231),
    ("input.mock_responses.warranty_api.serial_number", 12345),
    ("expected_output.email_sent", "yes"),
    ("expected_output.ticket_created", 1),
    ("expected_output.response_body_contains", "one phrase"),
    ("expected_output.response_body_contains", [2025]),
    ("expected_output.response_body_excludes", None),
    ("expected_output.ticket_fields", {"serial_number": 12345}),
    ("expected_output.scenario_instruction_used", None),
    ("expected_output.processing_time_ms", "60000"),
    ("expected_output.processing_time_ms", 0.5),
    ("test", 5),
]
WRONG_VALUES: list[tuple[str, object]] = [
    *(("scenario_id", value) for value in ("", "two words", "../escape", "x" * 101)),
    ("description", " "),
    ("category", ""),
    *(("created", value) for value in ("", "last week", "2026-02-30", "18.01.2026")),
    *(("input.email.received", value) for value in ("", "yesterday", "2026-01-18T25:00:00Z")),
    *(("input.email.from", value) for value in ("Jane Doe", "jane at example.com", "a@example.com, b@example.com")),
    ("input.mock_responses.warranty_api.expiration_date", "soon"),
    ("input.mock_responses.warranty_api.status", ""),
    ("input.mock_responses.warranty_api.error", "timout"),
    ("input.mock_responses.gmail.error", "TIMEOUT"),
    ("input.mock_responses.ticketing.error", ""),
    ("expected_output.response_body_contains", ["fine", ""]),
    *(("expected_output.response_body_excludes", [value]) for value in (" \n", "\u200b\u00ad")),
    ("expected_output.scenario_instruction_used", ""),
    ("expected_output.processing_time_ms", 0),
    *(("test", value) for value in ("/etc/judge.py", "../judge.py", "judge.txt", "", "mail.eml")),
    *(("input.email.raw_file", value) for value in ("../mail.eml", "mail.txt")),
    ("input.agent.mode", "draft"),
]
ALIAS_BOMB = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
ALIAS_BOMB += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: str | bytes, name: str = "valid_warranty_001.yaml") -> Path:
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    return write_file


def plain() -> dict[str, Any]:
    return {**yaml.safe_load(BODY), **yaml.safe_load(FRONTMATTER), "created": "2026-01-18"}


def changed(path: str, value: object) -> dict[str, Any]:
    data = plain()
    *parents, last = path.split(".")
    reduce(lambda place, part: place.setdefault(part, {}), parents, data)[last] = value
    return data


def without(path: str) -> dict[str, Any]:
    data = plain()
    *parents, last = path.split(".")
    del reduce(dict.__getitem__, parents, data)[last]
    return data


def refused(file: Path) -> EvalError:
    with pytest.raises(EvalError) as caught:
        EvalLoader().load_eval_test_case(file)
    return caught.value


def accepted(data: object) -> EvalTestCase:
    return EvalLoader().validate_test_case(data, "valid_warranty_001.yaml")


def problem_with(data: object, name: str = "valid_warranty_001.yaml") -> EvalError:
    with pytest.raises(EvalError) as caught:
        EvalLoader().validate_test_case(data, name)
    return caught.value


class TestForms:
    @pytest.mark.parametrize(
        "text",
        [
            TWO_DOCUMENTS,
            ONE_DOCUMENT,
            f"---\n{ONE_DOCUMENT}",
            f"---\n{ONE_DOCUMENT}---\n",
            f"# yaml-language-server: $schema=schema.json\n{TWO_DOCUMENTS}",
            TWO_DOCUMENTS + "...\n",
            "\ufeff" + TWO_DOCUMENTS,
            TWO_DOCUMENTS.replace("\n", "\r\n"),
        ],
        ids=["two", "one", "one-marked", "one-closed", "modeline", "ended", "byte-order-mark", "crlf"],
    )
    def test_every_form_gives_the_same_scenario(self, write: Write, text: str) -> None:
        case = EvalLoader().load_eval_test_case(write(text))
        assert (case.scenario_id, case.category) == ("valid_warranty_001", "valid-warranty")
        assert case.created == "2026-01-18"
        assert case.input.email.from_address == "customer@example.com"
        assert case.input.mock_responses["warranty_api"]["expiration_date"] == "2025-12-31"
        assert tuple(case.expected_output.response_body_excludes) == ("expired", "invalid", "not found")
        assert case.expected_output.ticket_fields["priority"] == "normal"

    @pytest.mark.parametrize("written", ["2026-01-18", "'2026-01-18'", "2026-1-8", "2026-01-18T10:00:00+01:00"])
    def test_plain_scalars_keep_what_the_author_wrote(self, write: Write, written: str) -> None:
        text = TWO_DOCUMENTS.replace("created: 2026-01-18", f"created: {written}")
        assert EvalLoader().load_eval_test_case(write(text)).created == written.strip("'")

    def test_what_pyyaml_makes_of_dates_is_what_the_author_wrote(self, write: Write) -> None:
        text = ONE_DOCUMENT.replace('"2026-01-18T10:00:00Z"', "2026-01-18T10:00:00Z").replace(
            '"2025-12-31"', "2025-12-31"
        )
        file = write(text)
        case = EvalLoader().validate_test_case(yaml.safe_load(text), file)
        assert case == EvalLoader().load_eval_test_case(file)
        assert (case.created, case.input.email.received) == ("2026-01-18", "2026-01-18T10:00:00Z")

    def test_data_that_holds_itself(self) -> None:
        data = yaml.safe_load("&all {input: *all}")
        assert problem_with(data).code == "eval_yaml_invalid"

    def test_a_key_in_both_documents(self, write: Write) -> None:
        error = refused(write(TWO_DOCUMENTS + "created: 2026-01-19\n"))
        assert error.code == "eval_duplicate_key"
        assert "created stands in both documents" in error.message

    @pytest.mark.parametrize(
        ("text", "code", "says"),
        [
            ("", "eval_file_empty", "The file is empty"),
            ("---\n", "eval_file_empty", "The file is empty"),
            ("---\n---\n", "eval_file_empty", "The file is empty"),
            ("# only a comment\n", "eval_file_empty", "The file is empty"),
            ("- a\n- b\n", "eval_wrong_type", "not a list"),
            ("just words\n", "eval_wrong_type", "not plain text"),
            (f"---\n{FRONTMATTER}---\njust words\n", "eval_wrong_type", "not plain text"),
            (f"{TWO_DOCUMENTS}---\na: 1\n", "eval_yaml_invalid", "3 YAML documents"),
            ("a: 1\na: 2\n", "eval_yaml_invalid", "line 2"),
            ("a: [1\n", "eval_yaml_invalid", "line 1"),
            ("a:\n\tb: 1\n", "eval_yaml_invalid", "tab"),
            ("x: &x [&y [1, 2], *y]\nz: [*x, *q]\n", "eval_yaml_invalid", "line 2, column 9"),
            (TWO_DOCUMENTS.replace('"expired",', '"expired"'), "eval_yaml_invalid", "line 18, column"),
            ("\n".join(ALIAS_BOMB), "eval_yaml_invalid", "aliases"),
        ],
    )
    def test_what_is_no_scenario_at_all(self, write: Write, text: str, code: str, says: str) -> None:
        error = refused(write(text))
        assert error.code == code
        assert error.message.startswith("Invalid eval file: valid_warranty_001.yaml - ")
        assert says in error.message


class TestFields:
    @pytest.mark.parametrize("path", REQUIRED)
    def test_required(self, write: Write, path: str) -> None:
        file = write(json.dumps(without(path)))
        error = refused(file)
        assert error.code == "eval_missing_field"
        assert (error.details["file_path"], error.details["field"]) == (str(file), path)
        assert error.message == f"Invalid eval file: valid_warranty_001.yaml - Missing field: {path}"

    @pytest.mark.parametrize(
        ("path", "known"),
        [
            ("scenarioid", "scenario_id"),
            ("expected", "expected_output"),
            ("input.mail", "email"),
            ("input.mock_response", "mock_responses"),
            ("input.email.form", "from"),
            ("input.email.from_address", None),
            ("input.mock_responses.gmial", "gmail"),
            ("input.mock_responses.warranty", "warranty_api"),
            ("input.mock_responses.gmail.status", None),
            ("expected_output.email_snt", "email_sent"),
            ("file", None),
        ],
    )
    def test_unknown_keys_name_the_nearest_known_one(self, path: str, known: str | None) -> None:
        error = problem_with(changed(path, {}))
        assert error.code == "eval_unknown_key"
        assert f"Unknown key: {path}" in error.message
        if known:
            assert f"did you mean '{known}'?" in error.message

    @pytest.mark.parametrize(
        ("path", "value", "title"),
        [*((*each, "Wrong type") for each in WRONG_TYPES), *((*each, "Invalid value") for each in WRONG_VALUES)],
    )
    def test_wrong_types_and_values(self, path: str, value: object, title: str) -> None:
        error = problem_with(changed(path, value))
        assert error.code == f"eval_{title.lower().replace(' ', '_')}"
        assert f"{title}: {path}" in error.message

    @pytest.mark.parametrize(
        ("path", "value", "says"),
        [
            ("input.previous_reply", {"message_id": "<r@example.com>", "scenario": "missing-info"}, "In-Reply-To"),
            ("input.agent", {"sender_check": "hold"}, "needs authserv_id beside it"),
            ("expected_output.sent_to", "Jane <jane@example.com>", "must be a bare address"),
            ("expected_output.sent_to", "Jane", "must be a bare address"),
            ("expected_output.hand_over_reason", "fire", "email_sent is true"),
            ("expected_output.draft_stored", True, "email_sent is true"),
        ],
    )
    def test_what_means_nothing_beside_the_rest(self, path: str, value: object, says: str) -> None:
        error = problem_with(changed(path, value))
        assert error.code == "eval_invalid_value"
        assert f"Invalid value: {path}" in error.message
        assert says in error.message

    @pytest.mark.parametrize("header", ["In-Reply-To", "references"])
    def test_a_mail_that_answers_the_previous_reply(self, header: str) -> None:
        data = changed("input.email.headers", {header: "<first@example.com>\n <r@example.com>"})
        data["input"]["previous_reply"] = {"message_id": "<r@example.com>", "scenario": "missing-info"}
        data["input"]["agent"] = {"sender_check": "hold", "authserv_id": "mx.example.com"}
        data["expected_output"]["sent_to"] = "form@example.com"
        case = accepted(data)
        assert case.input.previous_reply.seconds_before == 3600

    def test_a_number_where_text_must_stand_is_shown_as_written(self, write: Write) -> None:
        error = refused(write(TWO_DOCUMENTS.replace('"SN12345", w', "0x1F, w")))
        assert error.message.endswith(
            " - Wrong type: expected_output.ticket_fields.serial_number (line 20)"
            ' is the number 0x1F, not text; quote it: "0x1F"'
        )

    def test_warranty_facts_may_have_further_keys(self) -> None:
        data = changed("input.mock_responses.warranty_api.note", {"any": [1, None, True]})
        assert accepted(data).input.mock_responses["warranty_api"]["note"] == {"any": [1, None, True]}

    @pytest.mark.parametrize(
        ("path", "value", "says"),
        [
            ("input.mock_responses.orders", {"get": 5}, "orders.get must be an answer"),
            ("expected_output.calls", [{"server": "orders"}], "Missing field: expected_output.calls[0].tool"),
            ("expected_output.calls", [{"server": "mial", "tool": "mark"}], "'mial' is no server of this scenario"),
            ("expected_output.calls", [{"server": "mail", "tool": "send_mail_reply"}], "did you mean 'send_reply'?"),
            ("expected_output.calls", [{"server": "mail", "tool": "mark", "times": -1}], "must be at least 0"),
            ("expected_output.calls", [{"server": "mail", "tool": "mark", "time": 1}], "did you mean 'times'?"),
            ("expected_output.never_called", [{"server": "orders"}], "; there are mail, warranty, ticketing"),
            ("expected_output.never_called", [{"server": "mail", "tool": "x"}], "'x' is no tool of mail"),
            ("expected_output.ordered", True, "needs two calls or more"),
            ("expected_output.calls", [], "expected_output.calls is empty and judges nothing"),
            *(
                ("expected_output.never_called", [{"server": "mail", "arguments": {"subject": value}}], says)
                for value, says in [
                    ({"matches": "("}, "subject.matches is no regular expression"),
                    ({"matches": "(a|aa)+b"}, "subject.matches can be matched in too many ways and may hang"),
                    ({"contains": "a", "contain": "b"}, "has 'contain' beside a matcher"),
                    ({"contains": ""}, "is empty, which anything contains"),
                    ({"approx": 1}, "must be approx and tolerance together"),
                    ({"approx": "1", "tolerance": 0}, "subject.approx must be a number"),
                    ({"any": False}, "must be true, which fits any value"),
                    ([float("nan")], "is a number that JSON does not have"),
                ]
            ),
            ("input.mock_responses.orders", {"get": {"when": {"id": {"sql": " "}}, "answer": "a"}}, "not blank"),
            (
                "expected_output.calls",
                [{"server": "mail", "tool": "send_reply", "arguments": {"sbject": "Re:"}}],
                "arguments.sbject is no argument of mail.send_reply – did you mean 'subject'?",
            ),
            (
                "expected_output.never_called",
                [{"server": "warranty", "arguments": {"serial": "A"}}],
                "arguments.serial is no argument of warranty.*",
            ),
        ],
    )
    def test_calls_that_nobody_could_make(self, path: str, value: object, says: str) -> None:
        assert says in problem_with(changed(path, value)).message

    def test_for_an_agent_that_is_not_ours_no_instruction_of_ours_is_needed(self, write: Write) -> None:
        file = write(json.dumps(without("expected_output.scenario_instruction_used")))
        assert EvalLoader(any_agent=True).load_eval_test_case(file).expected_output.scenario_instruction_used is None
        assert refused(file).code == "eval_missing_field"

    def test_all_problems_are_named_at_once(self, write: Write) -> None:
        text = TWO_DOCUMENTS.replace("created: 2026-01-18\n", "").replace("email_sent: true", "email_snt: true")
        assert refused(write(text)).message == (
            "Invalid eval file: valid_warranty_001.yaml - Missing field: created; "
            "Missing field: expected_output.email_sent; "
            "Unknown key: expected_output.email_snt (line 15) – did you mean 'email_sent'?"
        )

    def test_a_flood_of_problems_is_cut(self, write: Write) -> None:
        many = "".join(f"  wrong_{'x' * 500}_{number}: 1\n" for number in range(200))
        message = refused(write(TWO_DOCUMENTS + many)).message
        assert message.endswith("; and 190 more")
        assert len(message) < 5000

    def test_control_characters_in_a_message_are_written_out(self) -> None:
        assert "\\x1b[31m" in problem_with(changed("\x1b[31mred", 1)).message

    def test_a_judge_must_stand_beside_the_file(self, write: Write, tmp_path: Path) -> None:
        file = write(json.dumps(changed("test", "judge.py")))
        assert refused(file).code == "eval_test_not_found"
        (tmp_path / "judge.py").touch()
        assert EvalLoader().load_eval_test_case(file).test == "judge.py"


class TestFileNames:
    @pytest.mark.parametrize(
        "name",
        [
            "valid_warranty.yaml",
            "valid_warranty_a.yaml",
            "valid_warranty_001.yml",
            "valid_warranty_001.YAML",
            "valid-warranty_001.yaml",
            "invalid_warranty_001.yaml",
            "valid_warranty_001_copy.yaml",
            "valid_warranty_٣.yaml",
            "_001.yaml",
        ],
    )
    def test_a_name_that_does_not_fit_the_pattern_or_the_category(self, name: str) -> None:
        error = problem_with(plain(), name)
        assert error.code == "eval_file_name"
        assert "valid_warranty_<number>.yaml" in error.message

    def test_the_id_is_the_name(self) -> None:
        error = problem_with(changed("scenario_id", "another-id.2"))
        assert error.code == "eval_wrong_id"
        assert error.message.endswith(
            "Wrong id: scenario_id 'another-id.2' is not the file's name; "
            "write scenario_id: valid_warranty_001, or rename the file"
        )


class TestFiles:
    @pytest.mark.parametrize(
        "make",
        [
            Path.mkdir,
            pytest.param(
                lambda file: os.mkfifo(file),
                marks=pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here"),
            ),
            lambda file: file.symlink_to(file),  # taking its permissions away would not stop root
        ],
        ids=["folder", "pipe", "endless-link"],
    )
    def test_unreadable(self, tmp_path: Path, make: Callable[[Path], object]) -> None:
        make(tmp_path / "valid_warranty_001.yaml")
        assert refused(tmp_path / "valid_warranty_001.yaml").code == "eval_file_unreadable"

    def test_five_megabytes(self, write: Write) -> None:
        error = refused(write(TWO_DOCUMENTS.replace("Thanks!", "Thanks! " * 650_000)))
        assert error.code == "eval_file_too_large"
        assert f"{MAX_SCENARIO_BYTES:,}" in error.message

    def test_not_utf8(self, write: Write) -> None:
        error = refused(write(TWO_DOCUMENTS.replace("Thanks", "Grüße").encode("latin-1")))
        assert error.code == "eval_file_not_utf8"
        assert "line 10, column" in error.message


class TestDiscovery:
    def test_other_files_and_hidden_folders_do_not_count(self, write: Write, tmp_path: Path) -> None:
        write(TWO_DOCUMENTS)
        for name in ("README.md", "schema.json", "judge.py", "_template.yaml", ".hidden.yaml", "a.yaml~", "a.yaml.bak"):
            write("not: [a scenario", name)
        for folder in ("_recordings", ".git"):
            (tmp_path / folder).mkdir()
            write(TWO_DOCUMENTS, f"{folder}/valid_warranty_002.yaml")
        (tmp_path / "round").symlink_to(tmp_path)
        suite = EvalLoader().discover_test_cases(tmp_path)
        assert (len(suite), len(suite.entries)) == (1, 1)

    def test_folders_below_are_searched_in_the_byte_order_of_the_names(self, write: Write, tmp_path: Path) -> None:
        names = [f"{place}.yaml" for place in ("v_9", "v_10", "B/a/v_3", "b/v_2")]
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            write(json.dumps(plain() | {"scenario_id": Path(name).stem, "category": "v"}), name)
        files = EvalLoader().scenario_files(tmp_path)
        assert [os.path.relpath(file, tmp_path) for file in files] == sorted(names)
        assert len(EvalLoader().discover_test_cases(tmp_path)) == 4

    def test_in_a_folder_of_declared_servers_only_scenarios_count(self, write: Write, tmp_path: Path) -> None:
        (tmp_path / "servers" / "more").mkdir(parents=True)
        (tmp_path / "servers" / "calendar.yaml").write_text("tools: []\n", encoding="utf-8")
        write(TWO_DOCUMENTS).rename(tmp_path / "servers" / "valid_warranty_001.yaml")
        write(TWO_DOCUMENTS).rename(tmp_path / "servers" / "more" / "anything.yaml")
        found = EvalLoader().scenario_files(tmp_path)
        names = ["servers/more/anything.yaml", "servers/valid_warranty_001.yaml"]
        assert [Path(each).relative_to(tmp_path).as_posix() for each in found] == names

    def test_invalid_files_stay_among_the_entries(
        self, write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        write(ONE_DOCUMENT.replace("_001", "_003"), "valid_warranty_003.yaml")
        write(TWO_DOCUMENTS)
        lacking = without("expected_output.email_sent") | {"scenario_id": "valid_warranty_002"}
        write(json.dumps(lacking), "valid_warranty_002.yaml")
        write(TWO_DOCUMENTS, "valid_warranty_004.yaml.txt")
        (tmp_path / "x.yml").mkdir()
        (tmp_path / "y.yaml").symlink_to("nowhere")
        with caplog.at_level(logging.ERROR):
            suite = EvalLoader().discover_test_cases(tmp_path)

        assert [case.scenario_id for case in suite] == ["valid_warranty_001", "valid_warranty_003"]
        invalid = [entry for entry in suite.entries if isinstance(entry, InvalidScenario)]
        assert [entry.code for entry in invalid] == [
            "eval_missing_field",
            "eval_file_name",
            "eval_file_unreadable",
            "eval_file_not_found",
        ]
        kinds = [isinstance(entry, EvalTestCase) for entry in suite.entries]
        assert kinds == [True, False, True, False, False, False]
        assert [record.getMessage() for record in caplog.records] == [entry.message for entry in invalid]
        missing = "Invalid eval file: valid_warranty_002.yaml - Missing field: expected_output.email_sent"
        assert invalid[0].message == missing

    def test_of_two_files_with_one_id_the_second_is_invalid(self, write: Write, tmp_path: Path) -> None:
        write(TWO_DOCUMENTS)
        write(TWO_DOCUMENTS, "valid_warranty_002.yaml")
        suite = EvalLoader().discover_test_cases(tmp_path)
        assert [case.file for case in suite] == [str(tmp_path / "valid_warranty_001.yaml")]
        _, duplicate = suite.entries
        assert isinstance(duplicate, InvalidScenario)
        assert duplicate.code == "eval_duplicate_id"
        assert duplicate.message.startswith("Invalid eval file: valid_warranty_002.yaml - Duplicate scenario_id")
        assert duplicate.message.endswith(
            "valid_warranty_001 is already that of valid_warranty_001.yaml; write scenario_id: valid_warranty_002"
        )

    def test_no_folder(self, write: Write, tmp_path: Path) -> None:
        with pytest.raises(EvalError, match="the scenario folder does not exist") as caught:
            EvalLoader().discover_test_cases(tmp_path / "nowhere")
        assert (caught.value.code, caught.value.exit_code) == ("eval_file_not_found", 2)
        with pytest.raises(EvalError, match="not a folder"):
            EvalLoader().discover_test_cases(write(TWO_DOCUMENTS))
        (tmp_path / "suite").mkdir()
        (tmp_path / "suite" / "more").symlink_to(tmp_path / "others")
        (tmp_path / "others").mkdir()
        write(TWO_DOCUMENTS, "others/valid_warranty_001.yaml")
        with pytest.raises(EvalError, match=r"suite/more: this link leads to scenarios, which would not run"):
            EvalLoader().discover_test_cases(tmp_path / "suite")


class TestAnyInput:
    @settings(max_examples=300)
    @given(st.binary(max_size=400) | st.text("abc:-[]{}#&*!|>'\"%@`,? \n\t1.~", max_size=200))
    def test_any_bytes_and_what_looks_like_yaml_give_a_scenario_or_one_clear_line(
        self, write: Write, content: bytes | str
    ) -> None:
        self._check(write(content))

    @pytest.mark.slow
    @settings(max_examples=150)
    @given(
        st.sampled_from(
            [*REQUIRED, "input.mock_responses", "input.mock_responses.gmail", "input.email.headers", "new"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.integers(), inner),
            max_leaves=6,
        ),
    )
    def test_any_value_at_any_place(self, write: Write, path: str, value: object) -> None:
        self._check(write(yaml.safe_dump(changed(path, value), allow_unicode=True)))

    def _check(self, file: Path) -> None:
        path = str(file)
        (entry,) = EvalLoader().iter_entries([path])
        if isinstance(entry, InvalidScenario):
            assert entry.message.startswith(f"Invalid eval file: {file.name} - ")
            assert len(entry.message.splitlines()) == 1
        else:
            assert entry.file == path


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8), unique=True))
def test_each_file_has_its_position_in_the_byte_order(files: list[str]) -> None:
    files = sorted([*files, os.fsdecode(b"case_\xff.yaml")], key=path_order)
    assert [position_in(files, file) for file in files] == list(range(1, len(files) + 1))


@pytest.mark.parametrize("file", ["suite/b.yaml", "other/a.yaml", "", "suite/a.yaml/", None])
def test_a_file_of_another_place_has_no_position(file: str | None) -> None:
    assert position_in(["suite/a.yaml", "suite/c.yaml"], file) == 0


def test_a_name_in_two_folders() -> None:
    assert names_twice(["s/a.b.yml", "s/a.yaml", "s/a_1.YAML", "s/sub/a.yml"]) == {"a"}


NAMES = ("hand_over_001", "hand_over_002", "missing_info_001", "valid_warranty_001")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / f"{name}.yaml" for name in NAMES]
    for path in paths:
        path.touch()
    return [str(path) for path in paths]


def selected(files: list[str], *patterns: str) -> list[str]:
    return [Path(file).stem for file in select_scenarios(files, patterns, Path(files[0]).parent)]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("hand_over_001", ["hand_over_001"]),
        ("hand_over_001.yaml", ["hand_over_001"]),
        ("*_001", ["hand_over_001", "missing_info_001", "valid_warranty_001"]),
        ("hand_over_00[2-9].yaml", ["hand_over_002"]),
        ("hand-over", ["hand_over_001", "hand_over_002"]),
        ("*-warranty", ["valid_warranty_001"]),
        ("*", list(NAMES)),
    ],
)
def test_an_id_a_file_name_or_a_category(files: list[str], pattern: str, names: list[str]) -> None:
    assert selected(files, pattern) == names


def test_several_patterns_keep_the_order_of_the_suite_and_take_nothing_twice(files: list[str]) -> None:
    assert selected(files, "valid-warranty", "hand_over_001", "*_001") == [
        "hand_over_001",
        "missing_info_001",
        "valid_warranty_001",
    ]


@pytest.mark.parametrize("path", ["{}/missing_info_001.yaml", "{}/miss*.yaml", "{}/../scenarios/missing_info_001.yaml"])
def test_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    file = folder / "missing_info_001.yaml"
    file.touch()
    monkeypatch.chdir(tmp_path)
    assert selected([str(file)], path.format(folder)) == ["missing_info_001"]
    assert selected([str(file)], path.format("scenarios")) == ["missing_info_001"]


@pytest.mark.parametrize(
    ("pattern", "remedy"),
    [
        ("valid_warrenty_001", "– did you mean 'valid_warranty_001'?"),
        ("valid_warrenty_001.yaml", "– did you mean 'valid_warranty_001'?"),
        ("hand-ovr", "– did you mean 'hand-over'?"),
        ("xyz", "lists what there is"),
    ],
)
def test_a_pattern_that_matches_nothing_is_told_with_what_is_near(files: list[str], pattern: str, remedy: str) -> None:
    with pytest.raises(EvalError) as caught:
        selected(files, "hand-over", pattern)
    error = caught.value
    assert (error.code, error.exit_code) == ("eval_nothing_selected", 2)
    assert error.message.startswith(f"--only {pattern} matches none of the 4 scenarios in ")
    assert error.message.endswith(remedy)


def test_a_file_of_another_folder_is_told_apart(files: list[str], tmp_path: Path) -> None:
    other = tmp_path / "other" / "hand_over_001.yaml"
    other.parent.mkdir()
    other.touch()
    with pytest.raises(EvalError, match=r"it is no scenario file of .* Name its folder with --eval-dir"):
        selected(files, str(other))


def test_a_word_without_a_folder_selects_by_no_folder(files: list[str]) -> None:
    folder = Path(files[0]).parent.name
    with pytest.raises(EvalError):
        selected(files, f"*{folder}*")
