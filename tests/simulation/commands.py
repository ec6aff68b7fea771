"""What simulated processes do: the facade's calls, and what the judge learns of each.

Belongs here: one function for a command, called in a process of its own. It tells the judge what it was about to do,
calls the product, and tells what came of it. Must not know how calls are scheduled.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_mailbox.clients.hooks import hook_events
from agent_mailbox.clients.permission.permit import Permit
from agent_mailbox.core import proofs
from agent_mailbox.core.compose import Draft
from agent_mailbox.core.control import messages
from agent_mailbox.core.ids import uuid_of
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import Busy, MailboxError, NotFound, Refused, StorageFailed
from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.mailbox.delivery import Delivery
from agent_mailbox.mailbox.facade import Mailbox
from agent_mailbox.mailbox.opened import wall_clock
from agent_mailbox.store import attachment_files, creation, system
from agent_mailbox.upkeep import backup, doctor, restoring, steward
from tests.simulation import guard
from tests.simulation.coordination import Told, ends_turn
from tests.simulation.disk import SECOND
from tests.simulation.judge import BOX, FREE, LIVE, OFFERED, READ, Judge, Letter, Session
from tests.simulation.policies import Ruled
from tests.simulation.side_files import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_mailbox.core.inbox import Item
    from tests.simulation.clients import Client
    from tests.simulation.world import Process, World

ROLES = ("role:ops", "role:dev")
TAGS = ("project:sun", "project:moon")
LEAD = "agent-0"
STATE = "/home/.local/state/agent-mailbox"
UNTIDY = ("kill", "faint", "power", "fault", "stop", "slow", "jump")
"""What may leave something that the steward reports: a torn line, a lock that it did not get, mail that came back."""
LASTING = 40_000
"""Hours that mail lives: longer than any world."""
WIDE = 1000
"""Room for all mail."""


class Stage:
    """A world with its judge and its agents, as commands see them."""

    def __init__(self, world: World, judge: Judge, agents: int, max_live: int) -> None:
        self.world = world
        self.judge = judge
        self.max_live = max_live
        self.count = 0
        self.requests: list[str] = []
        self.reserved: list[tuple[str, str]] = []
        """Ids of messages to come, each with a session of which a record says already that it read that."""
        self.early: set[str] = set()
        """Such messages that came: a cursor, which begins behind that record, counts them as unread."""
        self.drafts: dict[str, Draft] = {}
        """What was sent, by id, to be sent again."""
        self.clients: dict[str, Client] = {}
        self.cache: dict[str, tuple[bytes, int]] = {}
        """A copy of the derived files: the content of each, and its time."""
        self.cached = 0
        """When that was made."""
        self.told = Told()
        self.waiting = Waiting()
        self.ruled = Ruled()
        self.present: dict[str, str] = {}
        """Who has the place of each agent that another session continues."""
        for number in range(agents):
            name = f"agent-{number}"
            judge.sessions[name] = Session(name, ROLES[number % 2], TAGS[number // 2 % 2])

    def desk(
        self,
        session_id: str | None = None,
        *,
        proof: str | None = None,
        wait: float | None = None,
        clock: Callable[[], int] = wall_clock,
    ) -> Mailbox:
        """The mailbox as a process of that session opens it."""
        said = proof or (proofs.of_session(session_id) if session_id else None)
        return Mailbox(BOX, prove=lambda _: said, wait=wait, clock=clock)

    def letter(self, sender: str, to: str, process: Process) -> Letter:
        """A new letter, about to be sent."""
        self.count += 1
        message_id = uuid_of(f"{process.chance.getrandbits(128):032x}", "4")
        early = ""
        if self.reserved and process.chance.random() < 0.5:
            message_id, early = self.reserved.pop()
        size = (20, 20, 20, 300, 3000)[int(process.chance.random() * 5)]
        text = f"number {self.count} of {sender} to {to} “ünharmed” ".ljust(size, ".")
        letter = Letter(self.count, message_id, sender, to, text, self.world.calls)
        self.judge.letters[message_id] = letter
        if early:
            self.early.add(message_id)
            self.judge.noted(self.judge.sessions[early], message_id)
        return letter

    def registered(self) -> list[Session]:
        """The sessions that are alive as far as the judge knows."""
        return [s for s in self.judge.sessions.values() if s.registered is not None and not s.may_be_dead]


Command = "Callable[[Stage, Process, Session], None]"


def pick(process: Process, words: Sequence[Any]) -> Any:
    """One of them, by the process's own chance."""
    return words[int(process.chance.random() * len(words))]


