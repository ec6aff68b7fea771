"""Leases and notes of edits: commands, and what the judge holds them to.

Belongs here: sessions that lease files of a project, and write beside each other. The guard before a tool is the
shell's (``agent-mailbox-hook``) as far as it reads ``.cache/edits``, and behind it the real Python. The judge holds:

- No two sessions are told at once that they lease one file.
- Nobody is told of a lease of a session that was retired since.
- Who writes a leased file is told of the lease, the first time; so is one of two that write one file beside each other.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from agent_mailbox.clients import client_input
from agent_mailbox.clients.permission.lease_guard import LeaseGuard
from agent_mailbox.control.leasing import Leasing
from agent_mailbox.errors import NotFound, Refused
from agent_mailbox.store.files import system
from agent_mailbox.store.files.edits import RECENT
from tests.simulation.coordination_told import Lease, is_there
from tests.simulation.places import BOX
from tests.simulation.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("lease", "unlease", "edit", "page", "write", "shell", "lose_notes")
SCENES = {
    "leases": Scene(
        2.5,
        "everyone check",
        "lease! lease! edit lease unlease edit run_steward retire register",
        "everyone edit unlease lease",
        least=3,
    ),
    "edits beside each other": Scene(
        2, "everyone edit", "edit! edit! lease unlease edit run_steward check", "everyone edit", least=3
    ),
}
TREES = ("/work", "/two")
"""Two worktrees of one repository."""
COVERS = {
    "src/a.py": ("src/a.py",),
    "src": ("src/a.py", "src/b.py"),
    "src/*.py": ("src/a.py", "src/b.py"),
    "docs/x.md": ("docs/x.md",),
}
"""The paths and patterns that sessions lease, and the files that each covers."""
FREE = ("notes.md", "docs/y.md")
"""Files that nobody leases."""


def project(_: Process) -> None:
    """Make two worktrees of a repository."""
    for path in ("/work", "/work/.git", "/work/.git/worktrees", "/work/.git/worktrees/two", "/work/src", "/work/docs"):
        system.mkdir(path)
    for path in ("/two", "/two/src", "/two/docs"):
        system.mkdir(path)
    for path, text in (
        ("/two/.git", b"gitdir: /work/.git/worktrees/two\n"),
        ("/work/.git/worktrees/two/commondir", b"../..\n"),
        ("/work/.git/worktrees/two/gitdir", b"/two/.git\n"),
    ):
        fd = system.open(path, system.O_WRONLY | system.O_CREAT, 0o600)
        system.write(fd, text)
        system.fsync(fd)
        system.close(fd)
    for path in ("/", "/work", "/work/.git", "/work/.git/worktrees", "/work/.git/worktrees/two", "/two"):
        system.sync_directory(path)


def lease(stage: Stage, process: Process, me: Session) -> None:
    """Lease files of a project; another's lease refuses that."""
    if not is_there(me):
        return
    words = list(COVERS)
    pattern, tree = words[int(process.chance.random() * len(words))], TREES[int(process.chance.random() * 2)]
    minutes = (5, 60, 600)[int(process.chance.random() * 3)]
    ended, stage.told.leasing[me.id] = _ended(stage, me), inf
    try:
        made = Leasing(stage.desk(me.id)).lease(me.id, [pattern], tree, minutes)
    except (Refused, NotFound) as error:
        _has_ended(stage, me, ended, str(error))
        return
    finally:
        stage.told.leasing[me.id] = stage.world.calls
    stage.judge.acknowledge(("message", made.message_id))
    if not made.proven or me.may_be_dead:
        return
    mine = Lease(stage.world, me, COVERS[pattern], made.id, made.ends)
    for other in _held_by_others(stage, me):
        if mine.holds() and {*other.files} & {*mine.files}:
            stage.judge.breach(f"{me.id} and {other.holder.id} both lease {pattern}")
    if not process.hurt:
        stage.told.leases.append(mine)


def _held_by_others(stage: Stage, me: Session) -> list[Lease]:
    """The leases that others hold. Leasing the same later takes the earlier one's place, be it for a shorter time."""
    latest = {(one.holder.id, one.files): one for one in stage.told.leases}
    return [one for one in latest.values() if one.holds() and one.holder.id not in me.line]


