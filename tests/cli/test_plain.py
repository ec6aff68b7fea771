"""The hot verbs have a short way past the command-line library: both ways must be one program."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.start import plain
from tests.helpers import MESSAGES, READS, ROSTER, Post, Result, each

if TYPE_CHECKING:
    from pathlib import Path

SEND = ("send", "--from", "bob", "--to", "alice")
ASKED = "a5ced000-0000-4000-8000-000000000000"
ALICE = ("--session", "alice")
HOOK = json.dumps({"session_id": "alice", "source": "startup", "hook_event_name": "SessionStart"})
CASES: list[tuple[str, ...]] = [
    ("check", "--session", "alice"),
    ("check", "--session=alice", "--limit=1", "--json"),
    ("read", "--peek", "--session", "alice", "--limit", "0"),
    ("check", "--session", "Bobby", "--json"),
    ("check", "--session", "stranger"),
    ("check", "--session", "a b"),
    ("check", "--session", "dead"),
    ("check", "--session", "alice", "--limit", "-1"),
    ("check", "--session", "alice", "--limit", "x", "--json"),
    ("check", "--session", "alice", "--limit", "007"),
    ("check", "--session", "alice", "--session", "bob"),
    ("check", "--session", "alice", "--pe"),
    ("check", "--session", "alice", "extra"),
    ("check", "--session", "alice", "--", "extra"),
    ("check", "--session", "alice", "--json=yes"),
    ("check", "--session"),
    ("check", "--session", "--peek"),
    ("check", "--session", ""),
    ("check", "--session=", "--json"),
    ("check", "--dir", "nowhere", "--session", "alice"),
    ("check", "--help"),
    ("check",),
    (*SEND, "--body", "hi"),
    (*SEND, "--body=hi", "--json"),
    (*SEND, "--to=bob,all", "--body", "x", "--subject", "s", "--ack", "--priority", "high", "--type", "system"),
    (*SEND, "--body", "x", "--ttl-hours", "5", "--json"),
    (*SEND, "--body", "x", "--ttl-hours", "05", "--json"),
    (*SEND, "--body", "x", "--ttl-hours", "0"),
    (*SEND, "--body", "x", "--ttl-hours", "-5", "--json"),
    (*SEND, "--body", "x", "--ttl-hours", "9999999999"),
    (*SEND, "--body", "", "--json"),
    (*SEND, "--body="),
    (*SEND, "--body", "-"),
    (*SEND, "--body", "--body"),
    (*SEND, "--body", "--json"),
    (*SEND, "--body=--json"),
    (*SEND, "--body", "-x"),
    (*SEND, "--body=-x", "--json"),
    (*SEND, "--body", "@nowhere"),
    (*SEND, "--body", "one", "--body", "two", "--json"),
    (*SEND, "--body", "x", "--subject", "", "--json"),
    (*SEND, "--body", "x", "--priority", "urgent"),
    (*SEND, "--body", "x", "--priority", "", "--json"),
    (*SEND, "--body", "x", "--type", "order", "--json"),
    (*SEND, "--body", "x", "--thread", "nothing", "--json"),
    (*SEND, "--body", "w " * 600, "--json"),
    (*SEND, "--body", "nul\0"),
    ("send", "--to", "alice", "--body", "x"),
    ("send", "--from", "bob", "--body", "x"),
    ("send", "--from", "bob", "--to", "", "--body", "x"),
    ("send", "--from", "bob", "--to", "nobody", "--body", "x", "--json"),
    ("send", "--from", "bob", "--to", "nobody", "--body", "x", "--strict", "--json"),
    ("send", "--from", "bob", "--to", "dead", "--body", "x"),
    ("send", "--from", "bob", "--to", "projekt:x", "--body", "x", "--json"),
    ("send", "--help"),
    ("status", "--session", "alice"),
    ("status", "--session=alice", "--json"),
    ("status", "--session", "stranger", "--json"),
    ("status", "--session", "alice", "--cost"),
    ("status", "--session", "alice", "extra"),
    ("status", "--dir", "nowhere", "--session", "alice"),
    ("status",),
    ("dead-letters", "--session", "alice"),
    ("dead-letters", "--all", "--json"),
    ("dead-letters", "--all"),
    ("dead-letters", "--session", "alice", "--since", "1d"),
    ("dead-letters", "--json"),
    ("show", ASKED),
    ("show", ASKED[:5].upper(), "--json"),
    ("show", ASKED, "--dir", "nowhere"),
    ("show", "--json", ASKED),
    ("show", "nothing"),
    ("show", "xyz", "--json"),
    ("show", ""),
    ("show", ASKED, "more"),
    ("show",),
    ("show", "--help"),
    ("ack", ASKED, "--session", "alice"),
    ("ack", ASKED, "--session=alice", "--json"),
    ("ack", "--session", "alice", ASKED),
    ("ack", ASKED, "--session", "dead", "--json"),
    ("ack", ASKED, "--from", "alice"),
    ("ack", ASKED),
    ("ack",),
    ("release", ASKED, "--session", "alice", "--json"),
    ("release", ASKED, "--session", "nobody"),
    ("release", ASKED[:3], "--session", "alice"),
    ("reply", ASKED, "--from", "alice", "--body", "done"),
    ("reply", ASKED[:4], "--from=alice", "--body", "done", "--to", "all", "--to", "bob,dead", "--json"),
    ("reply", ASKED, "--from", "alice", "--body", "done", "--ttl-hours", "x"),
    ("reply", ASKED, "--from", "alice", "--body", "done", "--id", "short", "--json"),
    ("reply", ASKED, "--from", "alice", "--body", "-"),
    ("reply", ASKED, "--all", "--from", "alice", "--body", "done"),
    ("reply", ASKED, "--from", "alice", "--body", "done", "--all", "--to", "bob", "--json"),
    ("reply", ASKED, "--from", "alice", "--body", "@nowhere"),
    ("reply", ASKED, "--from", "alice"),
    ("reply", "nothing", "--from", "alice", "--body", "done", "--ack", "--strict", "--priority", "high"),
    ("reply", ASKED, "--body", "done"),
    (
        "roster",
        "register",
        "--session-id",
        "new",
        "--name",
        "Ann",
        "--role",
        "x,y",
        "--role",
        "z",
        "--tags",
        "project:p",
    ),
    ("roster", "register", "--session-id=new", "--json"),
    ("roster", "register", "--session", "new"),
    ("roster", "register", "--session-id", "new", "--name", "bobby", "--json"),
    ("roster", "register", "--session-id", "new", "--name", ""),
    ("roster", "register", "--session-id", "new", "--lead", "bob", "--dir", "nowhere"),
    ("roster", "register"),
    ("roster", "update", "--session-id", "alice", "--add-tags", "project:p", "--remove-tags", "role:builder", "--json"),
    ("roster", "update", "--session-id", "alice", "--lead", "alice"),
    ("roster", "freeze", "bob"),
    ("roster", "freeze", "--session-id", "bob", "--json"),
    ("roster", "retire", "Bobby", "--session-id", "bob"),
    ("roster", "retire", "--json", "bob"),
    ("roster", "retire", "alice", "--json"),
    ("roster", "retire", "nobody"),
    ("roster", "retire", ""),
    ("roster", "retire"),
    ("roster", "list"),
    ("roster", "list", "--json"),
    ("roster", "list", "--state", "dead"),
    ("roster", "list", "extra"),
    ("roster", "show", "bob"),
    ("roster", "--help"),
    ("roster",),
    ("hook", "SessionStart"),
    ("hook", "user-prompt-submit"),
    ("hook", "Stop"),
    ("hook", "SessionEnd"),
    ("hook", "Nonsense"),
    ("hook", "two", "words"),
    ("hook",),
    ("hook", "--help"),
]
VARYING = re.compile(r"[0-9a-f]{8}((-[0-9a-f]{4}){3}-[0-9a-f]{12})?|20\d\d-\d\d-\d\d[T ][0-9:.]+Z?")


def prepared(place: Path) -> Post:
    """A mailbox with mail and people, the same each time but for ids and times."""
    post = Post(place)
    post.register("alice", "--role", "builder")
    post.register("bob", "--name", "Bobby")
    post.register("dead")
    post.ok("roster", "retire", "dead")
    for to in ("alice", "role:builder", "all"):
        post.send("bob", to, f"for {to}")
    post.ok("send", "--from", "bob", "--to", "alice", "--body", "asked", "--ack", "--id", ASKED)
    post.ok("check", "--session", "alice", "--limit", "0")
    post.send("bob", "alice", "later")
    return post


def outcome(post: Post, result: Result) -> list[Any]:
    """What an invocation did: its code, its words, the logs; ids, times and the place taken out."""
    texts = [result.stdout, result.stderr, *(post.file(n).read_text() if post.file(n).exists() else "" for n in LOGS)]
    return [result.rc, *(VARYING.sub("*", text.replace(str(post.scratch), "HERE")) for text in texts)]


LOGS = (MESSAGES, READS, ROSTER)


class Alike:
    """Two mailboxes that are alike. After a command that changed one, both are made again."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._posts: list[Post] = []
        self._before: list[dict[str, bytes]] = []

    def posts(self) -> list[Post]:
        """Both, as they were prepared."""
        if not self._posts or [post.snapshot() for post in self._posts] != self._before:
            (place := self._place / str(len([*self._place.iterdir()]))).mkdir()
            self._posts = [prepared(place / name) for name in ("a", "b")]
            self._before = [post.snapshot() for post in self._posts]
        return self._posts


