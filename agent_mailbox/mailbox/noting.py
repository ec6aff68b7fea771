"""Notes on a mailbox: adding, finding and dropping them.

Belongs here: the order of those steps. The rules are ``core.notes``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import address, codec
from ..core.address import check_tag
from ..core.compose import Draft
from ..core.keeping import notes
from ..core.keeping.notes import Note
from ..core.line_forms import lines_with, may_be_note
from ..core.records import Message
from ..core.text import typed
from ..errors import Malformed, NotFound, Refused
from ..store.files import system
from ..store.files.board import NOTES, Board
from ..store.files.edits import Edits
from ..store.files.lines import line_chunks
from ..store.files.small_files import OpenFile
from ..store.log.proof_view import add_proof
from ..store.user_state import project_paths, work_trees
from .sending import Sending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..store.log.proof_view import ProofView
    from .open_mailbox import OpenMailbox

PROJECT = "project:"
SPAN = 1 << 16
"""Bytes of mail that are passed by together if no note is among them."""


def parse_notes(lines: Iterable[tuple[int, bytes]], view: ProofView | None) -> Iterator[Message]:
    """Yield the notes among lines with their positions; ``view`` tells what is proven of their writers."""
    for position, line in lines:
        message = codec.message(line)
        if isinstance(message, Message) and message.type == notes.NOTE:
            yield add_proof(message, view, line, position)


def _files_named(text: str, directory: str) -> dict[str, Any]:
    """Return the keys of a record for the files that a text names."""
    top = work_trees.top(directory)
    names = project_paths.named_in(text, top) if top is not None else []
    return {notes.PROJECT: project_paths.of(top, top).project, notes.PATHS: names} if top is not None and names else {}


class Noting:
    """Keeps the notes in an opened mailbox."""

    def __init__(self, box: OpenMailbox) -> None:
        self.box = box

    def notes(self, on: str | None = None) -> list[Note]:
        """Return the current notes, the newest last; ``on``: those of one tag. Raises ``Malformed`` for no tag."""
        if on is not None:
            self._check_tag(on)
        found = [one for one in self.all_notes().values() if one.is_current]
        return [one for one in found if on is None or on in one.message.recipients]

    def all_notes(self) -> dict[str, Note]:
        """Return the live notes by their messages' ids, ended ones too."""
        found = parse_notes(self._lines(may_be_note), self.box.logs.messages.view())
        return notes.fold(found, self.box.logs.read_roster())

    def _lines(self, wanted: Callable[[bytes], bool]) -> Iterator[tuple[int, bytes]]:
        """Yield the live lines that are ``wanted``; most are passed by in chunks."""
        fd = self.box.logs.messages.open()
        if fd is not None:
            with OpenFile(fd):
                yield from lines_with(line_chunks(fd, system.fstat(fd).st_size, size=SPAN), wanted)

    def mentions(self, those: Sequence[Note]) -> dict[str, int]:
        """Return how often the live mail names each of the notes."""
        marks = {one.message.id: one.id.encode() for one in those}
        found = dict.fromkeys(marks, 0)
        for _, line in self._lines(lambda part: notes.PREFIX.encode() in part):
            for message_id, mark in marks.items():
                found[message_id] += mark in line
        return found

    def add_note(
        self, me: str, tags: Sequence[str], title: str, body: str, replaces: str = "", directory: str = "",
        message_id: str | None = None,
    ) -> Note:  # fmt: skip
        """Add a note for everyone with one of the tags (none: the project of ``me``); with ``replaces`` that one
        leaves. Files of the work tree around ``directory`` that it names are kept with it. The same ``message_id``
        again is the same note. Raises as ``send``."""
        if not title.strip():
            raise Malformed("the note has no title", "name it in a few words")
        old = self.find_note(replaces) if replaces else None
        tags = list(tags) or (list(old.message.recipients) if old is not None else self._projects(me))
        for tag in tags:
            self._check_tag(tag)
        named = _files_named(f"{title}\n{body}", directory)
        if named:
            Edits(self.box.logs).leased()
        sent = self._write(me, tags, title, body, old, named, message_id)
        return Note(sent)

    def _check_tag(self, tag: str) -> None:
        if ":" not in tag:
            raise Malformed(f"a note is for a tag: {tag!r}", "write --on project:NAME, or another tag")
        check_tag(tag, self.box.config.namespaces, self.box.logs.read_roster().roles_ever)

    def with_paths(self) -> list[Note]:
        """Return the current notes that name files."""
        board = Board(self.box.logs.stamp_files, NOTES)
        return [one for one in self.notes() if one.has_paths] if board.is_used() else []

    def _projects(self, me: str) -> list[str]:
        agent = self.box.logs.read_roster().get(me)
        found = [tag for tag in agent.tags if tag.startswith(PROJECT)] if agent is not None else []
        if not found:
            raise Malformed(f"{me} has no project for the note", "name a tag with --on project:NAME")
        return found

    def _write(
        self, me: str, tags: Sequence[str], title: str, body: str, old: Note | None, more: dict[str, Any],
        message_id: str | None = None,
    ) -> Message:  # fmt: skip
        extra = ({} if old is None else {notes.REPLACES: old.message.id}) | more or None
        Board(self.box.logs.stamp_files, NOTES).note_use()
        draft = Draft(
            sender=me, to=tuple(tags), content=body, subject=title, type=notes.NOTE,
            thread=None if old is None else old.message.id, extra=extra, id=message_id,
        )  # fmt: skip
        return self.box.part(Sending).send_all([draft], by_id=False)[0].message

    def find_note(self, word: str) -> Note:
        """Return the live note of an id or a unique beginning; raises ``NotFound`` or ``Ambiguous``."""
        known, begin = self.all_notes(), word.casefold().removeprefix(notes.PREFIX)
        found = address.only_match(word, address.begun_ids(begin, known), "notes")
        if found is None:
            raise NotFound(
                address.describe_unknown("note", word),
                "`agent-mailbox note list` lists them; `search` finds archived ones",
            )
        return known[found]

    def drop_note(self, me: str, word: str) -> tuple[Note, bool]:
        """Take a note from the board; return whether it was off it before. Raises ``Refused`` unless ``me`` wrote it,
        leads its author, or is the person."""
        note = self.find_note(word)
        if not note.is_current:
            return note, True
        if not notes.may_drop(me, note.message, self.box.now(), self.box.logs.read_roster()):
            raise Refused(
                f"{note.id} is {note.message.sender}'s note",
                f"its author, that one's lead or the person drops it; correct it: "
                f'`agent-mailbox note add --replaces {typed(note.id)} --title "…"`',
                code="not_yours",
            )
        title = note.message.subject or note.id
        sent = self._write(me, note.message.recipients, title, "dropped", note, {notes.DROPPED: True})
        ended = self.all_notes().get(note.message.id)
        if ended is not None and ended.is_current:
            raise Refused(
                f"{note.id} stays: nothing proves that {me} drops it",
                "drop it in the session itself, or as the person at a terminal",
                code="unverified",
            )
        return note.replace(ended_by=sent), False
