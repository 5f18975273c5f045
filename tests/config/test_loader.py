import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import as_nobody

from guarantee_email_agent.config.loader import load_config, parse_dotenv
from guarantee_email_agent.config.mcp_server import McpServer
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.utils.errors import ConfigurationError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    """A working directory with instruction files and nothing else."""
    (tmp_path / "instructions" / "scenarios").mkdir(parents=True)
    (tmp_path / "instructions" / "main.md").write_text("main")
    return tmp_path


def load(cwd: Path, text: str | None = None, environ: dict[str, str] | None = None) -> Config:
    if text is not None:
        (cwd / "config.yaml").write_text(text)
    return load_config(environ=environ or {}, cwd=cwd)


def refusal(cwd: Path, text: str | None = None, environ: dict[str, str] | None = None) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        load(cwd, text, environ)
    assert caught.value.exit_code == 2
    return caught.value


class TestWhichFile:
    def test_none_is_needed(self, cwd: Path) -> None:
        config = load(cwd)
        assert config.source is None
        assert config.llm == Config().llm
        assert config.mailbox.server.built_in

    def test_config_yaml_in_the_working_directory(self, cwd: Path) -> None:
        config = load(cwd, "llm: {max_tokens: 5}")
        assert (config.llm.max_tokens, config.source) == (5, cwd / "config.yaml")

    def test_config_path_wins_over_the_working_directory_and_explicit_path_over_both(self, cwd: Path) -> None:
        (cwd / "other.yaml").write_text("llm: {max_tokens: 6}")
        (cwd / "given.yaml").write_text("llm: {max_tokens: 7}")
        config = load(cwd, "llm: {max_tokens: 5}", {"CONFIG_PATH": "other.yaml"})
        assert config.llm.max_tokens == 6
        assert load_config(Path("given.yaml"), {"CONFIG_PATH": "none.yaml"}, cwd).llm.max_tokens == 7

    def test_named_file_that_is_missing(self, cwd: Path) -> None:
        error = refusal(cwd, environ={"CONFIG_PATH": "none.yaml"})
        assert error.message == "none.yaml: the file does not exist; correct CONFIG_PATH, or unset it"
        assert error.code == "config_not_found"
        with pytest.raises(ConfigurationError, match="the file does not exist; correct the path"):
            load_config(cwd / "none.yaml", {}, cwd)

    @pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "llm:\nmcp:\n  warranty_api:\n"])
    def test_empty_file_and_empty_sections_stand_for_the_defaults(self, cwd: Path, text: str) -> None:
        assert load(cwd, text) == load(cwd, "")


