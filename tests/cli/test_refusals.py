"""Bad input, each kind of it: one ``error:`` line, at most one ``hint:``, the right exit code, and nothing changed."""

from __future__ import annotations

import json
import os
import uuid

import click
import pytest

from agent_mailbox.cli.options import IDLE_BESIDE, IDLE_WITHOUT
from agent_mailbox.commands.main import cli
from tests.helpers import MESSAGES, ROSTER, Post, each, record, refused, refused_both

BODY = ("--body", "x")
FROM = ("send", "--from", "x")
LIMIT = 64 * 1024


@pytest.fixture
def pair(post: Post) -> Post:
    """A mailbox with two agents whose ids begin alike, a dead one, and one message."""
    post.register("alpha-one", "--role", "architect")
    post.register("alpha-two")
    post.register("gone-for-good", "--name", "Gone", "--role", "builder")
    post.send("alpha-two", "alpha-one")
    post.ok("roster", "retire", "Gone")
    return post


MALFORMED = [
    ((*FROM, "--to", "projekt:x", *BODY), "use one of role:, project:, concern:, domain:, team:"),
    ((*FROM, "--to", "project:", *BODY), "project:"),
    ((*FROM, "--to", "project:a b", *BODY), "project:a b"),
    ((*FROM, "--to", ":x", *BODY), "namespace"),
    ((*FROM, "--to", "role:", *BODY), "role"),
    ((*FROM, "--to", " , ,", *BODY), "--to"),
    ((*FROM, *BODY), "--to"),
    ((*FROM, "--to", "a\nb", *BODY), "role"),
    ((*FROM, "--to", "../../etc", *BODY), "role"),
    *[
        ((*words, option, empty), f"{option} is empty")
        for words, options in (
            ((*FROM, *BODY), ("--to",)),
            (("send", "--to", "all", *BODY), ("--from",)),
            (("check",), ("--session",)),
            ((*FROM, "--to", "all", *BODY), ("--thread", "--ttl-hours", "--expires-at", "--id", "--attach")),
            (("history", "--all"), ("--since", "--with")),
            (("roster", "register", "--session-id", "new"), ("--role", "--lead", "--name", "--add-tags")),
            (("control", "request", "sandbox", "--session", "alpha-one"), ("--host", "--capability")),
            (("control", "request", "plan", "--session", "alpha-one"), ("--goal", "--step", "--risk", "--tooling")),
            (("control", "request", "permission", "--session", "alpha-one", "--input", "{}"), ("--tool",)),
            (("control", "policy", "alpha-one"), ("--host", "--allow")),
            (("approve", "perm-1"), ("--reason",)),
            (("note", "list"), ("--on",)),
            (("note", "add", "--on", "project:x", "--title", "x", "--body", "x"), ("--replaces",)),
            (("lease", "x", "--session", "alpha-one"), ("--note", "--for")),
            (("task", "list"), ("--to",)),
            (("task", "claim", "--next", "--session", "x"), ("--to",)),
            (("task", "done", "task-1", "--session", "alpha-one"), ("--summary",)),
            (("control", "report", "task-1", "--phase", "done", "--session", "alpha-one"), ("--artifact", "--error")),
            (("install", "claude-code"), ("--project",)),
        )
        for option in options
        for empty in ("", " ")
    ],
    ((*FROM, "--to", "all", *BODY, "--dir", ""), "--dir is empty"),
    (("check", "--session", "alpha-one", "--dir", ""), "--dir is empty"),
    (("--dir", "", "roster", "list"), "--dir is empty"),
    (("--dir", "", "init"), "--dir is empty"),
    (("--dir", "", "restore", "x.tar"), "--dir is empty"),
    *[
        ((*words, empty), f"{name} is empty")
        for name, commands in {
            "DIR": (("init",), ("setup", "--yes"), ("restore", "x.tar")),
            "ID": [("roster", what) for what in ("freeze", "retire", "heartbeat", "show")],
            "TASK": (("task", "claim", "--session", "alpha-one"),),
            "AGENT": (("control", "mode"),),
            "FILE": (("up",), ("down",)),
        }.items()
        for words in commands
        for empty in ("", " ")
    ],
    ((*FROM, "--to", "all"), "--body"),
    ((*FROM, "--to", "all", "--body", ""), "empty"),
    ((*FROM, "--to", "all", "--body", " \n\t\u2003"), "empty"),
    ((*FROM, "--to", "all", "--body", "-"), "empty"),
    ((*FROM, "--to", "all", "--body", "@nowhere"), "nowhere"),
    ((*FROM, "--to", "all", "--body", "@."), "directory"),
    *[
        ((*FROM, "--to", "all", *BODY, "--ttl-hours", hours), "time to live")
        for hours in ("0", "-1", "many", "1.5", "nan", "inf", "9" * 5000, "99999999999", "1e3")
    ],
    *[
        ((*FROM, "--to", "all", *BODY, "--expires-at", time), why)
        for why, times in {
            "not a time": ("soon", "24", "-1h", "2026-02-30", "9" * 5000 + "d"),
            "has passed": ("2020-01-01", "2020-01-01T00:00:00+23:00", "0m"),
            "over a century": ("9999-12-31", "999999999d"),
        }.items()
        for time in times
    ],
    ((*FROM, "--to", "all", *BODY, "--expires-at", "1h", "--ttl-hours", "1"), "two times"),
    ((*FROM, "--to", "all", *BODY, "--priority", "urgent"), "low, normal, high"),
    ((*FROM, "--to", "all", *BODY, "--type", "order"), "message, control, notification, system"),
    ((*FROM, "--to", "all", *BODY, "--id", "12345"), "UUID"),
    ((*FROM, "--to", "all", *BODY, "--id", "g" * 8 + "-1111-4111-8111-" + "2" * 12), "UUID"),
    (("send", "--from", "a:b", "--to", "all", *BODY), "session id"),
    (("send", "--from", "all", "--to", "all", *BODY), "reserved"),
    (("send", "--from", "You", "--to", "all", *BODY), "reserved"),
    (("check", "--session", "User"), "reserved"),
    (("send", "--from", "../x", "--to", "all", *BODY), "session id"),
    (("send", "--from", "x" * 129, "--to", "all", *BODY), "129 characters"),
    (("check", "--session", "a b"), "session id"),
    (("check", "--session", "alpha-one", "--limit", "-1"), "'--limit': -1 is less than 0"),
    (("check", "--session", "alpha-one", "--limit", "x"), "'--limit': 'x' is no number"),
    *[
        (("task", "add", "--session", "alpha-one", "--title", "t", "--to", "alpha-one", "--ack-by", time), why)
        for time, why in (("2020-01-01", "--ack-by is past"), ("999999999d", "century"), ("9999-12-31", "century"))
    ],
    (("wait", "--session", "alpha-one", "--timeout", "-1"), "--timeout"),
    (("wait", "--session", "alpha-one", "--timeout", "soon"), "--timeout"),
    (("wait", "--session", "alpha-two", "--timeout", "nan"), "--timeout"),
    (("history", "--all", "--since", "yesterday"), "yesterday"),
    (("history", "--all", "--since", "2026-02-30"), "2026-02-30"),
    (("history", "--all", "--since", "9" * 5000 + "d"), "not a time"),
    (("history", "--all", "--limit", "-1"), "--limit"),
    (("console", "--port", "70000"), "70000 is not from 0 to 65535"),
    (("search",), "QUERY"),
    (("show",), "ID"),
    (("show", "--unknown", "x"), "--unknown"),
    (("reply", "abcd", "--from", "x"), "--body"),
    (("send", "--from", "x", "--jsonl", "nowhere"), "nowhere"),
    (("send", "--from", "x", "--jsonl", "-"), "empty"),
    (("roster", "register", "--session-id", "a/b"), "session id"),
    (("roster", "register", "--session-id", "-x"), ""),
    (("roster", "register", "--session-id", "new", "--name", "a:b"), "name"),
    (("roster", "register", "--session-id", "new", "--role", "a b"), "role"),
    (("roster", "register", "--session-id", "new", "--tags", "plain"), "namespace"),
    (("roster", "register", "--session-id", "new", "--tags", "colour:red"), "unknown namespace"),
    (("history", "--all", "--with", "colour:red"), "unknown namespace"),
    (("tail", "--all", "--with", "colour:red"), "unknown namespace"),
    (("note", "list", "--on", "colour:red"), "unknown namespace"),
    (("lease", "", "--session", "x"), "a path is empty"),
    (("lease", "check", "src", "", "--session", "x"), "a path is empty"),
    (("roster", "register", "--session-id", "new", "--lead", "a b"), "lead"),
    (("roster", "freeze", "alpha-one", "--session-id", "alpha-two"), "twice"),
    (("steward", "run", "--max-live", "-1"), "--max-live"),
    (("chek",), "did you mean check"),
    (("version",), "run `agent-mailbox --version`"),
    (("inbox",), "run `agent-mailbox check`"),
    (("list",), "run `agent-mailbox roster list`"),
    (("register",), "run `agent-mailbox roster register`"),
    (("roster", "help"), "run `agent-mailbox roster --help`"),
    (("-V",), "did you mean --version?"),
    (("doctor", "--fix"), "did you mean --repair?"),
    (("show", "0000", "--session", "x"), "leave it out"),
    (("check", "--since", "1h"), "leave it out"),
    (("check", "--limt", "1"), "did you mean --limit?"),
    (("send", "--to", "alpha-one", "--message", "x"), "did you mean --body?"),
    (("backup", "-"), "run `agent-mailbox backup mailbox.tar"),
    (("search", "--limit", "5", "-foo bar", "x"), " --limit 5 -- '-foo bar' x`"),
    (("send", "Bob", "it's hi", "--from", "x"), r" --to Bob --body 'it'\''s hi'`"),
    (("send", "--from", "Bob", "Bob", "hi"), " --to Bob --body hi`"),
    (("reply", "0bc9f3d7", "yes, do"), " --body 'yes, do'`"),
    (("roster", "regster"), "did you mean register"),
    (("nothing-like-it",), "help --all"),
]


