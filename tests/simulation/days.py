"""Days of three sessions that have two and more of each: leads, idle notices, batches, notes, handovers.

Belongs here: what the sessions of ``rich`` do beside their mail, the sweeps in which days go by, and what the texts
say of it (docs/concepts.md, docs/coordination.md), asked without a rule of the product. An idle notice is a state: its
last one for a reader is unread (``tests.judge``). Each page of a channel goes on where the one before ended. A handover
names the last notes. An edit points to the notes that name the file or a directory above it, and to no others.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent_mailbox.clients import client_input
from agent_mailbox.clients.permission.lease_guard import LeaseGuard
from agent_mailbox.control import handing_over
from agent_mailbox.control.leasing import Leasing
from agent_mailbox.control.orders import report_idle
from agent_mailbox.core import proofs
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import NotFound, Refused
from agent_mailbox.mailbox.mail_pages import MailPages
from agent_mailbox.mailbox.noting import Noting
from agent_mailbox.mailbox.selection import Position
from agent_mailbox.store.files import system
from tests.simulation import rich
from tests.simulation.questions import Moment, alone
from tests.simulation.scene import Sweep
from tests.simulation.stage import pick

if TYPE_CHECKING:
    from tests.simulation.letters import Session
    from tests.simulation.process import Process
    from tests.simulation.stage import Stage

COMMANDS = ("lead_anew", "end_turn", "post_many", "page_through", "add_note", "edit_noted", "hand_notes_over")
LEADS, WORKER = rich.IDS[:2], rich.IDS[2]
PARTS = ("src/parse", "src/parse/deep")
"""Directories that notes name: each is the beginning of a file's name beside it."""
FILES = ("src/parser.py", "src/parse/x.py", "src/parse.py", "src/parse/deep/y.py", "src/parse/deeper.py")
QUIET = ("in peace", "in peace", "held", "is killed")
SWEEPS = {
    "idle notices of two leads": Sweep(
        1.5,
        "_meet lead_anew end_turn lead_anew? end_turn? later? / "
        "end_turn|take|run_steward lead_anew? end_turn? / "
        "_take end_turn? _take",
        QUIET,
        agents=3,
        rounds=6,
        live=(0, 1),
    ),
    "pages of a channel": Sweep(
        1,
        "_meet post_many@0 post_around@2 post_many@1? / "
        "page_through|run_steward post_many|take / "
        "page_through later? run_steward? page_through",
        QUIET,
        small=0.7,
        agents=3,
        rounds=3,
    ),
    "many notes": Sweep(
        1,
        "_meet add_note add_note add_note? add_note? / "
        "edit_noted|hand_notes_over add_note? / "
        "edit_noted edit_noted hand_notes_over later?",
        QUIET,
        agents=3,
        rounds=6,
    ),
    "dead letters of two months": Sweep(
        2,
        "_meet post_around post_around@1 post_around@2 depart? night run_steward / "
        "run_steward|take|depart / "
        "_meet _take night run_steward night? run_steward _take run_steward",
        QUIET,
        agents=3,
        live=(0, 3, 6, 9),
        rounds=6,
        starts=rich.TURNS,
    ),
    "mail that is offered twice": Sweep(
        1,
        "launch@0 ring@1 ring@1? lose@0 prompt@0 die / "
        "check@2|run_steward|check@2 run_steward? / "
        "launch@0 use@0? check@2 prompt@0 check@0",
        ("held", "in peace"),
        rounds=6,
        clients=True,
        agents=3,
    ),
    "a process that stays as mail expires": Sweep(
        1,
        "_check mortal mortal mortal? configure? later? / "
        "stand|stand configure|stand|configure / "
        "stand configure stand",
        ("in peace", "held"),
        agents=2,
        rounds=6,
    ),
}


def lead_anew(stage: Stage, process: Process, me: Session) -> None:
    """The person puts the worker under one of two leads."""
    request = Registration(session_id=WORKER, event="update", lead=str(pick(process, LEADS)))
    stage.desk(proof=proofs.TERMINAL).register(request, "user")