class TestProblems:
    def test_all_at_once_with_line_path_and_remedy(self, cwd: Path) -> None:
        error = refusal(
            cwd,
            "mcp:\n"
            "  warranty_api:\n"
            "    comand: python\n"
            "    args: [--port, 8080]\n"
            "eval:\n"
            "  pass_threshold: 990\n"
            "llm:\n"
            "  provider: antropic\n"
            "  api_key: sk-hidden\n"
            "instructions:\n"
            "  main: none.md\n"
            "loging: {}\n",
        )
        assert error.message.splitlines() == [
            "config.yaml:3: mcp.warranty_api.comand: unknown key 'comand' – did you mean 'command'?",
            'config.yaml:4: mcp.warranty_api.args[1]: is the number 8080, not text; quote it: "8080"',
            "config.yaml:6: eval.pass_threshold: must be above 1 and at most 100, not 990",
            (
                "config.yaml:8: llm.provider: must be 'offline', 'anthropic' or 'openai', not the text 'antropic'"
                " – did you mean 'anthropic'?"
            ),
            "config.yaml:9: llm.api_key: secrets come from the environment: set ANTHROPIC_API_KEY, and remove this key",
            (
                "config.yaml:11: instructions.main: the file none.md does not exist;"
                " correct the path, or remove the key to use the built-in instructions"
            ),
            "config.yaml:12: loging: unknown key 'loging' – did you mean 'logging'?",
        ]
        assert error.code == "config_invalid"
        assert [problem["code"] for problem in error.details["problems"]] == [
            "config_unknown_key",
            "config_wrong_type",
            "config_invalid_value",
            "config_invalid_value",
            "config_secret_in_file",
            "config_path_not_found",
            "config_unknown_key",
        ]

    def test_yaml_that_does_not_parse(self, cwd: Path) -> None:
        error = refusal(cwd, "llm:\n\tmodel: x\n")
        assert error.message == (
            "config.yaml:2: YAML does not parse (line 2, column 1): a tab is used for indentation; use spaces"
        )
        assert error.code == "config_yaml_invalid"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("- a\n", ":1: must hold sections such as 'llm:' with keys and values"),
            ("a: 1\n---\nb: 1\n", ": holds more than one YAML document; keep one"),
            ("llm: offline\n", ":1: llm: must be a mapping of keys to values, not the text 'offline'"),
            ("llm: {max_token: 5}", ":1: llm.max_token: unknown key 'max_token' – did you mean 'max_tokens'?"),
            ("llm: {max_tokens: 0}", ":1: llm.max_tokens: must be at least 1 and at most 100000, not 0"),
            ("llm: {timeout_s: 0}", ":1: llm.timeout_s: must be above 0 and at most 600, not 0"),
            (
                "llm: {temperature: 3}",
                ":1: llm.temperature: is no setting any more: remove it, it is 0 for models that take one",
            ),
            (
                "mailbox: {server: {command: x, timeout_s: 60}}",
                (
                    ":1: mailbox.server.timeout_s: is no setting any more: set agent.call_timeout_s, which holds for "
                    "all services; the mailbox has three times as long"
                ),
            ),
            (
                "agent: {own_addresses: [“me@a.com”]}",
                ":1: agent.own_addresses: must list bare addresses such as support@example.com, not '“me@a.com”'",
            ),
            (
                "logging: {level: info}",
                (
                    ":1: logging.level: must be 'DEBUG', 'INFO', 'WARNING' or 'ERROR', not the text 'info'"
                    " – did you mean 'INFO'?"
                ),
            ),
        ],
    )
    def test_message(self, cwd: Path, text: str, message: str) -> None:
        assert refusal(cwd, text).message == f"config.yaml{message}"

    @pytest.mark.parametrize(
        ("server", "message"),
        [
            ("{command: a, url: 'http://x'}", ": has both command and url; keep the one that you use"),
            (
                "{args: [a]}",
                ": has args but no command; add the command, or remove the section to use the built-in server",
            ),
            (
                "{url: 'localhost:8000'}",
                ".url: must be a URL such as https://mcp.example.com/warranty, not 'localhost:8000'",
            ),
            (
                "{url: 'https://me:hidden@example.com'}",
                ".url: holds a user name or password; pass it as an environment variable that `env` names",
            ),
            (
                "{command: a, env: [OK, TOKEN=hidden]}",
                ".env: must list names of environment variables, without values; item 2 is no name",
            ),
            (
                "{password: hidden}",
                (
                    ".password: secrets come from the environment:"
                    " set a variable there and name it in {key}.env, and remove this key"
                ),
            ),
            ("{command: ' '}", ".command: must not be blank"),
        ],
    )
    @pytest.mark.parametrize("key", ["mcp.ticketing_system", "mailbox.server"])
    def test_message_about_a_server(self, cwd: Path, server: str, message: str, key: str) -> None:
        section, _, name = key.partition(".")
        refused = refusal(cwd, f"{section}:\n  {name}: {server}\n")
        assert refused.message == f"config.yaml:2: {key}{message.replace('{key}', key)}"

    def test_the_mailbox_has_one_server(self, cwd: Path) -> None:
        assert refusal(cwd, "mailbox: {server: {command: a}}\nmcp:\n  gmail: {command: b}\n").message == (
            "config.yaml:3: mcp.gmail: is the earlier name of mailbox.server, which stands there, too; keep that one"
        )

    def test_the_examples_of_the_documentation_are_real(self, cwd: Path) -> None:
        text = "mcp:\n  warranty_api:\n    comand: x\n\n\n\neval:\n  pass_threshold: 990\n\nllm:\n  api_key: x\n"
        assert refusal(cwd, text).message in (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")

    def test_with_access_tokens_the_password_for_imap_is_none_for_smtp(self, cwd: Path) -> None:
        text = "mailbox: {oauth: {provider: google, client_id: agent}}"
        secrets = load(cwd, text, {"IMAP_PASSWORD": "old", "OAUTH_CLIENT_SECRET": "s"}).secrets
        assert (secrets.smtp_password, secrets.oauth_client_secret) == (None, "s")
        assert load(cwd, text, {"SMTP_PASSWORD": "relay"}).secrets.smtp_password == "relay"

    def test_secrets_in_the_file_are_not_repeated(self, cwd: Path) -> None:
        text = "anthropic_api_key: hidden\nmcp: {token: hidden, warranty_api: {client_secret: hidden}}\n"
        error = refusal(cwd, text)
        assert error.message.count("secrets come from the environment") == 3
        assert "hidden" not in error.message + repr(error.details)


class TestPaths:
    def test_defaults_lie_in_the_working_directory(self, cwd: Path) -> None:
        (cwd / "evals" / "scenarios").mkdir(parents=True)
        config = load(cwd)
        assert config.instructions.main == cwd / "instructions" / "main.md"
        assert config.instructions.scenarios_dir == cwd / "instructions" / "scenarios"
        assert config.eval.test_suite_path == cwd / "evals" / "scenarios"

    def test_defaults_come_with_the_package_where_the_working_directory_has_none(self, tmp_path: Path) -> None:
        config = load(tmp_path)
        assert config.instructions.main == ROOT / "instructions" / "main.md"
        assert config.eval.test_suite_path == ROOT / "evals" / "scenarios"

    def test_defaults_of_an_installed_package_lie_beside_its_code(self, tmp_path: Path) -> None:
        package = tmp_path / "site" / "guarantee_email_agent"
        code_folder = ROOT / "src" / "guarantee_email_agent"
        for part in ("config", "files", "utils"):
            shutil.copytree(code_folder / part, package / part)
        shutil.copy(code_folder / "__init__.py", package)
        (package / "defaults" / "instructions" / "scenarios").mkdir(parents=True)
        (package / "defaults" / "instructions" / "main.md").write_text("main")
        code = (
            "from guarantee_email_agent.config.loader import load_config as l; print(l(environ={}).instructions.main)"
        )
        environ = {**os.environ, "PYTHONPATH": str(package.parent)}
        run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environ, capture_output=True, text=True)
        assert (run.stderr, run.stdout) == ("", f"{package / 'defaults' / 'instructions' / 'main.md'}\n")

    def test_paths_in_the_file_start_at_its_folder(self, cwd: Path) -> None:
        folder = cwd / "conf"
        folder.mkdir()
        (folder / "my.md").write_text("main")
        (folder / "c.yaml").write_text(
            "instructions: {main: my.md, scenarios_dir: ../instructions/scenarios}\n"
            "eval: {test_suite_path: suite}\nlogging: {file: log/agent.log}\nagent: {ledger: 'sqlite:///l.db'}\n"
        )
        config = load_config(Path("conf/c.yaml"), {}, cwd)
        assert config.instructions.main == folder / "my.md"
        assert config.instructions.scenarios_dir == cwd / "instructions" / "scenarios"
        assert config.eval.test_suite_path == folder / "suite"
        assert config.logging.file == folder / "log" / "agent.log"
        assert config.ledger_location == str(folder / "l.db")

    def test_half_of_the_instructions_is_not_completed_from_elsewhere(self, cwd: Path) -> None:
        (cwd / "instructions" / "main.md").unlink()
        assert refusal(cwd).message == (
            "instructions.main: the file instructions/main.md does not exist;"
            " create it, or name another one in config.yaml"
        )
        (cwd / "instructions").chmod(0o600)
        with as_nobody(cwd):
            assert "file instructions/main.md cannot be reached (Permission denied); create" in refusal(cwd).message
        (cwd / "instructions").chmod(0o700)


