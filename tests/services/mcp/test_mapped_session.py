import json
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest
from mcp_sessions import TICKET, Script, Servers, failure, prose, tool
from waiting import PATIENCE_S

from guarantee_email_agent.config.mcp_server import (
    TICKETING_TOOLS,
    WARRANTY_TOOLS,
    AnswerSource,
    ArgumentTarget,
    NotFound,
    OwnTool,
    ToolMapping,
)
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.services.clients import LookUpClient, TicketingClient
from guarantee_email_agent.services.mcp.mapped_session import MappedSession
from guarantee_email_agent.services.mcp.mcp_services import MappedTickets, McpLookUp
from guarantee_email_agent.utils.errors import MCPConnectionError

pytestmark = pytest.mark.anyio

CHECK = ToolMapping(
    tool="find_device",
    arguments={"serial_number": "serial"},
    result={"status": AnswerSource("state", values={"active": "valid"}), "expiration_date": "ends"},
    not_found=NotFound(text="no such device"),
)
CREATE = ToolMapping(
    tool="create_task",
    arguments={
        **dict.fromkeys(("serial_number", "warranty_status", "customer_email", "category", "idempotency_key"), "text"),
        "priority": None,
    },
    result={"ticket_id": "id"},
)
FIND = ToolMapping(
    tool="search",
    arguments={"idempotency_key": "query"},
    result={"tickets": AnswerSource(".", each={"ticket_id": "id", "idempotency_key": "text"})},
)

FIND_DEVICE = tool("find_device", "serial")
DEVICE = prose(json.dumps({"state": "active", "ends": "2030-01-31"}))


MakeSession = Callable[..., MappedSession]
MakeWarranty = Callable[[ToolMapping], LookUpClient]


@pytest.fixture
def script(script: Script) -> Script:
    script.write(FIND_DEVICE, find_device=DEVICE)
    return script


@pytest.fixture
def make_session(servers: Servers, script: Script) -> MakeSession:
    def make(
        mappings: dict[str, ToolMapping], own_tools: dict[str, OwnTool], name: str = "warranty_api"
    ) -> MappedSession:
        launch = servers.scripted(script)
        return servers.keep(MappedSession(name, launch, mappings, own_tools, exit_grace_s=1.0))

    return make


@pytest.fixture
def make_warranty(servers: Servers, make_session: MakeSession) -> MakeWarranty:
    def make(check: ToolMapping) -> LookUpClient:
        session = make_session({"check_warranty": check}, WARRANTY_TOOLS)
        return McpLookUp(session, PATIENCE_S, "check_warranty", "serial_number", servers.clock, WARRANTY)

    return make


@pytest.fixture
def warranty(make_warranty: MakeWarranty) -> LookUpClient:
    return make_warranty(CHECK)


async def test_look_up_speaks_the_servers_language(warranty: LookUpClient, script: Script) -> None:
    await warranty.test_connection()
    assert await warranty.look_up("SN-1") == {"status": "valid", "expiration_date": "2030-01-31"}
    assert script.calls == [["find_device", {"serial": "SN-1"}]]


