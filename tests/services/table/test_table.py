"""What counts as the same number, and which columns are used."""

import os
import resource
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest
from processes import as_nobody
from small_disks import limited

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.table.local_look_ups import WARRANTIES, WarrantyRecord, open_table
from guarantee_email_agent.services.table.table import CsvTable, TableError, TableLayout, number_key, parse_key


def layout(optional: tuple[str, ...] | None) -> TableLayout[Mapping[str, str]]:
    return TableLayout("table", "orders", "id", "order number", ("id",), optional, dict)


@pytest.mark.parametrize("other", ["ab-1", "AB 1", "ＡＢ１", "ab_1", "a–b1"])
def test_two_ways_to_write_a_number_have_one_key(other: str) -> None:
    assert number_key(other) == number_key("AB1") != number_key("ABl")  # a letter is no digit


def test_columns_that_nobody_asked_for_are_not_used(file: Path) -> None:
    assert layout(("status",)).used(file, ["note", "status", "id"]) == ["status", "id"]
    assert layout(None).used(file, ["note", "", "id"]) == ["note", "id"]


@pytest.mark.parametrize("written", ["4,90123E+14", "1e+15", "490123.0", '="490123"', "'490123", "#REF!", "#1001"])
def test_what_a_spreadsheet_made_of_a_number_is_refused(written: str) -> None:
    with pytest.raises(TableError, match="id is like 1E"):
        parse_key(layout(None), {"id": written})