def found(stage: Stage, process: Process, me: Session | None = None) -> None:
    """Make the mailbox."""
    creation.create(BOX, system.environment())
    if stage.judge.founded is None:
        stage.judge.founded = stage.world.calls


def register(stage: Stage, process: Process, me: Session) -> None:
    """Register, or revive, a session."""
    request = Registration(session_id=me.id, roles=(me.role.removeprefix("role:"),), tags=(me.tag,), name=me.name)
    me.may_hold = True
    begun = stage.world.calls
    stage.desk(me.id).register(request, me.id)
    me.holds = True
    if me.registered is None:
        me.registered = stage.world.calls
    if me.may_be_dead:
        stage.judge.dying(me)
    if me.retiring < begun and not (me.retirer is not None and not me.retirer.ended):
        me.retired = me.may_be_dead = False
    me.seen = stage.world.now
    stage.judge.acknowledge(("agent", me.id))


def _draft(letter: Letter, process: Process) -> Draft:
    letter.ack = process.chance.random() < 0.3
    if process.chance.random() < 0.15:
        letter.class_ = 0
    letter.lasting = process.chance.random() < 0.85
    return Draft(
        sender=letter.sender,
        to=(letter.to,),
        content=letter.content,
        ack=letter.ack,
        priority="high" if letter.class_ == 0 else "normal",
        ttl_hours=LASTING if letter.lasting else pick(process, (2, None)),
        id=letter.id,
        attachments=letter.attachments,
    )


def _address(stage: Stage, process: Process, me: Session) -> str:
    drawn = process.chance.random()
    others = [other.id for other in stage.registered() if other is not me and other.holds]
    if drawn < 0.5 and others:
        found: str = pick(process, others)
        return found
    return str(pick(process, (*ROLES, *TAGS, "all")))


def send(stage: Stage, process: Process, me: Session) -> None:
    """Send a message; after a failure try again under the same id, as the hint says."""
    _send(stage, process, me, _address(stage, process, me))


def call(stage: Stage, process: Process, me: Session) -> None:
    """Send a message to one of those who hold a role, which others hold rather than oneself."""
    _send(stage, process, me, ROLES[(ROLES.index(me.role) + (process.chance.random() < 0.7)) % len(ROLES)])


def _send(stage: Stage, process: Process, me: Session, to: str) -> None:
    letter = stage.letter(me.id, to, process)
    draft = stage.drafts[letter.id] = _draft(letter, process)
    for attempt in range(3):
        try:
            stage.desk(me.id).send(draft)
        except (Busy, StorageFailed):
            if attempt == 2:
                raise
            continue
        stage.judge.sent(letter)
        if process.chance.random() < 0.9:
            return


def resend(stage: Stage, process: Process, me: Session) -> None:
    """Send a message once more under its id, as whoever was not told repeats it, and however late."""
    mine = [i for i in stage.drafts if stage.judge.letters[i].sender == me.id] or list(stage.drafts)
    if mine:
        message_id = str(pick(process, mine[-int(pick(process, (1, 1, 2, 8))) :]))
        stage.desk(stage.judge.letters[message_id].sender).send(stage.drafts[message_id])
        stage.judge.sent(stage.judge.letters[message_id])


def attach(stage: Stage, process: Process, me: Session) -> None:
    """Keep a file, and send a message that names it. If that comes late, the steward may have removed the file."""
    letter = stage.letter(me.id, _address(stage, process, me), process)
    begun, content = stage.world.now, letter.content.encode()
    try:
        file = attachment_files.put(BOX, f"{letter.number}.txt", [content])
        letter.attachments = [file.entry()]
        stage.desk(me.id).send(_draft(letter, process))
    except (NotFound, StorageFailed) as error:
        if stage.world.now - begun < (attachment_files.GRACE - 1000) * 1_000_000 and not stage.world.befell("jump"):
            if "no such attachment" in str(error):
                stage.judge.breach(f"{me.id} sends a file of this minute, and the mailbox does not have it")
            raise
        return
    letter.stored = attachment_files.place(BOX, file.stored)
    stage.judge.sent(letter)