class TestNotFound:
    @pytest.mark.parametrize("failed", [False, True])
    async def test_words_of_the_mapping_say_so(self, warranty: LookUpClient, script: Script, failed: bool) -> None:
        script.write(FIND_DEVICE, find_device=prose("Error: No such device.", failed=failed))
        assert await warranty.look_up("SN-1") == {"status": "not_found"}

    @pytest.mark.parametrize("content", [{"result": "No such device"}, {"message": "no such device."}])
    async def test_text_may_be_wrapped(self, warranty: LookUpClient, script: Script, content: dict[str, str]) -> None:
        script.write(FIND_DEVICE, find_device={"content": [], "structuredContent": content})
        assert await warranty.look_up("SN-1") == {"status": "not_found"}

    @pytest.mark.parametrize("text", ["Error: the pool is empty", "upstream temporarily unavailable"])
    async def test_failure_that_is_not_marked_as_one_is_one(
        self, warranty: LookUpClient, script: Script, text: str
    ) -> None:
        script.write(FIND_DEVICE, find_device=prose(text))
        assert (await failure(warranty.look_up("SN-1"))).code in (
            "warranty_api_failed",
            "warranty_api_unavailable",
        )

    async def test_outage_in_the_same_words_is_an_outage(self, warranty: LookUpClient, script: Script) -> None:
        script.write(FIND_DEVICE, find_device=prose("401 Unauthorized: no such device", failed=True))
        assert (await failure(warranty.look_up("SN-1"))).code == "warranty_api_auth"

    @pytest.mark.parametrize("serial", ["SN-429-77", "SN-32601", "503"])
    async def test_number_that_resembles_a_failure_is_not_found_as_any_other(
        self, warranty: LookUpClient, script: Script, serial: str
    ) -> None:
        script.write(FIND_DEVICE, find_device=prose(f"No such device: {serial}", failed=True))
        assert await warranty.look_up(serial) == {"status": "not_found"}

    async def test_tool_that_is_gone_says_nothing_of_the_device(
        self, make_warranty: MakeWarranty, script: Script
    ) -> None:
        client = make_warranty(replace(CHECK, not_found=NotFound(text="not found")))
        script.write(FIND_DEVICE)  # which it lists, and does not know
        assert (await failure(client.look_up("SN-1"))).code == "warranty_api_failed"


class TestWholeNumbers:
    """Of a server whose numbers are digits alone."""

    FINDER: Final = {
        "name": "find_device",
        "inputSchema": {"type": "object", "properties": {"serial": {"type": "integer"}}},
        "annotations": {"readOnlyHint": True},
    }

    @pytest.fixture
    def numbers(self, make_warranty: MakeWarranty, script: Script) -> LookUpClient:
        script.write(self.FINDER, find_device=prose('{"state": "active", "serial": 123456}'))
        check = ToolMapping(
            "find_device",
            {"serial_number": ArgumentTarget("serial", form="number")},
            result={"status": AnswerSource("state", values={"active": "valid"}), "serial_number": "serial"},
            not_found=NotFound(text="no such device"),
        )
        return make_warranty(check)

    @pytest.mark.parametrize("serial", ["SN-1", "1" * 19])
    async def test_other_number_is_not_found_and_not_asked_for(
        self, numbers: LookUpClient, script: Script, serial: str
    ) -> None:
        assert await numbers.look_up(serial) == {"status": "not_found"}
        assert script.calls == []

    async def test_number_may_be_written_with_zeros_before_it(self, numbers: LookUpClient, script: Script) -> None:
        assert (await numbers.look_up("00123456"))["status"] == "valid"
        assert script.calls == [["find_device", {"serial": 123456}]]

    async def test_sample_call_asks_for_digits(self, numbers: LookUpClient, script: Script) -> None:
        await numbers.test_connection()
        assert "is about another serial_number" in (await failure(numbers.test_answer())).message
        assert script.calls == [["find_device", {"serial": 0}]]


class TestSampleCalls:
    async def test_tool_that_may_have_an_effect_is_not_tried(self, warranty: LookUpClient, script: Script) -> None:
        await warranty.test_connection()
        assert "find_device was not tried" in await warranty.test_answer()
        assert script.calls == []

    async def test_tool_that_only_reads_is_tried(self, warranty: LookUpClient, script: Script) -> None:
        script.write(FIND_DEVICE | {"annotations": {"readOnlyHint": True}}, find_device=DEVICE)
        await warranty.test_connection()
        told = "find_device answered a sample call: valid, expiration_date"
        assert await warranty.test_answer() == told