HEAD = "serial_number,expiration_date,coverage,status\n"
LATER = 2_000_000_000.0
"""Seconds since 1970, long after the files of these tests were written."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "warranties.csv"


def opened(file: Path) -> CsvTable[WarrantyRecord]:
    return CsvTable(file, WARRANTIES, lambda: LATER)


class TestRecords:
    def test_have_a_date_and_may_have_more(self, file: Path, caplog: pytest.LogCaptureFixture) -> None:
        file.write_text(f"{HEAD}SN-1,2030-01-31,full,\nSN-2,2020-01-31,,valid\n\nSN-3,,,expired\n")
        warranties = opened(file)
        assert warranties.find("SN-1") == WarrantyRecord("SN-1", date(2030, 1, 31), "full", None)
        assert warranties.find("SN-2") == WarrantyRecord("SN-2", date(2020, 1, 31), None, "valid")
        assert warranties.find("SN-3") == WarrantyRecord("SN-3", None, None, "expired")
        assert warranties.find("SN-4") is None
        assert not caplog.messages

    @pytest.mark.parametrize(
        "content",
        [
            "\ufeffSerial_Number , Expiration_Date\r\nSN-1,2030-01-31\r\n",
            "serial_number;expiration_date\nSN-1;2030-01-31",
            "serial_number\texpiration_date\nSN-1\t2030-01-31\n",
            '"expiration_date","serial_number"\n2030-01-31,"SN-1"\n',
            "\n\nserial_number,expiration_date\n\nSN-1,2030-01-31\n\n",
        ],
        ids=["excel", "semicolons", "tabs", "quotes-and-order", "blank-lines"],
    )
    def test_are_read_as_spreadsheets_write_them(self, content: str, file: Path) -> None:
        file.write_text(content, encoding="utf-8", newline="")
        assert opened(file).find("SN-1") == WarrantyRecord("SN-1", date(2030, 1, 31), None, None)

    def test_may_stand_beside_columns_of_no_use(self, file: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO")
        file.write_text('customer,serial_number,expiration_date,note\n"Lot, of\nwords",SN-1,2030-01-31,\n')
        assert opened(file).find("SN-1")
        assert caplog.messages == [f"{file}: these columns are not used: customer, note"]

    @pytest.mark.parametrize("status", ["valid", "expired"])
    def test_count_as_they_say_whatever_the_date(self, status: str) -> None:
        assert WarrantyRecord("SN-1", date(2020, 1, 1), None, status).status_on(date(2010, 1, 1)) == status


class TestProblems:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "warranties.csv:1: has no column serial_number. Begin the file with a line such as serial_number,"),
            ("serial,expiration_date\n", "warranties.csv:1: has no column serial_number. Begin"),
            ("serial_number\nSN-1\n", "warranties.csv:1: has no column expiration_date. Begin"),
            ("serial_number,expiration_date,Serial_Number\n", "warranties.csv:1: has the column serial_number twice."),
            (
                "serial_number,expiration_date,Owner E-Mail\n",
                "warranties.csv: has a column 'owner e-mail'. Call it owner_email",
            ),
            (HEAD, "warranties.csv has no rows"),
            (f"{HEAD}SN-1,2030-01-31\n", "warranties.csv:2: has 2 values for 4 columns"),
            (f"{HEAD}SN-1,2030-01-31,,,\n", "warranties.csv:2: has 5 values for 4 columns"),
            (f"{HEAD}\nSN-1,31.01.2030,,\n", "warranties.csv:3: expiration_date '31.01.2030' is no date. Write it as"),
            (f"{HEAD}SN-1,2030-02-30,,\n", "warranties.csv:2: expiration_date '2030-02-30' is no date."),
            (f"{HEAD}SN-1,20300131,,\n", "warranties.csv:2: expiration_date '20300131' is no date."),
            (f"{HEAD}SN-1,,,\n", "warranties.csv:2: expiration_date is empty. Fill it in, or say valid or expired in"),
            (f"{HEAD} - ,2030-01-31,,\n", "warranties.csv:2: serial_number is empty. Fill it in, or remove the line"),
            (f"{HEAD}SN-1,2030-01-31,,void\n", "warranties.csv:2: status must be valid or expired, or empty"),
            (f"{HEAD}SN-1,2030-01-31,see {{x}},\n", "warranties.csv:2: coverage must be at most 40 of A-Z"),
            (f"{HEAD}SN-1,2030-01-31,no longer valid,\n", "warranties.csv:2: coverage must be at most 40 of A-Z"),
            (
                f'{HEAD}SN-1,2030-01-31,,\n"SN\n2",2030-01-31,,\nsn 1,2031-01-31,,\n',
                "warranties.csv:5: the same serial number as in line 2 (case, spaces and hyphens do not count). Remove",
            ),
            (f'{HEAD}SN-1,"2030-01-31,,\n', "warranties.csv:2: is no CSV (unexpected end of data)"),
            (
                HEAD.encode() + b"SN-1,2030-01-31,\xfcber,\n",
                "warranties.csv:2: is not written in UTF-8. Save it as CSV in UTF-8",
            ),
        ],
    )
    def test_are_told_with_their_place(self, content: str | bytes, message: str, file: Path) -> None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(TableError) as caught:
            opened(file)
        assert str(caught.value).startswith(f"{file.parent}/{message}")

    def test_a_file_that_is_not_there_is_one(self, file: Path) -> None:
        for mode, reason in ((0, "Permission denied"), (0o755, "No such file or directory")):
            file.parent.chmod(mode)
            with (
                as_nobody(file.parent if mode else None),
                pytest.raises(ToolError, match=rf"cannot be read \({reason}\)\. Create it, or name"),
            ):
                open_table(file, WARRANTIES)


class TestChange:
    def write(self, file: Path, content: str, seconds: float) -> None:
        file.write_text(content)
        os.utime(file, (seconds, seconds))

    @pytest.fixture
    def warranties(self, file: Path) -> CsvTable[WarrantyRecord]:
        self.write(file, f"{HEAD}SN-1,2030-01-31,,\n", LATER - 100)
        return opened(file)

    def test_is_taken_over(
        self, file: Path, warranties: CsvTable[WarrantyRecord], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO")
        self.write(file, f"{HEAD}SN-2,2030-01-31,,\n", LATER - 50)
        assert warranties.find("SN-1") is None
        assert warranties.find("SN-2")
        assert caplog.messages == [f"{file}: read anew, 1 serial numbers"]

    def test_is_left_alone_while_somebody_may_still_write(self, file: Path) -> None:
        self.write(file, f"{HEAD}SN-1,2030-01-31,,\n", LATER - 100)
        times = [LATER]
        warranties = CsvTable(file, WARRANTIES, lambda: times[-1])
        self.write(file, f"{HEAD}SN-2,2030-01-31,,\n", LATER - 0.5)
        assert warranties.find("SN-1")
        times.append(LATER + 1)
        assert warranties.find("SN-1") is None

    def test_to_something_bad_is_told_once_and_nothing_is_looked_up(
        self, file: Path, warranties: CsvTable[WarrantyRecord], caplog: pytest.LogCaptureFixture
    ) -> None:
        self.write(file, f"{HEAD}SN-1,soon,,\n", LATER - 50)
        problem = f"{file}:2: expiration_date 'soon' is no date. Write it as 2027-03-31"
        for _ in range(2):
            with pytest.raises(ToolError, match="expiration_date 'soon'") as caught:
                warranties.find("SN-1")
            assert (caught.value.code, caught.value.retryable) == ("warranty_api_unavailable", True)
        assert caplog.messages == [f"{problem}. Until that is done, nothing is looked up"]
        self.write(file, "serial_number,expiration_date,owner_email\nSN-2,2030-01-31,a@b.de\n", LATER - 40)
        assert warranties.find("SN-2")
        self.write(file, f"{HEAD}SN-2,2030-01-31,,\n", LATER - 30)
        with pytest.raises(ToolError, match="has no column owner_email"):  # anybody would be told
            warranties.find("SN-2")

    def test_to_nothing_at_all_is_one_too(
        self, file: Path, warranties: CsvTable[WarrantyRecord], caplog: pytest.LogCaptureFixture
    ) -> None:
        moved = file.rename(file.with_suffix(".moved"))
        with pytest.raises(ToolError, match="No such file"):
            warranties.find("SN-1")
        assert len(caplog.messages) == 1
        moved.rename(file)
        assert warranties.find("SN-1")

    def test_that_cannot_be_read_is_tried_again_at_the_next_call(
        self, file: Path, warranties: CsvTable[WarrantyRecord]
    ) -> None:
        self.write(file, f"{HEAD}SN-2,2030-01-31,,\n", LATER - 50)
        with (
            limited(resource.RLIMIT_NOFILE, 0),
            pytest.raises(ToolError, match=r"cannot be read \(Too many open files\)"),
        ):
            warranties.find("SN-1")
        assert warranties.find("SN-2")

    def test_that_became_a_pipe_holds_up_no_call(self, file: Path, warranties: CsvTable[WarrantyRecord]) -> None:
        file.unlink()
        os.mkfifo(file)
        with pytest.raises(ToolError, match="cannot be read"):
            warranties.find("SN-1")
