"""A mailbox as a day of work leaves it: for the pictures in README, and for tests that need one that is not empty.

Everything goes through the facade, with a clock that is set back; chance has a seed.
"""

from __future__ import annotations

import json
import random
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mailbox.core import codec, instant, proofs
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.control import messages as m
from agent_mailbox.core.instant import HOUR, MINUTE
from agent_mailbox.core.records import USER, Read
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import OpenMailbox, wall_clock
from agent_mailbox.store.user_state import processes
from agent_mailbox.store.user_state.processes import Whereabouts
from tests.control_desk import ControlDesk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_mailbox.core.records import Message, Proof

AGENTS = (
    ("Ada", "architect", ("project:inscription", "concern:governance", "domain:architecture")),
    ("Bo", "reviewer", ("project:inscription", "domain:scripts")),
    ("Cleo", None, ("project:inscription", "concern:ontology")),
    ("Dmitri", "librarian", ("concern:ontology", "domain:library")),
    ("Edda", "steward", ("concern:governance",)),
    ("Farid", None, ("project:face-decoding",)),
    ("Goro", "architect", ("project:face-decoding", "domain:architecture")),
    ("Hana", None, ("project:face-decoding", "concern:reproducibility")),
    ("Ines", None, ("project:inscription",)),
)
TALK: list[dict[str, Any]] = json.loads(Path(__file__).with_name("talk.json").read_text(encoding="utf-8"))
"""What they write to each other: sender, address, subject, content, if it asks for an ack."""
PLAN = """\
1. copy the table to `glyph_new` with the index
2. verify counts and checksums
3. swap the names in one transaction

Takes four minutes; readers see the old table until the swap.
"""


def _believe(who: str) -> Proof:
    """Take everyone for whom it says it is, also without pytest: a task is done by whoever proves it."""
    return proofs.TERMINAL if who == USER else proofs.of_session(who)


class Scene:
    """The mailbox at ``directory``, being filled. ``at`` is what its clock says, in ms."""

    def __init__(self, directory: str, now: int | None = None) -> None:
        self.now = wall_clock() if now is None else now
        self.at = self.now
        self._chance = random.Random(31)
        how: dict[str, Any] = {"clock": lambda: self.at, "new_id": self._id, "prove": _believe}
        self.mailbox, self.control = Mailbox(directory, **how), ControlDesk(OpenMailbox(directory, **how))
        self.ids: dict[str, str] = {}
        self.frozen = ""
        """The message with the longest thread."""

    def _id(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))

    def agent(self, name: str, role: str | None = None, tags: Sequence[str] = (), **more: str) -> str:
        session_id = self.ids[name] = self._id()
        request = Registration(session_id, name=name, roles=(role,) if role else (), tags=tuple(tags), **more)
        self.mailbox.register(request, "user")
        return session_id

    def send(self, sender: str, to: str, content: str, **more: object) -> Message:
        who = self.ids.get(sender, sender)
        return self.mailbox.send(Draft(sender=who, to=(self.ids.get(to, to),), content=content, **more)).message  # type: ignore[arg-type]

    def read(self, message: Message, by: str, after: int, event: str = "read", via: str | None = None) -> None:
        """Have an agent read a message, as a hook records it, ``after`` ms later."""
        who, nonce = self.ids[by], f"n{self._chance.getrandbits(40):x}"
        at = min(message.timestamp + after, self.now)
        tokens = 24 + len(message.content) // 4
        records = [
            Read(message.id, who, at, "read", via or who, nonce, tokens),
            Read(message.id, who, at + 900, "seen", None, nonce),
        ]
        records += [Read(message.id, who, at + 4000, "ack")] if event == "ack" else []
        self.mailbox.logs.reads.append([codec.spell_read(record) for record in records])


