"""A mailbox as a week of many agents leaves it: 40 agents, six projects, 20,000 messages, requests, dead letters.

It is the kind of mailbox that the console was reviewed with. Everything goes through the facade; chance has a seed.
``scripts/screenshots --week DIR`` takes every view of it, in each look.
"""

from __future__ import annotations

import random
import struct
import zlib
from typing import TYPE_CHECKING, Any

from agent_mailbox.core import codec
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.control import messages as m
from agent_mailbox.core.instant import HOUR, MINUTE
from agent_mailbox.core.records import Read
from agent_mailbox.store.attachments import attachment_files
from agent_mailbox.upkeep import steward
from tests.console.scene import PLAN, TALK, Scene

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_mailbox.core.records import Message

NAMES = (
    *("Ada", "Bo", "Cleo", "Dmitri", "Edda", "Farid", "Goro", "Hana", "Ines", "Jun"),
    *("Kofi", "Lena", "Mira", "Nils", "Olga", "Pavel", "Quinn", "Rosa", "Sven", "Tariq"),
    *("Uma", "Viktor", "Wanda", "Xenia", "Yuri", "Zofia", "Amara", "Bela", "Chidi", "Daria"),
    *("Emil", "Fatou", "Gustav", "Hedda", "Ivo", "Jonas", "Katya", "Leo", "Maren", "Nadia"),
)
PROJECTS = ("payments-api", "mobile-app", "infra-terraform", "data-platform", "design-system", "search")
ROLES = (
    *("architect", "reviewer", "tester", "release", "security", "docs", "librarian", "steward", "translator", "triage"),
    *("oncall", "performance"),
)
TOPICS = ("Schema 4", "Flaky login test", "Release 12", "Cache misses", "API errors", "Deploy window", "Index", None)
DAYS = 7
BATCH = 100
"""Messages that are sent as one, each with its own time; an answer is to one of an earlier batch."""
KEPT_OPEN = 300
"""The newest messages that may be answered."""
ANSWERED, READ, DEAD, LONG = 0.38, 0.75, 0.04, 0.01
"""Shares of the messages: answers, read ones, those that expire unread, logs of tens of kilobytes."""
CODE = """\
The check fails where the page is renewed:

```python
def renew(page: Page, *, now: int) -> Page:
    if page.until < now:
        raise Expired(page.id)  # seen twice today
    return page.replace(until=now + HOUR)
```

`tests/test_pages.py::test_renewal` shows it.
"""
TABLE = """\
| endpoint | p50 | p95 | errors |
| --- | ---: | ---: | ---: |
| `/orders` | 12 ms | 80 ms | 0.1 % |
| `/orders/{id}` | 9 ms | 41 ms | 0.0 % |
| `/search` | 31 ms | **240 ms** | 1.2 % |
"""
LIST = """\
Done so far:

1. the migration runs in both directions
2. *counts* and checksums agree
3. the old readers are gone, see https://example.org/runs/4711

Open: the index on `(page, line)`.
"""
SHORT = (
    "Merged. The queue is empty again.",
    "I take this one.",
    "Can you look at `config/limits.toml`? The second limit is never reached.",
    "Seen; the run before had the same warning.",
    "No objection from here, as long as the readers are told first.",
    "Please **wait** with that until the release is out.",
)
EDIT = {
    "file_path": "services/payments/limits.py",
    "old_string": "LIMIT = 100\nWINDOW = 60\n\ndef allowed(count):\n    return count < LIMIT",
    "new_string": "LIMIT = 250\nWINDOW = 60\n\ndef allowed(count: int) -> bool:\n    return count <= LIMIT",
}
NOTES = "cat > notes.md <<'END'\n# Run 12\n\n- repeat with seed 7\nEND\ngit add notes.md"
PAIRS = (("retry(2)", "retry(3)"), ("wait: 50", "wait: 200"))
EDITS = [{"old_string": old, "new_string": new} for old, new in PAIRS]
LIMITS = {"file_path": "docs/limits.md", "content": "# Limits\n\nEach client has 250 a minute.\n"}
REQUESTS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("Cleo", "Edit", EDIT, "The limit is hit each Monday at nine"),
    ("Jun", "Bash", {"command": "terraform apply -target=module.queue", "description": "Widen the queue"}, ""),
    ("Kofi", "Bash", {"command": NOTES}, ""),
    ("Rosa", "Write", LIMITS, "Asked for by docs"),
    ("Sven", "MultiEdit", {"file_path": "app/login.ts", "edits": EDITS}, "Two of forty runs fail"),
    ("Uma", "WebFetch", {"url": "https://example.org/changelog", "prompt": "what changed in 4.2"}, ""),
)


