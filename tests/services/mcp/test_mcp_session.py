"""A session with real server processes, among them some that do what servers should not."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mcp_sessions import Servers, failure
from processes import is_running
from waiting import PATIENCE_S

from guarantee_email_agent.services.call_errors import forbid_repeat
from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch
from guarantee_email_agent.utils.errors import EXIT_MCP_CONNECTION, IntegrationError, MCPConnectionError

HERE = Path(__file__).parent
pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def pid_of(session: McpSession) -> int:
    return int((await session.call("process", {}, PATIENCE_S))["pid"])


async def gone(pid: int) -> bool:
    for _ in range(round(PATIENCE_S / 0.02)):
        if not is_running(pid):
            return True
        await asyncio.sleep(0.02)
    return False


class TestCall:
    async def test_gives_structured_content(self, session: McpSession) -> None:
        assert await session.call("echo", {"text": "żółw 🐢"}, PATIENCE_S) == {"said": "żółw 🐢"}

    async def test_reads_json_where_there_is_only_text(self, session: McpSession) -> None:
        assert await session.call("prose", {"text": '{"status": "valid"}'}, PATIENCE_S) == {"status": "valid"}

    @pytest.mark.parametrize("text", ["The warranty is fine.", "[1, 2]", "", "[" * 100_000])
    async def test_an_answer_that_is_no_json_object_is_malformed(self, text: str, session: McpSession) -> None:
        error = await failure(session.call("prose", {"text": text}, PATIENCE_S))
        assert error.code == "oracle_malformed"
        assert not error.retryable

    @pytest.mark.parametrize("tool", ["break_promise", "odd_pattern", "odd_reference"])
    async def test_an_answer_against_the_tools_own_schema_is_malformed(self, session: McpSession, tool: str) -> None:
        error = await failure(session.call(tool, {}, PATIENCE_S))
        assert error.code == "oracle_malformed"
        assert "no number" not in error.message
        assert error.uncertain

    async def test_an_error_of_the_server_ends_neither_it_nor_other_calls(self, session: McpSession) -> None:
        """-32000 is any error of its own, and in the SDK also a connection that was lost."""
        pid = await pid_of(session)
        refused, said = await asyncio.gather(
            failure(session.call("refuse", {"code": -32000, "message": "no such number"}, PATIENCE_S)),
            session.call("echo", {"text": "next"}, PATIENCE_S),
        )
        assert (refused.code, said) == ("oracle_failed", {"said": "next"})
        assert await pid_of(session) == pid

    async def test_tools_of_all_pages_are_known(self, session: McpSession) -> None:
        await session.require({"echo": frozenset({"text"}), "sleep": frozenset({"anything"})})
        assert session.tools >= {"echo", "spawn"}
        with pytest.raises(MCPConnectionError, match=r"does not offer echo\(volume\); it offers big, break"):
            await session.require({"echo": frozenset({"text", "volume"})})
        with pytest.raises(MCPConnectionError, match=r"does not offer sing, shout; .* Set mcp.test to a server with"):
            await session.require({"sing": frozenset(), "shout": frozenset(), "echo": frozenset({"volume"})})

    async def test_a_call_that_is_cancelled_harms_no_other(self, session: McpSession) -> None:
        pid = await pid_of(session)
        slow = asyncio.create_task(session.call("sleep", {"seconds": 0.3}, PATIENCE_S))
        waiting = asyncio.create_task(session.call("echo", {"text": "next"}, PATIENCE_S))
        await asyncio.sleep(0.05)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert await waiting == {"said": "next"}
        assert await pid_of(session) == pid


class TestServerThatDies:
    async def test_the_call_in_work_fails_and_the_next_one_starts_it_anew(
        self, session: McpSession, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Its last words may quote a mail."""
        caplog.set_level(logging.DEBUG, "guarantee_email_agent")
        first = await pid_of(session)
        error = await failure(session.call("die", {"words": "canary\x1b[0m", "code": 9}, PATIENCE_S))
        end = "the server ended (exit code 9); it said last: a line that is in the log at level DEBUG"
        assert (error.code, error.message) == ("oracle_unavailable", f"oracle: die: {end}")
        assert (error.retryable, error.uncertain, error.outage) == (True, True, True)
        assert await pid_of(session) != first
        told = [(each.levelno, each.getMessage()) for each in caplog.records]
        assert [message for level, message in told if level > logging.DEBUG] == [f"oracle: {end}. It is started anew"]
        assert (logging.DEBUG, "oracle: canary\\x1b[0m") in told

    async def test_nothing_is_repeated_by_itself(self, servers: Servers, tmp_path: Path) -> None:
        effects = tmp_path / "effects"
        session = servers.session(servers.launch("well", str(effects)))
        for then, limit_s in (("die", PATIENCE_S), ("sleep", 0.3)):
            with pytest.raises(IntegrationError) as caught, forbid_repeat():
                await session.call("effect", {"then": then}, limit_s)
            assert (caught.value.uncertain, caught.value.retryable) == (True, False)
        assert effects.read_text() == "done\ndone\n"

    async def test_one_killed_between_two_calls_is_not_noticed(self, session: McpSession) -> None:
        pid = await pid_of(session)
        os.kill(pid, signal.SIGKILL)
        assert await gone(pid)
        await asyncio.sleep(0.1)
        assert await session.call("echo", {"text": "again"}, PATIENCE_S) == {"said": "again"}

    async def test_many_calls_start_it_once(self, session: McpSession) -> None:
        await failure(session.call("die", {}, PATIENCE_S))
        assert len(set(await asyncio.gather(*(pid_of(session) for _ in range(20))))) == 1

    async def test_what_it_started_ends_with_it(self, session: McpSession) -> None:
        child = (await session.call("spawn", {}, PATIENCE_S))["pid"]
        assert (await failure(session.call("die", {}, PATIENCE_S))).code == "oracle_unavailable"
        await session.close()
        assert await gone(child)

    async def test_one_that_does_not_come_back_is_an_outage_at_each_call(
        self, servers: Servers, tmp_path: Path
    ) -> None:
        session = servers.session(servers.launch("once", str(tmp_path / "started")))
        await failure(session.call("die", {}, PATIENCE_S))
        for _ in range(2):
            error = await failure(session.call("echo", {"text": ""}, PATIENCE_S))
            assert "ended at once (exit code 4)" in error.message
            assert (error.code, error.retryable, error.uncertain, error.outage) == (
                *("oracle_unavailable", True, False, True),
            )


