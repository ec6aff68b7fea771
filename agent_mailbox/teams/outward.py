"""Mail into a team's inboxes: unread mail for a member here goes into its inbox there, once.

Belongs here: an order of steps that a kill anywhere cannot spoil. An offer is recorded in the reads log before the
inbox is touched, with a nonce that also names the file beside the inbox. That file is gone exactly when it replaced the
inbox. The inbox, the file and the client's transcript tell an offer's outcome:

- the file is there: nothing was delivered; the mail is unread again.
- the entry is in the inbox: the client has not fetched it yet.
- it was fetched, and the transcript shows it: ``seen``.
- it is gone, and the transcript goes on without it, or an earlier process offered it and there is no transcript: the
  outcome is unknown. It is delivered again, marked as possibly repeated.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from ..core import codec, frame, instant, naming
from ..core.address import route
from ..core.line_forms import may_be_read_by, may_release
from ..core.message_reads import DOUBT
from ..core.records import BadLine, Read
from ..core.roster import DEAD
from ..core.showing import message_frame
from ..core.text import clipped, neutral, typed
from ..errors import Busy, Malformed, Refused
from ..mailbox.delivery import Delivery, recall_offers
from ..store.files import system
from ..store.log.stamps import EVERYONE
from . import format as form
from . import team_files, transcripts
from .mirror import members_here
from .writing import FileBeside, Undeliverable, sweep_remains

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core.inbox import Item
    from ..mailbox.mailbox import Mailbox
    from .mirror import Mirror
    from .team_files import TeamConfiguration

GRACE = 60.0
"""Seconds after which a fetched message that the transcript lacks counts as lost: a client holds mail while its model
is busy."""
MOST = 50
"""Most messages put into an inbox at once."""
AGAIN = 1.0
"""Seconds until a failed delivery is tried again."""
_SUMMARY = 80


class _Offer:
    """Messages put into an inbox by one rename, whose outcome is not known yet."""

    def __init__(self, nonce: str, member: str, messages: Sequence[str], *, ours: bool) -> None:
        self.nonce = nonce
        self.member = member
        self.messages = list(messages)
        self.ours = ours  # this process saw the rename done
        self.gone: float | None = None
        self.grown = 0
        self.looked: dict[str, int] = {}  # how far in each transcript


class Outward:
    """One team's way out; ``deliver_once`` looks once."""

    def __init__(self, mailbox: Mailbox, where: str, mirror: Mirror) -> None:
        self._mailbox = mailbox
        self._where = where
        self._mirror = mirror
        self._offers: list[_Offer] = []
        self._looked: object = None
        self._again = self._paused = 0.0
        self._withheld = False  # another claimed role mail, which may come back without a write
        self._problems: dict[str, str] = {}
        self._mark = naming.digest(os.path.realpath(mailbox.directory))[:8]
        self._recall_offers()
        self.remove_remains()

    @property
    def waits(self) -> bool:
        """Return whether anything is left to find out, or to retry, that no change announces."""
        return bool(self._offers or self._problems or self._withheld)

    def remove_remains(self) -> None:
        """Remove what earlier processes left beside the inboxes."""
        directory = os.path.dirname(team_files.inbox_path(self._where, self._mirror.name, ""))
        sweep_remains(directory, self._mark, {offer.nonce for offer in self._offers})

    def _file_beside(self, member: str, nonce: str) -> FileBeside:
        return FileBeside(team_files.inbox_path(self._where, self._team.name, member), self._mark, nonce)

    @property
    def _team(self) -> TeamConfiguration:
        return self._mirror.team

    def _session_id_of(self, member: str) -> str:
        return naming.session_id(self._mirror.name, member)

    def _recall_offers(self) -> None:
        """Load the open offers of earlier processes."""
        mine = {
            self._session_id_of(member): member
            for member in (*self._team.names, *team_files.inbox_names(self._where, self._team.name))
        }
        for session_id, member in mine.items():
            for offer in recall_offers(self._mailbox.logs, session_id):
                self._offers.append(_Offer(offer.nonce, member, offer.messages, ours=False))

    @property
    def problems(self) -> tuple[str, ...]:
        """Return a line for each problem of the last look."""
        return tuple(self._problems.values())

    def deliver_once(self) -> int:
        """Settle open offers, offer new mail; return how many messages came into inboxes. Raise ``StorageFailed`` and
        ``Busy`` of the mailbox."""
        for offer in list(self._offers):
            self._settle_offer(offer)
        if time.monotonic() < self._paused:
            return 0
        ends = self._mailbox.logs.ends(), self._team
        if ends == self._looked and not ((self._problems or self._withheld) and time.monotonic() >= self._again):
            return 0
        self._again = time.monotonic() + AGAIN
        self._looked = None  # until everything was tried: the mailbox may be busy
        self._problems.clear()
        self._withheld = False
        delivered = sum(self._deliver_to(member) for member in self._team.names)
        for stranger in self._former_members():
            waiting = [i for i in self._mailbox.peek(stranger) if i.message.id not in self._mirror.known]
            self._count_waiting(stranger, len(waiting), "no member of that name is left")
        self._looked = ends
        return delivered

    def _former_members(self) -> list[str]:
        """Return the agents here that are the team's but no members (any more)."""
        known = {self._session_id_of(member) for member in self._team.names}
        return [a for a in members_here(self._mailbox, naming.tag(self._mirror.name)) if a not in known]

    def _count_waiting(self, who: str, number: int, why: str) -> None:
        if number:
            mail = "1 message waits" if number == 1 else f"{number} messages wait"
            self._problems[who] = f"{who}: {mail}: {why}"

    # -- out ----------------------------------------------------------------------------------------------------------

    def _deliver_to(self, member: str) -> int:
        me = self._session_id_of(member)
        try:
            if not self._wanted_mail(member):
                return 0
            why = self._why_unreachable(member)
            if why:
                self._count_waiting(me, len(self._wanted_mail(member)), why)
                return 0
            self._mailbox.check_in(me)
            with self._mailbox.logs.delivery(me):
                items = self._mailbox.part(Delivery).claim(me, self._wanted_mail(member))
                return sum(self._offer_mail(member, items[at : at + MOST]) for at in range(0, len(items), MOST))
        except (Malformed, Refused) as error:  # such as a reserved id: the others have their mail
            self._problems[me] = f"{me}: {error.what}"
            return 0

    def _wanted_mail(self, member: str) -> list[Item]:
        """Return the unread mail for the member that did not come from its own inbox.

        The lead's hooks show its session's mail already: that needs no second way.
        """
        items = [i for i in self._mailbox.peek(self._session_id_of(member)) if i.message.id not in self._mirror.known]
        self._withheld = self._withheld or self._mailbox.part(Delivery).withheld
        if member != self._team.lead_name:
            return items
        roster, sessions = self._mailbox.logs.read_roster(), self._mirror.lead_sessions()
        readers = [roster.reader(session) for session in sessions if roster.state(session) not in (None, DEAD)]
        items = [i for i in items if not readers or i.message.sender not in sessions]
        return [
            i for i in items if all(route(i.message.recipients, reader, i.message.bare) is None for reader in readers)
        ]

    def _why_unreachable(self, member: str) -> str:
        """Return why the member reads no inbox at all; empty if it does."""
        if team_files.has_ended(self._where, self._team):
            return "the team is over"
        alone = len(self._team.members) == 1 and member == self._team.lead_name
        if alone and not os.path.exists(team_files.inbox_path(self._where, self._team.name, member)):
            return "a lead reads its inbox only once it has a teammate"
        return ""

    def _offer_mail(self, member: str, items: Sequence[Item]) -> int:
        """Put messages into the inbox, all or none; return how many. The caller holds the delivery lock."""
        me, now = self._session_id_of(member), self._mailbox.now()
        nonce = os.urandom(4).hex()
        aside = self._file_beside(member, nonce)
        offer = _Offer(nonce, member, [item.message.id for item in items], ours=True)
        # the offer cannot be in what is there
        offer.looked = {path: system.size(path) for path in self._transcripts_of(member)}
        try:
            aside.make_files()
            doubtful = self._doubtful_messages(me)
            entries = [self._make_entry(i, me, nonce, again=i.message.id in doubtful) for i in items]
            aside.write_file(entries)  # before the offer is recorded: a broken inbox costs the log nothing
            records = [Read(i.message.id, me, now, via=i.via, nonce=nonce) for i in items]
            try:
                self._mailbox.logs.reads.append(map(codec.spell_read, records))
            except Busy:
                aside.remove_file()
                raise
            self._offers.append(offer)
            aside.append_entries(entries)
        except Undeliverable as error:
            self._count_waiting(me, len(items), str(error))
            if offer in self._offers:
                self._take_back(offer, aside)
                self._paused = time.monotonic() + AGAIN  # what we wrote just now is no reason to look again
            else:
                aside.remove_file()
            return 0
        return len(items)

    def _take_back(self, offer: _Offer, aside: FileBeside) -> None:
        """Make the messages that never got into the inbox unread again."""
        self._record_event(self._session_id_of(offer.member), "release", offer.nonce, offer.messages)
        aside.remove_file()
        self._offers.remove(offer)

    def _transcripts_of(self, member: str) -> list[str]:
        return [path for path, whose in self._mirror.member_transcripts() if whose == member]

    def _doubtful_messages(self, me: str) -> set[str]:
        """Return the messages that the member had, or may have had, and that are unread again.

        Each release counts but that of an offer by its own nonce, which never got into the inbox. A member that left
        and came back may find the old entry there.
        """
        mine = [me.encode()]
        lines = (
            line for _, line in self._mailbox.logs.reads.lines() if may_release(line) and may_be_read_by(line, mine)
        )
        records = [r for r in map(codec.read, lines) if not isinstance(r, BadLine)]
        return {
            r.message_id
            for r in records
            if r.session_id == me and r.event == "release" and (not r.nonce or r.nonce.endswith(DOUBT))
        }

    def _make_entry(self, item: Item, me: str, nonce: str, *, again: bool) -> dict[str, Any]:
        """Return a message as an entry. Its text begins with a line of ours, never with what could be protocol."""
        message, roster = item.message, self._mailbox.logs.read_roster()
        head, *lines = message_frame.item(item, roster, box=self._mailbox.directory)
        first = [f"{form.FIRST}{head}{', possibly repeated' if again else ''}]"]
        reply = (
            f"agent-mailbox reply {frame.short_typed(message.id)} --from {me} --dir {typed(self._mailbox.directory)}"
        )
        answer = f'To answer: {reply} --body "…"'
        return {
            "from": f"{frame.name_of(message.sender, roster)}{form.FROM_US}",
            "text": "\n".join([*first, *lines, *([answer] if message.ack else [])]),
            "summary": clipped(neutral(message.subject or message.content), _SUMMARY),
            "timestamp": instant.text(self._mailbox.now()),
            form.OURS: f"{message.id}/{nonce}",
        }

    # -- outcomes -----------------------------------------------------------------------------------------------------

    def _settle_offer(self, offer: _Offer) -> None:
        """Find out an offer's outcome; record and forget it once it is known.

        Example: ann is offered A and B at 10:00:00.

        - The file beside her inbox is still there: no rename happened. Both are released, unread again.
        - Her inbox holds the entries: wait.
        - At 10:00:02 they are gone, and her transcript shows A: A is ``seen``, B may follow for ``GRACE`` seconds.
        - At 10:01:02 the transcript has grown without B: B is released with ``DOUBT``, and comes again.
        - It has not grown: wait on, her model is busy.
        - She has no transcript: B is delivered, if this process put it there; else it is released with ``DOUBT``.
        """
        me = self._session_id_of(offer.member)
        aside = self._file_beside(offer.member, offer.nonce)
        if aside.is_there():
            self._take_back(offer, aside)
            return
        over = not os.path.exists(team_files.config_path(self._where, self._team.name))
        if offer.gone is None and not over and not self._is_fetched(offer):
            return
        paths = self._transcripts_of(offer.member)
        marks = {message_id: f"{form.FIRST}{frame.short(message_id)}" for message_id in offer.messages}
        told: set[str] = set()
        for transcript in paths:
            found, offer.looked[transcript] = transcripts.marks_passed_on(
                transcript, marks, offer.looked.get(transcript, 0)
            )
            told |= found
        self._record_event(me, "seen", offer.nonce, sorted(told))
        offer.messages = [message_id for message_id in offer.messages if message_id not in told]
        if over and offer.messages:
            return  # burying the team gives back what was not seen
        size = sum(offer.looked.values())
        if offer.gone is None:
            offer.gone, offer.grown = time.monotonic(), size
        if offer.messages and time.monotonic() - offer.gone >= GRACE:
            if size > offer.grown or not (offer.ours or paths):
                self._record_event(me, "release", offer.nonce + DOUBT, offer.messages)
                offer.messages = []
            elif not paths:
                offer.messages = []  # the client fetched it; its transcript is unknown
        if not offer.messages:
            self._offers.remove(offer)

    def _is_fetched(self, offer: _Offer) -> bool:
        """Return whether a whole inbox holds nothing unread of the offer."""
        found = team_files.read_inbox(self._where, self._team.name, offer.member)
        return found.whole and not any((e.ours or "").endswith(f"/{offer.nonce}") and not e.read for e in found.entries)

    def _record_event(self, me: str, event: str, nonce: str, messages: Iterable[str]) -> None:
        now = self._mailbox.now()
        records = [Read(message_id, me, now, event, None, nonce) for message_id in messages]
        if records:
            self._mailbox.logs.reads.append(map(codec.spell_read, records), EVERYONE if event == "release" else ())