class Week(Scene):
    """The mailbox, being filled. While a batch is sent, each message takes the next of its times."""

    def __init__(self, directory: str, count: int, now: int | None = None) -> None:
        super().__init__(directory, now)
        self.chance = random.Random(12)
        self.count = count
        self._times: Iterator[int] = iter(())
        self.tags: dict[str, tuple[str, ...]] = {}

    def _id(self) -> str:
        self.at = next(self._times, self.at)
        return super()._id()

    def fill(self) -> None:
        """Fill it, as the agents, the person and one run of the steward did."""
        self.at = self.now - DAYS * 24 * HOUR - HOUR
        for number, name in enumerate(NAMES):
            tags = (f"project:{PROJECTS[number % 6]}", *((f"domain:{ROLES[number % 5]}",) if number % 4 == 0 else ()))
            role = ROLES[number // 2] if number % 2 == 0 and number < 24 else None
            self.agent(name, role, tags)
            self.tags[name] = (*tags, *((f"role:{role}",) if role else ()))
        gone = [self.agent(name, None, ("project:search",)) for name in ("Otto", "Petra")]
        self._talk()
        for session_id in gone:
            self.mailbox.end(session_id, "retire", "user", "done")
        for number, name in enumerate(NAMES):
            self.mailbox.logs.beat(self.ids[name], self.now - (number * 7 % 300) * MINUTE)
        self._waiting()
        for name in ("Wanda", "Leo"):
            self.mailbox.end(self.ids[name], "freeze", "user", "session ended")

    # -- a week's talk ------------------------------------------------------------------------------------------------

    def _talk(self) -> None:
        spans = sorted(self.chance.triangular(0, 1, 0.8) for _ in range(self.count))
        times = [self.now - round((1 - span) * DAYS * 24 * HOUR) - MINUTE for span in spans]
        times.sort()
        newest: list[Message] = []
        has_cleaned = False
        for begin in range(0, self.count, BATCH):
            part = times[begin : begin + BATCH]
            drafts = [self._draft(newest) for _ in part]
            self._times = iter(part)
            sent = [one.message for one in self.mailbox.send_all(drafts)]
            self._times = iter(())
            if not has_cleaned and self.now - self.at < 2 * 24 * HOUR:  # what expired since is not archived
                has_cleaned = True
                for name in NAMES:
                    self.mailbox.logs.beat(self.ids[name], self.at)
                steward.run_upkeep(self.mailbox, trust_clock=True)
            self._read(sent)
            newest = [*newest, *sent][-KEPT_OPEN:]

    def _draft(self, newest: list[Message]) -> Draft:
        sender = self.chance.choice(NAMES)
        ttl = 1 if self.chance.random() < DEAD else None
        if newest and self.chance.random() < ANSWERED:
            parent = self.chance.choice(newest)
            to = parent.recipients if ":" in parent.recipients[0] else (parent.sender,)
            if to != (self.ids[sender],):
                return Draft(self.ids[sender], to, self._text(), thread=parent.id, ttl_hours=ttl)
        return Draft(
            sender=self.ids[sender],
            to=(self._address(sender),),
            content=self._text(),
            subject=self.chance.choice(TOPICS),
            ack=self.chance.random() < 0.05,
            ttl_hours=ttl,
        )

    def _address(self, sender: str) -> str:
        kind = self.chance.random()
        if kind < 0.5:
            return f"project:{PROJECTS[self.chance.randrange(6)]}"
        if kind < 0.62:
            return f"role:{self.chance.choice(ROLES)}"
        if kind < 0.67:
            return "all"
        if kind < 0.675:
            return "user"
        return self.ids[self.chance.choice([name for name in (*NAMES, "Otto", "Petra") if name != sender])]

    def _text(self) -> str:
        kind = self.chance.random()
        if kind < LONG:
            line = "2026-03-16T09:12:44Z worker-7 INFO  renewed page 4711 in 12 ms\n"
            return f"The log of the run:\n\n```\n{line * self.chance.randrange(80, 900)}```\n"
        if kind < 0.2:
            return self.chance.choice((CODE, TABLE, LIST))
        if kind < 0.6:
            return str(self.chance.choice(TALK)["content"])
        return self.chance.choice(SHORT)

    def _read(self, sent: list[Message]) -> None:
        lines = []
        for message in sent:
            if message.ttl_hours is not None or self.chance.random() > READ:
                continue
            for who in self._readers(message):
                at = min(message.timestamp + round(self.chance.lognormvariate(3.2, 1.8) * 1000), self.now)
                nonce, tokens = f"n{self.chance.getrandbits(40):x}", 24 + len(message.content) // 4
                lines.append(codec.spell_read(Read(message.id, who, at, "read", who, nonce, tokens)))
                lines.append(codec.spell_read(Read(message.id, who, at + 900, "seen", None, nonce)))
                if message.ack:
                    lines.append(codec.spell_read(Read(message.id, who, at + 4000, "ack")))
        if lines:
            self.mailbox.logs.reads.append(lines)

    def _readers(self, message: Message) -> list[str]:
        (to, *_) = message.recipients
        if to.startswith("role:"):
            return [self.ids[name] for name in NAMES if to in self.tags[name]][:1]
        named = [self.ids[name] for name in NAMES if to == "all" or to in self.tags[name] or to == self.ids[name]]
        return [who for who in named if who != message.sender]

    # -- this moment --------------------------------------------------------------------------------------------------

    def _waiting(self) -> None:
        self.at = self.now - 42 * MINUTE
        plan = m.PlanRequest(goal="Add the index on (page, line)", content=PLAN, expires=self.now + 18 * MINUTE)
        self.control.request(self.ids["Ines"], plan)
        for number, (name, tool, given, reason) in enumerate(REQUESTS):
            self.at = self.now - (30 - 4 * number) * MINUTE
            expires = self.now + (9 + 5 * number) * MINUTE
            asked = m.PermissionRequest(tool=tool, input=given, reason=reason, expires=expires)
            self.control.request(self.ids[name], asked)
        self.at = self.now - 2 * MINUTE
        hosts = m.SandboxRequest(capability="network", hosts=("data.example.org",), reason="The published hash")
        self.control.request(self.ids["Hana"], hosts)
        self.at = self.now - MINUTE
        self._with_files()
        for name, title, phase in (
            ("Bo", "Read plates 9 to 14 a second time", ""),
            ("Lena", "Halve the cold start", "analyzing"),
            ("Mira", "Repeat run 12 with the published data", "blocked"),
            ("Nils", "Split the parser", "done"),
        ):
            task = self.control.request("user", m.TaskAssignment(title=title), to=self.ids[name])
            if phase:
                self.control.report(self.ids[name], task.id, phase, "as agreed")
        self.at = self.now

    def _with_files(self) -> None:
        """Mail with a picture, a text and references."""
        attached = [
            attachment_files.put(self.mailbox.directory, name, [data]).entry()
            for name, data in (("latency.png", picture(320, 180)), ("run-12.log", b"step 1: ok\nstep 2: 4711 rows\n"))
        ]
        references = [
            {"type": "github_pr", "repo": "example/payments", "number": 4711},
            {"type": "file", "path": "services/payments/limits.py"},
        ]
        draft = Draft(
            sender=self.ids["Viktor"], to=("project:payments-api",), subject="Release 12",
            content="The latency of the last day, and the log of the run. The peak is the **backup**.",
            attachments=attached, references=references,
        )  # fmt: skip
        self.mailbox.send(draft)
        self.send(
            "Viktor", "user", "May release 12 go out at four? Everything else is green.", subject="Release 12", ack=True
        )


def picture(width: int, height: int) -> bytes:
    """A PNG that shows something: a curve over a ground."""
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            top = height - 20 - (x * 37 % 61) - (90 if 150 < x < 190 else 0)
            rows += b"\x2f\x6f\xb0" if y > top else b"\xf4\xf4\xf2"
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows))), (b"IEND", b""))
    body = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


def week(directory: str, count: int = 20_000) -> Week:
    """Fill a mailbox; the whole of it takes a minute or two."""
    made = Week(directory, count)
    made.fill()
    return made
