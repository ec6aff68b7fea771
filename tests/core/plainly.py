"""What semantics.md says, written down plainly, to hold the core against. Nothing here calls the core.

It reads the three logs from their beginnings for every question and counts hours one by one: slow, and easy to check
against the page. It knows whole hours and agents without names, which is what ``world`` deals in.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_mailbox.core.records import Message, Read, RosterEvent

HOUR = 3_600_000
HOURS_TO_LIVE = {"direct": 24, "role": None, "tag": 72, "broadcast": 4}


class Agent:
    """What the roster's lines say of one session."""

    def __init__(self) -> None:
        self.state = "alive"
        self.tags: tuple[str, ...] = ()
        self.continues: dict[str, int] = {}  # whom, and since when
        self.freezes: list[list[int]] = []  # [since, until], the last one open while it is frozen

    def hear(self, event: RosterEvent) -> None:
        """alive → frozen → alive, alive|frozen → dead, dead → alive only by registering again."""
        was = self.state
        if event.event == "register":
            self.state = "alive"
        elif event.event == "freeze" and was == "alive":
            self.state = "frozen"
        elif event.event == "thaw" and was == "frozen":
            self.state = "alive"
        elif event.event == "retire" and was != "dead":
            self.state = "dead"
        elif event.event != "update" or was == "dead":
            return
        if event.tags is not None:
            self.tags = event.tags
        if event.continues is not None:
            self.continues.setdefault(event.continues, event.timestamp)
        if self.state == "frozen" and was != "frozen":
            self.freezes.append([event.timestamp])
        elif was == "frozen" and self.state != "frozen":
            self.freezes[-1].append(event.timestamp)

    def is_frozen_at(self, instant: int) -> bool:
        """Was it frozen then? An open freeze has no end yet."""
        return any(span[0] <= instant and (len(span) == 1 or instant < span[1]) for span in self.freezes)


