"""The outbox log: outgoing mail, durable before anything is sent.

Belongs here: finding what goes out (mail to a swarm, announcements of the ledger), noting its outcome. Mail is in the
mailbox first; a gateway, or ``swarm flush``, queues it at its next look. Local notices follow from the ledger; the
mailbox has them before the outbox says so.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from ..core import address, codec, instant
from ..core.address import TAG, is_remote, swarm_of
from ..core.compose import Draft
from ..core.line_forms import may_have
from ..core.proofs import GATEWAY, STEWARD
from ..core.records import USER, Message
from ..errors import MailboxError, Refused
from ..mailbox import leaving
from ..mailbox.mailbox import Mailbox
from ..mailbox.open_mailbox import random_id
from ..mailbox.sending import Sending
from ..store.log import replacement
from ..store.log.growing_log import GrowingLog
from ..store.log.log import Log
from . import home as names
from .inbound import derived_id, is_storable, key_of
from .ledger import Ledger, each_event, event_line, events_of
from .protocol import wire
from .protocol.membership import Member, Memberships, Swarm
from .protocol.outgoing import FAILED, LATEST, LONGEST, QUEUED, Outgoing, Parcel, compact_events

BIG = 8 << 20
"""Bytes from which a starting gateway rewrites the log."""


class Outbox:
    """The outbox of a gateway, for a mailbox. ``latest``: the number of parcels of each swarm that ``latest_rows`` can
    show."""

    def __init__(self, mailbox: Mailbox, ledger: Ledger, latest: int = LATEST) -> None:
        self.mailbox = mailbox
        self.ledger = ledger
        self.path = ledger.home.path_of(names.OUTBOX)
        self._latest = latest
        self.fold = Outgoing(latest=latest)
        self._lock = threading.Lock()
        self._tail = GrowingLog(Log(self.path))
        self._mail = GrowingLog(mailbox.logs.messages)
        self._looked = mailbox.now()

    def compact_log(self) -> None:
        """Rewrite a large log without events that are over and forgotten."""
        if os.path.exists(self.path) and os.path.getsize(self.path) > BIG:
            with self._tail.log.held() as log:
                size = os.fstat(log.fd).st_size
                kept = compact_events(events_of(log.lines()), self.mailbox.now())
                replacement.replace(log, [event_line(event)[:-1] for event in kept], size)

    def refresh_fold(self) -> Outgoing:
        """Return the fold of the log as it is now; thread-safe."""
        with self._lock:
            if self._tail.changed():
                with self._tail.news() as (replaced, lines):
                    if replaced:
                        self.fold = Outgoing(latest=self._latest)
                    for _, event in each_event(lines):
                        self.fold.apply_event(event)
            return self.fold

    def latest_rows(self, limit: int, swarm_id: str | None = None) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of parcels, of all swarms or of one, and the latest of these with their state per peer,
        oldest first."""
        fold, known = self.refresh_fold(), self.ledger.read_knowledge()
        if swarm_id is None and known.here:
            each = [self.latest_rows(limit, swarm.swarm_id) for swarm in known.seen]
            rows = sorted((row for _, rows in each for row in rows), key=lambda row: str(row["at"]))
            return sum(count for count, _ in each), rows[-limit:]
        with self._lock:
            count = sum(fold.counted.values()) if swarm_id is None else fold.counted.get(swarm_id, 0)
            return count, fold.latest_rows(limit, swarm_id)

    def open_parcels(self) -> int:
        """Return the number of this mailbox's messages on their way."""
        known = self.ledger.read_knowledge()
        return sum(self._is_ours(parcel.event, known) for parcel in list(self.refresh_fold().open.values()))

    def append_events(self, events: Iterable[Mapping[str, Any]]) -> None:
        lines = [event_line(event) for event in events]
        if lines:
            Log(self.path).append(lines)
            self.refresh_fold()

    def queue_outgoing(self) -> None:
        """Queue everything still to go out. After an error the next look finds the same.

        Raises ``NotFound`` without a ledger: its mail waits."""
        self.queue_announcements()
        self.queue_mail()

    def queue_mail(self) -> None:
        """Queue the mail to swarms alone, which needs no look into the archive."""
        now = self.mailbox.now()
        if self._looked - now > instant.HOUR:  # set back: look again at mail that was too old by the wrong clock
            self._mail = GrowingLog(self.mailbox.logs.messages)
        self._looked = now
        if not self._mail.changed():
            return
        known = self.ledger.identified_knowledge()  # else no mail has a way: its senders would be told that it failed
        place = self._mail.inode, self._mail.position
        try:
            with self._mail.news() as (_, lines):
                swarm_lines = (text for _, text in lines if may_have(text, b"swarm:"))
                fresh = [event for text in swarm_lines for event in self._mail_events(text, known)]
            for event in fresh:
                if event.get("why"):  # tell first, once by its id: queued mail is not looked at again
                    self.tell_sender(event, event["recipient"], event["why"])
            self.append_events(fresh)
        except BaseException:
            self._mail.inode, self._mail.position = place
            raise

    def queue_announcements(self) -> None:
        """Queue the ledger's announcements, and tell those who joined here: each once.

        A local notice has an id that follows from the decision, and is looked for before it is written: crashes repeat
        nothing.
        """
        known = self.ledger.read_knowledge()
        left = self.ledger.open_announcements(self.refresh_fold().senders)
        fresh = [one for one in left if self._is_ours(one, known)]
        if not fresh:
            return
        here = [message for one in fresh for message in self._told_here(one, known) if is_storable(message)]
        if here:
            self.mailbox.take_in(here, {message.id for message in here})
        self.append_events(_queued_event(one) for one in fresh)

    def _is_ours(self, one: Mapping[str, Any], known: Memberships) -> bool:
        """Return whether an announcement is about a swarm of this mailbox."""
        return not known.here or known.place_of(str(one.get("swarm_id") or "")) == known.here

    def _told_here(self, one: Mapping[str, Any], known: Memberships) -> list[Message]:
        """Return the message, if any, that tells local members of a decision (founding text, "Lifecycle events")."""
        if one.get("mail"):
            message = codec.message(codec.dumps(one["mail"]).encode("utf-8"))
            return [message] if isinstance(message, Message) else []
        swarm, told = known.swarms.get(one["swarm_id"]), one.get("notice")
        if swarm is None or not told:
            return []
        tag, message_id = f"swarm:{swarm.alias}", derived_id(key_of(one["id"], "", "notice"))
        about = {"swarm_id": swarm.swarm_id, "agent_id": told["agent_id"], "message_id": message_id, "event": True}
        notice = Message(
            id=message_id,
            sender=f"{tag}/{told['agent_id']}",
            recipients=(tag,),
            timestamp=self.mailbox.now(),
            content=told["content"],
            subject=told["subject"],
            type="system",
            priority="low",
            extra={"swarm": about},
        )
        return [notice]

    def _mail_events(self, text: bytes, known: Memberships) -> list[dict[str, Any]]:
        """Return the events of one line of the messages log. Mail to several swarms and agents goes out once for each,
        under ids that follow from its own."""
        message = codec.message(text)
        if not isinstance(message, Message) or is_remote(message.sender):
            return []
        if message.timestamp < self.mailbox.now() - LONGEST:
            return []
        found = []
        words = [word for word in message.recipients if is_remote(word)]
        for place, word in enumerate(words):
            message_id = message.id if place == 0 else derived_id(key_of(message.id, "", word))
            if message_id not in self.fold.senders:
                found.append(self._mail_event(message, message_id, word, known))
        return found

    def _mail_event(self, message: Message, message_id: str, word: str, known: Memberships) -> dict[str, Any]:
        alias, agent = swarm_of(word) or ("", "")
        swarm = known.swarm_by_alias(alias)
        event: dict[str, Any] = {
            "event": QUEUED,
            "id": message_id,
            "swarm_id": swarm.swarm_id if swarm else "",
            "recipient": agent or wire.BROADCAST,
            "type": "message" if message.type == "control" else message.type,
            "content": message.content,
            "from": message.sender,
            "at": instant.text(message.timestamp),
            **self._optional_members(message, alias),
        }
        why, peers = self._peers_of_message(message, swarm, alias, agent, known)
        if not why:
            return {**event, "peers": peers}
        return {**event, "swarm": word, "peers": [], "why": why}

    def _peers_of_message(
        self, message: Message, swarm: Swarm | None, alias: str, agent: str, known: Memberships
    ) -> tuple[str, list[dict[str, str]]]:
        """Return (why it cannot go out, empty if it can; the peers it goes to)."""
        if swarm is None or known.active_swarm(swarm.swarm_id) is None:
            return f"this gateway is in no swarm {alias!r}", []
        sender = self.mailbox.logs.read_roster().get(message.sender)
        if message.type == "control":
            return "control messages stay on this machine", []
        if message.sender != USER and (sender is None or f"swarm:{swarm.alias}" not in sender.tags):
            return f"{message.sender} has not joined swarm:{swarm.alias}", []
        try:
            leaving.attached(message, self.mailbox.directory)
        except Refused as error:
            return error.what, []
        found = leaving.secret_in(message, self.mailbox.directory)
        if found and not leaving.is_allowed(message, self.mailbox.find(message.id).message.proof):
            return f"it holds what looks like a secret ({found})", []
        others = [m for m in swarm.members.values() if m.agent_id != known.agent_id]
        peers = [peer_of(m) for m in others if not agent or m.agent_id == agent]
        if agent and not peers:
            return f"{swarm.alias} has no other member {agent!r}", []
        return "", peers

    def _optional_members(self, message: Message, alias: str) -> dict[str, Any]:
        """Return the envelope's optional members that the message sets."""
        metadata = message.metadata if isinstance(message.metadata, dict) else {}
        if message.subject:
            metadata = {"subject": message.subject, **metadata}
        found = {
            "in_reply_to": self._wire_id(message.thread, alias),
            "priority": message.priority if message.priority != "normal" else None,
            "references": message.references or None,
            "attachments": leaving.attached(message, self.mailbox.directory) or None,
            "metadata": metadata or None,
        }
        if message.expires_at is not None:
            found["expires_at"] = instant.text(message.expires_at)
        elif message.ttl_hours is not None:
            found["expires_at"] = instant.text(message.timestamp + int(message.ttl_hours * instant.HOUR))
        return {key: value for key, value in found.items() if value is not None}

    def _wire_id(self, thread: str | None, alias: str) -> str | None:
        """Return the id by which a swarm knows the answered message, if that came from or went to it: other ids stay
        here."""
        if thread is None or not wire.is_uuid(thread):
            return None
        try:
            parent = self.mailbox.find(thread).message
        except MailboxError:
            return None
        about = (parent.extra or {}).get("swarm")
        if parent.sender.startswith(f"swarm:{alias}/") and isinstance(about, dict):
            return str(about.get("message_id") or thread)
        went = (swarm_of(word) for word in parent.recipients)
        return thread if any(place is not None and place[0] == alias for place in went) else None

    def give_up_time(self, parcel: Parcel) -> int:
        """Return when to give a parcel up (ms): after a week, or when its mail expires."""
        queued_at = instant.parse(parcel.event["at"])
        if parcel.event.get("announces"):
            return queued_at + LONGEST
        given = parcel.event.get("expires_at")
        if given is not None:
            return min(queued_at + LONGEST, instant.parse(given))
        hours = self.mailbox.config.ttls.get(TAG, address.DEFAULT_TTL[TAG])
        return queued_at + (LONGEST if hours is None else min(LONGEST, int(hours * instant.HOUR)))

    def tell_sender(self, event: Mapping[str, Any], recipient: str, why: str) -> None:
        """Tell the sender of queued mail, if anybody is, that it did not arrive."""
        sender, message_id = event.get("from"), event["id"]
        if not sender:
            return
        draft = Draft(
            sender=GATEWAY,
            to=(sender,),
            subject=f"Not delivered to {recipient}"[:200],
            content=f"Your message {message_id} did not reach {recipient}: {why}.",
            thread=message_id,
            type="notification",
            id=derived_id(key_of(message_id, recipient, FAILED)),
        )
        try:
            Mailbox(self.mailbox.directory, prove=lambda _: STEWARD).part(Sending).send_all([draft], answering=sender)
        except MailboxError:
            pass  # told before, or the sender is gone; the outbox has it


def _queued_event(one: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in one.items() if key not in ("mail", "notice")}
    return {**kept, "event": QUEUED, "type": "system", "announces": True}


def peer_of(member: Member) -> dict[str, str]:
    """Return a member as the peer of a parcel."""
    return {"agent_id": member.agent_id, "endpoint": member.endpoint}


def make_announcement(
    content: str, recipient: str, to: Iterable[Member], notice: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return an announcement of a ledger event: to peers (``to``), and by ``notice`` to those who joined here."""
    # with their keys: by the time it goes out, they may be members no more
    peers = [{**peer_of(member), "public_key": member.public_key} for member in to]
    told = {"id": random_id(), "recipient": recipient, "content": content, "peers": peers}
    return {**told, **({"notice": notice} if notice else {})}


def announce_received(message: Message) -> dict[str, Any]:
    """Return the announcement of a remote message that an event follows from: its record, only for those here."""
    new_id = derived_id(key_of(message.id, "", "heard"))
    return {**make_announcement("-", wire.BROADCAST, ()), "id": new_id, "mail": codec.message_object(message)}
