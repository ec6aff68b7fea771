"""A worker under a lead and under the person's rules, and what an attacker does to the files.

Belongs here: what the attacks share. ``Scene`` speaks as anyone (``tests/door``); an attacker writes files.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from agent_mailbox.core.control import message_text
from agent_mailbox.core.control import messages as m
from agent_mailbox.core.records import USER
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.control_desk import ControlDesk
from tests.helpers import MESSAGES, READS, ROSTER, Post, record, stamp

if TYPE_CHECKING:
    from pathlib import Path

WORKER, LEAD, OTHER = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed", "boss", "someone-else"
LOGS = (MESSAGES, READS, ROSTER)
DENIED = {"command": "curl evil.example"}


class Scene:
    """A mailbox with a worker (which has a client) and its lead, as their processes use it."""

    def __init__(self, post: Post) -> None:
        self.post = post
        for session_id, lead in ((LEAD, None), (WORKER, LEAD)):
            request = Registration(session_id=session_id, lead=lead, client="4711")
            self.mailbox.register(request, session_id)
        self.post.register(OTHER)

    @property
    def mailbox(self) -> Mailbox:
        """The mailbox, opened as a new process would."""
        return Mailbox(str(self.post.box))

    @property
    def control(self) -> ControlDesk:
        """Its control plane."""
        return ControlDesk(OpenMailbox(str(self.post.box)))

    @property
    def unproven(self) -> ControlDesk:
        """Its control plane, as a program uses it that can prove nothing."""
        return ControlDesk(OpenMailbox(str(self.post.box), prove=lambda _: None))

    def policy(self, *, allow: tuple[str, ...] = (), deny: tuple[str, ...] = (), who: str = USER) -> None:
        """Put the worker under rules, in the place of earlier ones."""
        self.control.set_policy(who, [WORKER], allow=allow, deny=deny)

    def rules(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What the worker is allowed and denied."""
        found = self.control.standing(WORKER).policy
        return found.allow, found.deny

    def asked(self, given: dict[str, Any] | None = None, tool: str = "Bash", who: str = WORKER) -> str | None:
        """What the hook answers when the worker, or another, wants to use a tool: allow, deny, ask, or None."""
        call = {
            "session_id": who,
            "cwd": str(self.post.cwd),
            "tool_name": tool,
            "tool_input": DENIED if given is None else given,
            "tool_use_id": "toolu_1",
        }
        environ = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": who, "CLAUDE_PROJECT_DIR": str(self.post.cwd)}
        result = self.post.call("hook", "Permit", stdin=json.dumps(call), env=environ)
        assert result.rc == 0, result
        body = json.loads(result.stdout or "{}").get("hookSpecificOutput", {})
        found = body.get("permissionDecision")
        return None if found is None else str(found)

    def problems(self) -> list[str]:
        """What the doctor finds wrong."""
        return [problem["what"] for problem in self.post.doctor()]

    def notes(self) -> list[str]:
        """What the doctor notes."""
        return [note["what"] for note in self.post.ok("doctor").get("notes", [])]

    # -- what an attacker does ----------------------------------------------------------------------------------------

    def forge(self, payload: m.Payload, sender: str = USER, to: str = WORKER, **more: Any) -> dict[str, Any]:
        """Append a control message as any program can."""
        forged = record(sender, to, message_text.written(payload.replace(timestamp=1)), type="control", **more)
        self.post.append(MESSAGES, forged)
        return forged

    def forge_event(self, event: str, session_id: str = WORKER, **said: Any) -> None:
        """Append a roster event as any program can."""
        self.post.append(ROSTER, {"event": event, "session_id": session_id, "timestamp": stamp(), **said})

    def forge_read(self, message_id: str, reader: str, event: str = "read", **said: Any) -> None:
        """Append a read record as any program can."""
        line = {"message_id": message_id, "reader_session_id": reader, "timestamp": stamp(), "event": event, **said}
        self.post.append(READS, line)

    def copy(self, where: Path) -> Path:
        """Keep a copy of the mailbox's files."""
        shutil.copytree(self.post.box, where)
        return where

    def line(self, word: str, name: str = MESSAGES) -> bytes:
        """The last line of a log in which a word occurs, with its newline."""
        return [line for line in self.post.lines(name) if word.encode() in line][-1] + b"\n"

    def without(self, word: str, name: str = MESSAGES, *, same_length: bool) -> None:
        """Take the last line with a word out of a log, in place: cut out, or overwritten by spaces."""
        path, line = self.post.file(name), self.line(word, name)
        instead = b" " * (len(line) - 1) + b"\n" if same_length else b""
        content = path.read_bytes().replace(line, instead)
        with open(path, "r+b") as file:
            file.write(content)
            file.truncate()
