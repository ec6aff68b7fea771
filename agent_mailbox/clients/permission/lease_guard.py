"""PreToolUse of the tools that write files, and of commands: another session leases the file, or wrote it a moment ago.

A command of git may change the whole tree in which another one works.

Belongs here: what the session is told, what the other one is told, and when. A warning lets the tool run. Only
``[leases] enforce`` of the person's own configuration refuses it, and a lease must be proven for that. Each is told
once.

A command's files are those that ``permissions.written_files`` finds in its text. The shim asks about commands only
while a lease may hold, and about those of git. Without a lease, two sessions whose commands write one file are not told
of each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...control.leasing import Leasing
from ...core import codec, frame
from ...core.address import derived_uuid
from ...core.compose import Draft
from ...core.records import Record
from ...core.roster import ALIVE
from ...core.text import ascii_json, clipped, neutral, shell_quoted
from ...errors import MailboxError
from ...mailbox import neighbours
from ...mailbox.noting import Noting
from ...mailbox.sending import Sending
from ...permissions import tree_commands, written_files
from ...permissions.policy import DENY
from ...store.files import system
from ...store.files.edits import Edits
from ...store.user_state import project_paths, work_trees
from . import permit, tool_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...core.control.leases import Lease
    from ...core.keeping.notes import Note
    from ..client_input import ClientInput

_MOST = 50
"""Files of one call that are looked up: a patch may name any number, and its person waits."""
_SHOWN = 200
"""Characters of a path that are shown."""
_MINUTE = 60_000
_RUNS = "This call runs all the same."


class LeaseGuard(Record):
    """A call that writes a file, in its surroundings; ``program`` is how an agent starts ours."""

    call: ClientInput
    desk: Leasing
    program: str
    home: str = "/"

    def answer_call(self) -> str:
        """Return the client's answer: a refusal, a warning, or nothing."""
        edits = Edits(self.desk.box.logs)
        is_leased = edits.is_leased()
        live = self.desk.settle_leases() if is_leased else []
        notes = Noting(self.desk.box).with_paths() if is_leased else []
        files = tool_files.written_by_tool(self.call.tool, self.call.given or {})
        by_command = not files and (live or notes) and self.call.command
        if by_command:
            files = [*written_files.files_written(self.call.command, self.call.here)]
        told = []
        for key, said in self._find_disturbances():
            if self.desk.box.own.lease_enforce:
                return permit.decision_answer("PreToolUse", DENY, said)
            told.append(self._say_once(edits, key, f"{said} {_RUNS}"))
        for written in [one for one in files if "\0" not in one][:_MOST]:
            lease = self.desk.lease_on(written, self.call.here, live) if live else None
            told += self._point_to_notes(edits, written, notes) if notes else []
            if lease is None:
                told.append("" if by_command else self._note_write(edits, written))
            elif not self.desk.holds(self.call.session_id, lease):
                shown = self._show_path(written)
                self._tell_holder(edits, lease, shown)
                said = f"{shown} {self.desk.said(lease)}. {self._write_to(lease.owner)}"
                if lease.proven and self.desk.box.own.lease_enforce:
                    return permit.decision_answer("PreToolUse", DENY, said)
                told.append(self._say_once(edits, f"{lease.id} {codec.dumps(shown)}", f"{said} {_RUNS}"))
        return _context_answer("\n".join(filter(None, told))) if any(told) else ""

    def _find_disturbances(self) -> Iterable[tuple[str, str]]:
        """Return what the session is told of those whom a command of git disturbs, by a key for it, for each tree."""
        call, desk, found = self.call, self.desk.box, dict[str, tuple[str, str]]()
        for command in tree_commands.find_tree_commands(call.command, call.here, self.home, _is_file):
            tree = work_trees.top(command.directory)
            others = neighbours.find_in(desk, call.session_id, tree) if tree is not None and tree not in found else []
            if tree is None or not others:
                continue
            said = neighbours.said(desk, others, tree)
            if tree != work_trees.top(call.here):
                said = said.replace("also works in this tree", f"works in {shell_quoted(tree)}")
            found[tree] = (
                f"tree {command.words} {tree} {' '.join(sorted(others))}",
                f"{said}: `{command.words}` changes files under them. {self._write_to(others[0])}"
                f" {neighbours.own_tree(desk, call.session_id, tree)}.",
            )
        return found.values()

    def _point_to_notes(self, edits: Edits, written: str, notes: Sequence[Note]) -> list[str]:
        """Return the notes that name a file, a line each, that the session was not pointed to before."""
        place = project_paths.of(written, self.call.here)
        told = []
        for one in (note for note in notes if note.covers(place.project, place.path)):
            line = f'{one.id} "{frame.title(one.message)}" is about {self._show_path(written)}'
            told.append(self._say_once(edits, one.id, f"{line}: `{self.program} note show {one.id}`"))
        return told

    def _say_once(self, edits: Edits, what: str, said: str) -> str:
        """Return the words, unless the session was told this before."""
        if edits.was_told(self.call.session_id, what):
            return ""
        edits.tell(self.call.session_id, what)
        return said

    def _tell_holder(self, edits: Edits, lease: Lease, shown: str) -> None:
        """Tell the holder, once for each session. An unproven lease names anybody: nobody is told of it."""
        me = self.call.session_id
        if not lease.proven or edits.was_told(me, lease.id):
            return
        name = self._name_of(me)
        text = f"{name} edits {shown}, which you lease ({neutral(lease.id)}). They were told to write to you."
        self._send_notice(lease.owner, f"{name} edits what you lease", text, f"lease {lease.id} {me}")
        edits.tell(me, lease.id)  # behind it: a hook that is killed in between sends the same message again

    def _note_write(self, edits: Edits, written: str) -> str:
        """Note the write; if another session wrote the file a moment ago, tell both, once. Returns the words for this
        one."""
        me, now = self.call.session_id, self.desk.box.now()
        real = project_paths.of(written, self.call.here).real
        edits.note(real, me, now)
        others = (edit for edit in edits.others(real, me, now) if self._is_other(edit.session_id))
        other = next(others, None)
        if other is None:
            return ""
        you, what = other.session_id, f"beside {{}} {codec.dumps(real)}"
        if edits.was_told(me, what.format(you)) or edits.was_told(you, what.format(me)):
            return ""
        shown, ago = self._show_path(written), max(now - other.when, 0) // _MINUTE
        text = f"{self._name_of(me)} edits {shown} now; you did {ago} min ago, and nobody leases it. Agree who goes on."
        self._send_notice(
            you, f"{self._name_of(me)} edits the same file", text, f"beside {real} {me} {you} {other.when}"
        )
        edits.tell(me, what.format(you))
        lease = f"`{self.program} lease take PATH` tells others."
        return f"{self._name_of(you)} edited {shown} {ago} min ago. {self._write_to(you)} {lease}"

    def _is_other(self, session_id: str) -> bool:
        """Return whether that is a living agent that this session is not."""
        roster = self.desk.box.logs.read_roster()
        if roster.state(session_id) != ALIVE or session_id in roster.lineage(self.call.session_id):
            return False
        return not self.desk.box.gone([session_id])

    def _send_notice(self, to: str, subject: str, text: str, reason: str) -> None:
        """Send a notice; its id follows from the reason, so that it cannot be sent twice."""
        draft = Draft(
            sender=self.call.session_id, to=(to,), subject=subject, content=text, type="notification",
            id=derived_uuid(reason),
        )  # fmt: skip
        try:
            self.desk.box.part(Sending).send(draft)
        except MailboxError:
            pass  # told before, or gone; the session itself is warned all the same

    def _name_of(self, session_id: str) -> str:
        return frame.name_of(session_id, self.desk.box.logs.read_roster())

    def _show_path(self, written: str) -> str:
        place = project_paths.of(written, self.call.here)
        return clipped(neutral(place.path or written), _SHOWN)

    def _write_to(self, session_id: str) -> str:
        to = shell_quoted(self._name_of(session_id))
        return f'Write to them first: {self.program} send --to {to} --body "…".'


def _is_file(path: str) -> bool:
    return system.exists(path) and not system.is_directory(path)


def _context_answer(text: str) -> str:
    body = {"hookEventName": "PreToolUse", "additionalContext": f"agent-mailbox: {text}"}
    return ascii_json(codec.dumps({"hookSpecificOutput": body})) + "\n"