def send_many(stage: Stage, process: Process, me: Session) -> None:
    """Send a batch."""
    letters = [stage.letter(me.id, _address(stage, process, me), process) for _ in range(3)]
    for letter in letters:
        letter.begun = stage.world.calls
    stage.desk(me.id).send_all([_draft(letter, process) for letter in letters])
    for letter in letters:
        stage.judge.sent(letter)


def check(stage: Stage, process: Process, me: Session) -> None:
    """Show a session its mail, or a part of it."""
    room = int(process.chance.random() * 4) + 1 if process.chance.random() < 0.3 else WIDE
    _deliver(stage, process, me, room)


def _deliver(stage: Stage, process: Process, me: Session, room: int = WIDE, pause: float = 0) -> int:
    shown: list[str] = []
    waiting = Waits(stage, process, me)

    def show(items: list[Item]) -> Sequence[Item]:
        given = items[:room]
        shown.extend(_seen(stage, process, me, given))
        if pause:
            system.sleep(pause)
        return given

    try:
        count = stage.desk(me.id).deliver(me.id, show, choose=lambda items: items[:room])
    except Refused:
        if not (me.is_leaving or stage.world.now - me.seen > 23 * 3600 * 10**9):
            raise
        me.may_be_dead = True
        return 0
    if me.registered is None:
        me.registered = stage.world.calls
    me.seen = stage.world.now
    me.trusts_stamps = True
    stage.judge.recorded(me.id, shown)
    if room == WIDE:
        waiting.are_shown(shown)
    return count


class Waits:
    """What waits for a session that looks: if nobody disturbs it, it is shown all of that."""

    def __init__(self, stage: Stage, process: Process, me: Session) -> None:
        self.stage, self.process, self.me = stage, process, me
        self.others = stage.world.calls - process.calls
        is_alone = not any(other.calls for other in stage.world.living() if other is not process)
        is_alone = is_alone and not stage.world.disk.spoiled  # who is gone cannot be told then
        letters = stage.judge.letters.values() if is_alone and not me.is_leaving and not me.may_be_dead else ()
        self.there = [letter.id for letter in letters if stage.judge.waits(me, letter)]

    def are_shown(self, shown: Sequence[str]) -> None:
        """It looked, and had room for everything."""
        world, process = self.stage.world, self.process
        if self.others != world.calls - process.calls or process.hurt or world.befell("jump") or process.is_late:
            return
        for message_id in self.there:
            if message_id not in shown:
                self.stage.judge.breach(f"{self.me.id} looks for mail, and is not shown {message_id}")


def _seen(stage: Stage, process: Process, me: Session, items: Sequence[Item]) -> list[str]:
    """Tell the judge what a session is shown; its ids, but for control messages, which the judge knows otherwise."""
    mail = [item.message for item in items if item.message.type == "message"]
    if mail:
        stage.judge.show(me.id, [(message.id, message.content) for message in mail], process)
    system.time_ns()  # a call, at which the process may be killed: shown, and not recorded
    return [message.id for message in mail]


class Watched(Delivery):
    """The mailbox as a hook opens it, which tells what it shows."""

    seen: Callable[[Sequence[Item]], None]
    recorded: Callable[[], None]

    def deliver(self, session_id: str, show: Callable[[list[Item]], Sequence[Item]], **more: Any) -> int:
        """Show, and tell."""

        def told(items: list[Item]) -> Sequence[Item]:
            given = show(items)
            self.seen(given)
            return given

        count = super().deliver(session_id, told, **more)
        self.recorded()  # a lock that is not to be had leaves it unrecorded, which the hook passes over
        return count


EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "PreCompact", "SessionEnd")


def hook(stage: Stage, process: Process, me: Session) -> None:
    """A client's hook, in Python."""
    _hook(stage, process, me, str(pick(process, EVENTS)))


def shim(stage: Stage, process: Process, me: Session) -> None:
    """A client's hook as the client starts it: the shell guard, and Python only if that does not say "nothing"."""
    event = str(pick(process, EVENTS))
    grain = SECOND if process.chance.random() < 0.2 else 1
    watch = guard.Watch(stage.judge, me, grain)
    nothing = False
    try:
        nothing = guard.says_nothing(guard.Ask(event, me.id, BOX, STATE, grain))
    finally:
        watch.ends(nothing=nothing)
    stage.judge.answers.append((me.id, f"the guard says {'nothing' if nothing else 'maybe'}"))
    if not nothing:
        _hook(stage, process, me, event)