class TestChangedServer:
    async def test_all_that_does_not_fit_is_told_at_the_start(self, warranty: LookUpClient, script: Script) -> None:
        script.write(tool("find_device", "serial_no") | {"outputSchema": {"type": "object", "properties": {"x": {}}}})
        with pytest.raises(MCPConnectionError) as caught:
            await warranty.test_connection()
        assert [
            line.partition(": ")[0].rpartition("check_warranty.")[2] for line in caught.value.message.splitlines()
        ] == ["arguments.serial_number", "result.status", "result.expiration_date"]

    async def expect_outage(self, warranty: LookUpClient, field: str) -> None:
        error = await failure(warranty.look_up("SN-2"))
        assert error.code == "warranty_api_tools_changed"
        assert error.outage
        assert field in error.message

    async def test_refused_call_shows_the_change(self, warranty: LookUpClient, script: Script) -> None:
        await warranty.test_connection()
        script.write(tool("get_device", "serial"))
        await self.expect_outage(warranty, "check_warranty.tool: the server offers no tool 'find_device'")

    async def test_server_may_say_so(self, warranty: LookUpClient, script: Script) -> None:
        await warranty.test_connection()
        script.write(tool("find_device", "number"), notify=True, find_device=DEVICE)
        await warranty.look_up("SN-1")
        await self.expect_outage(warranty, "check_warranty.arguments.serial_number")

    async def test_outage_ends_with_the_change(self, warranty: LookUpClient, script: Script) -> None:
        await warranty.test_connection()
        script.write(tool("get_device", "serial"))
        await self.expect_outage(warranty, "find_device")
        script.write(FIND_DEVICE, find_device=DEVICE)
        assert (await warranty.look_up("SN-1"))["status"] == "valid"


class TestTickets:
    @pytest.fixture
    def ticketing(self, servers: Servers, make_session: MakeSession, script: Script) -> TicketingClient:
        script.write(
            tool("create_task", "text"), tool("search", "query"), create_task=prose('{"id": 7}'), search=prose("[]")
        )
        mappings = {"create_ticket": CREATE, "find_ticket": FIND}
        session = make_session(mappings, TICKETING_TOOLS, "ticketing")
        return MappedTickets(session, PATIENCE_S, servers.clock, mappings)

    async def test_ticket_is_searched_for_before_it_is_opened(self, ticketing: TicketingClient, script: Script) -> None:
        await ticketing.test_connection()
        assert (await ticketing.create_ticket(TICKET))["ticket_id"] == "7"
        assert [name for name, _ in script.calls] == ["search", "create_task"]

    async def test_ticket_that_exists_is_not_opened_again(self, ticketing: TicketingClient, script: Script) -> None:
        script.write(
            tool("create_task", "text"),
            tool("search", "query"),
            search=prose('[{"id": 1, "text": "mail-11"}, {"id": 2, "text": "a\\nidempotency_key: mail-1"}]'),
        )
        assert await ticketing.create_ticket(TICKET) == {"ticket_id": "2", "status": "existing"}
        assert [name for name, _ in script.calls] == ["search"]

    async def test_bad_answer_of_the_search_is_told_by_its_name(
        self, ticketing: TicketingClient, script: Script
    ) -> None:
        script.write(tool("create_task", "text"), tool("search", "query"), search=prose('{"found": []}'))
        error = await failure(ticketing.create_ticket(TICKET))
        assert error.message.startswith("ticketing: the answer of search has no list at .")

    async def test_notes_are_left_out_without_a_mapping(self, ticketing: TicketingClient, script: Script) -> None:
        assert await ticketing.add_note("7", "The customer wrote again.", "note-1") is False
        assert script.calls == []

    async def test_field_without_a_place_is_an_outage(self, ticketing: TicketingClient) -> None:
        error = await failure(ticketing.create_ticket({**TICKET, "order_number": "AB-1"}))
        assert (error.code, error.outage) == ("ticketing_unmapped", True)
        assert "order_number" in error.message