class TestSecrets:
    def test_key_comes_from_the_environment_and_is_never_shown(self, cwd: Path) -> None:
        config = load(cwd, environ={"ANTHROPIC_API_KEY": " hidden\n"})
        assert config.secrets.anthropic_api_key == "hidden"
        assert "hidden" not in repr(config) + repr(config.secrets)

    def test_dotenv_is_read_and_the_real_environment_wins(self, cwd: Path) -> None:
        (cwd / ".env").write_text("ANTHROPIC_API_KEY=file\n")
        assert load(cwd).secrets.anthropic_api_key == "file"
        assert load(cwd, environ={"ANTHROPIC_API_KEY": "real"}).secrets.anthropic_api_key == "real"

    def test_dotenv_that_leads_nowhere_is_not_taken_for_none(self, cwd: Path) -> None:
        (cwd / ".env").symlink_to("gone")
        with pytest.raises(ConfigurationError, match=r"^\.env: the file does not exist"):
            load(cwd)

    def test_problems_of_dotenv_and_config_are_reported_together(self, cwd: Path) -> None:
        (cwd / ".env").write_text("# x\nhidden\n")
        assert refusal(cwd, "llm: {max_tokens: 0}").message.splitlines() == [
            ".env:2: must be NAME=value, a comment or empty",
            "config.yaml:1: llm.max_tokens: must be at least 1 and at most 100000, not 0",
        ]

    def test_variables_of_mcp_servers_are_passed_on_by_name_only(self, cwd: Path) -> None:
        config = load(cwd, "mailbox: {server: {command: x, env: [A, UNSET]}}", {"A": "hidden", "B": "other"})
        assert config.secrets.mcp_environment == {"A": "hidden"}
        assert "hidden" not in repr(config)