def settle(stage: Stage, process: Process, me: Session) -> None:
    """In the end, when nothing goes wrong: behind a hook the guard says nothing, and starts no Python again."""
    _hook(stage, process, me, "PostToolUse")
    if not guard.says_nothing(guard.Ask("PostToolUse", me.id, BOX, STATE)):
        stage.judge.breach(f"the guard of {me.id} starts Python, and has nothing to say")


def permit(stage: Stage, process: Process, me: Session) -> None:
    """A client asks whether its session may use a tool: the shell guard, and Python where nothing binds it."""
    watch = guard.Watch(stage.judge, me, 1)
    nothing = False
    try:
        nothing = guard.says_nothing(guard.Ask("Permit", me.id, BOX, STATE))
    finally:
        watch.permits(nothing=nothing)
    if not nothing and not me.led:
        call = hook_events.Call(event="Permit", session_id=me.id, cwd="/work", told=True)
        asked = Permit(call=call, control=stage.desk(me.id).control, environ={}, program="", write=lambda _: None)
        asked._unbind()  # it looks again, under the locks; one that is bound would wait for its lead


def _hook(stage: Stage, process: Process, me: Session, event: str) -> None:
    hooked(stage, process, me, event)


def hooked(
    stage: Stage,
    process: Process,
    me: Session,
    event: str,
    transcript: str = "",
    environ: dict[str, str] | None = None,
    *,
    source: str = "startup",
    reason: str = "",
) -> tuple[list[str], list[str]]:
    """Run an event's hook; return the ids of the mail it showed, and its answers. With a transcript it offers mail."""
    shown: list[str] = []
    desk = Watched(BOX, wait=hook_events.LOCK_WAIT, prove=lambda _: proofs.of_session(me.id))
    desk.seen = lambda items: shown.extend(_seen(stage, process, me, items))
    desk.recorded = lambda: stage.judge.recorded(me.id, shown, OFFERED if transcript else READ)
    client = CLAUDE_CODE if transcript else None
    if transcript:
        stage.judge.settles(me.id)
    me.may_be_frozen = me.may_be_frozen or event == "SessionEnd"
    call = hook_events.Call(
        event=event, session_id=me.id, cwd="/work", source=source, reason=reason, told=True, conversation=transcript,
        client=client,
    )  # fmt: skip
    written: list[str] = []
    asked = hook_events.Hook(call=call, desk=desk, environ=environ or {}, program="agent-mailbox", write=written.append)
    try:
        hook_events.answer(asked)
    finally:
        if event == "Stop":
            ends_turn(stage, me)
    if event == "SessionStart":
        if me.may_be_dead:
            stage.judge.dying(me)  # it comes back; what was its own mail may be archived
        if not me.is_leaving:
            me.may_be_dead = False
        me.registered = me.registered if me.registered is not None else stage.world.calls
    me.seen = stage.world.now if event != "SessionEnd" else me.seen
    if event in ("SessionStart", "UserPromptSubmit") and not me.may_be_dead:
        me.trusts_stamps = True
    return shown, written


def ask(stage: Stage, process: Process, me: Session) -> None:
    """Ask one's lead, and wait for a while."""
    if not me.led:
        return
    control = stage.desk(me.id).control
    asked = control.request(me.id, messages.PlanRequest(goal=f"plan {stage.count}"))
    stage.requests.append(asked.id)
    stage.judge.acknowledge(("message", asked.message_id))
    if process.chance.random() < 0.5:
        _told(stage, control.wait(me.id, asked.id, 5))


def decide(stage: Stage, process: Process, me: Session) -> None:
    """The lead or the person answers a request."""
    if not stage.requests:
        return
    word, as_user = str(pick(process, stage.requests[-4:])), process.chance.random() < 0.5
    leader = stage.present.get(LEAD, LEAD)
    control = stage.desk(leader, proof=proofs.TERMINAL if as_user else None).control
    try:
        _told(stage, control.answer("user" if as_user else leader, word, process.chance.random() < 0.5))
    except Refused:
        pass  # decided already, or not its to decide
    _told(stage, control.find(word))


def _told(stage: Stage, request: Any) -> None:
    if not request.is_open:
        stage.judge.decided(request.id, request.state, request.by)


