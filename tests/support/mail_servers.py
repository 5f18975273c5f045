"""A real mail system on loopback: Dovecot (IMAP, LMTP) and Postfix (SMTP), set up by `mail_server_settings`.

Everything that Postfix accepts goes to Dovecot: mail for the support address into its mailbox, mail for any other
address of any domain into one mailbox of all customers. Nothing can leave the machine.

Postfix can be started by root only.
"""

import contextlib
import imaplib
import os
import shutil
import smtplib
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from string import Template
from typing import Self

from certificates import make_certificate
from waiting import wait_until

ADDRESS = "support@example.com"
PASSWORD = "correct horse, battery"
DOVECOT, POSTFIX = "/usr/sbin/dovecot", "/usr/sbin/postfix"
MAILBOX_OWNER = "mail"  # Debian's user for mailboxes; Dovecot refuses to read any as root
STARTING_S = 20.0
_SETTINGS = Path(__file__).with_name("mail_server_settings")


def missing() -> str | None:
    """What this machine lacks for a mail system of its own, or None."""
    for program in (DOVECOT, POSTFIX):
        if not Path(program).exists():
            return f"{program} is not installed (Debian: dovecot-imapd dovecot-lmtpd postfix)"
    if os.geteuid() != 0:
        return "Postfix can be started by root only"
    return None


