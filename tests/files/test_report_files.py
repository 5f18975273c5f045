import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from small_disks import limited

from guarantee_email_agent.files.report_files import (
    as_json,
    as_json_with_rows,
    check_report_paths,
    check_writable,
    write_json_report,
    write_report,
    write_reports,
)
from guarantee_email_agent.utils.errors import ConfigurationError

CODE = "task_report_unwritable"


class TestOneFile:
    @pytest.mark.parametrize("rows", [[], [{"a": [1, {"b": "line\nbreak"}], "c": {}}], [1, "\udcff", []]])
    def test_row_by_row_it_is_the_same_json(self, rows: list[Any]) -> None:
        head = {"schema_version": 1, "totals": {"total": 3}}
        assert b"".join(as_json_with_rows(head, "results", rows)) == as_json({**head, "results": rows})

    def test_a_disk_that_is_full_leaves_the_former_report_and_no_half_of_the_new_one(self, tmp_path: Path) -> None:
        report = tmp_path / "report.json"
        report.write_bytes(b"former")
        with limited(resource.RLIMIT_FSIZE, 100_000), pytest.raises(ConfigurationError) as caught:
            write_report(report, b"x" * 1_000_000, CODE)
        assert caught.value.code == CODE
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"report.json": b"former"}

    def test_a_pipe_that_is_read_gets_all_of_it(self) -> None:
        reader, writer = os.pipe()
        content = b"x" * 1_000_000
        with ThreadPoolExecutor(1) as pool, open(reader, "rb") as received:
            written = pool.submit(write_report, f"/dev/fd/{writer}", content, CODE)  # as a shell's >(…) names it
            assert received.read(len(content)) == content
            written.result()
        os.close(writer)

    def test_a_pipe_that_nobody_reads_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ConfigurationError, match="nobody reads this pipe"):
            write_report(tmp_path / "pipe", b"{}", CODE)

    @pytest.mark.parametrize("name", ["-", "/dev/stdout"])
    def test_stdout(self, name: str) -> None:
        program = (
            "import sys\nfrom guarantee_email_agent.files.report_files import write_report\n"
            "print('before')\nwrite_report(sys.argv[1], b'{}', 'code')\nprint('after')\n"
        )
        done = subprocess.run([sys.executable, "-c", program, name], capture_output=True, check=True)
        assert done.stdout == b"before\n{}after\n"

    def test_a_draft_goes_through_no_link(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("os.urandom", bytes)
        (tmp_path / f".report.json.{'00' * 6}.tmp").symlink_to("other")
        with pytest.raises(ConfigurationError, match="File exists"):
            write_report(tmp_path / "report.json", b"{}", CODE)
        assert not (tmp_path / "other").exists()

    @pytest.mark.parametrize("name", ["absent/report.json", "folder", "file/report.json", "nul\0.json", "loop"])
    def test_a_path_that_cannot_be_written(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").touch()
        (tmp_path / "loop").symlink_to("loop")
        with pytest.raises(ConfigurationError, match="the report cannot be written") as caught:
            write_report(tmp_path / name, b"{}", CODE)
        assert (caught.value.code, caught.value.exit_code) == (CODE, 2)
        assert sorted(os.listdir(tmp_path)) == ["file", "folder", "loop"]

    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "link.json").symlink_to("report.json")
        write_report(tmp_path / "link.json", b"{}", CODE)
        assert (tmp_path / "link.json").is_symlink()
        assert (tmp_path / "report.json").is_file()


class TestBothFiles:
    @pytest.mark.parametrize("names", [("absent/r.json", "good"), ("good", "absent/r.xml")])
    def test_one_that_cannot_be_written_does_not_cost_the_other(self, tmp_path: Path, names: tuple[str, str]) -> None:
        first, second = (tmp_path / name for name in names)
        with pytest.raises(ConfigurationError, match="the report cannot be written"):
            write_reports(CODE, (first, lambda: b"{}"), (second, lambda: b"<testsuites/>"))
        assert (tmp_path / "good").exists()


class TestPaths:
    @pytest.mark.parametrize("existing", [False, True])
    @pytest.mark.parametrize("second", ["r.json", "sub/../r.json", "link", "linked-folder/r.json"])
    def test_two_names_of_one_file(self, tmp_path: Path, second: str, existing: bool) -> None:
        (tmp_path / "sub").mkdir()
        (tmp_path / "link").symlink_to("r.json")
        (tmp_path / "linked-folder").symlink_to(tmp_path)
        if existing:
            (tmp_path / "r.json").touch()
        self.refused(tmp_path / "r.json", tmp_path / second)

    @pytest.mark.parametrize("name", ["-", "/proc/self/fd/1"])
    def test_two_names_of_stdout(self, name: str) -> None:
        self.refused(Path("/dev/stdout"), Path(name))

    @pytest.mark.parametrize("name", ["runs.db", "scenario.YAML", "link.json", "main.md", "w.csv", "r.jsonl"])
    def test_what_holds_work_is_not_replaced(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "link.json").symlink_to(tmp_path / "mail.eml")
        check_writable(tmp_path / name, CODE)
        (tmp_path / name).write_text("---\nname: main\n")
        with pytest.raises(ConfigurationError, match="it would take the place of what is no report"):
            check_writable(tmp_path / name, CODE)
        with pytest.raises(ConfigurationError, match="it would take the place of what is no report"):
            write_json_report(tmp_path / name, dict, CODE)

    def refused(self, *paths: Path) -> None:
        with pytest.raises(ConfigurationError, match="--json and --html name the same file") as caught:
            check_report_paths({"--json": paths[0], "--csv": Path("/dev/null"), "--html": paths[1]}, CODE)
        assert caught.value.exit_code == 2

    def test_what_cannot_be_written_shows_before(self, tmp_path: Path) -> None:
        (tmp_path / "loop").symlink_to("loop")
        for paths in (
            [tmp_path / "loop"],
            [tmp_path / "absent" / "r"],
            [tmp_path / "r", tmp_path / "absent" / "r"],
            [tmp_path],
        ):
            with pytest.raises(ConfigurationError, match="the report cannot be written") as caught:
                check_report_paths({f"--{number}": path for number, path in enumerate(paths)}, CODE)
            assert caught.value.code == CODE
