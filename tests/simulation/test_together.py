"""Real processes beside each other answer as the simulated ones do, wherever no order may change the answer."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agent_mailbox.control.leasing import Leasing
from agent_mailbox.core import proofs
from agent_mailbox.core.address import uuid_of
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import MailboxError
from agent_mailbox.mailbox.queries import MailQueries
from agent_mailbox.upkeep import steward
from tests.helpers import MAIN
from tests.simulation import coordination, upkeep
from tests.simulation.choices import Profile
from tests.simulation.judge import Judge
from tests.simulation.stage import LASTING, Stage
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from tests.helpers import Post

    Script = tuple["Op", ...]
    Scripts = Mapping[str, Script]


AGENTS = {"ada": "ops", "bob": "ops", "cyd": "dev", "dan": "dev"}
COMMAND = (sys.executable, str(MAIN))


class Op(NamedTuple):
    """One command: its kind, who gives it, and its words."""

    kind: str
    who: str
    to: str = ""
    words: str = ""
    ack: bool = False


def label_id(label: str) -> str:
    """The id of the message that a script calls so."""
    return uuid_of(label.encode().hex().rjust(32, "0")[-32:], "4")


def before() -> Script:
    """What is done first, one after the other."""
    return tuple(Op("register", who, words=who.title(), to=role) for who, role in AGENTS.items())


def beside() -> Scripts:
    """The scripts that run at once, by the names of their processes."""
    names, scripts = list(AGENTS), dict[str, "Script"]()
    for place, (who, role) in enumerate(AGENTS.items()):
        other = "dev" if role == "ops" else "ops"
        scripts[who] = (
            Op("send", who, "all", f"{who}-1"),
            Op("check", who),
            Op("send", who, f"role:{other}", f"{who}-2"),
            Op("send", who, names[place - 1], f"{who}-3", ack=True),
            Op("send", who, "all", f"{who}-4"),
            Op("check", who),
        )
    for number in "12":
        scripts[f"retry {number}"] = (Op("send", "ci", "all", "retried"),)
        scripts[f"conflict {number}"] = (Op("send", "ci", "bob", f"conflict of {number}"),)
        scripts[f"name {number}"] = (Op("register", f"new-{number}", words="Wanted", to="ops2"),)
    scripts["lease 1"], scripts["lease 2"] = (Op("lease", "ada"),), (Op("lease", "cyd"),)
    scripts["steward 1"] = (Op("steward", "user"), Op("steward", "user"))
    return scripts


def after() -> Script:
    """What is done last: everyone looks, and deals with what asks for that."""
    names = list(AGENTS)
    acks = (Op("ack", names[place - 1], words=f"{who}-3") for place, who in enumerate(names))
    return (*(Op("check", who) for who in AGENTS), *acks, *(Op("owes", who) for who in AGENTS), Op("history", "user"))


class Seen:
    """What came of all commands."""

    def __init__(self) -> None:
        self.codes: dict[str, list[int]] = {}
        """By the first word of a script's name: the exit codes."""
        self.shown: dict[str, list[str]] = {who: [] for who in AGENTS}
        """The ids that each agent was shown, in order."""
        self.owed: dict[str, list[str]] = {}
        self.readers: dict[str, list[str]] = {}

    def told(self, script: str, op: Op, code: int, answer: Any) -> None:
        """Note what came of one command."""
        self.codes.setdefault(script.partition(" ")[0], []).append(code)
        if op.kind == "check":
            self.shown[op.who] += answer
        elif op.kind == "owes":
            self.owed[op.who] = answer
        elif op.kind == "history":
            self.readers = answer

    def observed(self) -> dict[str, Any]:
        """What every order must give."""
        sent = [op for script in beside().values() for op in script if op.kind == "send"]
        labels = {_send_id(op): op.words.partition(" ")[0] for op in sent}
        roles = {op.words for op in sent if op.to.startswith("role:")}
        shown = {who: [labels[i] for i in ids] for who, ids in self.shown.items()}
        own = {who: [label for label in mine if label not in roles] for who, mine in shown.items()}
        readers = {labels[i]: sorted(names) for i, names in self.readers.items() if i in labels}
        return {
            "codes": {name: sorted(codes) for name, codes in sorted(self.codes.items())},
            "shown": {who: sorted(mine) for who, mine in own.items()},
            "order": {who: _by_sender(mine) for who, mine in own.items()},
            "role mail": {label: sum(mine.count(label) for mine in shown.values()) for label in sorted(roles)},
            "read by": {label: len(names) if label in roles else names for label, names in sorted(readers.items())},
            "owed": self.owed,
        }


def _by_sender(labels: Iterable[str]) -> dict[str, list[str]]:
    """What each sender's messages were, in the order in which they were shown."""
    found: dict[str, list[str]] = {who: [] for who in AGENTS}
    for label in labels:
        found.setdefault(label.partition("-")[0], []).append(label)
    return found


def _send_id(op: Op) -> str:
    return label_id("conflict" if op.words.startswith("conflict") else op.words)


# -- simulated --------------------------------------------------------------------------------------------------------


