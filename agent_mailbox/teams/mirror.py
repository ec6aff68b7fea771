"""A team read into the mailbox: each entry once, members into the roster, consumed entries as read.

Belongs here: an entry's way into the mailbox, and the members as agents here, until their end. Only the mailbox's logs
tell which messages are mirrored. So a mirror may be killed and started again at any instant, for one look through the
logs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..clients import foreign_fields
from ..clients.foreign_fields import list_unfit
from ..core import codec, message_reads, naming
from ..core.address import is_remote
from ..core.compose import MAX_SUBJECT, Draft
from ..core.records import Read, Record
from ..core.roster import DEAD
from ..core.roster_changes import Registration
from ..core.text import clipped, neutral
from ..errors import Busy, MailboxError, NotFound, Refused, StorageFailed
from ..mailbox.mail_stream import stream
from ..store.log.stamps import EVERYONE
from . import format as form
from . import team_files
from .team_files import LEAD
from .transcripts import Transcript, find_transcripts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..core.records import Message
    from ..mailbox.mailbox import Mailbox
    from .format import InboxEntry

BATCH = 200
"""Messages sent at once: enough to be quick, few enough to leave the log free."""


class MirrorStep(Record):
    """The result of one look at a team: messages mirrored, messages found consumed, a line for each problem."""

    new: int = 0
    consumed: int = 0
    problems: tuple[str, ...] = ()


class Mirror:
    """One team, mirrored. ``mirror_once`` looks once, and opens only what changed since the last time."""

    def __init__(self, mailbox: Mailbox, where: str, name: str) -> None:
        self._mailbox = mailbox
        self._where = where
        self.name = name
        self.team = team_files.load_team(where, name)
        self.known: set[str] = set()
        """The ids of all messages mirrored from this team."""
        self._texts: dict[str, str] = {}  # by message id: a digest of the whole text
        self._waiting: dict[str, dict[str, str]] = {}  # by inbox: message id to its reader
        self._seen: dict[str, foreign_fields.Stamp | None] = {}
        self._problems: dict[str, tuple[str, ...]] = {}
        self._transcripts: dict[str, Transcript] = {}
        self._whose: dict[str, str | None] = {}
        self._leads: tuple[str, ...] = ()
        self._configured = False
        self._late: list[tuple[str, InboxEntry]] = []
        self._recall_mirrored()

    def _recall_mirrored(self) -> None:
        """Learn from the logs what was mirrored of the team."""
        for message, reads in stream(self._mailbox):
            about = team_of(message)
            inbox = about.get("inbox") if about and about["team"] == self.name else None
            if not isinstance(inbox, str):
                continue
            self.known.add(message.id)
            if "bytes" not in (about or {}):
                self._texts[message.id] = naming.digest(message.content)
            reader = naming.session_id(self.name, inbox)
            if reader not in message_reads.readers(message, reads):
                self._waiting.setdefault(inbox, {})[message.id] = reader

    def mirror_once(self) -> MirrorStep:
        """Look at the team; raise ``StorageFailed`` and ``Busy`` of the mailbox, nothing of the team's."""
        new = consumed = 0
        if self._has_changed(team_files.config_path(self._where, self.name)):
            self._configured = False
        if not self._configured:
            self.team = team_files.load_team(self._where, self.name)
            self._note_problems("", (*list_unfit(self.team.unfit), *self._register_members()))
        new += self._from_transcripts()  # before the inboxes: an entry missing there was fetched
        for inbox in team_files.inbox_names(self._where, self.name):
            path = team_files.inbox_path(self._where, self.name, inbox)
            if not self._has_changed(path):
                continue
            content = foreign_fields.read_content(path)
            if content is None:
                self._note_problems(inbox, (f"inbox {inbox}: cannot be read",))
                continue
            self._seen[path] = None  # until all of it is in
            found = form.parse_inbox(content.data)
            fresh, refused, again = self._mirror_entries(inbox, found.entries)
            new += fresh
            consumed += self._record_reads(inbox, found)
            self._note_problems(inbox, [f"inbox {inbox}: {line}" for line in (*list_unfit(found.unfit), *refused)])
            self._seen[path] = None if again else content.stamp
        if not self._configured:  # after the inboxes: mail for those who left comes in before they retire
            self._note_problems("left", self._retire_departed())
            self._configured = True
        return MirrorStep(new, consumed, tuple(line for lines in self._problems.values() for line in lines))

    def _from_transcripts(self) -> int:
        """Mirror from the transcripts the messages fetched before we looked; return how many were new."""
        new = 0
        late: list[tuple[str, InboxEntry]] = []
        for path, whose in self.member_transcripts():
            self._late += self._transcripts.setdefault(path, Transcript(path, whose)).new_messages()
        by_inbox: dict[str, list[InboxEntry]] = {}
        for inbox, entry in self._late:
            by_inbox.setdefault(inbox, []).append(entry)
        for inbox in (name for name in self.team.names if name in by_inbox):
            sent, refused, again = self._mirror_entries(inbox, by_inbox[inbox])
            new += sent
            self._note_problems(f"sent to {inbox}", (f"to {inbox}: {line}" for line in refused))
            late += [(inbox, entry) for entry in by_inbox[inbox]] if again else []
            if sent:  # it may be read by now
                self._seen.pop(team_files.inbox_path(self._where, self.name, inbox), None)
        self._late = late  # not before: the mailbox may have been busy
        return new

    def member_transcripts(self) -> Iterator[tuple[str, str]]:
        """Return the members' transcripts: (path, member)."""
        return find_transcripts(os.path.dirname(self._where), self.team, self.lead_sessions(), self._whose)

    def lead_sessions(self) -> tuple[str, ...]:
        """Return the sessions that lead: the configured one, and those that continue it here."""
        first = self.team.lead_session
        if not first:
            return ()
        if self._has_changed(self._mailbox.logs.roster.path) or self._leads[:1] != (first,):
            line = self._mailbox.logs.read_roster().line(first)
            self._leads = tuple(dict.fromkeys([first, *(agent.session_id for agent in line)]))
        return self._leads

    def _has_changed(self, path: str) -> bool:
        """Return whether the file has changed, and note how it is now; its reader may note better."""
        stamp = foreign_fields.stamp_of(path)
        if stamp is not None and self._seen.get(path) == stamp:
            return False
        self._seen[path] = stamp
        return True

    def _note_problems(self, about: str, problems: Iterable[str]) -> None:
        self._problems[about] = tuple(problems)

    def _register_members(self) -> list[str]:
        """Enter the members into the roster; return the refusals."""
        refused = []
        for member in self.team.members:
            me = naming.session_id(self.name, member.name)
            agent = self._mailbox.logs.read_roster().get(me)
            if agent is not None and agent.state != DEAD and naming.tag(self.name) in agent.tags:
                continue
            try:
                self._mailbox.register(Registration(session_id=me, add_tags=(naming.tag(self.name),)), me)
            except (StorageFailed, Busy):
                raise
            except MailboxError as error:
                refused.append(f"member {member.name}: {error.what}")
        return refused

    def _retire_departed(self) -> list[str]:
        """Retire the agents that a whole configuration no longer lists; return a line for each that stays.

        An agent with mail it never got stays: that mail remains pending, should the member come back.
        """
        left: list[str] = []
        if self.team.unfit or self.team.lead_name not in self.team.names:
            return left
        now = {naming.session_id(self.name, member) for member in self.team.names}
        for session_id in members_here(self._mailbox, naming.tag(self.name)):
            if session_id in now:
                continue
            waiting = [i for i in self._mailbox.peek(session_id) if i.message.id not in self.known]
            if waiting:
                left.append(f"{session_id} left the team, and mail waits for it ({len(waiting)})")
            else:
                retire_member(self._mailbox, session_id, f"left the team {naming.word(self.name)}")
        return left

    def _message_id_of(self, inbox: str, entry: InboxEntry) -> str:
        """Return the id of an entry's message here. Another text under a used ``msg_id`` is another message: some
        writers repeat ids."""
        wanted = form.message_id(self.name, inbox, entry.key)
        if entry.msg_id is None or entry.protocol is not None:
            return wanted
        text = naming.digest(entry.text)
        if self._texts.setdefault(wanted, text) == text:
            return wanted
        return form.message_id(self.name, inbox, f"{entry.key}/{text}")

    def _mirror_entries(self, inbox: str, entries: Iterable[InboxEntry]) -> tuple[int, list[str], bool]:
        """Send the new entries; return (how many were sent, the refusals, whether a retry may send more)."""
        drafts = {}
        for entry in entries:
            wanted = self._message_id_of(inbox, entry)
            if entry.ours is None and wanted not in self.known:
                drafts[wanted] = self._draft_of(inbox, entry, wanted)
        left, sent = list(drafts.values()), 0
        refused: list[str] = []
        while left:
            batch = left[:BATCH]
            try:
                self._mailbox.send_all(batch)
            except (StorageFailed, Busy):
                raise
            except MailboxError as error:
                if error.code == "rate_limited":
                    return sent, [*refused, f"{error.what}; the rest follows"], True
                at = error.at or 0
                problem = self._send_alone(batch[at], error)
                if problem is not None:
                    refused.append(problem)
                left.pop(at)
                sent += problem is None
                continue
            left = left[BATCH:]
            sent += len(batch)
            self._take_note(inbox, batch)
        return sent, refused, False

    def _send_alone(self, draft: Draft, error: MailboxError) -> str | None:
        """Handle a message that spoilt its batch; return what remains a problem.

        A message that is there already is none. A dead member's history is kept under its team.
        """
        about = team_of(draft) or {}
        inbox = str(about.get("inbox"))
        if error.code == "dead_recipient":
            try:
                self._mailbox.send(draft.replace(to=(naming.tag(self.name),)))
            except (StorageFailed, Busy):
                raise
            except MailboxError as again:
                error = again
            else:
                self._take_note(inbox, [draft])
                return None
        if error.code == "id_conflict":
            self.known.add(draft.id or "")
            return None
        return f"message of {about.get('from')}: {error.what}"

    def _take_note(self, inbox: str, drafts: Iterable[Draft]) -> None:
        for draft in drafts:
            self.known.add(draft.id or "")
            self._waiting.setdefault(inbox, {})[draft.id or ""] = naming.session_id(self.name, inbox)

    def _draft_of(self, inbox: str, entry: InboxEntry, message_id: str) -> Draft:
        most = self._mailbox.config.max_content
        about: dict[str, Any] = {"team": self.name, "inbox": inbox}
        told = {"from": entry.sender, "timestamp": entry.timestamp, "msg_id": entry.msg_id, "color": entry.color}
        told["lead"] = self.team.lead_session  # tells a team from a later one of its name
        about |= {key: value[:1000] for key, value in told.items() if value}
        content, size = entry.text, len(entry.text.encode())
        if size > most:
            content = entry.text.encode()[:most].decode("utf-8", "ignore")
            about["bytes"] = size  # so that the history says that it was longer
        metadata = {"team": about}
        kind, subject = "message", entry.summary
        if entry.protocol is not None:
            said = form.catalog_form(entry.protocol)
            kind, subject = "notification", str(said["type"])
            metadata["protocol"] = said if size <= most else {"type": subject}
        return Draft(
            sender=naming.session_id(self.name, entry.sender),
            to=self._recipients_of(inbox, kind),
            content=content,
            subject=clipped(neutral(subject), MAX_SUBJECT) if subject and subject.strip() else None,
            type=kind,
            id=message_id,
            metadata=metadata,
        )

    def _recipients_of(self, inbox: str, kind: str) -> tuple[str, ...]:
        """Return the inbox's member; a teammate's message to the lead is also for other holders of the lead's role
        here."""
        direct = f"team:{naming.word(self.name)}/{naming.word(inbox)}"
        role = f"role:{LEAD}"
        if inbox != self.team.lead_name or kind != "message":
            return (direct,)
        holders = {agent.session_id for agent in self._mailbox.logs.read_roster().carrying(role)}
        return (direct, role) if holders - {*self.lead_sessions()} else (direct,)

    def _record_reads(self, inbox: str, found: form.Inbox) -> int:
        """Record as read the entries that the reader's client marked as read or took out; return how many."""
        waiting = self._waiting.get(inbox)
        if not waiting:
            return 0
        there = {self._message_id_of(inbox, entry): entry for entry in found.entries}
        done = [i for i in waiting if (there[i].read if i in there else found.whole)]
        if done:
            now = self._mailbox.now()
            records = [Read(i, waiting[i], now, via=waiting[i]) for i in done]
            self._mailbox.logs.reads.append(map(codec.spell_read, records), EVERYONE)
            for message_id in done:
                del waiting[message_id]
        return len(done)


def team_of(message: Message | Draft) -> dict[str, object] | None:
    """Return a mirrored message's origin; None for any other message, whatever one from another machine says."""
    metadata = None if is_remote(message.sender) else message.metadata
    about = metadata.get("team") if isinstance(metadata, dict) else None
    return about if isinstance(about, dict) and isinstance(about.get("team"), str) else None


def members_here(mailbox: Mailbox, tag: str) -> list[str]:
    """Return the ids of a team's members (by its tag) that are in the roster and not dead."""
    ending = f"@{tag.partition(':')[2]}"
    agents = mailbox.logs.read_roster().carriers(tag)
    return [a.session_id for a in agents if a.session_id.endswith(ending)]


def retire_members(mailbox: Mailbox, tag: str) -> None:
    """Retire the members of a team (by its tag) that is over; unread mail goes back to its roles."""
    for session_id in members_here(mailbox, tag):
        retire_member(mailbox, session_id, f"{tag} is over")


def retire_member(mailbox: Mailbox, session_id: str, why: str) -> None:
    """Retire a member; idempotent."""
    try:
        mailbox.end(session_id, "retire", session_id, why)
    except (NotFound, Refused):
        pass