def day(directory: str, now: int | None = None) -> Scene:
    """A day of work: nine agents, two projects, requests that wait, dead letters."""
    scene = Scene(directory, now)
    chance = random.Random(7)
    scene.at = scene.now - 30 * HOUR
    for name, role, tags in AGENTS:
        scene.agent(name, role, tags)
    gone = scene.agent("Jo", "translator", ("project:inscription",))
    scene.at = scene.now - 8 * HOUR
    scene.send("Bo", "Jo", "The line numbers in plate 9 are off by one from line 12 on.", subject="Plate 9")
    _chat(scene, chance)
    scene.at = scene.now - 5 * HOUR
    scene.mailbox.end(gone, "retire", "user", "done")
    scene.at = scene.now - 6 * HOUR
    scene.send("Farid", "all", "GPU 1 is free until four.", subject="GPU 1", ttl_hours=1)
    _tasks(scene)
    _present(scene)
    _transcript(scene)
    return scene


def _chat(scene: Scene, chance: random.Random) -> None:
    """The talk of the day, several times over, most of it read, a few threads."""
    last: dict[tuple[str, str], Message] = {}
    for hour in range(26, 0, -1):
        busy = 1 if hour % 24 in range(10, 18) else 3
        for _ in range(chance.randint(busy - 1, 2 * busy)):
            said = TALK[chance.randrange(len(TALK))]
            sender, to, subject, content, ack = said["from"], said["to"], said["subject"], said["content"], said["ack"]
            scene.at = scene.now - hour * HOUR + chance.randrange(HOUR)
            parent = last.get((to, sender))
            message = scene.send(
                sender, to, content, subject=subject, ack=ack, thread=parent.id if parent and not subject else None
            )
            last[sender, to] = message
            for name in _readers(to, sender):
                if chance.random() < 0.9:
                    delay = int(chance.lognormvariate(2.6, 1.6) * 1000)
                    scene.read(
                        message,
                        name,
                        delay,
                        "ack" if ack and chance.random() < 0.9 else "read",
                        to if ":" in to else None,
                    )
                    if to.startswith("role:"):
                        break


def _readers(to: str, sender: str) -> list[str]:
    if to == "all":
        found = [name for name, _, _ in AGENTS]
    elif ":" in to:
        found = [name for name, role, tags in AGENTS if to in tags or to == f"role:{role}"]
    else:
        found = [to]
    return [name for name in found if name != sender]


TASKS = (
    ("Bo", "Read plates 9 to 14 a second time", "", ()),
    ("Ines", "Index the readings by page and line", "analyzing", ()),
    ("Hana", "Repeat run 12 with the published data", "blocked", ()),
    ("Cleo", "Split the parser", "done", ("src/parser/lines.py", "docs/decisions.md")),
)
"""Who has which task of the person's, how far it is, and what came of it."""


def _tasks(scene: Scene) -> None:
    """Tasks in each state."""
    said = {"analyzing": "a plan is on its way", "blocked": "no way to the data hash yet", "done": "merged"}
    for name, title, phase, artifacts in TASKS:
        scene.at = scene.now - 90 * MINUTE
        task = scene.control.request("user", m.TaskAssignment(title=title), to=scene.ids[name])
        scene.at = scene.now - 12 * MINUTE
        if phase:
            scene.control.report(scene.ids[name], task.id, phase, said[phase], artifacts=artifacts)


def _transcript(scene: Scene) -> None:
    """The conversation of one session, as its client keeps it."""
    mine = scene.ids["Ines"]
    path = Path(scene.mailbox.directory).parent / f"{mine}.jsonl"
    edit = {"file_path": "docs/plans/0017.md", "old_string": "swap by hand", "new_string": "swap in one transaction"}
    calls = (
        ("Bash", {"command": "git log --oneline -5 -- schema/"}, "9f2c1ab Freeze schema 4"),
        ("Edit", edit, "saved"),
    )
    said: list[tuple[str, object]] = [("user", "Index the readings by page and line. Ask before you touch the table.")]
    said += [("assistant", [{"type": "text", "text": "I look at what changed in the **schema** first."}])]
    for number, (tool, given, told) in enumerate(calls):
        said += [("assistant", [{"type": "tool_use", "id": f"t{number}", "name": tool, "input": given}])]
        said += [("user", [{"type": "tool_result", "tool_use_id": f"t{number}", "content": told}])]
    said += [("assistant", [{"type": "tool_use", "id": "last", "name": "Bash", "input": {"command": "npm test"}}])]
    lines = []
    for number, (kind, content) in enumerate(said):
        at = instant.text(scene.now - (len(said) - number) * MINUTE)
        event = {"type": kind, "timestamp": at, "message": {"role": kind, "content": content}}
        lines.append(json.dumps(event) + "\n")
    path.write_text("".join(lines))
    where = Whereabouts(client="claude", conversation=str(path))
    processes.note_whereabouts(mine, where, scene.mailbox.logs.stamp_files.kept())