@pytest.fixture
def alike(tmp_path: Path) -> Alike:
    """Two mailboxes that are alike."""
    return Alike(tmp_path)


@each("words", CASES)
def test_the_short_way_and_the_long_way_answer_alike(
    alike: Alike, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """The same code, the same two streams, the same records, whichever way the words go."""
    short, long = alike.posts()
    first = outcome(short, short.call(*words, stdin=HOOK))
    with monkeypatch.context() as patch:
        patch.setattr(plain, "run", lambda _: None)
        assert outcome(long, long.call(*words, stdin=HOOK)) == first


def test_the_short_way_imports_no_command_line_library(post: Post) -> None:
    """Each starts without click, orjson, portalocker, json, re and the like."""
    heavy = ("click", "orjson", "portalocker", "dataclasses", "re", "typing", "json", "pathlib", "functools", "asyncio")
    code = (
        "import sys\nfrom agent_mailbox.launch import main\nbefore = set(sys.modules)\ncode = main(sys.argv[1:])\n"
        f"sys.stderr.write('loaded ' + ' '.join(sorted((set(sys.modules) - before) & set({heavy!r}))) + '\\n')\n"
        "sys.exit(code)"
    )
    post.register("alice")
    post.ok("send", "--from", "bob", "--to", "alice", "--body", "asked", "--ack", "--id", ASKED)
    runs = (
        ("check", "--session", "alice", "--json"),
        ("hook", "SessionStart"),
        ("show", ASKED),
        ("ack", ASKED, *ALICE),
    )
    for words in ((*SEND, "--body", "x"), *runs, ("reply", ASKED, "--from", "alice", "--body", "done")):
        result = post.run(*words, python=("-S", "-c", code), stdin=HOOK, env={"PYTHONSAFEPATH": None})
        assert (result.rc, result.stderr.splitlines()[-1].strip()) == (0, "loaded"), result