def _ended(stage: Stage, me: Session) -> list[Session]:
    """The others that were retired since they last leased anything, whether they came back or not."""
    told = stage.told
    return [
        other
        for who, other in stage.judge.sessions.items()
        if other is not me
        and not other.passings
        and other.heir is None
        and told.ended.get(who, -1) > told.leasing.get(who, -1)
    ]


def _has_ended(stage: Stage, me: Session, ended: list[Session], said: str) -> None:
    """Nobody is told of a lease that ended with its session."""
    still = _ended(stage, me)
    for other in ended:
        if other in still and f"leased by {other.name} " in said and not stage.world.befell("jump"):
            stage.judge.breach(f"{me.id} is told of a lease of {other.id}, which was retired since")


def unlease(stage: Stage, process: Process, me: Session) -> None:
    """Give a lease back."""
    mine = [one for one in stage.told.leases if one.holder is me and not one.over]
    if mine:
        given = mine[int(process.chance.random() * len(mine))]
        given.over = True
        try:
            Leasing(stage.desk(me.id)).release_lease(me.id, given.id)
        except (Refused, NotFound):
            if not me.may_be_dead and given.holds():
                raise


def edit(stage: Stage, process: Process, me: Session) -> None:
    """Before a tool writes a file: the shell guard, and Python where that cannot tell."""
    if not is_there(me):
        return
    tree = TREES[int(process.chance.random() * 2)]
    files = (*COVERS["src"], "docs/x.md", *FREE)
    file = files[int(process.chance.random() * len(files))]
    _edit(stage, process, me, tree, file)


def page(stage: Stage, process: Process, me: Session) -> None:
    """There is another file to write."""
    stage.told.pages += 1


def write(stage: Stage, process: Process, me: Session) -> None:
    """Before a tool writes the file that others write as well, and nobody leases."""
    if is_there(me):
        _edit(stage, process, me, TREES[0], f"page-{stage.told.pages}.md")


def _edit(stage: Stage, process: Process, me: Session, tree: str, file: str) -> None:
    real, told, begun = f"{tree}/{file}", stage.told, stage.world.now
    ended = _ended(stage, me)
    leased, is_free = _leased(stage, me, file), not any(file in files for files in COVERS.values())
    beside = [*_beside(stage, me, real)] if is_free else []
    told.about.update(((me.id, file), (me.id, real)))  # perhaps: it may be killed before it says so
    nothing, losses = _guard_says_nothing(me, real), told.losses
    said = "" if nothing else _answer(stage, me, tree, real)
    _has_ended(stage, me, ended, said)
    told.is_blind = told.is_blind and (nothing or process.hurt or losses != told.losses)
    if process.hurt or stage.world.befell("full"):
        return
    _is_told(stage, me, file, leased, said)
    alone = told.about[me.id, real] == 1 and not any(
        told.about[who, real] for who in stage.judge.sessions if who != me.id
    )
    beside = [
        other for other in beside if is_there(other) and _is_recent(stage, told.edits.get(real, {}).get(other.id, 0))
    ]
    if beside and alone and not stage.world.befell("jump") and "edited" not in said:
        stage.judge.breach(f"{me.id} writes {real}, and is not told of {beside[0].id}, which did so before")
    if is_free and not nothing and losses == told.losses:
        if alone and not said:
            _one_is_told(stage, me, real, begun)
        told.looked.setdefault(real, {})[me.id] = stage.world.now, losses
    if not said and not leased:
        told.about.subtract(((me.id, file), (me.id, real)))
    told.edits.setdefault(real, {})[me.id] = begun


def _one_is_told(stage: Stage, me: Session, real: str, begun: int) -> None:
    """Of two that write a file at once, and ask Python, each notes that before it looks: so one sees the other."""
    for who, (ended, losses) in stage.told.looked.get(real, {}).items():
        other = stage.judge.sessions[who]
        is_fit = who not in me.line and ended > begun and losses == stage.told.losses and not other.may_be_frozen
        if is_fit and is_there(other) and _is_recent(stage, begun) and not stage.world.befell("jump"):
            stage.judge.breach(f"{me.id} and {who} write {real} beside each other, and neither is told")


