"""Reaching the person elsewhere: real servers on loopback that stand in for ntfy and Slack, a program, a real bus."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.console.notifier import Notifier
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.upkeep import notice_ways, notify
from tests.helpers import MESSAGES, PATIENCE, Post, record, refused, until

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENTS = "agent-mailbox-events.jsonl"


class Inbox:
    """A server that keeps what is posted to it; ``answer`` is its status."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], str]] = []
        self.answer = 200
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                inbox.got.append((self.path, dict(self.headers), body))
                self.send_response(inbox.answer)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    """A server that takes the place of a service."""
    made = Inbox()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def asked(post: Post) -> Post:
    """A person for whom a request and a message wait."""
    post.register("ada", "--name", "Ada")
    post.ok(
        "control", "request", "permission", "--tool", "Bash", "--input", '{"command": "rm <x>"}', "--session", "ada"
    )
    post.ok("send", "--from", "ada", "--to", "user", "--subject", "the <!channel> secret", "--body", "x")
    return post


def test_who_and_what_kind_reach_ntfy_a_webhook_and_a_program_once(asked: Post, inbox: Inbox) -> None:
    """Never the content; a second look, and the steward's, tell nothing again. Telemetry has each way."""
    out = asked.scratch / "told"
    program = [sys.executable, "-c", "import sys; open(sys.argv[1], 'a').write(repr(sys.argv[2:]) + '\\n')"]
    command = json.dumps([*program, str(out), "{title}", "{text}", "{count} {dir} $(id)"])
    asked.configure(f'[notify]\nntfy = "{inbox.url}/topic"\nwebhook = "{inbox.url}/hook"\ncommand = {command}\n')
    told = asked.ok("notify")
    assert told == {"waiting": 2, "ways": {"command": "", "ntfy": "", "webhook": ""}}
    by_path = {path: (headers, body) for path, headers, body in inbox.got}
    assert by_path.keys() == {"/topic", "/hook"}
    text = "permission request from Ada\nmail from Ada"
    assert by_path["/topic"][1] == text
    assert by_path["/topic"][0]["Title"] == "2 things wait for you"
    assert json.loads(by_path["/hook"][1]) == {"text": f"2 things wait for you\n{text}"}
    assert out.read_text() == repr(["2 things wait for you", text, "2 {dir} $(id)"]) + "\n"
    assert asked.ok("notify") == {"waiting": 2, "ways": {}}
    asked.ok("steward", "run")
    assert len(inbox.got) == 2
    steps = [step for step in asked.objects(EVENTS) if step["what"] == "notify"]
    assert {(step["way"], step["outcome"]) for step in steps} == {
        (way, "told") for way in ("command", "ntfy", "webhook")
    }
    assert "secret" not in json.dumps([inbox.got, steps])


def test_a_test_without_a_way_says_what_is_missing(asked: Post) -> None:
    """Else it looks as if the notice went out; a usual run has nothing to do."""
    refused(asked.call("notify", "--test"), 1, "no way to tell you is set", "under [notify] in ")
    assert asked.ok("notify") == {"waiting": None, "ways": {}}
    assert asked.call("notify").stdout == "no way to tell you is set\n"


def test_of_two_that_look_at_once_one_tells(asked: Post, inbox: Inbox) -> None:
    """The other one says so, and claims to have counted nothing."""
    asked.configure(f'[notify]\nntfy = "{inbox.url}/t"\n')
    custody = Mailbox(str(asked.box)).logs.custody
    assert custody is not None
    with FileLock(custody.path(notify._LOCK), 0):
        assert asked.call("notify").stdout == "another process looks at this moment\n"
        assert asked.ok("notify") == {"waiting": None, "ways": {}}
    assert asked.call("notify").stdout == "ntfy: told\n"
    assert asked.call("notify").stdout == "nothing to tell now\n"