class MailServers:
    """A running mail system, as a context manager.

    Ports on `host`: `imaps_port` (TLS), `imap_port` (STARTTLS or none), `smtps_port` (TLS), `submission_port`
    (STARTTLS), all for `user` with `password`, and `smtp_port` (none, without login). `ca_file` signs the certificate.
    An access token is taken, too, if the `OAuthIssuer` that a test starts on `issuer_port` knows it.
    SMTP refuses `nobody@example.net` for good and `later@example.net` for now.
    """

    host = "localhost"
    address = ADDRESS
    user = ADDRESS
    password = PASSWORD

    def __init__(self) -> None:
        # Not pytest's own directory: the owner of the mailboxes may not enter that one. Short, for paths of sockets.
        self.root = Path(tempfile.mkdtemp(prefix="mail-", dir="/tmp"))
        self.root.chmod(0o755)
        ports = _free_ports(8)
        self.imap_port, self.imaps_port, self.lmtp_port, self.auth_port = ports[:4]
        self.smtp_port, self.submission_port, self.smtps_port, self.issuer_port = ports[4:]
        self.ca_file = self.root / "ca.pem"
        self._cleanup = contextlib.ExitStack()
        self._cleanup.callback(shutil.rmtree, self.root, ignore_errors=True)

    def __enter__(self) -> Self:
        with self._cleanup:
            self._start()
            self._cleanup = self._cleanup.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def _start(self) -> None:
        make_certificate(self.root, "localhost")
        self._write_dovecot()
        self._write_postfix()
        dovecot = subprocess.Popen([DOVECOT, "-F", "-c", self.root / "dovecot.conf"], stdin=subprocess.DEVNULL)
        self._cleanup.callback(dovecot.wait, STARTING_S)
        self._cleanup.callback(dovecot.terminate)
        self._await_ports(self.imap_port, self.imaps_port, self.lmtp_port, self.auth_port)
        self._run_postfix("start")
        self._cleanup.callback(self._run_postfix, "stop")
        self._await_ports(self.smtp_port, self.submission_port, self.smtps_port)

    def deliver(self, *raws: bytes) -> None:
        """Put mails into the support inbox through LMTP, in order."""
        with smtplib.LMTP("127.0.0.1", self.lmtp_port, "localhost", timeout=60) as lmtp:
            for raw in raws:
                lmtp.sendmail("customer@example.org", [ADDRESS], raw)

    def deliver_many(self, raws: Iterable[bytes]) -> None:
        """Put thousands of mails into the support inbox, as files; Dovecot sees them at its next look."""
        inbox = self.root / "support/Maildir"
        with self._selected("INBOX"):  # Dovecot makes the folders itself
            pass
        now = int(time.time())
        for number, raw in enumerate(raws):
            name = f"{now}.M{number:06d}P{os.getpid()}Q{time.monotonic_ns()}.localhost"
            (inbox / "tmp" / name).write_bytes(raw)
            shutil.chown(inbox / "tmp" / name, MAILBOX_OWNER, MAILBOX_OWNER)
            (inbox / "tmp" / name).rename(inbox / "new" / name)

    def sent_to_customers(self) -> list[bytes]:
        """Every mail that reached an address other than the support address, as the server stored it."""
        box = self.root / "customers/Maildir"
        return [path.read_bytes() for part in ("new", "cur") for path in sorted((box / part).glob("[!.]*"))]

    def folder(self, name: str = "INBOX") -> list[bytes]:
        """The mails of a folder of the support mailbox, in order of arrival. Marks nothing as seen."""
        with self._selected(name) as imap:
            answer = imap.fetch("1:*", "(BODY.PEEK[])")[1] if _count(imap) else []
            return [part[1] for part in answer if isinstance(part, tuple)]

    def keywords(self, name: str = "INBOX") -> list[frozenset[str]]:
        """The flags and keywords of each mail of a folder, in order of arrival."""
        with self._selected(name) as imap:
            answer = imap.fetch("1:*", "(FLAGS)")[1] if _count(imap) else []
            return [frozenset(flag.decode() for flag in imaplib.ParseFlags(line)) for line in answer if line]

    def uids(self, name: str = "INBOX") -> list[int]:
        """Of the mails of a folder of the support mailbox."""
        with self._selected(name) as imap:
            return [int(uid) for uid in imap.uid("SEARCH", "ALL")[1][0].split()]

    def put(self, name: str, raw: bytes, delivered: datetime | None = None) -> None:
        """Put a mail into a folder of the support mailbox. delivered: its INTERNALDATE, by default now."""
        with self._imap_session() as imap:
            imap.append(f'"{name}"', None, imaplib.Time2Internaldate(delivered) if delivered else None, raw)

    def add_flags(self, *flags: str, folder: str = "INBOX") -> None:
        """Give every mail of the folder these flags and keywords."""
        with self._selected(folder, readonly=False) as imap:
            if _count(imap):
                imap.store("1:*", "+FLAGS.SILENT", f"({' '.join(flags)})")

    @contextlib.contextmanager
    def folder_of_its_own(self, name: str) -> Iterator[None]:
        """A folder of the support mailbox, for a while."""
        with self._imap_session() as imap:
            imap.create(f'"{name}"')
        try:
            yield
        finally:
            self.remove_folder(name)

    def folders(self) -> list[str]:
        """The names of all, as the server encodes them (RFC 3501 §5.1.3)."""
        with self._imap_session() as imap:
            lines = imap.list()[1]
        return [line.decode().rpartition(' "." ')[2].strip('"') for line in lines if isinstance(line, bytes)]

    def move(self, source: str, target: str) -> None:
        """Move every mail of a folder, as a person does in a mail program."""
        with self._selected(source, readonly=False) as imap:
            if _count(imap):
                kind, answer = imap._simple_command("MOVE", "1:*", f'"{target}"')
                assert kind == "OK", answer

    def remove_folder(self, name: str) -> None:
        with self._imap_session() as imap:
            imap.delete(f'"{name}"')

    def rename_folder(self, name: str, new_name: str) -> None:
        with self._imap_session() as imap:
            imap.rename(f'"{name}"', f'"{new_name}"')

    def empty(self) -> None:
        """Take every mail out of every mailbox, once none is on its way any more."""
        self.wait_until_sent()
        for name in ("INBOX", "Sent", "Drafts", "Junk"):
            with self._selected(name, readonly=False) as imap:
                if _count(imap):
                    imap.store("1:*", "+FLAGS.SILENT", r"(\Deleted)")
                    imap.expunge()
        for part in ("new", "cur"):
            for path in (self.root / "customers/Maildir" / part).glob("*"):
                path.unlink()
        for name in self.folders():  # whoever comes next has a ledger of its own, and no marks
            if name.startswith("guarantee-email-agent"):
                self.remove_folder(name)

    def wait_until_sent(self, timeout_s: float = 30.0) -> None:
        """Wait until Postfix holds no mail any more."""
        queues = [self.root / "postfix/queue" / name for name in ("incoming", "active", "deferred")]
        wait_until(
            lambda: not any(path.is_file() for queue in queues for path in queue.rglob("*")), timeout_s, self.log
        )

    def log(self) -> str:
        """The last lines of the servers' logs, for a failed test."""
        paths = [self.root / "dovecot.log", self.root / "postfix/postfix.log"]
        return "\n".join("\n".join(path.read_text().splitlines()[-20:]) for path in paths if path.exists())

    @contextlib.contextmanager
    def _imap_session(self) -> Iterator[imaplib.IMAP4]:
        imap = imaplib.IMAP4("127.0.0.1", self.imap_port, timeout=60)
        try:
            imap.login(ADDRESS, PASSWORD)
            yield imap
        finally:
            imap.logout()

    @contextlib.contextmanager
    def _selected(self, name: str, *, readonly: bool = True) -> Iterator[imaplib.IMAP4]:
        with self._imap_session() as imap:
            kind, answer = imap.select(f'"{name}"', readonly=readonly)
            if kind != "OK":
                raise LookupError(f"folder {name}: {answer}")
            yield imap

    def _write_dovecot(self) -> None:
        for home in ("support", "customers"):
            (self.root / home).mkdir()
            shutil.chown(self.root / home, MAILBOX_OWNER, MAILBOX_OWNER)
        user = f"{ADDRESS}:{{PLAIN}}{PASSWORD}:{MAILBOX_OWNER}:{MAILBOX_OWNER}::{self.root}/support::\n"
        (self.root / "users").write_text(user)
        for name in ("dovecot.conf", "oauth2.conf"):
            self._write_settings(name, self.root)

    def _write_postfix(self) -> None:
        for directory in ("postfix", "postfix/queue", "postfix/data", "postfix/etc"):
            (self.root / directory).mkdir()
        shutil.chown(self.root / "postfix/data", "postfix")
        for name in ("main.cf", "master.cf"):
            self._write_settings(name, self.root / "postfix/etc")

    def _write_settings(self, name: str, folder: Path) -> None:
        ports = {name: value for name, value in vars(self).items() if name.endswith("_port")}
        values = {"root": self.root, "owner": MAILBOX_OWNER, **ports}
        (folder / name).write_text(Template((_SETTINGS / name).read_text()).substitute(values))

    def _run_postfix(self, action: str) -> None:
        command = [POSTFIX, "-c", self.root / "postfix/etc", action]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(f"postfix {action}: {done.stdout}{done.stderr}{self.log()}")

    def _await_ports(self, *ports: int) -> None:
        for port in ports:
            wait_until(lambda port=port: _accepts(port), STARTING_S, lambda: f"Nothing listens. {self.log()}")


def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _count(imap: imaplib.IMAP4) -> int:
    return len(imap.search(None, "ALL")[1][0].split())