def lead(stage: Stage, process: Process, me: Session) -> None:
    """The person puts a session under a lead, while its client asks about tools."""
    leader = stage.present.get(LEAD, LEAD)
    if me.id != leader and me.registered is not None and not me.may_be_dead:
        if not me.led:
            permit(stage, process, me)
        request = Registration(session_id=me.id, event="update", lead=leader)
        stage.desk(proof=proofs.TERMINAL).register(request, "user")
        me.led = True
        permit(stage, process, me)


def back_up(stage: Stage, process: Process, me: Session) -> None:
    """Make a backup and restore it elsewhere: everything acknowledged before is there."""
    stage.count += 1
    facts = set(stage.judge.facts)
    brought = [letter for letter in stage.judge.letters.values() if letter.stored and letter.acked is not None]
    file, place = f"/backup-{stage.count}.tar", f"/restored-{stage.count}"
    backup.write(stage.desk(me.id), file)
    restoring.restore(file, place, {})
    lost = facts - stage.judge.found(place)
    if lost:
        stage.judge.breach(f"a backup lacks {min(lost)}")
    for letter in brought:
        if not stage.judge.has_file(letter, place + letter.stored.removeprefix(BOX)):
            stage.judge.breach(f"a backup lacks the file that {letter.id} brings")


def repair(stage: Stage, process: Process, me: Session) -> None:
    """The doctor repairs."""
    doctor.repair(stage.desk(me.id))


def peek(stage: Stage, process: Process, me: Session) -> None:
    """Look without a trace: nothing that was read is there."""
    before = {i for (who, i), (state, _) in stage.judge.given.items() if who == me.id and state == READ}
    try:
        items = stage.desk(me.id).peek(me.id)
    except Refused:
        return
    for item in items:
        letter = stage.judge.letters.get(item.message.id)
        if item.message.type != "message":
            continue
        if letter is None or letter.content != item.message.content:
            stage.judge.breach(f"{me.id} peeks at {item.message.id}, which nobody sent so")
        elif letter.id in before and stage.judge.given[me.id, letter.id][0] == READ:
            stage.judge.breach(f"{me.id} peeks at {letter.id}, which it had read")


def _mine(stage: Stage, process: Process, me: Session) -> str | None:
    letters = stage.judge.letters  # a letter whose sender was not told that it is sent may vanish
    mine = [
        i for (who, i), (state, _) in stage.judge.given.items() if who == me.id and state == "read" and letters[i].acked
    ]
    found: str | None = pick(process, mine[-int(pick(process, (1, 2, 8))) :]) if mine else None
    return found


def ack(stage: Stage, process: Process, me: Session) -> None:
    """Deal with a message."""
    message_id = _mine(stage, process, me)
    if message_id is not None:
        try:
            with stage.judge.settling(me.id, message_id):
                stage.desk(me.id).ack(message_id, me.id)
        except Refused:
            letter = stage.judge.letters[message_id]
            is_read = stage.judge.given.get((me.id, message_id), (FREE, None))[0] == "read"
            if is_read and not letter.was_released and not me.may_be_dead:
                raise
            return
        stage.judge.recorded_by(me, message_id, "ack")


def release(stage: Stage, process: Process, me: Session) -> None:
    """Give a message back."""
    message_id = _mine(stage, process, me)
    if message_id is None:
        return
    stage.judge.releasing(me.id, message_id)
    try:
        stage.desk(me.id).release(message_id, me.id)
    except Refused:
        return
    stage.judge.recorded_by(me, message_id, "release")
    stage.judge.released(me.id, message_id)


def reply(stage: Stage, process: Process, me: Session) -> None:
    """Answer a message."""
    message_id = _mine(stage, process, me)
    if message_id is None:
        return
    parent = stage.judge.letters[message_id]
    if parent.foreign:
        return
    to = parent.to if parent.sender in me.line else parent.sender  # its own goes to those whom it was for
    letter = stage.letter(me.id, to, process)
    draft = Draft(sender=me.id, to=(), content=letter.content, id=letter.id, ttl_hours=LASTING)
    try:
        with stage.judge.settling(me.id, message_id):
            stage.desk(me.id).reply(message_id, draft)
    except Refused:
        return  # its sender is gone
    stage.judge.sent(letter)


