"""The run: starts everybody, lets things happen to them, has them end, and asks whether everything held.

Belongs here: when. A run is a few rounds; a round is a busy time, a lull in which first the strangers and then the
writers leave, and a quiet moment in which the mailbox is looked at. Whatever is decided comes from the seed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from agent_mailbox.control.requests import Control
from agent_mailbox.core import inbox, seals
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.mailbox.facade import Mailbox

from ..benchmarks import launch
from . import cast, chaos, decisions
from .actors import journal_of
from .commands import Command, guard_says
from .evidence import Evidence
from .rules import Account, breaches
from .scenes import Scenes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .commands import Stage

RATES = {"command": 8.0, "permit": 3.0, "kill": 1.0, "stop": 0.8, "damage": 2.0}
"""How often each happens a second, on average."""
ROUND = 20.0
"""Seconds of a round, at most."""
CALM = 8
"""How often a few commands are run between two questions to the guard, in the quiet after a round; less after a short
one."""
TICK = 0.01
MOST_COMMANDS = 3
PATIENCE = 60.0
"""Seconds after which a process that should end counts as hung."""
EVERYBODY = (*cast.WRITERS, *cast.READERS, *cast.HOLDERS, *cast.LIVES, *cast.LEADS, *cast.STEWARDS, *cast.STRANGERS)


class Player:
    """One life of a long-lived process."""

    def __init__(self, stage: Stage, name: str, life: int, seed: str, jumps: bool) -> None:
        self.name, self.life, self.killed = name, life, False
        self.journal = journal_of(stage.journals, name, life)
        words = [name, str(life), str(stage.box), str(stage.journals), seed]
        stranger = name in cast.STRANGERS
        module = ["foreign", *words] if stranger else ["actors", *words, "jumps" if jumps else "steady"]
        self.complaints = stage.spoken / f"{name}.{life}.err"
        with self.complaints.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"scripts.stresses.{module[0]}", *module[1:]],
                cwd=launch.ROOT,
                env=stage.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )

    def finish(self) -> None:
        """Tell it to end after its present turn."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()