def simulated(seed: int) -> dict[str, Any]:
    """What is observed where a seed chooses who goes on at every call, and nothing goes wrong."""
    world = World(seed, Profile(switch=0.3, strict=seed % 2 == 0))
    world.quiet = True
    stage, seen = Stage(world, Judge(world), 0, 0), Seen()
    with world:
        _run(world, {"found": lambda: upkeep.found(stage, None), "project": lambda: coordination.project(None)})  # type: ignore[arg-type]
        for op in before():
            _run(world, {"before": partial(_script, stage, seen, "before", (op,))})
        world.quiet = False
        _run(world, {name: partial(_script, stage, seen, name, script) for name, script in beside().items()})
        world.quiet = True
        for op in after():
            _run(world, {"after": partial(_script, stage, seen, "after", (op,))})
    return seen.observed()


def _run(world: World, works: Mapping[str, Callable[[], object]]) -> None:
    processes = [world.spawn(name, partial(_work, work)) for name, work in works.items()]
    while world.living() and world.turn():
        pass
    for process in processes:
        if process.error is not None:
            raise process.error
    world.processes.clear()


def _work(work: Callable[[], object], _: Any) -> None:
    work()


def _script(stage: Stage, seen: Seen, name: str, script: Iterable[Op]) -> None:
    for op in script:
        try:
            code, answer = 0, _done(stage, op)
        except MailboxError as error:
            code, answer = error.exit_code, []
        seen.told(name, op, code, answer)


def _done(stage: Stage, op: Op) -> Any:
    desk = stage.desk(op.who, proof=proofs.STEWARD if op.kind == "steward" else None)
    if op.kind == "register":
        desk.register(Registration(session_id=op.who, name=op.words, roles=(op.to,)), op.who)
    elif op.kind == "send":
        desk.send(Draft(op.who, (op.to,), op.words, id=_send_id(op), ack=op.ack, ttl_hours=LASTING))
    elif op.kind == "check":
        shown: list[str] = []
        desk.deliver(op.who, lambda items: [shown.append(item.message.id) or item for item in items])  # type: ignore[func-returns-value]
        return shown
    elif op.kind == "ack":
        desk.ack(_send_id(op), op.who)
    elif op.kind == "owes":
        return [message.id for message in MailQueries(desk).status(op.who).obligations]
    elif op.kind == "lease":
        Leasing(desk).lease(op.who, ["src/a.py"], "/work", 60)
    elif op.kind == "steward":
        steward.run_upkeep(desk, 0)
    elif op.kind == "history":
        everything = MailQueries(desk).everything()
        return {i: [read.session_id for read in everything.reads.of(i)] for i in everything.messages}
    return None


# -- real -------------------------------------------------------------------------------------------------------------


def real(scratch: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """What is observed of the command, in real processes at once."""
    project = scratch / "project"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    seen = Seen()
    answer = partial(_answer, seen, project, environ)
    for op in before():
        answer("before", (op,))
    with ThreadPoolExecutor(max_workers=len(beside())) as pool:
        for done in [pool.submit(answer, name, script) for name, script in beside().items()]:
            done.result()
    for op in after():
        answer("after", (op,))
    return seen.observed()


def _answer(seen: Seen, project: Path, environ: Mapping[str, str], name: str, script: Iterable[Op]) -> None:
    for op in script:
        done = subprocess.run(
            [*COMMAND, *_words(op), "--json"],
            cwd=project,
            env=dict(environ),
            capture_output=True,
            check=False,
            timeout=120,
        )
        said = json.loads(done.stdout)
        found: Any = [message["id"] for message in said.get("obligations" if op.kind == "owes" else "messages", ())]
        if op.kind == "history":
            found = {message["id"]: message["read_by"] for message in said["messages"]}
        seen.told(name, op, done.returncode, found)


def _words(op: Op) -> list[str]:
    return {
        "register": ["roster", "register", "--session-id", op.who, "--name", op.words, "--role", op.to],
        "send": [
            *("send", "--from", op.who, "--to", op.to, "--body", op.words, "--id", _send_id(op)),
            *("--ttl-hours", str(LASTING), *(["--ack"] if op.ack else [])),
        ],
        "check": ["check", "--session", op.who, "--limit", "0"],
        "ack": ["ack", _send_id(op), "--session", op.who],
        "owes": ["status", "--session", op.who],
        "lease": ["lease", "take", "src/a.py", "--session", op.who],
        "steward": ["steward", "run", "--max-live", "0"],
        "history": ["history", "--all", "--limit", "0"],
    }[op.kind]


def test_processes_at_once_answer_as_the_simulated_ones(post: Post) -> None:
    """Four agents, a steward, and pairs that want the same id, name and file: whoever comes first, one gets it."""
    wanted = simulated(1)
    assert wanted["codes"]["name"] == wanted["codes"]["lease"] == wanted["codes"]["conflict"] == [0, 1]
    assert {*wanted["role mail"].values()} == {1}
    assert wanted["shown"]["bob"].count("conflict") == wanted["shown"]["ada"].count("retried") == 1
    assert wanted["owed"] == {who: [] for who in AGENTS}
    assert real(post.scratch, post.environ()) == wanted


@pytest.mark.parametrize("seed", range(2, 5))
def test_no_order_changes_what_is_observed(seed: int) -> None:
    """Another seed has other processes go first."""
    assert simulated(seed) == simulated(1)