class Logs:
    """The three logs, and what the page says they mean."""

    def __init__(self, messages: list[Message], reads: list[Read], events: list[RosterEvent]) -> None:
        self.messages = messages
        self._selves: dict[str, dict[str, int]] = {}
        self.agents: dict[str, Agent] = {}
        for event in events:
            if event.session_id not in self.agents and event.event in ("register", "update"):
                self.agents[event.session_id] = Agent()
            if event.session_id in self.agents:
                self.agents[event.session_id].hear(event)
        # Set difference: a read is until the same reader releases it; of a standing read the first line counts.
        self.standing: dict[tuple[str, str], Read] = {}
        self.acked: set[tuple[str, str]] = set()
        for read in reads:
            key = (read.message_id, read.session_id)
            if read.event == "release":
                self.standing.pop(key, None)
                self.acked.discard(key)
            elif read.event in ("read", "ack"):
                self.standing.setdefault(key, read)
                if read.event == "ack":
                    self.acked.add(key)

    def selves(self, session_id: str) -> dict[str, int]:
        """The session and those it continues, and those they continue; each with the instant from which it did."""
        if session_id not in self._selves:
            since = {session_id: 0}
            changed = True
            while changed:
                changed = False
                for one in list(since):
                    links = self.agents[one].continues if one in self.agents else {}
                    for old, told in links.items():
                        if max(since[one], told) < since.get(old, 1 << 62):
                            since[old] = max(since[one], told)
                            changed = True
            self._selves[session_id] = since
        return self._selves[session_id]

    def mode(self, address: str) -> str:
        """``all`` → broadcast; ``ns:value`` → tag; ``role:x`` → role; a session id → direct; else a role."""
        if address == "all":
            return "broadcast"
        if ":" in address:
            return "role" if address.startswith("role:") else "tag"
        return "direct" if address in self.agents or address == "user" else "role"

    def ways(self, message: Message, session_id: str) -> set[str]:
        """The modes by which the message reaches the session."""
        agent = self.agents.get(session_id)
        tags = agent.tags if agent else ()
        found = set()
        for address in message.recipients:
            if address == "all":
                found.add("broadcast")
            elif address in self.selves(session_id):
                found.add("direct")
            elif address in tags:
                found.add("role" if address.startswith("role:") else "tag")
            elif "role:" + address in tags:
                found.add("role")
            elif (message.extra or {}).get("bare") == [address[5:]] and address[5:] in self.selves(session_id):
                found.add("role")  # the bare word that nobody had is given to who takes it
        return found

    def has_expired(self, message: Message, now: int) -> bool:
        """Every address has run out: "several addresses: the longest". An instant of its own holds for all."""
        if message.expires_at is not None:
            return now >= message.expires_at
        return all(self._has_run_out(address, message, now) for address in message.recipients)

    def _has_run_out(self, address: str, message: Message, now: int) -> bool:
        mode = self.mode(address)
        hours = HOURS_TO_LIVE[mode] if message.ttl_hours is None else message.ttl_hours
        if hours is None:
            return False
        # The recipient, and whoever continues it, from then on: the mail is theirs, and waits for them.
        theirs = [(self.agents[one], self.selves(one)[address]) for one in self.agents if address in self.selves(one)]
        theirs = theirs if mode == "direct" else []
        passed = 0
        for instant in range(message.timestamp, now, HOUR):
            if not any(instant >= since and agent.is_frozen_at(instant) for agent, since in theirs):
                passed += 1
            if passed >= hours:
                return True
        return False

    def claimers(self, message: Message, way: str | None = None) -> set[str]:
        """Who holds it: a standing read *as* a role; of a line without ``as``, one that only a role can explain.

        The bare word that nobody had is held apart from roles: ``way`` asks for that word alone, or for roles alone."""
        only_roles = all(self.mode(address) == "role" for address in message.recipients)
        words = {f"role:{word}" for word in (message.extra or {}).get("bare", ())}
        found = set()
        for (message_id, session_id), read in self.standing.items():
            is_apart = None not in (way, read.via) and (read.via in words) != (way in words)
            as_role = only_roles if read.via is None else read.via.startswith("role:")
            if message_id == message.id and as_role and not is_apart:
                found.add(session_id)
        return found

    def way(self, message: Message, session_id: str) -> str:
        """Through what it would take role mail: the bare word that is its own, else a role."""
        words = [f"role:{w}" for w in (message.extra or {}).get("bare", ()) if w in self.selves(session_id)]
        return next((word for word in words if word in message.recipients), "role:")

    def has_read(self, message: Message, session_id: str) -> bool:
        """Read by it, or by one that it continues, and not released."""
        return any((message.id, one) in self.standing for one in self.selves(session_id))

    def unread(self, session_id: str, now: int) -> list[tuple[str, str, bool]]:
        """(id, mode, would it be a claim) of all unread mail, in the order it is shown."""
        found = []
        for message in self.messages:
            ways = self.ways(message, session_id)
            if not ways or message.sender == session_id or self.has_read(message, session_id):
                continue
            if ways == {"role"} and self.claimers(message, self.way(message, session_id)):
                continue
            if self.has_expired(message, now):
                continue
            mode = next(mode for mode in ("direct", "role", "tag", "broadcast") if mode in ways)
            found.append((message, mode, ways == {"role"}))
        control = [one for one in found if one[0].type == "control"]
        high = [one for one in found if one[0].type != "control" and one[0].priority == "high"]
        rest = [one for one in found if one not in control and one not in high]
        return [(message.id, mode, claims) for message, mode, claims in (*control, *high, *rest)]

    def is_answered(self, message: Message, session_id: str) -> bool:
        """Acked, or replied to, by the session or one it continues."""
        selves = self.selves(session_id)
        replied = any(m.thread == message.id and m.sender in selves for m in self.messages)
        return replied or any((message.id, one) in self.acked for one in selves)

    def obligations(self, session_id: str) -> list[str]:
        """Ids of read mail that asked for an ack and has neither ack nor reply."""
        return [
            m.id
            for m in self.messages
            if m.ack and self.has_read(m, session_id) and not self.is_answered(m, session_id)
        ]

    def given_back(self, dead: str) -> list[tuple[str, str]]:
        """(id, session) of the claims that a death ends: its own or inherited, with nobody left who owes the ack."""
        found = []
        for message in self.messages:
            for holder in self.claimers(message) & self.selves(dead).keys():
                heirs = {one for one in self.agents if holder in self.selves(one)}
                owes = message.ack and not any(self.is_answered(message, heir) for heir in heirs)
                if owes and all(self.agents[heir].state == "dead" for heir in heirs):
                    found.append((message.id, holder))
        return found