def end_turn(stage: Stage, process: Process, me: Session) -> None:
    """The worker's turn ends: its lead of that moment is told."""
    sent = report_idle(stage.desk(WORKER), WORKER)
    if sent is not None:
        stage.judge.rich.add(sent.message.id)


def post_many(stage: Stage, process: Process, me: Session) -> None:
    """Send a batch to a tag, in one instant."""
    who = rich.name_of(me)
    tag = str(pick(process, ("project:a", "project:ab")))
    stage.desk(who).send_all(
        [rich.draft(stage, process, who, [tag]) for _ in range(2 + int(process.chance.random() * 4))]
    )


def page_through(stage: Stage, process: Process, me: Session) -> None:
    """Go through a channel page by page: all mail to it is there, once, whatever shares an instant."""
    who, tag, limit = rich.name_of(me), str(pick(process, ("project:a", "project:ab"))), int(pick(process, (2, 3, 5)))
    before, told = Moment(stage.world, process), list[str]()
    channels, at = MailPages(stage.desk(who)), None
    for _ in range(50):
        page = channels.channel(tag, at, limit)
        told = [*(message.id for message in page.messages), *told]
        at = page.before if isinstance(page.before, Position) else None
        if at is None:
            break
    if before.files != Moment(stage.world, process).files or process.hurt:
        return
    with alone(stage.world):
        judge = rich.judge_at(stage, stage.world.wall() // 1_000_000)
    wanted = {mail.id for mail in judge.mail if tag in mail.to}
    if missing := wanted - {*told}:
        stage.judge.breach(f"{who} goes through {tag}, and {min(missing)} is on no page")
    if len(told) != len({*told}):
        stage.judge.breach(f"{who} goes through {tag}, and a message is on two pages")


def add_note(stage: Stage, process: Process, me: Session) -> None:
    """Keep a note about files of the project."""
    who, part = rich.name_of(me), str(pick(process, PARTS))
    for one in PARTS:
        if not system.is_directory(f"/work/{one}"):
            system.mkdir(f"/work/{one}")
    stage.count += 1
    made = Noting(stage.desk(who)).add_note(who, ["project:a"], f"note {stage.count}", f"see {part}", "", "/work")
    stage.noted[made.id] = part


def edit_noted(stage: Stage, process: Process, me: Session) -> None:
    """Before a tool writes a file: the session is pointed to the notes about it, once, and to no others."""
    who, file, known = rich.name_of(me), str(pick(process, FILES)), dict(stage.noted)
    call = client_input.ClientInput(
        event="PreToolUse", session_id=who, cwd="/work", here="/work", tool="Write", told=True,
        given={"file_path": f"/work/{file}"},
    )  # fmt: skip
    about = {one for one, part in known.items() if file.startswith(f"{part}/")}
    due = {one for one in about if (who, one) not in stage.pointed}
    stage.pointed.update((who, one) for one in about)
    said = LeaseGuard(call=call, desk=Leasing(stage.desk(who)), program="agent-mailbox").answer_call()
    told = {one for one in re.findall(r"note-\w+", said) if one in known}
    if wrong := told - about:
        stage.judge.breach(f"{who} writes {file}, and is pointed to {min(wrong)}, which is about {known[min(wrong)]}")
    if (missing := due - told) and not process.hurt:
        stage.judge.breach(f"{who} writes {file}, and is not pointed to {min(missing)}")


def hand_notes_over(stage: Stage, process: Process, me: Session) -> None:
    """Hand over to a role: what the session noted last is in it."""
    who, others = rich.name_of(me), stage.world.calls - process.calls
    try:
        sent, _ = handing_over.hand_over(stage.desk(who), who, [str(pick(process, ("role:op", "project:ab")))])
    except (Refused, NotFound):
        return
    if others != stage.world.calls - process.calls:
        return
    with alone(stage.world):
        judge = rich.judge_at(stage, stage.world.wall() // 1_000_000)
    mine = [str(mail.line["subject"]) for mail in judge.mail if mail.kind == "note" and mail.sender == who]
    named = re.findall(r'\\"(note \d+)\\"', sent.message.content)
    if mine and named != mine[-len(named) :]:
        stage.judge.breach(f"{who} hands over, and its last notes are {mine[-3:]}, not {named}")