class Director:
    """One stress run. ``violations`` is what did not hold, ``counts`` what happened."""

    def __init__(self, stage: Stage, seed: str, *, jumps: bool = True) -> None:
        self._stage, self._seed, self._jumps = stage, seed, jumps
        self.violations: list[str] = []
        self.counts: Counter[str] = Counter()
        self._length = ROUND
        self._lives: Counter[str] = Counter()
        self._players: dict[str, Player] = {}
        self._past: list[Player] = []
        self._running: list[Command] = []
        self._fates: list[tuple[float, str, float, Command]] = []
        self._sleepers = chaos.Sleepers()
        self._told = Account()
        self._pick = {kind: random.Random(f"{seed} {kind}") for kind in (*RATES, "check")}
        self._scenes = Scenes(stage, self._pick["command"], jumps)

    # -- setting up, and the end --------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """A mailbox with everybody in its roster."""
        self._one("init", "init", str(self._stage.box))
        (self._stage.box / "config.toml").write_text(cast.CONFIG, encoding="utf-8")
        (self._stage.box / "config.toml").chmod(0o600)
        mailbox = Mailbox(str(self._stage.box), prove=cast.as_named)
        for session in cast.STEADY:
            tags = (cast.TAG,) if session in cast.TAGGED else None
            mailbox.register(
                Registration(session_id=session, roles=cast.ROLES.get(session) or None, tags=tags), session
            )
        for session in cast.LEADS:
            mailbox.register(Registration(session_id=session), session)
        for session, lead in cast.LED.items():
            mailbox.register(Registration(session_id=session, lead=lead), session)
            self._one("control", "control", "mode", session, "safe", "--session", "user")
            rule = f"Bash({cast.DENIED}:*)"
            self._one("control", "control", "policy", session, "--deny", rule, "--session", "user")
        for session in cast.HOOKED:
            self._ended(self._scenes.hook(session, "SessionStart"))

    def run(self, seconds: float) -> None:
        """All rounds; afterwards nobody is left running."""
        rounds = max(2, round(seconds / ROUND))
        self._length = seconds / rounds
        try:
            self.prepare()
            for number in range(rounds):
                self._round(self._length)
                self._look(last=number == rounds - 1)
                if self.violations:
                    break
        finally:
            self._sleepers.wake(everybody=True)
            for process in self._processes():
                process.kill()
                process.wait()

    def _processes(self) -> list[subprocess.Popen[bytes]]:
        return [*(p.process for p in self._players.values()), *(c.process for c in self._running)]

    # -- a round ------------------------------------------------------------------------------------------------------

    def _round(self, seconds: float) -> None:
        for name in EVERYBODY:
            self._start(name)
        while not all(player.journal.exists() for player in self._players.values()):
            time.sleep(TICK)  # starting takes long where the machine is busy, and is no part of the round
        now = time.monotonic()
        end, lull = now + seconds, min(4.0, seconds / 3)
        due = {kind: now + self._pick[kind].expovariate(rate) for kind, rate in RATES.items()}
        stages = [(end - lull, self._strangers_leave), (end - 0.75 * lull, self._notice_in_passing)]
        stages += [(end - lull / 3, self._writers_leave)]
        stages += [(end - lull * share, self._stand_still) for share in (0.5, 0.2, 0.05)]
        while (now := time.monotonic()) < end:
            for kind, at in due.items():
                if at <= now:
                    due[kind] = at + self._pick[kind].expovariate(RATES[kind])
                    if kind != "damage" or now < end - lull:
                        getattr(self, f"_happens_{kind}")(now)
            while stages and stages[0][0] <= now:
                stages.pop(0)[1]()
            self._sleepers.wake()
            self._fulfil(now)
            self._reap(restart=now < end - lull)
            time.sleep(TICK)  # the pace of what happens; nothing waits for it
        self._finish()

    def _start(self, name: str) -> None:
        life = self._lives[name]
        self._lives[name] += 1
        self._players[name] = Player(self._stage, name, life, self._seed, self._jumps)

    def _strangers_leave(self) -> None:
        for name in cast.STRANGERS:
            self._players[name].finish()

    def _writers_leave(self) -> None:
        for name in cast.WRITERS:
            self._players[name].finish()

    def _notice_in_passing(self) -> None:
        self._running += self._notice()

    def _stand_still(self) -> None:
        """Stop everybody wherever they are: even now no stamp stands in front of mail."""
        still = [process for process in self._processes() if process.poll() is None]
        if not hasattr(os, "waitid"):
            return
        for process in still:
            process.send_signal(signal.SIGSTOP)
        for process in [process for process in still if process.returncode is None]:
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self._ask_the_guard(shells=2)
        for process in still:
            if not self._sleepers.asleep(process):
                process.send_signal(signal.SIGCONT)

    def _notice(self) -> list[Command]:
        """A write of ours to each log, started: by them strangers' lines are noticed, and all stamps go."""
        tag, run = f"concern:n{sum(self._lives.values())}", self._scenes.run
        return [
            run("send", "send", "--from", "user", "--to", "warden", "--body", "quiet"),
            run("roster", "roster", "update", "--session-id", "warden", "--add-tags", tag),
            run("check", "check", "--session", "warden", session="warden"),
        ]

    def _happens_command(self, now: float) -> None:
        pick = self._pick["command"]
        chance, delay, length = pick.random(), pick.random() * 0.15, pick.uniform(0.05, 2.5)
        self._venture(now, self._scenes.next, chance, delay, length)

    def _happens_permit(self, now: float) -> None:
        pick = self._pick["permit"]
        self._venture(now, self._scenes.permit, pick.random(), pick.random() * 1.5, pick.uniform(0.05, 2.5))

    def _venture(self, now: float, start: Callable[[], Command], chance: float, delay: float, length: float) -> None:
        """A command, unless there are many already; it may be killed, or stopped for a while."""
        permits = [command.what == "permit" for command in self._running]
        if permits.count(start == self._scenes.permit) >= MOST_COMMANDS:
            return
        command = start()
        self._running.append(command)
        if chance < 0.25:
            self._fates.append((now + delay, "kill" if chance < 0.15 else "stop", length, command))

    def _fulfil(self, now: float) -> None:
        for fate in [fate for fate in self._fates if fate[0] <= now]:
            self._fates.remove(fate)
            _, what, length, command = fate
            if command.process.poll() is None:
                self._strike(what, length, command)

    def _happens_kill(self, now: float) -> None:  # noqa: ARG002 - as the others are called
        victim = self._players[self._pick["kill"].choice(EVERYBODY)]
        if victim.process.poll() is None:
            self._strike("kill", 0, victim)

    def _happens_stop(self, now: float) -> None:  # noqa: ARG002 - as the others are called
        victim, length = self._pick["stop"].choice(EVERYBODY), self._pick["stop"].uniform(0.05, 2.5)
        if self._players[victim].process.poll() is None:
            self._strike("stop", length, self._players[victim])

    def _strike(self, what: str, length: float, victim: Player | Command) -> None:
        if what == "stop":
            self._sleepers.stop(victim.process, length)
        else:
            victim.killed = True
            victim.process.kill()
        self.counts[f"{what}s"] += 1

    def _happens_damage(self, now: float) -> None:  # noqa: ARG002 - as the others are called
        pointers = self._stage.scratch / ".local/state/agent-mailbox/sessions"
        self.counts[f"damage {chaos.damage(self._stage.box, pointers, self._pick['damage'])}"] += 1

    def _reap(self, *, restart: bool) -> None:
        for name, player in list(self._players.items()):
            if restart and player.process.poll() is not None:
                self._past.append(player)
                self._start(name)
        for command in [command for command in self._running if command.ended()]:
            self._running.remove(command)
            self._hear(command)

    def _hear(self, command: Command) -> None:
        slept = self._sleepers.slept_within(command.started, time.monotonic())
        self._told.hear_command(command, slept=slept)
        self.counts["jumps"] += command.jumped
        if not command.killed:
            self._scenes.learn(command)

    def _finish(self) -> None:
        """Everybody ends after their present turn; who does not is hung."""
        self._sleepers.wake(everybody=True)
        self._fates.clear()
        for player in self._players.values():
            player.finish()
        deadline = time.monotonic() + PATIENCE
        everybody: list[Player | Command] = [*self._players.values(), *self._running]
        for one in everybody:
            try:
                one.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                what = one.name if isinstance(one, Player) else " ".join(one.words)
                self.violations.append(f"{what} (pid {one.process.pid}) hangs")
                one.killed = True
                one.process.kill()
                one.process.wait()
        self._reap(restart=False)
        for player in (*self._past, *self._players.values()):
            self._told.hear_process(player.journal, killed=player.killed)
        self._past.clear()
        self._players.clear()

    # -- looking ------------------------------------------------------------------------------------------------------

    def _look(self, *, last: bool) -> None:
        """What must hold now that nobody writes, strangers' last lines having been noticed."""
        for command in self._notice():
            self._ended(command)
        self._ask_the_guard()
        self._one("steward", "steward", "run", "--max-live", "0")
        self._everybody_reads()
        for _ in range(min(CALM, round(self._length))):
            self._little_happens()
        if last:
            self._everybody_reads()
            self._one("steward", "steward", "run", "--max-live", "0")
        unread = self._peeks()
        if last:
            self.violations += [f"{s} read everything and has {t} unread" for s, t in unread.items() if t]
        self._ask_the_doctor()
        self._told.killed = self.counts["kills"]
        evidence = Evidence(self._stage.box)
        self.violations += [*breaches(evidence, self._told, unread), *self._folded_otherwise(evidence)]
        self._count(evidence)

    def _sessions(self) -> list[str]:
        """Everyone who may ask."""
        roster = Mailbox(str(self._stage.box)).logs.read_roster()
        bearers = [agent.session_id for name in cast.NAMES if (agent := roster.bearer(name)) and agent.state != "dead"]
        self._told.bearers = tuple(bearers)
        return [*cast.STEADY, *cast.LEADS, *cast.LED, *bearers]

    def _pure(self, *others: str) -> dict[str, list[str]]:
        """What everyone has unread by the definition alone; what may expire is left out."""
        mailbox = Mailbox(str(self._stage.box))
        mailbox.logs.derives = False
        state, now = mailbox.state(), mailbox.now()
        return {
            session: [i.message.id for i in inbox.unread(session, state, now)]
            for session in (*self._sessions(), *others)
        }

    def _ask_the_guard(self, shells: int = len(cast.STEADY)) -> None:
        """Where it says "nothing", nothing is unread; so many are asked through the shell, of all others the stamps
        are looked at. (What may expire is left out: clocks were set back.)"""
        pure = self._pure()
        messages = Mailbox(str(self._stage.box)).state().messages
        asked = self._pick["check"].sample([*pure], min(shells, len(pure)))
        for session, ids in pure.items():
            lasting = [i for i in ids if messages[i].ttl_hours is None]
            quiet = (self._stage.box / ".cache" / "quiet" / session).exists()
            if session in asked:
                shell = self._pick["check"].choice([*launch.shells().values()])
                quiet = guard_says(self._stage, session, shell) == ""
            self.counts["guard: nothing" if quiet else "guard: maybe"] += 1
            if quiet and lasting:
                self.violations.append(f"the guard says {session} has nothing, and {lasting[:3]} is unread")

    def _little_happens(self) -> None:
        """A few commands at once, one of them perhaps killed, while almost everybody has nothing to read."""
        commands = [self._scenes.next() for _ in range(MOST_COMMANDS)]
        if self._pick["check"].random() < 0.3:
            commands[-1].killed = True
            commands[-1].process.kill()
            self.counts["kills"] += 1
        for command in commands:
            command.process.wait(PATIENCE)
            command.ended()
            self._hear(command)
        self._ask_the_guard(shells=2)

    def _everybody_reads(self) -> None:
        for session in (*self._sessions(), "user"):
            self._one("check", "check", "--session", session, "--limit", "0", "--json", session=session)

    def _peeks(self) -> dict[str, list[str]]:
        """The tokens of everyone's unread mail, which a look gives as the definition does."""
        found = {}
        for session, ids in self._pure("user").items():  # a worker that the person leads replies to the person
            looked = self._one("peek", "check", "--session", session, "--peek", "--limit", "0", "--json")
            shown = json.loads(looked.said)["messages"]
            if [message["id"] for message in shown] != ids:
                self.violations.append(f"a look of {session} gives {[m['id'] for m in shown]}, the logs {ids}")
            found[session] = [token for message in shown for token in cast.tokens(message["content"])]
        return found

    def _folded_otherwise(self, evidence: Evidence) -> Iterator[str]:
        """Requests of which the program says something else than the log does; of the archived a few are asked for."""
        desk, cases = Control(str(self._stage.box)), decisions.cases(evidence)
        live = desk.plane().requests
        archived = sorted(cases.keys() - live.keys())
        for name in (*(cases.keys() & live.keys()), *self._pick["check"].sample(archived, min(len(archived), 5))):
            state = desk.find(name).state
            if state != cases[name].state:
                yield f"the program has {name} {state}, the log {cases[name].state}"

    def _ask_the_doctor(self) -> None:
        """It finds what was broken on purpose, or cut by a kill, and nothing else."""
        for problem in json.loads(self._one("doctor", "doctor", "--json").said)["problems"]:
            line = _line(problem["file"], problem["line"])
            known = cast.TORN.encode() in line or (problem["what"].startswith("torn") and self.counts["kills"])
            known = known or ("of a missing message" in problem["what"] and cast.STRANGE_READER.encode() in line)
            # A program that writes without the lock displaces a sealed line, which its writer then writes again.
            known = known or ("is written twice" in problem["what"] and _is_displaced(problem["file"], problem["line"]))
            if not known:
                self.violations.append(f"doctor: {problem['file']}:{problem['line']}: {problem['what']}")

    # -- small things -------------------------------------------------------------------------------------------------

    def _one(self, what: str, *words: str, session: str = "", token: str = "") -> Command:
        """A command that nothing happens to, run to its end."""
        return self._ended(self._scenes.run(what, *words, session=session, token=token))

    def _ended(self, command: Command) -> Command:
        command.process.wait(PATIENCE)
        command.ended()
        self._hear(command)
        if command.code not in ({0, 3} if command.what == "doctor" else {0}):
            self.violations.append(f"in quiet, `{' '.join(command.words)}` ended with {command.code}")
        return command

    def _count(self, evidence: Evidence) -> None:
        """The totals of the report."""
        told, events = self._told, [event for m in evidence.stored() for event in evidence.events(m.id)]
        seen = {
            "messages acknowledged": len(told.sent),
            "messages stored": len(evidence.stored()),
            "shown": sum(len(show.tokens) for show in told.shows),
            "reads": sum(event == "read" for _, event, _ in events),
            "claims": sum(event == "read" and (via or "").startswith("role:") for _, event, via in events),
            "acks": sum(event == "ack" for _, event, _ in events),
            "releases": sum(event == "release" for _, event, _ in events),
            "refused": told.counts["refused"],
            "tool calls asked about": len(told.permits),
            "allowed": sum(permit.decision == "allow" for permit in told.permits),
            "denied": sum(permit.decision == "deny" for permit in told.permits),
            "denied, having failed": sum(permit.failed for permit in told.permits),
            "timed out": sum(case.state == decisions.TIMED_OUT for case in decisions.cases(evidence).values()),
            "forged": told.counts["forged"],
            "strangers' lines": told.counts["foreign"],
            "torn lines": len(evidence.bad),
            "busy": told.counts["busy"],
            "shown, then busy": told.counts["shown, then busy"],
            "clock jumps": told.counts["jump"] + self.counts["jumps"],
            "commands": sum(n for name, n in told.counts.items() if name.startswith("command ")),
            "hooks": told.counts["command hook"],
            "successions": evidence.successions,
            "archive runs": told.counts["steward"] + told.counts["command steward"],
            "derived files damaged": sum(n for name, n in self.counts.items() if name.startswith("damage ")),
        }
        self.counts.update({name: value - self.counts[name] for name, value in seen.items()})


def _is_displaced(path: str, number: int) -> bool:
    """Is the line sealed for another place than it has?"""
    with open(path, "rb") as file:
        *before, line = file.read().split(b"\n")[:number]
    seal = seals.of(line)
    return seal is not None and seal.position != sum(len(one) + 1 for one in before)


def _line(path: str, number: int | None) -> bytes:
    if number is None:
        return b""
    with open(path, "rb") as file:
        return file.read().split(b"\n")[number - 1]