@each("words, said", MALFORMED)
def test_a_malformed_argument_is_exit_2(pair: Post, words: tuple[str, ...], said: str) -> None:
    """A command with a malformed argument exits with 2, names the argument and leaves the mailbox as it was."""
    before = pair.snapshot()
    refused_both(pair.call, 2, *words, said=[said])
    assert pair.snapshot() == before


REFUSED = [
    ((*FROM, "--to", "alpha-", *BODY), "ambiguous", "alpha-one, alpha-two"),
    ((*FROM, "--to", "Gone", *BODY), "dead_recipient", "role:builder"),
    ((*FROM, "--to", "gone-for-good", *BODY), "dead_recipient", "role:builder"),
    ((*FROM, "--to", "gone-f", *BODY), "dead_recipient", "role:builder"),
    ((*FROM, "--to", "alpha-one,Gone", *BODY), "dead_recipient", "Gone"),
    ((*FROM, "--to", "architec", *BODY, "--strict"), "unknown_recipient", "did you mean architect"),
    ((*FROM, "--to", "alpha", *BODY, "--strict"), "unknown_recipient", "alpha"),
    ((*FROM, "--to", "team:blue/bea", *BODY, "--strict"), "unknown_recipient", "teams import"),
    (("show", "ffffffff"), "not_found", "history"),
    (("thread", "nothing"), "not_found", "nothing"),
    (("reply", "ffffffff", "--from", "x", *BODY), "not_found", "ffffffff"),
    (("ack", "ffffffff", "--session", "x"), "not_found", "ffffffff"),
    (("release", "ffffffff", "--session", "x"), "not_found", "ffffffff"),
    (("show", ""), "not_found", "history"),
    (("history", "--all", "--with", "nobody-of-that-name"), "not_found", "nobody-of-that-name"),
    (("history", "--all", "--with", "alpha-"), "ambiguous", "alpha-one"),
    (("roster", "show", "nobody"), "not_found", "nobody"),
    (("roster", "show", "alpha-"), "ambiguous", "alpha-two"),
    (("roster", "show", "architekt"), "not_found", "did you mean architect"),
    (("roster", "freeze", "user"), "refused", "person"),
    (("roster", "heartbeat", "nobody"), "not_found", "nobody"),
    (("roster", "retire", "nobody"), "not_found", "nobody"),
    (("check", "--session", "gone-for-good"), "dead", "register"),
]