def _leased(stage: Stage, me: Session, file: str) -> list[Lease]:
    """The leases of others on a file."""
    return [one for one in _held_by_others(stage, me) if file in one.files]


def _is_told(stage: Stage, me: Session, file: str, leased: list[Lease], said: str) -> None:
    still = [one for one in leased if one.holds() and one.failures == stage.world.failures_of_power]
    if still and stage.told.about[me.id, file] == 1 and not me.deaths and "leased by" not in said:
        stage.judge.breach(f"{me.id} writes {file}, and is not told of {still[0].holder.id}'s lease")


def shell(stage: Stage, process: Process, me: Session) -> None:
    """Before a command writes a file: the shell guard looks for the note of leases, and Python at the command."""
    if not is_there(me):
        return
    tree, told = TREES[int(process.chance.random() * 2)], stage.told
    files = (*COVERS["src"], "docs/x.md")
    file = files[int(process.chance.random() * len(files))]
    leased, is_blind, losses = _leased(stage, me, file), told.is_blind, told.losses
    told.about[me.id, file] += 1
    ended = _ended(stage, me)
    said = _answer(stage, me, tree, f"echo > {file}", "Bash") if system.exists(f"{BOX}/.cache/edits/.leased") else ""
    _has_ended(stage, me, ended, said)
    if process.hurt or stage.world.befell("full") or is_blind or losses != told.losses:
        return
    _is_told(stage, me, file, leased, said)
    if not said and not leased:
        told.about[me.id, file] -= 1


def lose_notes(stage: Stage, process: Process, me: Session) -> None:
    """The notes of leases and edits go, as derived files may at any time."""
    told, edits = stage.told, f"{BOX}/.cache/edits"
    told.forget()
    try:
        if system.is_directory(edits):
            for name in sorted(system.listdir(edits)):
                if system.is_directory(f"{edits}/{name}"):
                    for note in sorted(system.listdir(f"{edits}/{name}")):
                        system.unlink(f"{edits}/{name}/{note}")
                    system.rmdir(f"{edits}/{name}")
                else:
                    system.unlink(f"{edits}/{name}")
            system.rmdir(edits)
    finally:
        told.forget()


def _beside(stage: Stage, me: Session, real: str) -> Iterator[Session]:
    """The living that wrote a file in the last minutes, none of which was told of another."""
    for who, when in stage.told.edits.get(real, {}).items():
        session = stage.judge.sessions[who]
        if who in me.line or not _is_recent(stage, when) or stage.world.befell("jump"):
            continue
        if stage.told.about[who, real] or session.may_be_frozen or not is_there(session):
            return
        yield session


def _is_recent(stage: Stage, when: int) -> bool:
    return when > max(stage.world.now - (RECENT - 60_000) * 1_000_000, stage.world.started)


def _guard_says_nothing(me: Session, real: str) -> bool:
    """The shell guard's look at ``.cache/edits``, in its order of calls."""
    edits, note = f"{BOX}/.cache/edits", real.replace("/", ":")
    mine = f"{edits}/{me.id}"
    if not system.is_directory(mine) or system.exists(f"{edits}/.leased"):
        return False
    for name in sorted(system.listdir(edits)):
        if not name.startswith(".") and name != me.id and system.exists(f"{edits}/{name}/{note}"):
            return False
    if system.size(f"{mine}/{note}") == 0:
        try:
            system.close(system.open(f"{mine}/{note}", system.O_WRONLY | system.O_CREAT | system.O_TRUNC, 0o600))
        except OSError:
            pass
    return True


def _answer(stage: Stage, me: Session, tree: str, what: str, tool: str = "Write") -> str:
    given = {"file_path" if tool == "Write" else "command": what}
    call = client_input.ClientInput(
        event="PreToolUse", session_id=me.id, cwd=tree, here=tree, tool=tool, given=given, told=True,
        command=given.get("command", ""),
    )  # fmt: skip
    desk = Leasing(stage.desk(me.id, wait=client_input.LOCK_WAIT))
    return LeaseGuard(call=call, desk=desk, program="agent-mailbox").answer_call()
