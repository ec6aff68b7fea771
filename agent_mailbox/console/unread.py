"""Mail in the channels that is new to the person, and what they put off.

Belongs here: counting it by the person's marks, and moving them. Mail to the person has real reads; these marks are
notes beside them, which no agent sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core import conversations
from ..core.instant import HOUR
from ..core.marks import Marks
from ..core.records import USER
from ..errors import MailboxError
from ..mailbox.mail_pages import Digest, MailPages
from ..mailbox.mailbox import Mailbox
from ..store.polling import marks_file

MOST_COUNTED = 100
"""Messages of a channel that are counted; more are shown as 99+."""


LONGEST = HOUR
"""Milliseconds for which something is put off at most, even if the clock goes back meanwhile."""


class Unread:
    """The person's marks, and the counts by them."""

    def __init__(self, mailbox: Mailbox, queries: MailPages) -> None:
        self._mailbox = mailbox
        self._queries = queries
        self._unkept: Marks | None = None

    def load_marks(self) -> Marks:
        """Return the marks. At first everything until now is seen."""
        try:
            known = marks_file.load(self._mailbox.logs)
        except MailboxError:
            known = None
        if known is not None:
            return known
        try:
            self._change(lambda marks: marks)
        except MailboxError:
            pass  # they hold until this process ends
        return self._begin()

    def _begin(self) -> Marks:
        """Return the marks of a person who has none."""
        self._unkept = self._unkept or Marks(self._mailbox.now())
        return self._unkept

    def _change(self, act: Callable[[Marks], Marks]) -> None:
        marks_file.change(self._mailbox.logs, lambda known: act(known or self._begin()))

    def move_mark(self, address: str, topic: str | None, at: int) -> None:
        """Note that the person has seen a channel, or its topic (folded), up to an instant (ms) that is over.

        Raise ``StorageFailed`` or ``Busy``, as all that changes the marks."""
        self._change(lambda marks: marks.moved(address, topic, min(at, self._mailbox.now())))

    def set_place(self, kind: str, place: str, is_on: bool) -> None:
        """Pin or mute a place, or end that; ``kind`` is one of the lists of ``core.marks``."""
        self._change(lambda marks: marks.placed(kind, place, is_on))

    def list_put_off(self) -> dict[str, int]:
        """Return the ids of the messages that are put off now, each with the instant (ms) at which it comes back."""
        return self._still_put_off(self.load_marks())

    def _still_put_off(self, marks: Marks) -> dict[str, int]:
        now = self._mailbox.now()
        return {message_id: until for message_id, until in marks.later.items() if now < until <= now + LONGEST}

    def put_off(self, message_id: str, until: int) -> None:
        """Put a message off until an instant (ms)."""
        self._change(lambda marks: marks.replace(later=self._still_put_off(marks)).put_off(message_id, until))

    def end_put_off(self) -> None:
        """Have everything back that was put off."""
        self._change(lambda marks: marks.replace(later={}))

    def count_new(self, addresses: Iterable[str]) -> dict[str, int]:
        """Return how many messages of each channel are new; at most ``MOST_COUNTED``."""
        if self._queries.newest_alone:
            return {}  # the index, which counts quickly, is being built
        marks = self.load_marks()
        found = self._newer(marks, addresses, MOST_COUNTED)
        return {
            address: sum(_is_new(marks, address, digest) for digest in digests) for address, digests in found.items()
        }

    def may_be_new(self, addresses: Iterable[str]) -> set[str]:
        """Return the channels whose newest message is beyond their mark: no other has new mail. It costs little."""
        if self._queries.newest_alone:
            return set()
        return {address for address, digests in self._newer(self.load_marks(), addresses, 1).items() if digests}

    def _newer(self, marks: Marks, addresses: Iterable[str], most: int) -> dict[str, list[Digest]]:
        begins = {address: marks.reached(address) for address in addresses}
        return self._queries.newer(begins, self._mailbox.now(), most)

    def new_ids(self, address: str, digests: Iterable[Digest]) -> set[str]:
        """Return the ids of those messages to a channel that are new."""
        marks, now = self.load_marks(), self._mailbox.now()
        return {digest.id for digest in digests if digest.timestamp <= now and _is_new(marks, address, digest)}


def _is_new(marks: Marks, address: str, digest: Digest) -> bool:
    """Return whether a message of others is beyond the marks."""
    if digest.sender == USER or digest.timestamp <= marks.reached(address):
        return False
    return digest.timestamp > marks.reached(address, conversations.folded(digest.topic))