class TestServerThatHangs:
    async def test_a_call_ends_at_its_deadline(self, session: McpSession) -> None:
        pid = await pid_of(session)
        error = await failure(session.call("sleep", {"seconds": 0.6}, 0.2))
        assert error.code == "oracle_timeout"
        assert error.message == "oracle: sleep: no answer within 0.2 s"
        assert (error.retryable, error.uncertain, error.outage) == (True, True, False)
        assert await pid_of(session) == pid

    async def test_one_without_a_sign_of_life_is_exchanged_for_another(self, session: McpSession) -> None:
        pid = await pid_of(session)
        for _ in range(2):
            await failure(session.call("sleep", {"seconds": 600}, 0.2))
        assert await pid_of(session) != pid
        assert not is_running(pid)

    async def test_a_stuck_pipe_does_not_hold_up_the_deadline(self, session: McpSession) -> None:
        stuck = asyncio.create_task(failure(session.call("sleep", {"seconds": 600}, PATIENCE_S)))
        await asyncio.sleep(0.5)
        refused = asyncio.create_task(failure(session.call("echo", {"text": "x" * 1_000_000}, 0.3)))
        await asyncio.wait((refused,), timeout=4)
        assert refused.done()
        assert refused.result().code == "oracle_timeout"
        await session.close()
        assert (await stuck).code == "oracle_unavailable"


class TestServerThatTalksTooMuch:
    @pytest.mark.parametrize("start", ["well", "rubbish"])
    async def test_rubbish_on_stdout_is_passed_over(
        self, start: str, servers: Servers, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "guarantee_email_agent")
        session = servers.session(servers.launch(start))
        assert await session.call("rubbish", {}, PATIENCE_S) == {"said": "after rubbish"}
        lines = [record for record in caplog.records if "no MCP message" in record.getMessage()]
        assert r"debug: \x1b[31m" in lines[0 if start == "well" else 3].getMessage()
        assert all(record.levelno == logging.DEBUG and record.getMessage().isprintable() for record in lines)

    async def test_a_large_answer_comes_through(self, session: McpSession) -> None:
        answer = await session.call("big", {"size": 35_000_000}, PATIENCE_S)
        assert len(answer["raw"]) == 35_000_000

    @pytest.mark.parametrize(("tool", "arguments"), [("big", {"size": 200_000}), ("endless", {})])
    async def test_one_beyond_the_limit_ends_the_server(
        self, tool: str, arguments: dict[str, int], servers: Servers
    ) -> None:
        session = servers.session(max_answer_bytes=100_000)
        pid = await pid_of(session)
        error = await failure(session.call(tool, arguments, PATIENCE_S))
        assert error.code == "oracle_malformed"
        assert error.message == f"oracle: {tool}: the server wrote a message of more than 100000 bytes"
        assert not error.retryable
        assert await pid_of(session) != pid

    async def test_stderr_goes_to_the_log_line_by_line(
        self, session: McpSession, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "guarantee_email_agent")
        await session.call("say", {"words": "one\n\nt\x07wo\n" + "x" * 100_000}, PATIENCE_S)
        await session.close()
        said = [r.getMessage() for r in caplog.records if r.name.endswith("mcp_connection")]
        assert said[:2] == ["oracle: one", r"oracle: t\x07wo"]
        assert len(said[2]) < 400


