"""The model of the shell guard answers as the real shells do, whatever is in a mailbox's directories."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from agent_mailbox.store.log.stamps import VOUCHED
from tests.helpers import ROOT
from tests.simulation import guard
from tests.simulation.disk import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


SHIM = ROOT / "hooks/agent-mailbox-hook"
SHELLS = {"dash": ("dash",), "bash": ("bash",), "posix bash": ("bash", "--posix"), "busybox": ("busybox", "sh")}
BEGIN = 1_700_000_000 * SECOND
EVENTS = (
    "UserPromptSubmit",
    "UserPromptSubmit",
    "PostToolUse",
    "Stop",
    "stop",
    "Permit",
    "PermissionRequest",
    "SessionStart",
    "PreCompact",
)
NAMES = ("s-1", "S.2@x_+", "-s", "s 1", "ü", "")
ODD = ("session", "sessions", "unbound", *VOUCHED, "quiet", "quiet", "heart", "heart", "times", "start", "start")
HEARTS = ("none", "full", "link", "dangling", "directory", "linked", "locked")
SHIFTS = (1, -1, 1_000_000, -20_000_000, SECOND // 2, -SECOND, 3600 * SECOND)
STARTS = (*(BEGIN + shift for shift in SHIFTS), 3 * BEGIN)
"""Times of a machine's start that may be newer than the stamp, or to come."""
OWN = ("sessions", "unbound")
OLD, NOBODY = 1_000 * SECOND, 65534


class Answer(NamedTuple):
    """What a guard did: did it end with "nothing", did the heart beat, is anything in the heart?"""

    nothing: bool
    beats: bool


class Broken(Exception):
    """The guard ended otherwise than a hook may: by another exit code, or with more to say."""


class State:
    """One drawn mailbox, which can be made again and again."""

    def __init__(self, seed: str, top: Path) -> None:
        self.seed = seed
        self.top = top
        chance = Random(seed)
        self.event = chance.choice(EVENTS)
        self.odd = {*chance.sample(ODD, chance.choice((0, 1, 1, 1, 1, 2, len(ODD))))}
        """Parts that may be otherwise than in a quiet mailbox. Mostly one: it alone then decides."""
        self.session = chance.choice(NAMES if "session" in self.odd else NAMES[:2])
        self.is_named = chance.random() < 0.7
        self._is_full = False
        self._beat = top / "box/agent-heartbeats" / (self.session or "s-1")

    def ask(self, grain: int) -> guard.Ask:
        """The question about it."""
        box = str(self.top / "box") if self.is_named else ""
        return guard.Ask(self.event, self.session, box, str(self.top / "state"), grain, str(self.top / "proc"))

    def make(self) -> None:
        chance = Random(f"{self.seed} files")
        box, state, name = self.top / "box", self.top / "state", self.session or "s-1"
        for below in (
            "",
            "box",
            "box/.cache",
            "box/.cache/quiet",
            "box/.cache/ends",
            "state",
            *map("state/{}".format, OWN),
        ):
            os.mkdir(self.top / below)
        lines = (f"{box}\n", f"{box}", f"{box}x\n", f"{box}\nmore\n", "\n", "", None)
        for place in OWN:
            _put(state / place / name, chance.choice(lines) if place in self.odd else lines[0])
        for log in VOUCHED:
            self._vouched(box / log, box / ".cache/ends" / log.removesuffix(".jsonl"), chance)
        stamp = chance.choice(("led\n", "turn\n", "turn\n", "led", "\n", None)) if "quiet" in self.odd else ""
        _put(box / ".cache/quiet" / name, stamp, 4 * BEGIN if "times" in self.odd else BEGIN)
        self._heart(box / "agent-heartbeats", name, chance.choice(HEARTS) if "heart" in self.odd else "")
        if "start" not in self.odd or chance.random() < 0.8:
            _put(self.top / "proc", "", chance.choice(STARTS) if "start" in self.odd else OLD)

    def calm(self) -> None:
        """Make it as it was before a guard asked: nothing but the heart beats."""
        with contextlib.suppress(OSError):
            if self._is_full and not self._beat.stat().st_size:
                self._beat.write_text("beat")
            os.utime(self._beat, ns=(OLD, OLD))

    def _vouched(self, file: Path, note: Path, chance: Random) -> None:
        time, kind = BEGIN + chance.randrange(10**12), "both"
        if file.name in self.odd:
            kind = chance.choice(("both", "both", "file", "note", "none", "link", "directory"))
        if kind in ("both", "file"):
            _put(file, "x", time)
        elif kind == "link":
            file.symlink_to(self.top / "nowhere")
        elif kind == "directory":
            file.mkdir()
        if kind in ("both", "note", "directory"):
            _put(note, "y", time + (chance.choice(SHIFTS) if kind == "both" and file.name in self.odd else 0))

    def _heart(self, hearts: Path, name: str, kind: str) -> None:
        if kind == "linked":
            (self.top / "elsewhere").mkdir()
            hearts.symlink_to(self.top / "elsewhere")
        else:
            hearts.mkdir()
        heart = hearts / name
        if kind == "directory":
            heart.mkdir()
        elif kind in ("link", "dangling"):
            if kind == "link":
                _put(self.top / "other", "", OLD)
            heart.symlink_to(self.top / "other")
        elif kind != "none":
            self._is_full = kind == "full"
            _put(heart, "beat" if kind == "full" else "", OLD)
            heart.chmod(0o400 if kind == "locked" else 0o600)

    def beats(self) -> bool:
        """Did the heart beat since the state was made?"""
        try:
            there = os.stat(self._beat)
        except OSError:
            return False
        return there.st_mtime_ns != OLD and there.st_size == 0