@pytest.mark.parametrize(("words", "code", "said"), REFUSED, ids=lambda v: " ".join(v)[:60] if type(v) is tuple else "")
def test_what_the_state_refuses_is_exit_1(pair: Post, words: tuple[str, ...], code: str, said: str) -> None:
    """Dead, unknown, ambiguous, not found: in text and JSON alike, with the stable word for programs."""
    before = pair.snapshot()
    assert refused_both(pair.call, 1, *words, said=[said]).json["error"]["code"] == code
    assert pair.snapshot() == before


def test_an_ambiguous_message_prefix_names_the_candidates(pair: Post) -> None:
    """Four characters or more; a whole id is never ambiguous; fewer than four name nothing."""
    twins = ["abcd1111-0000-4000-8000-000000000001", "abcd1111-0000-4000-8000-000000000002"]
    for twin in twins:
        pair.append(MESSAGES, record(id=twin))
    for command in (("show",), ("thread",), ("ack", "--session", "x"), ("reply", "--from", "x", *BODY)):
        told = refused_both(pair.call, 1, *command, "abcd1111", said=twins)
        assert told.json["error"]["code"] == "ambiguous"
    refused(pair.call(*FROM, "--to", "all", *BODY, "--thread", "abcd1111"), 1, *twins)
    assert pair.ok("show", twins[0])["message"]["id"] == twins[0]
    assert pair.ok("show", twins[1].upper()[:-1] + "2")["message"]["id"] == twins[1]
    assert refused(pair.call("show", "abc", "--json"), 1).json["error"]["code"] == "not_found"