def _present(scene: Scene) -> None:
    """What waits at this moment."""
    scene.at = scene.now - 14 * MINUTE
    said = scene.send("Ada", "project:inscription", TALK[3]["content"], subject="Schema 4 is frozen", ack=True)
    scene.frozen = said.id
    for name in ("Bo", "Cleo"):
        scene.read(said, name, 20_000, "ack" if name == "Bo" else "read", "project:inscription")
    scene.at += 2 * MINUTE
    back = scene.send(
        "Ines",
        "project:inscription",
        "Does that include the **index** on `(page, line)`? It adds no column.",
        thread=said.id,
    )
    scene.read(back, "Ada", 9_000, via="project:inscription")
    scene.at += 2 * MINUTE
    reply = scene.send(
        "user",
        "project:inscription",
        "It does not: indexes are free to come and go. Ada, please say so in the decision.",
        thread=said.id,
    )
    for name in ("Ada", "Ines", "Cleo"):
        scene.read(reply, name, 4_000, via="project:inscription")
    scene.at += MINUTE
    noted = scene.send(
        "Ada",
        "project:inscription",
        "Added to [docs/decisions.md](https://example.org/decisions#schema-4).",
        thread=said.id,
    )
    scene.read(noted, "Bo", 3_000, via="project:inscription")
    scene.at = scene.now - 8 * MINUTE
    scene.send(
        "Edda",
        "user",
        "Two sessions hold **architect** (Ada, Goro). Role mail goes to whoever reads first. Is that what you want?",
        subject="Two architects",
        ack=True,
    )
    scene.at = scene.now - 6 * MINUTE
    scene.control.request(
        scene.ids["Ines"],
        m.PlanRequest(
            goal="Add the index on (page, line)",
            content=PLAN,
            risks=("60 MB more on disk", "writers wait during the swap, about 200 ms"),
            file="docs/plans/0017.md",
            expires=scene.now + 24 * MINUTE,
        ),
    )
    scene.at = scene.now - 3 * MINUTE
    call = {"command": "git push origin main --force-with-lease", "description": "Publish the rebased parser split"}
    scene.control.request(
        scene.ids["Cleo"],
        m.PermissionRequest(
            tool="Bash", input=call, reason="The rebase is done and the tests pass", expires=scene.now + 7 * MINUTE
        ),
    )
    scene.at = scene.now - MINUTE
    scene.control.request(
        scene.ids["Hana"],
        m.SandboxRequest(
            capability="network", hosts=("data.example.org",), reason="The data hash of run 12 is published there"
        ),
    )
    scene.at = scene.now - 40_000
    scene.send("Hana", "user", "Run 12 repeats to the fourth digit. Shall I start on run 13?")
    scene.at = scene.now - 20_000
    scene.send("Goro", "role:translator", "Who can read plate 11, lines 3 to 9?", ack=True)
    for age, name in (
        (2, "Ada"),
        (1, "Bo"),
        (3, "Cleo"),
        (40, "Dmitri"),
        (11, "Edda"),
        (2, "Farid"),
        (6, "Goro"),
        (1, "Hana"),
        (4, "Ines"),
    ):
        scene.mailbox.logs.beat(scene.ids[name], scene.now - age * MINUTE)
    scene.at = scene.now
    scene.mailbox.end(scene.ids["Dmitri"], "freeze", "user", "session ended")