def _put(path: Path, text: str | None, time: int = BEGIN) -> None:
    """Make a file with that time; None makes none."""
    if text is not None:
        path.write_text(text)
        os.utime(path, ns=(OLD, time))


def installed() -> dict[str, tuple[str, ...]]:
    """The shells that this machine has."""
    return {name: words for name, words in SHELLS.items() if shutil.which(words[0])}


def resolution(name: str) -> int:
    """The ns that a shell's ``-nt`` tells apart."""
    return SECOND if name == "busybox" else 1


@contextlib.contextmanager
def memory() -> Iterator[Path]:
    """A directory that anybody may enter, in memory if this system has such a place."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as scratch:
        os.chmod(scratch, 0o755)
        yield Path(scratch)


def states(seed: int, count: int, scratch: Path) -> list[State]:
    """The states that a seed means, made."""
    there = [State(f"{seed} {number}", scratch / str(number)) for number in range(count)]
    with as_anybody(scratch):
        for state in there:
            state.make()
    return there


@contextlib.contextmanager
def as_anybody(scratch: Path) -> Iterator[None]:
    """Have no right to everything, even if root runs this: a file may refuse to be written."""
    if os.geteuid():
        yield
        return
    os.chown(scratch, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def modelled(there: Sequence[State], grain: int, scratch: Path) -> list[Answer]:
    """What the model says."""
    with as_anybody(scratch):
        for state in there:
            state.calm()
        said = [guard.says_nothing(state.ask(grain)) for state in there]
        return [Answer(nothing, state.beats()) for nothing, state in zip(said, there, strict=True)]


def answered(
    shell: Sequence[str], there: Sequence[State], scratch: Path, without: tuple[str, str] | None = None
) -> list[Answer]:
    """What the guard's own text says in a real shell; a program that tells so is in the place of Python.
    ``without``: a part of the text, and what replaces it."""
    for state in there:
        state.calm()
    baked = SHIM.read_text().replace("\npython= main= state=", '\npython="$echo" main=/', 1)
    baked = baked.replace("[ /proc -nt ", '[ "$proc" -nt ')
    assert without is None or baked.count(without[0]) == 1
    (scratch / "guard").write_text(baked.replace(*without) if without else baked)
    (scratch / "script").write_text("".join(map(_question, there)))
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": ()} if os.geteuid() == 0 else {}
    words = [shutil.which(shell[0]) or shell[0], *shell[1:], str(scratch / "script")]
    env = {"PATH": "/usr/bin:/bin", "echo": "/bin/echo", "guard": str(scratch / "guard")}
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        **user,  # type: ignore[call-overload]
    )
    parts = done.stdout.split("=end\n")[:-1]
    assert len(parts) == len(there), done.stderr[-2000:]
    answers = []
    for state, said in zip(there, parts, strict=True):
        starts = said.startswith("-I -S -X utf8 -c ") and said.endswith(f" / hook {state.event}\n0=")
        if said != "0=" and not starts:
            raise Broken(f"{state.seed}: {said}: {done.stderr[-2000:]}")
        answers.append(Answer(said == "0=", state.beats()))
    return answers


def _question(state: State) -> str:
    ask = state.ask(1)
    named = {"CLAUDE_CODE_SESSION_ID": ask.session, "AGENT_MAILBOX_DIR": ask.box, "state": ask.state}
    named["proc"] = ask.started
    said = " ".join(f"{name}={shlex.quote(value)}" for name, value in named.items())
    return f'(export {said}; set -- {state.event}; . "$guard"); echo "$?==end"\n'


STATES = 240
TAKEN_AWAY = {
    "a note has the time of its file": ("|| led=maybe\n                elif", "|| :\n                elif"),
    "a note without its file counts for nothing": ('elif [ -e "$note" ]; then', "elif false; then"),
    "a configuration counts, too": ("agent-roster.jsonl config.toml", "agent-roster.jsonl"),
    "a stamp from the future counts for nothing": ('&& ! [ "$quiet" -nt "$heart" ] &&\n', "&&\n"),
    "a stamp from before the machine's start counts for nothing": ('! [ "$proc" -nt "$quiet" ] ||', "true ||"),
    "a machine's start that is to come tells nothing": ('|| [ "$proc" -nt "$heart" ]; }', "; }"),
    "a heart that cannot beat ends no shell": ('true 2>/dev/null >"$heart" &&', ': 2>/dev/null >"$heart" &&'),
    "a link in the heart's place is not written to": ('! [ -L "$heart" ] && ', ""),
    "a full file in the heart's place is not emptied": ('! [ -s "$heart" ] && ', ""),
    "a word of the stamp lets a prompt through": ('[ "$led" = turn ] || led=\n', "led=\n"),
    "a word of the stamp lets a turn's end through": (
        'IFS= read -r led 2>/dev/null <"$quiet"\n                [ -n',
        "[ -n",
    ),
    "a stamp that nothing binds a session is of this mailbox": ('&& [ "$of" = "$box" ] || quiet=', "|| quiet="),
}
"""Parts of the guard's text, and what the drawn states must notice to be gone."""