class TestShippedFile:
    def test_it_says_the_same_as_no_file(self, cwd: Path) -> None:
        (cwd / "evals" / "scenarios").mkdir(parents=True)
        without_file = load(cwd)
        with_file = load(cwd, (ROOT / "config.yaml").read_text(encoding="utf-8"))
        assert with_file == without_file
        assert with_file.source == cwd / "config.yaml"


class TestMailbox:
    def test_passwords_come_from_the_environment(self, cwd: Path) -> None:
        secrets = load(cwd, "", {"IMAP_PASSWORD": "one\n", "LEDGER_KEY": "two"}).secrets
        assert (secrets.imap_password, secrets.smtp_password, secrets.ledger_key) == ("one", "one", "two")
        assert load(cwd, "", {"IMAP_PASSWORD": "one", "SMTP_PASSWORD": "three"}).secrets.smtp_password == "three"

    @pytest.mark.parametrize("server", ["imap", "smtp"])
    @pytest.mark.parametrize("host", ["mail.example.com", "127.example.com", "127.0.0.1.example.com", "192.168.0.7"])
    def test_no_password_goes_unencrypted_over_a_network(self, cwd: Path, server: str, host: str) -> None:
        error = refusal(cwd, f"mailbox: {{{server}: {{host: {host}, security: none}}}}")
        assert "unencrypted" in error.message
        assert load(cwd, f"mailbox: {{{server}: {{host: 127.0.0.1, security: none}}}}")
        assert load(cwd, "mailbox: {smtp: {host: relay.example.com, security: none, user: ''}}").mailbox.smtp.user == ""

    def test_a_password_in_the_ledgers_url_is_refused_and_not_shown(self, cwd: Path) -> None:
        error = refusal(cwd, "agent: {ledger: 'postgresql://agent:hush@db.example.com/agent'}")
        assert "LEDGER_URL" in error.message
        assert "hush" not in error.message

    @pytest.mark.parametrize(
        "location",
        [
            *("host=db user=agent password=hush", "password = hush", "dbname=ledger", "'postgresql:/agent:hush@db/x'"),
            *("postgresql:/agent:hush@db/x", "sqlite:hush.db", "agent:hush@db/x", "//agent:hush@db/ledger"),
        ],
    )
    def test_what_is_neither_file_nor_url_is_no_ledger_and_not_shown(self, cwd: Path, location: str) -> None:
        messages = [refusal(cwd, f"agent: {{ledger: {json.dumps(location)}}}").message]
        with pytest.raises(ConfigurationError) as caught:
            _ = load(cwd, "", {"LEDGER_URL": location}).ledger_location
        messages.append(caught.value.message)
        assert ["hush" in message for message in messages] == [False, False]
        assert all("is neither a file nor a URL" in message for message in messages)

    @pytest.mark.parametrize("location", ["ledger.db", "/var/lib/a=b/ledger.db", "C:\\agent\\ledger.db", "./a:b@c.db"])
    def test_a_file_is_a_ledger_whatever_its_name(self, cwd: Path, location: str) -> None:
        assert load(cwd, "", {"LEDGER_URL": location}).ledger_location == location