def freeze(stage: Stage, process: Process, me: Session) -> None:
    """End a session for now."""
    if me.registered is not None and not me.may_be_dead and me.id not in stage.clients:
        me.may_be_frozen = True
        try:
            stage.desk(me.id).end(me.id, "freeze", me.id)
        except (Refused, NotFound):
            return


def retire(stage: Stage, process: Process, me: Session) -> None:
    """End a session for good."""
    if me.registered is not None and len(stage.registered()) > 2:
        me.retired = True
        stage.judge.dying(me)
        begun = stage.world.calls
        me.retirer, me.retiring = process, begun
        try:
            stage.desk(me.id).end(me.id, "retire", me.id)
            stage.told.ended[me.id] = begun
        except NotFound:
            return
        finally:
            me.retired = True
            stage.judge.dying(me)
            me.retiring = stage.world.calls


def run_steward(stage: Stage, process: Process, me: Session) -> None:
    """The steward, from cron."""
    cutoff = stage.world.now - 23 * 3600 * 10**9
    for session in stage.judge.sessions.values():
        if session.seen < cutoff:
            stage.judge.dying(session)
    mailbox = stage.desk(proof=proofs.STEWARD)
    report = steward.run(mailbox, stage.max_live)
    for problem in report.problems:
        if not stage.judge.has_strangers() and not stage.world.befell(*UNTIDY):
            stage.judge.breach(f"the steward reports {problem.file} {problem.line}: {problem.what}")


def foreign(stage: Stage, process: Process, me: Session) -> None:
    """A program that knows no lock appends mail, whole or torn."""
    letter = stage.letter(f"cron-{stage.count}", _address(stage, process, me), process)
    letter.foreign = True
    letter.lasting = process.chance.random() < 0.8
    torn = process.chance.random() < 0.5 and stage.world.seed % 3 == 0
    said = letter.content
    if process.chance.random() < 0.3:
        letter.content += pick(process, ODD)
        said = json.dumps(letter.content, ensure_ascii=process.chance.random() < 0.5)[1:-1]
    text = _foreign_line(letter, said)
    stage.judge.torn = stage.judge.torn or torn  # before the call: it may be killed right behind
    fd = system.open(LIVE[0], system.O_WRONLY | system.O_APPEND)
    length = len(text) - 1 if process.chance.random() < 0.3 else int(process.chance.random() * len(text))
    written = system.write(fd, text[:length] if torn else text)
    stage.judge.torn = stage.judge.torn or written < len(text)
    file = process.files.get(fd)
    letter.times = (file.inode.before, file.inode.mtime) if file is not None and file.inode is not None else (0, 0)
    system.close(fd)
    if stage.judge.torn:
        stage.judge.appended.clear()  # whatever follows a torn line may be glued to it
    elif letter.begun > stage.judge.steward_died and file is not None and stage.world.is_at(LIVE[0], file.inode):
        stage.judge.appended.add(letter.id)


ODD = ("\\u0041", "\\\\u00fc", "\\n", '"}', "\x07", "\x1f\n", "ü\u2028", "\x7f", '\\",\\"id\\":\\"x')
"""Ends of texts that other programs spell otherwise than we do."""


def _foreign_line(letter: Letter, said: str) -> bytes:
    lives = LASTING if letter.lasting else 2
    return (
        f'{{"id":"{letter.id}","sender":"{letter.sender}","recipient":"{letter.to}","timestamp":'
        f'"2026-01-01T00:00:00.000Z","content":"{said}","thread":null,"ttl_hours":{lives},"read_by":[]}}\n'
    ).encode()


def foreign_again(stage: Stage, process: Process, me: Session) -> None:
    """A program that knows no lock appends a message a second time, perhaps to others, and perhaps odd lines."""
    there = [letter for letter in stage.judge.letters.values() if letter.acked or letter.id in stage.judge.appended]
    drawn = process.chance.random()
    if drawn < 0.2:
        text = pick(
            process, (b'{"id":"%s","sender":"x\x07"}\n', b"\x00\n", b"[]\n", _rung(process), _rung(process), b"\n\n")
        )
    elif there:
        letter = pick(process, there)
        text = _foreign_line(letter, json.dumps(letter.content, ensure_ascii=drawn < 0.5)[1:-1])
    else:
        return
    stage.judge.doubled.update(text.split(b"\n"))
    fd = system.open(LIVE[0], system.O_WRONLY | system.O_APPEND)
    written = system.write(fd, text)
    stage.judge.torn = stage.judge.torn or written < len(text)
    system.close(fd)