BAD_BODIES: list[tuple[bytes, str]] = [
    (b"caf\xe9", "UTF-8"),
    (b"\xed\xa0\x80", "UTF-8"),
    (b"\xff\xfe", "UTF-8"),
    (b"nul\0nul", "NUL"),
    (b"x" * (LIMIT + 1), str(LIMIT)),
    (("\u20ac" * (LIMIT // 3 + 1)).encode(), str(LIMIT)),
]


@pytest.mark.parametrize(
    ("body", "said"), BAD_BODIES, ids=["latin-1", "surrogate", "BOM", "NUL", "long", "long in bytes"]
)
@pytest.mark.parametrize("way", ["-", "@"])
def test_a_body_that_is_no_text_or_too_long_is_exit_3(pair: Post, body: bytes, said: str, way: str) -> None:
    """A body from standard input or a file that is no text, or too long, is refused with exit 3."""
    path = pair.scratch / "body"
    path.write_bytes(body)
    before = pair.snapshot()
    given = "-" if way == "-" else f"@{path}"
    refused_both(pair.call, 3, *FROM, "--to", "all", "--body", given, stdin=body, said=[said])
    refused_both(
        pair.call, 3, "reply", pair.unread("alpha-one")[0], "--from", "x", "--body", given, stdin=body, said=[said]
    )
    assert pair.snapshot() == before


def test_a_body_of_exactly_the_limit_is_sent(pair: Post) -> None:
    """64 KiB of UTF-8; the limit is configurable; a subject of a thousand characters, none longer."""
    pair.ok(*FROM, "--to", "all", "--body", "-", stdin=b"x" * LIMIT + b"\n")
    assert len(pair.objects(MESSAGES)[-1]["content"]) == LIMIT
    pair.ok(*FROM, "--to", "all", *BODY, "--subject", "s" * 1000)
    refused_both(pair.call, 3, *FROM, "--to", "all", *BODY, "--subject", "s" * 1001, said=["1001"])
    pair.file("config.toml").write_text("[limits]\ncontent_bytes = 10\n")
    told = refused_both(pair.call, 3, *FROM, "--to", "all", "--body", "12345678901", said=["10", "path"])
    assert told.json["error"]["code"] == "too_large"


def test_a_thread_no_one_could_have_is_not_stored_at_any_length(pair: Post) -> None:
    """An unknown parent is a warning; a hundred thousand characters of one are refused, as any field's."""
    result = pair.call(*FROM, "--to", "all", *BODY, "--thread", "t" * 100_000)
    assert result.rc in (2, 3), result.rc
    assert len(result.stderr) < 1000


def test_words_of_a_command_line_that_are_not_utf_8_are_refused(pair: Post) -> None:
    """Bytes that came through the shell undecoded: exit 2 or 3, shown escaped; never stored, never a traceback."""
    before = pair.snapshot()
    for option, code in (("--body", 3), ("--subject", 3), ("--to", 2), ("--from", 2), ("--thread", 3)):
        words: list[bytes | str] = ["send", "--from", "x", "--to", "all", "--body", "x", option, b"caf\xe9"]
        result = pair.run(*[os.fsdecode(word) for word in words], "--json")
        refused(result, code)
        assert list(result.json) == ["error"]
    for words in (("show", "caf"), ("search", "caf"), ("history", "--all", "--with", "caf"), ("roster", "show", "caf")):
        result = pair.call(*words[:-1], os.fsdecode(b"caf\xe9"))
        assert result.rc in (0, 1, 2), result
        assert result.rc == 0 or result.stderr.startswith("error: ")
    assert pair.snapshot() == before


# -- batches ----------------------------------------------------------------------------------------------------------

GOOD = json.dumps({"recipient": "alpha-one", "content": "fine"})
BAD_LINES: list[tuple[bytes, int, str]] = [
    (b"not json", 3, "JSON"),
    (b'{"recipient": "all", "content": "x"', 3, "JSON"),
    (b"[]", 3, "object"),
    (b'"text"', 3, "object"),
    (b'{"content": "x"}', 3, "recipient"),
    (b'{"recipient": "all"}', 3, "content"),
    (b'{"recipient": "all", "content": ""}', 3, "content"),
    (b'{"recipient": "all", "content": "  "}', 3, "empty"),
    (b'{"recipient": [], "content": "x"}', 3, "recipient"),
    (b'{"recipient": "all", "content": ["x"]}', 3, "content"),
    (b'{"recipient": "projekt:x", "content": "x"}', 3, "namespace"),
    (b'{"recipient": "all", "content": "x", "ttl_hours": 0}', 3, "time to live"),
    (b'{"recipient": "all", "content": "x", "ttl_hours": "5"}', 3, "ttl_hours"),
    (b'{"recipient": "all", "content": "x", "ttl_hours": true}', 3, "ttl_hours"),
    (b'{"recipient": "all", "content": "x", "ack": "yes"}', 3, "ack"),
    (b'{"recipient": "all", "content": "x", "priority": "urgent"}', 3, "priority"),
    (b'{"recipient": "all", "content": "x", "type": 5}', 3, "type"),
    (b'{"recipient": "all", "content": "x", "subject": {}}', 3, "subject"),
    (b'{"recipient": "all", "content": "x", "id": "no uuid"}', 3, "UUID"),
    (b'{"recipient": "all", "content": "x", "id": 5}', 3, "id"),
    (b'{"recipient": "all", "content": "x", "sender": "a b"}', 3, "session id"),
    (b'{"recipient": "all", "content": "nul\\u0000"}', 3, "NUL"),
    (b'{"recipient": "all", "content": "half \\ud800"}', 3, ""),
    (b'{"recipient": "all", "content": "caf\xe9"}', 3, ""),
    (b'{"recipient": "all", "content": "' + b"x" * (LIMIT + 1) + b'"}', 3, str(LIMIT)),
    (b'{"recipient": "all", "content": "x", "metadata": ' + b"[" * 40 + b"]" * 40 + b"}", 3, "nested"),
    (b'{"recipient": "all", "content": "x", "metadata": ' + b"[" * 4000 + b"]" * 4000 + b"}", 3, ""),
    (b'{"recipient": "all", "content": "x", "metadata": "' + b"m" * (600 * 1024) + b'"}', 3, "record"),
    (b'{"recipient": "all", "content": "x", "metadata": NaN}', 3, "JSON"),
    (b'{"recipient": "all", "content": "x", "metadata": 1e999}', 3, ""),
    (b'{"recipient": "Gone", "content": "x"}', 1, "dead"),
    (b'{"recipient": "alpha-", "content": "x"}', 1, "alpha-one"),
]


@each("line, code, said", BAD_LINES)
def test_a_bad_line_refuses_the_whole_batch_naming_it(pair: Post, line: bytes, code: int, said: str) -> None:
    """The third line here (an empty one counts); nothing of the batch is written, before or behind it."""
    batch = GOOD.encode() + b"\n\n" + line + b"\n" + GOOD.encode() + b"\n"
    before = pair.snapshot()
    refused_both(pair.call, code, "send", "--jsonl", "-", "--from", "x", stdin=batch, said=["line 3: ", said])
    assert pair.snapshot() == before


def test_a_batch_with_a_used_id_is_refused_with_its_line(pair: Post) -> None:
    """One that is taken by other mail, live or archived, or is twice in the batch: refused, naming a line."""
    own = str(uuid.uuid4())

    def line(content: str, **more: str) -> str:
        return json.dumps({"recipient": "alpha-one", "content": content, **more})

    batch = "\n".join([line("new"), line("first", id=own), line("second", id=own)])
    refused_both(pair.call, 1, "send", "--jsonl", "-", "--from", "x", stdin=batch, said=["line 3: ", own])
    pair.ok("send", "--jsonl", "-", "--from", "x", stdin=line("first", id=own))
    batch = "\n".join([line("new"), line("other", id=own)])
    for _ in range(2):
        before = pair.snapshot()
        refused_both(pair.call, 1, "send", "--jsonl", "-", "--from", "x", stdin=batch, said=["line 2: ", own])
        assert pair.snapshot() == before
        pair.check("alpha-one")
        pair.ok("steward", "run", "--max-live", "0")
    assert pair.objects(MESSAGES) == []


LOOKS = [
    ("check",),
    ("check", "--peek"),
    ("wait", "--timeout", "0"),
    ("status",),
    ("history",),
    ("dead-letters",),
    ("dead-letters", "--waiting"),
    ("ack", "anything"),
    ("release", "anything"),
]


@pytest.mark.parametrize("words", LOOKS)
@pytest.mark.parametrize("typo", ["alpha-onne", "ALPHA-ONE", "Gonee", "al", "alpha", "Go"])
def test_a_misspelt_session_is_not_registered(pair: Post, words: tuple[str, ...], typo: str) -> None:
    """A check that names it is refused with the one that was meant; a new session registers first."""
    pair.register("other-1", "--name", "Gone")
    before = pair.snapshot()
    meant = "Gone" if typo in ("Gonee", "Go") else "alpha-one"
    command = f"agent-mailbox roster register --session-id {typo}"
    refused(pair.call(*words, "--session", typo), 1, f"did you mean {meant}", command)
    assert pair.snapshot() == before
    pair.check("some-new-one")
    if typo != "ALPHA-ONE":
        pair.register(typo)
        assert pair.check(typo) == []


DEEDS = [
    ("lease", "a.py"),
    ("lease", "check", "a.py"),
    ("note", "add", "--on", "project:app", "--title", "x"),
    ("task", "add", "--title", "x", "--to", "alpha-one"),
    ("watch", "alpha-one", "--idle"),
    ("watch", "list"),
    ("control", "log"),
    ("control", "mode"),
    ("control", "pending"),
    ("control", "pending", "--all"),
    ("control", "policy"),
]


@pytest.mark.parametrize("words", DEEDS)
def test_nothing_is_done_or_shown_for_a_misspelt_session(pair: Post, words: tuple[str, ...]) -> None:
    """A deed in its name would be nobody's, and a look would say that nothing is there."""
    before = pair.snapshot()
    refused(pair.call(*words, "--session", "alpha-onne"), 1, "did you mean alpha-one")
    assert pair.snapshot() == before


@pytest.mark.parametrize("to", ["@bobby", "@Nobody"])
def test_a_sign_before_a_name_is_no_part_of_it(pair: Post, to: str) -> None:
    """Whether somebody has the name or not; nothing is sent."""
    pair.register("bobby")
    before = pair.snapshot()
    refused(pair.call(*FROM, "--to", to, *BODY), 1, "nothing was sent", to.lstrip("@"), "agent-mailbox roster list")
    assert pair.snapshot() == before


def test_a_batch_of_unknown_words_warns_by_line(pair: Post) -> None:
    """Sent with a loud warning each; ``--strict`` refuses all, as does a word that nearly is somebody's."""
    batch = f'{GOOD}\n{{"recipient": "planner", "content": "x"}}'
    result = pair.call("send", "--jsonl", "-", "--from", "x", "--json", stdin=batch)
    assert (result.rc, result.json["sent"]) == (0, 2)
    assert len(result.warnings) == 1
    assert result.warnings[0].startswith("warning: line 2: unknown recipient: 'planner'")
    refused(pair.call("send", "--jsonl", "-", "--from", "x", "--strict", stdin=batch), 1, "line 2", "planner")
    near = f'{GOOD}\n{{"recipient": "architekt", "content": "x"}}'
    before = pair.snapshot()
    refused(pair.call("send", "--jsonl", "-", "--from", "x", stdin=near), 1, "line 2", "did you mean architect")
    assert pair.snapshot() == before


# -- the environment --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["CLAUDE_CODE_SESSION_ID", "AGENT_MAILBOX_SESSION"])
@pytest.mark.parametrize("value", ["../../x", "a b", "all", "x" * 200, "$(id)", "\x1b[31m"])
def test_a_session_in_the_environment_is_checked_like_any(pair: Post, variable: str, value: str) -> None:
    """A variable whose value cannot be a session id is refused, and no file is made for it."""
    before = pair.snapshot()
    for words in (("check",), ("send", "--to", "all", *BODY), ("roster", "register"), ("status",)):
        refused(pair.call(*words, env={variable: value}), 2)
    assert pair.snapshot() == before


CONFIGURATIONS = [
    ("[hook]\ndoorbell = 1\n", "hook.doorbell must be true or false"),
    ("[ttl]\ndirect = 0", "ttl.direct"),
    ("[ttl]\ndirect = true", "ttl.direct"),
    ("[ttl]\ndirect = nan", "ttl.direct"),
    ("[ttl]\nletter = 5", "letter"),
    ("[steward]\nmax_live = 1.5", "steward.max_live"),
    ("[limits]\ncontent_bytes = -1", "limits.content_bytes"),
    ("[session]\ntags = 'x'", "session.tags"),
    ("[unknown]\nkey = 1", "key"),
    ("ttl = 5", "ttl"),
    ("[ttl", "TOML"),
    ("x = " + "[" * 3000, "TOML"),
    ("\udcff", "TOML"),
]


@pytest.mark.parametrize(("text", "said"), CONFIGURATIONS, ids=lambda v: v[:30].encode("ascii", "replace").decode())
def test_a_wrong_configuration_stops_no_mail_and_is_told_naming_file_and_key(pair: Post, text: str, said: str) -> None:
    """Once by each command; the steward, which would end agents by it, moves nothing while it may be concerned."""
    pair.file("config.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    for words in ((*FROM, "--to", "all", *BODY), ("check", "--session", "alpha-one"), ("status", "--session", "x")):
        result = pair.call(*words)
        assert result.rc == 0, result
        (warning,) = result.warnings
        assert str(pair.file("config.toml")) in warning
        assert said in warning
    assert BODY[1] in pair.ok("history", "--all")["messages"][-1]["content"]
    before = pair.snapshot()
    if "steward" in text or "ttl" in text or said == "TOML":
        refused(pair.call("steward", "run"), 3, "config.toml", said)
        assert pair.snapshot() == before
    else:
        assert pair.call("steward", "run").rc == 0


def test_each_setting_of_config_toml_takes_effect(pair: Post) -> None:
    """TTLs by mode, "none" for no end, more namespaces, the threshold of a warning."""
    pair.file("config.toml").write_text(
        '[ttl]\ndirect = "none"\nrole = 2\n[tags]\nnamespaces = ["team"]\n[limits]\nlong_words = 2\n'
        "[steward]\nmax_live = 1_000_000\nfreeze_after_hours = 0.5\n"
    )
    for to in ("alpha-one", "architect"):
        pair.send("x", to)
    pair.ok("roster", "update", "--session-id", "alpha-one", "--add-tags", "team:blue")
    answer = pair.ok(*FROM, "--to", "team:blue", "--body", "one two three")
    assert answer["delivery"]["agents"] == ["alpha-one"]
    assert len(answer["delivery"]["warnings"]) == 1
    messages = pair.ok("check", "--session", "alpha-one")["messages"]
    assert [m["expires_at"] is None for m in messages] == [True, True, False, False]


def test_the_json_flag_is_a_flag_only_where_it_is_one(pair: Post) -> None:
    """``--json`` as the value of another option does not ask for JSON."""
    plain = pair.call("send", "--from", "x", "--to", "projekt:x", "--body", "--json")
    refused(plain, 2, "namespace")
    assert plain.stdout == ""


def test_a_log_from_elsewhere_hurts_nobody(pair: Post) -> None:
    """Deep nesting, huge numbers, giants, half records: skipped and reported; every command answers as before."""
    before = pair.unread("alpha-one")
    foreign: list[bytes] = [
        b"[" * 100_000,
        b'{"id":' * 5000 + b"1" + b"}" * 5000,
        json.dumps(record(metadata=_nested(31))).encode(),
        json.dumps(record(metadata=_nested(40))).encode(),
        b'{"id":"x","sender":"s","recipient":"alpha-one","timestamp":"2026-01-01","content":"x","ttl_hours":1e400}',
        b'{"id":"n","sender":"s","recipient":"alpha-one","timestamp":"9999-99-99","content":"x"}',
        b'{"id":"o","sender":"s","recipient":{"a":1},"timestamp":"2026-01-01","content":"x"}',
        json.dumps(record(content="x" * (10 << 20))).encode(),
        b"\xff" * 1000,
        b"null",
    ]
    pair.append(MESSAGES, *[line + b"\n" for line in foreign])
    pair.append(ROSTER, b"[" * 100_000 + b"\n", b'{"session_id": 5}\n', b'{"event":"freeze","session_id":"alpha-one"')
    good = pair.send("x", "alpha-one", "after it all")
    assert [i for i in pair.unread("alpha-one") if i in (*before, good)] == [*before, good]
    for words in (("history", "--all"), ("search", "hello"), ("roster", "list"), ("steward", "run"), ("show", good)):
        pair.ok(*words)
    assert {p["line"] for p in pair.doctor() if p["file"].endswith(MESSAGES)} >= {2, 3, 5, 6, 7, 8, 9, 10, 11}


def _nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_a_sender_in_a_loop_is_stopped_where_the_mailbox_says_so(post: Post) -> None:
    """A mailbox with a limit refuses further messages of one sender within a minute. Others and repetitions pass."""
    post.file("config.toml").write_text("[limits]\nmessages_per_minute = 5\n")
    post.send("x", "all", "x" * 60_000)
    known = post.send("loop", "all", "first")
    for _ in range(3):
        post.send("loop", "all", "y" * 30_000)
    batch = "\n".join(json.dumps({"recipient": "all", "content": "z"}) for _ in range(2))
    refused(post.call("send", "--jsonl", "-", "--from", "loop", stdin=batch), 1, "5 a minute", "loop sent 4")
    post.send("loop", "all", "fifth")
    words = ("send", "--from", "loop", "--to", "all", "--body", "sixth")
    told = refused_both(post.call, 1, *words, said=["loop sent 5 messages", "wait a minute"])
    assert told.json["error"]["code"] == "rate_limited"
    post.send("loop", "all", "first", "--id", known)
    post.send("user", "all")
    post.send("other", "all")
    assert len(post.objects(MESSAGES)) == 8


def test_mail_of_the_future_says_nothing_of_the_last_minute(post: Post) -> None:
    """A clock that was set back leaves it in the log; its sender is not kept waiting until then."""
    post.file("config.toml").write_text("[limits]\nmessages_per_minute = 2\n")
    for _ in range(2):
        post.append(MESSAGES, record("bob", timestamp="2999-01-01T00:00:00.000Z"))
    for _ in range(2):
        post.send("bob", "all")
    refused(post.call("send", "--from", "bob", "--to", "all", "--body", "third"), 1, "bob sent 2 messages")


@each(
    "words",
    [
        ("top", "--interval"),
        ("wait", "--session", "a", "--timeout"),
        ("up", "--wait"),
        ("down", "--wait"),
        ("teams", "import", "--interval"),
        ("teams", "bridge", "--wait"),
        ("control", "wait", "perm-1", "--timeout"),
        ("control", "request", "permission", "--tool", "Bash", "--timeout"),
    ],
)
def test_seconds_that_nothing_can_wait_are_refused(post: Post, words: tuple[str, ...]) -> None:
    """They were internal errors once the wait began, in ``top`` on the terminal's other screen."""
    for seconds in ("nan", "inf", "1e300"):
        refused(post.call(*words, seconds), 2, f"{seconds} is not a usable number of seconds")


def test_an_option_that_has_no_effect_is_refused_with_the_one_it_depends_on(post: Post) -> None:
    """Every pair of the tables is of options that the command has; both are named, and nothing is done."""
    for table, between in ((IDLE_BESIDE, "with"), (IDLE_WITHOUT, "without")):
        for words, pairs in table.items():
            command = of_words(words)
            options = {param.opts[0]: param for param in command.params if isinstance(param, click.Option)}
            arguments = [value_of(param) for param in command.params if isinstance(param, click.Argument)]
            for option, others in pairs.items():
                for idle in others.split():
                    given = [part for one in (option, idle) for part in worded(options[one])]
                    given = worded(options[idle]) if between == "without" else given
                    done = post.call(*words.split(), *arguments, *given)
                    refused(done, 2, f"{idle} has no effect {between} {option}")
    assert not [path for path in post.cwd.iterdir() if path != post.box], "nothing was written"


def of_words(words: str) -> click.Command:
    """A command by its words."""
    found: click.Command = cli
    for word in words.split():
        assert isinstance(found, click.Group)
        next_one = found.get_command(click.Context(found), word)
        assert next_one is not None, words
        found = next_one
    return found


def worded(option: click.Option) -> list[str]:
    """An option as it is typed, with a value if it takes one."""
    return [option.opts[0]] if option.is_flag else [option.opts[0], value_of(option)]


def value_of(param: click.Parameter) -> str:
    """A value that a parameter takes."""
    if isinstance(param.type, click.Path):
        return os.devnull
    return str(next(iter(param.type.choices))) if isinstance(param.type, click.Choice) else "1"