def test_servers_of_ones_own_that_of_the_mailbox_by_its_earlier_name(
    cwd: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = (
        "mcp:\n  warranty_api: {url: 'http://localhost:8000/mcp'}\n  gmail: {command: npx, args: ['-y', my-server]}\n"
    )
    config = load(cwd, text)
    assert config.mailbox.server == McpServer(command="npx", args=("-y", "my-server"))
    assert caplog.messages == ["config.yaml:3: mcp.gmail is read as mailbox.server, its name from now on. Rename it"]
    assert config.mcp.warranty_api.url == "http://localhost:8000/mcp"
    assert not config.mailbox.server.built_in
    assert not config.mcp.warranty_api.built_in
    assert config.mcp.ticketing_system.built_in


@pytest.mark.parametrize(
    "value", ["  ", "mx.example.com;", "mx.example.com 1", "Authentication-Results: mx.example.com"]
)
def test_an_authserv_id_that_no_header_can_have_is_refused(value: str, tmp_path: Path) -> None:
    """It would leave every sender unproved, without a word."""
    (tmp_path / "config.yaml").write_text(f"agent: {{sender_check: hold, authserv_id: '{value}'}}")
    with pytest.raises(ConfigurationError, match=r"agent\.authserv_id: must be the one word before the first ;"):
        load_config(tmp_path / "config.yaml")


def test_a_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigurationError, match="the working directory cannot be used") as raised:
        load_config()
    assert raised.value.code == "config_no_directory"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("# comment\n\n   \n", {}),
        ("A=1\nB_2 = two words \n", {"A": "1", "B_2": "two words"}),
        ("export A=1", {"A": "1"}),
        ("A=", {"A": ""}),
        ("A=b=c==", {"A": "b=c=="}),
        ("A=1 # note", {"A": "1"}),
        ("A=1#2", {"A": "1#2"}),
        ("A= # note", {"A": ""}),
        ("A='x # $y \\n' # note", {"A": "x # $y \\n"}),
        ('A="x \\"y\\"\\n\\\\ # z"', {"A": 'x "y"\n\\ # z'}),
        ("A=''", {"A": ""}),
        ("A=it's", {"A": "it's"}),
    ],
)
def test_values(text: str, values: dict[str, str]) -> None:
    assert parse_dotenv(text) == (values, [])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("A=1\nsecretvalue\n", 2, "must be NAME=value, a comment or empty"),
        ("1A=x", 1, "must be NAME=value, a comment or empty"),
        ("A='secretvalue", 1, "the quotes of A do not close at the end of the line"),
        ('A="x" secretvalue', 1, "the quotes of A do not close at the end of the line"),
        ("A=1\nA=secretvalue", 2, "A stands twice; keep one"),
        ("A=“secretvalue”", 1, "A begins with a typographic quote; write ' or none"),
    ],
)
def test_problems_name_the_line_and_never_the_value(text: str, line: int, message: str) -> None:
    assert parse_dotenv(text)[1] == [(line, message)]