def test_who_dies_as_it_tells_has_nobody_tell_again(asked: Post, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notice is noted ahead of telling it: too few are better than one each minute."""
    asked.configure(f'[notify]\nntfy = "{inbox.url}/t"\n')

    def dies(*_: object) -> dict[str, str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(notify, "tell_notice", dies)
        with pytest.raises(KeyboardInterrupt):
            notify.notify_if_due(Mailbox(str(asked.box)))
    assert asked.call("notify").stdout == "nothing to tell now\n"


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"at":"1","ids":[]}', b'{"at":1,"ids":[1]}', b'{"at":1,"ids":{}}'])
def test_what_was_told_is_told_again_if_its_note_is_damaged(asked: Post, inbox: Inbox, damage: bytes) -> None:
    """Twice is better than never."""
    asked.configure(f'[notify]\nntfy = "{inbox.url}/t"\n')
    custody = Mailbox(str(asked.box)).logs.custody
    assert custody is not None
    for _ in "12":
        assert asked.call("notify").stdout == "ntfy: told\n"
        Path(custody.path(notify._STATE)).write_bytes(damage)


def test_the_content_goes_only_where_the_person_says_so_and_as_no_markup(asked: Post, inbox: Inbox) -> None:
    """A name or a subject rings no channel."""
    asked.configure(f'[notify]\nwebhook = "{inbox.url}/hook"\ncontent = true\n')
    asked.ok("notify")
    text = json.loads(inbox.got[0][2])["text"]
    assert "!channel&gt; secret" in text
    assert "rm &lt;x&gt;" in text
    assert "<" not in text


def test_one_way_that_fails_keeps_no_other_back(asked: Post, inbox: Inbox) -> None:
    """A server that refuses or sends elsewhere, a program that is not there or fails: said, logged, exit 1."""
    inbox.answer = 302
    asked.configure(f'[notify]\nntfy = "{inbox.url}/t"\nwebhook = "http://127.0.0.1:1/"\ncommand = ["/nowhere/x"]\n')
    result = asked.call("notify", "--json")
    assert result.rc == 1
    ways = result.json["ways"]
    assert "302" in ways["ntfy"]
    assert ways["webhook"]
    assert "/nowhere/x" in ways["command"]
    assert [path for path, _, _ in inbox.got] == ["/t"]
    asked.configure(f"[notify]\ncommand = {json.dumps([sys.executable, '-c', 'raise SystemExit(3)'])}\n")
    assert "exit code 3" in asked.call("notify", "--test", "--json").json["ways"]["command"]


def test_a_notice_program_that_hangs_is_killed(asked: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its time the program is killed, with its children, as every program that we ask."""
    monkeypatch.setattr(notice_ways, "LIMIT", PATIENCE)
    monkeypatch.setattr(notice_ways, "_PROGRAM", 0.1)
    asked.configure('[notify]\ncommand = ["sleep", "600"]\n')
    mailbox = Mailbox(str(asked.box))
    assert "no end within 0.1 s" in notify.notify_if_due(mailbox).ways["command"]


def test_a_mailbox_s_configuration_starts_no_notice(asked: Post, inbox: Inbox) -> None:
    """It comes with a checkout."""
    asked.file("config.toml").write_text(f'[notify]\nntfy = "{inbox.url}/t"\n')
    assert asked.ok("notify") == {"waiting": None, "ways": {}}
    assert inbox.got == []


def test_a_session_reaches_nobody_by_itself(asked: Post, inbox: Inbox) -> None:
    """Its mail does, at its time."""
    asked.configure(f'[notify]\nntfy = "{inbox.url}/t"\n')
    for words in (("notify",), ("notify", "--test")):
        refused(asked.call(*words, env={"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "ada"}), 1, "session")
    assert inbox.got == []


def test_mail_to_the_person_calls_and_mail_that_is_theirs_too_does_not(asked: Post) -> None:
    """The notice has a sender's name alone, without the roles it holds. Mail to everybody calls not."""
    asked.ok("roster", "register", "--session-id", "ada", "--role", "architect")
    for to in ("all", "role:user", "user"):
        asked.call("send", "--from", "ada", "--to", to, "--subject", f"to {to}", "--body", "x")
    mailbox = Mailbox(str(asked.box))
    found = [(one.sender, one.content) for one in notify.waiting_things(mailbox) if one.kind == "mail"]
    assert found == [("Ada", "the &lt;!channel> secret"), ("Ada", "to user")]


def test_a_flood_is_one_notice_and_no_forged_request_calls(asked: Post, inbox: Inbox) -> None:
    """Two hundred messages in a minute are one notice; a request that nothing proves calls nobody."""
    asked.configure(f'[notify]\nntfy = "{inbox.url}/t"\n')
    text = '{"type":"permission_request","requestId":"x-1","tool":{"name":"Bash"}}'
    asked.append(MESSAGES, record("ada", "user", text, type="control"))
    for n in range(200):
        asked.append(MESSAGES, record("eve", "user", f"x{n}"))
    asked.ok("notify")
    asked.append(MESSAGES, record("eve", "user", "one more"))
    assert asked.ok("notify")["ways"] == {}
    ((_, headers, body),) = inbox.got
    assert headers["Title"] == "202 things wait for you"
    assert "unverified" not in body
    assert len(body.splitlines()) == 6


def test_the_console_tells_when_the_first_request_waits(asked: Post, inbox: Inbox) -> None:
    """Its thread looks at the start and after a change, without any page. The notice leads to the console."""
    asked.configure(f'[notify]\nntfy = "{inbox.url}/t"\n')
    thread = Notifier(str(asked.box), "https://desk.example/waiting")
    thread.start_notifying()
    try:
        until(lambda: inbox.got)
    finally:
        thread.stop_notifying()
    ((_, headers, body),) = inbox.got
    assert body.startswith("permission request from Ada")
    assert headers["Click"] == "https://desk.example/waiting"


DAEMON = """
import subprocess, sys
from jeepney import DBusAddress, MessageType, new_method_call, new_method_return
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import open_dbus_connection
bus = open_dbus_connection("SESSION")
bus.send_and_get_reply(message_bus.RequestName("org.freedesktop.Notifications"))
child = subprocess.Popen(sys.argv[1:])
while True:
    call = bus.receive(timeout=150)
    member = call.header.fields.get(3)
    if call.header.message_type is not MessageType.method_call:
        continue
    if member == "GetServerInformation":
        bus.send(new_method_return(call, "ssss", ("x", "x", "1", "1.2")))
    elif member == "GetCapabilities":
        bus.send(new_method_return(call, "as", (["body"],)))
    elif member == "Notify":
        bus.send(new_method_return(call, "u", (1,)))
        child.wait(150)
        print(repr((call.body[0], call.body[3], call.body[4])), flush=True)
        sys.exit(child.returncode)
"""


@pytest.mark.skipif(
    not (shutil.which("dbus-run-session") and shutil.which("notify-send")), reason="needs dbus and libnotify-bin"
)
def test_the_desktop_shows_a_notice_over_a_real_session_bus(asked: Post) -> None:
    """The real ``notify-send`` hands a notice to the desktop. A name in it is not read as markup."""
    pytest.importorskip("jeepney")
    asked.configure("[notify]\ndesktop = true\n")
    asked.register("eve", "--name", "Eve")
    words = [sys.executable, "-m", "agent_mailbox", "notify"]
    environ: dict[str, Any] = {**asked.environ(), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["dbus-run-session", "--", sys.executable, "-c", DAEMON, *words],
        env=environ, cwd=asked.cwd, capture_output=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    shown = repr(("agent-mailbox", "2 things wait for you", "permission request from Ada\nmail from Ada"))
    assert shown in done.stdout.decode()


@pytest.mark.parametrize(
    ("now", "hours", "end"),
    [
        ("2026-03-28T22:30:00+01:00", "22:00-07:00", "2026-03-29T07:00:00+02:00"),
        ("2026-03-29T01:30:00+01:00", "22:00-07:00", "2026-03-29T07:00:00+02:00"),
        ("2026-03-29T01:30:00+01:00", "22:00-02:30", "2026-03-29T03:30:00+02:00"),
        ("2026-10-24T22:30:00+02:00", "22:00-07:00", "2026-10-25T07:00:00+01:00"),
        ("2026-10-25T02:10:00+02:00", "22:00-02:30", "2026-10-25T02:30:00+02:00"),
        ("2026-10-25T02:10:00+01:00", "22:00-02:30", "2026-10-25T02:30:00+01:00"),
        ("2026-06-30T23:10:00+02:00", "22:00-07:00", "2026-07-01T07:00:00+02:00"),
        ("2026-03-29T12:00:00+02:00", "22:00-07:00", None),
    ],
)
def test_quiet_hours_end_by_the_clock_on_the_wall(
    monkeypatch: pytest.MonkeyPatch, now: str, hours: str, end: str | None
) -> None:
    """Quiet hours end at the local time that is set, also in the night when the clock is changed."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        at = notify._quiet_until({"quiet": hours}, round(datetime.fromisoformat(now).timestamp() * 1000))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert at == (None if end is None else round(datetime.fromisoformat(end).timestamp() * 1000))