CONCERNS = {
    "configuration": {"config.toml"}, "note": {*VOUCHED}, "heart": {"heart"}, "future": {"times"}, "start": {"start"},
    "word": {"quiet"},
}  # fmt: skip
"""Words of those, and the parts of a mailbox that such states have otherwise."""
Drawn = tuple["Path", list[State]]


@pytest.fixture(scope="module")
def drawn() -> Iterator[Drawn]:
    """States, made on a disk, and where."""
    with memory() as scratch:
        yield scratch, states(3, STATES, scratch)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_answers_as_the_model(shell: str, drawn: Drawn) -> None:
    """Drawn directories: stamps, notes and times, hearts, links, files that nobody may write."""
    if shell not in installed():
        pytest.skip(f"this machine has no {shell}")
    scratch, there = drawn
    expected = modelled(there, resolution(shell), scratch)
    got = answered(SHELLS[shell], there, scratch)
    assert sum(answer.nothing for answer in expected) > STATES // 4
    assert sum(answer.beats and not answer.nothing for answer in expected) > 3
    different = [(s.seed, s.event, a, b) for s, a, b in zip(there, got, expected, strict=True) if a != b]
    assert different == []


@pytest.mark.parametrize("without", TAKEN_AWAY)
def test_the_states_tell_what_is_missing_in_the_guard(without: str, drawn: Drawn) -> None:
    """Each part of the guard decides something in them."""
    scratch, there = drawn
    parts = next((found for word, found in CONCERNS.items() if word in without), {"unbound"})
    there = [state for state in there if state.odd & parts]
    name, words = next(iter(installed().items()))
    expected = modelled(there, resolution(name), scratch)
    try:
        got = answered(words, there, scratch, TAKEN_AWAY[without])
    except Broken:
        return  # it ends with another code
    assert got != expected