def _rung(process: Process) -> bytes:
    """A line that is a message in our spelling but for a character that JSON does not allow: nobody's mail."""
    message_id, to = uuid_of(f"{process.chance.getrandbits(128):032x}", "4"), pick(process, ("agent-0", "agent-1"))
    return (
        f'{{"id":"{message_id}","sender":"cron","recipient":"{to}","timestamp":"2025-12-31T00:00:00.000Z",'
        '"content":"ding\x07","thread":null,"ttl_hours":2,"read_by":[]}\n'
    ).encode()


def forget(stage: Stage, process: Process, me: Session) -> None:
    """All that is derived for readers goes: they look at everything anew."""
    for session in stage.judge.sessions.values():
        session.lost_list = True
    try:
        _remove_derived()
    finally:
        for session in stage.judge.sessions.values():  # one may have started again meanwhile
            session.lost_list = True
            session.forgotten += 1


def _remove_derived() -> None:
    for name in ("cursors", "offers", "ids", "ids-news", "untaken", "asking", "asking-news"):
        where = f"{BOX}/.cache/{name}"
        try:
            each = name in ("cursors", "offers")
            for path in [f"{where}/{one}" for one in sorted(system.listdir(where))] if each else [where]:
                system.unlink(path)
        except OSError:
            continue


def damage(stage: Stage, process: Process, me: Session) -> None:
    """Something cuts, empties or removes a derived file."""
    places = ("cursors", "ends", "quiet", "roster")
    where = f"{BOX}/.cache/{pick(process, places)}"
    try:
        names = [where] if where.endswith("roster") else [f"{where}/{name}" for name in sorted(system.listdir(where))]
    except OSError:
        return
    if not names:
        return
    path = pick(process, names)
    drawn = process.chance.random()
    try:
        if drawn < 0.5 or "quiet" in path:
            system.unlink(path)
            return
        fd = system.open(path, system.O_RDWR)
        if drawn < 0.75:
            system.ftruncate(fd, int(process.chance.random() * system.fstat(fd).st_size))
        else:
            system.write(fd, b"?" * 8)
        system.close(fd)
    except OSError:
        return


def wait(stage: Stage, process: Process, me: Session) -> None:
    """Wait for mail, and look."""
    from agent_mailbox.mailbox.queries import Library

    try:
        Library(stage.desk(me.id)).wait(me.id, 30)
    except Refused:
        return


WEIGHTS: tuple[tuple[Any, float], ...] = (
    (send, 10), (send_many, 2), (resend, 1), (check, 9), (peek, 1), (ack, 3), (release, 2), (reply, 2), (freeze, 0.7),
    (retire, 0.3),
    (register, 1.5), (run_steward, 4.0), (foreign, 1), (damage, 1), (wait, 0.5), (hook, 5),
    (lead, 1), (ask, 1), (decide, 1), (back_up, 0.3), (repair, 0.3), (shim, 5), (permit, 3),
)  # fmt: skip


def expected(error: BaseException, command: str, process: Process) -> bool:
    """May the command end with this error? A busy lock always; a failed call if one was made to fail."""
    if isinstance(error, Busy):
        return True
    if isinstance(error, StorageFailed):
        return process.hurt or process.world.disk.full or process.world.profile.lockless
    if isinstance(error, Refused) and command == "run_steward" and "the clock is" in str(error):
        return True  # nobody wrote anything for a day
    if isinstance(error, Refused | NotFound):
        return command in (
            "send",
            "send_many",
            "resend",
            "call",
            "attach",
            "launch",
            "reply",
            "register",
            "hook",
            "turn",
            *("join", "begin", "prompt", "lose", "answer", "use", "stop", "back"),
            "shim",
            "permit",
            "ask",
            "decide",
            "lead",
            "clear",
            "wake",
            "unwatch",
            "forbid",
            "relent",
        )
    if isinstance(error, OSError):
        return (
            process.hurt
            or process.world.disk.full
            or command
            in (
                "foreign",
                "foreign_again",
                "foreign_note",
                "damage",
                "forget",
                "configure",
                "stand",
                "lose_notes",
            )
        )
    return isinstance(error, MailboxError) and process.hurt