class TestStart:
    async def message(self, session: McpSession) -> str:
        error = await failure(session.list_tools())
        assert (error.code, error.exit_code) == ("oracle_unavailable", EXIT_MCP_CONNECTION)
        assert error.outage
        return error.message

    async def test_of_a_program_that_is_not_there(self, servers: Servers) -> None:
        session = servers.session(ServerLaunch("mailbox.server", "no-such", ("-y", "x")))
        assert await self.message(session) == (
            "oracle: there is no program no-such. Correct mailbox.server, or what it needs; run: no-such -y x"
        )

    async def test_of_a_server_that_ends_at_once(self, servers: Servers) -> None:
        message = await self.message(servers.session(servers.launch("exit")))
        assert message.startswith(
            'oracle: the server ended at once (exit code 3). It said last: "the key file is missing\\x1b[0m". '
            "Correct mcp.test, or what it needs; run: "
        )
        assert message.endswith("stdio_server.py exit")

    async def test_of_a_server_that_never_answers(self, servers: Servers) -> None:
        message = await self.message(servers.session(servers.launch("hang"), start_timeout_s=0.5))
        assert "oracle: the server did not answer within 0.5 s. Correct mcp.test" in message

    async def test_of_a_program_that_is_no_mcp_server(self, servers: Servers) -> None:
        launch = ServerLaunch("mcp.test", sys.executable, ("-c", "print('hello')"))
        assert "oracle: no MCP server answers (" in await self.message(servers.session(launch))

    async def test_goes_on_where_the_call_that_asked_for_it_cannot_wait(self, session: McpSession) -> None:
        error = await failure(session.call("process", {}, 0.001))
        assert error.code == "oracle_timeout"
        assert (error.retryable, error.uncertain, error.outage) == (True, False, True)
        await session.list_tools()
        assert session.tools

    async def test_its_environment_is_what_was_given_and_nothing_else(
        self, servers: Servers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "hidden")
        given = {"PATH": os.environ["PATH"], "GMAIL_TOKEN": "token"}
        seen = await servers.session(servers.launch(environment=given)).call("environment", {}, PATIENCE_S)
        seen.pop("LC_CTYPE", None)  # Python sets it for itself
        assert seen == given


class TestEnd:
    async def test_a_server_that_listens_ends_at_the_end_of_its_input(self, session: McpSession) -> None:
        pid = await pid_of(session)
        await session.close()
        assert not is_running(pid)
        error = await failure(session.call("echo", {"text": ""}, PATIENCE_S))
        assert error.message == "oracle: the session is closed"

    async def test_one_that_does_not_is_killed(self, servers: Servers) -> None:
        session = servers.session(servers.launch("stubborn"), exit_grace_s=0.2)
        pid = await pid_of(session)
        await session.close()
        assert not is_running(pid)

    async def test_one_that_starts_just_now_is_stopped_too(self, servers: Servers) -> None:
        session = servers.session(servers.launch("hang"))
        starting = asyncio.create_task(session.list_tools())
        await asyncio.sleep(0.5)
        await session.close()
        with pytest.raises(BaseException):  # noqa: B017 - an error or a cancellation, as long as it ends
            await starting

    @pytest.mark.parametrize("end", ["return", "interrupt", "kill"])
    def test_an_agent_that_ends_without_a_word_leaves_no_server(self, end: str) -> None:
        agent = subprocess.Popen(
            [sys.executable, str(HERE / "careless_agent.py"), end], stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        with agent, agent.stdout:
            pid = int(agent.stdout.readline())
            if end != "return":
                os.kill(agent.pid, signal.SIGKILL if end == "kill" else signal.SIGINT)
            agent.wait(PATIENCE_S)
        assert asyncio.run(gone(pid))

    async def test_ctrl_c_in_the_agents_terminal_does_not_reach_it(self, session: McpSession) -> None:
        about = await session.call("process", {}, PATIENCE_S)
        assert about["session"] == about["pid"] != os.getsid(0)
