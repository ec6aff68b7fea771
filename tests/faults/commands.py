"""The commands that change a mailbox: how each is called, what it promises, how it is repeated.

Belongs here: one row a command. How it is made to fail is ``faults``; what must hold then is ``verdict``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.faults import world
from tests.faults.world import CLAIM, EMPTY_ROLE, OWED, TAG, message_id
from tests.helpers import MESSAGES, READS, ROSTER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.faults.evidence import Evidence

SENT = message_id(100)
BODY = "sent while things break: “whole”, ünharmed €, " + "and long enough to be cut. " * 8


class Command:
    """A row of the matrix.

    ``done`` asks the logs if the command took effect. ``again`` are the words that complete it after a fault (default:
    the same), ``then`` those of a command that must follow. ``adds`` and ``claims`` are what readers have to be shown
    once it is done; ``reads`` is whose mail it shows itself, ``gone`` who is a reader no more. One that ``hints``
    names, when it fails, the id to repeat it with. ``lean``: started without ``site``; ``log``: the log it writes to.
    """

    def __init__(
        self,
        name: str,
        words: str | Sequence[str],
        done: Callable[[Evidence], bool],
        *,
        again: Sequence[str] | None = None,
        then: Sequence[str] = (),
        adds: Mapping[str, set[str]] | None = None,
        claims: Mapping[str, set[str]] | None = None,
        reads: str | None = None,
        gone: str | None = None,
        stdin: bytes = b"",
        hints: bool = False,
        lean: bool = True,
        log: str = MESSAGES,
    ) -> None:
        self.name = name
        self.words = words.split() if isinstance(words, str) else list(words)
        self.done = done
        self.again = self.words if again is None else list(again)
        self.then = list(then)
        self.adds = dict(adds or {})
        self.claims = {**world.UNCLAIMED, **(claims or {})}
        self.reads = reads
        self.gone = gone
        self.stdin = stdin
        self.hints = hints
        self.lean = lean
        self.log = log
        self.steward = self.words[0] == "steward"
        self.hook = self.words[0] == "hook"

    def __repr__(self) -> str:
        return self.name


def _written(evidence: Evidence) -> bool:
    return any(record["id"] == SENT and record["content"] == BODY for record in evidence.records(MESSAGES))


def _read_by_bob(evidence: Evidence) -> bool:
    mine = world.UNREAD["bob"] | {world.ROLE}
    standing = evidence.standing()
    return all(("bob", number) in standing for number in mine)


def _archived(evidence: Evidence) -> bool:
    moved = {world.OLD_DIRECT, world.OLD_CLAIM, world.OLD_ALL}
    live, archived = evidence.ids(archived=False), evidence.ids(live=False)
    return moved <= archived.keys() and not moved & live.keys() and bool(_event(ROSTER, event="freeze")(evidence))


def _event(log: str, **wanted: str) -> Callable[[Evidence], bool]:
    return lambda evidence: evidence.events(log, **wanted) > 0


def _replied(evidence: Evidence) -> bool:
    acked = _event(READS, event="ack", message_id=OWED, reader_session_id="bob")(evidence)
    return acked and evidence.events(MESSAGES, id=SENT, thread=OWED, sender="bob") > 0


HOOK_INPUT = json.dumps({"session_id": "bob", "cwd": "/", "hook_event_name": "UserPromptSubmit", "prompt": "go on"})
_TO = ("--from", "dee", "--to", "ann,gil,project:x", "--body", BODY)
_READERS_OF_SENT = {reader: {SENT} for reader in ("ann", "bob", "cat", "gil")}

SEND = Command("send", ["send", *_TO, "--id", SENT], _written, adds=_READERS_OF_SENT, hints=True, lean=False)
SEND_PLAIN = Command(
    "send (no --id)",
    ["send", "--from", "dee", "--to", "nobody-yet", "--body", BODY],
    lambda evidence: evidence.events(MESSAGES, content=BODY) > 0,
    again=["roster", "list"],  # without an id a repetition would be another message
    hints=True,
)
CHECK = Command("check", "check --session bob --json --limit 0", _read_by_bob, reads="bob", log=READS)
HOOK = Command(
    "hook UserPromptSubmit",
    "hook UserPromptSubmit",
    _read_by_bob,
    reads="bob",
    stdin=HOOK_INPUT.encode(),
    log=READS,
)
ACK = Command(
    "ack", ["ack", OWED, "--session", "bob"], _event(READS, event="ack", message_id=OWED), lean=False, log=READS
)
RELEASE = Command(
    "release",
    ["release", CLAIM, "--session", "cat"],
    _event(READS, event="release", message_id=CLAIM),
    claims={CLAIM: {"bob", "cat"}},
    lean=False,
    log=READS,
)
REPLY = Command(
    "reply",
    ["reply", OWED, "--from", "bob", "--body", BODY, "--id", SENT],
    _replied,
    adds={"ann": {SENT}},
    hints=True,
    lean=False,
)
REGISTER = Command(
    "roster register",
    "roster register --session-id fay --role nobody",
    _event(ROSTER, event="register", session_id="fay"),
    claims={EMPTY_ROLE: {"fay"}},
    adds={"fay": {world.ALL}},
    lean=False,
    log=ROSTER,
)
UPDATE = Command(
    "roster update",
    "roster update --session-id gil --role nobody --add-tags project:x",
    _event(ROSTER, event="update", session_id="gil"),
    claims={EMPTY_ROLE: {"gil"}},
    adds={"gil": {TAG}},
    lean=False,
    log=ROSTER,
)
FREEZE = Command(
    "roster freeze",
    "roster freeze bob",
    _event(ROSTER, event="freeze", session_id="bob"),
    lean=False,
    log=ROSTER,
)
RETIRE = Command(
    "roster retire",
    "roster retire cat",
    _event(ROSTER, event="retire", session_id="cat"),
    then=["steward", "run"],
    claims={world.ROLE: {"bob"}, CLAIM: {"bob"}},
    gone="cat",
    lean=False,
    log=ROSTER,
)
STEWARD = Command("steward run", "steward run --max-live 0", _archived, lean=False)

ALL = (SEND, SEND_PLAIN, CHECK, HOOK, ACK, RELEASE, REPLY, REGISTER, UPDATE, FREEZE, RETIRE, STEWARD)

USUAL = (SEND, CHECK, HOOK, REPLY, REGISTER, RETIRE, STEWARD)
"""Those that between them make every kind of call: the others make some of the same."""
