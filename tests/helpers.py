"""What the outside-in tests share: the program as a process or in-process, a mailbox to run it in, raw log lines.

``Program.run`` gives a real process with an environment of its own; ``Program.call`` runs the same entry point inside
this one, for the many cases whose point is not the process. Both give the same ``Result``. A process is forked from
this one, which has imported the program. A test of how the program starts says ``forked=False``.
"""

from __future__ import annotations

import fcntl
import functools
import gc
import inspect
import io
import json
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import threading
import time
import uuid
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tests.door import switches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pytest

ROOT = Path(__file__).resolve().parent.parent
DOOR = ROOT / "tests/door"
"""Starts the program with the switches of tests (``tests/door/switches.py``)."""
MAIN = DOOR / "agent_mailbox/__main__.py"
TOOLS = f"{DOOR}/bin:{os.path.dirname(sys.executable)}"
"""The beginning of a PATH on which `agent-mailbox` comes through the door, and all else is the environment's."""
PATIENCE = 150
"""Seconds after which a child that should have ended counts as hung; never a synchronisation."""
MESSAGES, READS, ROSTER = "agent-mailbox.jsonl", "agent-mailbox-reads.jsonl", "agent-roster.jsonl"
ARCHIVE, HEARTBEATS = "agent-mailbox-archive", "agent-heartbeats"
FRAME = "Agent mail"
"""Words that a hook shows with agents' mail. A test that misses them also sees that mail brings them."""
IMPATIENT = (
    "-c",
    "import sys; from agent_mailbox.cli import output; output.PATIENCE = 0.0\n"
    "from agent_mailbox.launch import main; sys.exit(main())",
)
"""What Python runs in place of the program: a command that gives up at once where its reader does not read."""
_OURS = f"{DOOR}:{ROOT}"
"""The PYTHONPATH of the program under test."""
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "COVERAGE_PROCESS_START")


class Result:
    """How an invocation ended: exit code, both streams as text, and standard output as JSON."""

    def __init__(self, rc: int, stdout: bytes, stderr: bytes) -> None:
        self.rc = rc
        self.raw = stdout
        self.stdout = stdout.decode("utf-8", "surrogateescape")
        self.stderr = stderr.decode("utf-8", "surrogateescape")

    @property
    def json(self) -> Any:
        """Standard output as exactly one JSON document."""
        return json.loads(self.stdout)

    @property
    def warnings(self) -> list[str]:
        """The lines of standard error that warn."""
        return [line for line in self.stderr.splitlines() if line.startswith("warning: ")]

    def __repr__(self) -> str:
        return f"Result(rc={self.rc}, stdout={self.stdout[-2000:]!r}, stderr={self.stderr[-2000:]!r})"


class Child(subprocess.Popen[bytes]):
    """A process for a ``with`` block, which it does not outlive where a test fails within: nobody would end it."""

    tracer: subprocess.Popen[bytes] | None = None
    """What traces it, and writes down its end."""
    is_starting = is_unwanted = False
    """Of all: one starts in the thread that signals come to, so nobody could end it yet; it is to end at once."""

    def __init__(self, *words: Any, **how: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            super().__init__(*words, **how)
            return
        Child.is_starting = True
        try:
            super().__init__(*words, **how)
        finally:
            Child.is_starting = False
        if Child.is_unwanted:
            self.kill()
            self.wait()
            sys.exit(128 + signal.SIGTERM)

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, *rest)
        if self.tracer is not None:
            self.tracer.communicate(timeout=PATIENCE)


def end_all_when_terminated() -> None:
    """Have SIGTERM end this process as an error would: the blocks that it is in end what they started."""

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Child.is_unwanted = Child.is_starting
        if not Child.is_starting:
            sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)


PRODUCT: dict[str, Any] = {}
"""What ``conftest`` replaced in this process, of the product: a process that is forked from it has that back."""


def _become(words: Sequence[str], environ: Mapping[str, str], go: int = -1) -> NoReturn:
    """Be the program, in a child whose streams and directory are set already; it never reaches its ``exec``. With
    ``go`` it begins when the other end of that pipe is closed."""
    code = 70
    try:
        if go >= 0:
            os.dup2(go, 3)
        from agent_mailbox import launch
        from agent_mailbox.mailbox import open_mailbox

        open_mailbox.nobody = PRODUCT.get("nobody", open_mailbox.nobody)  # a bench has no conftest
        os.closerange(3 if go < 0 else 4, os.sysconf("SC_OPEN_MAX"))
        os.environ.clear()
        os.environ.update(environ)
        logging.getLogger().handlers.clear()  # pytest's own, beside which nobody else gets one
        sys.argv[:] = ["agent-mailbox", *words]
        sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), encoding="utf-8")
        sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), encoding="utf-8")
        sys.stderr = io.TextIOWrapper(open(2, "wb", closefd=False), encoding="utf-8", line_buffering=True)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # as Python does when it starts
            signal.signal(number, signal.SIG_IGN)
        gc.freeze()  # what this process brought is nobody's garbage, and looking at it would copy it
        gc.disable()  # as ``launch.start`` does
        time.tzset()
        if go >= 0:
            os.read(3, 1)
            os.close(3)
        code = launch.main(list(words))
        try:  # as ``launch.start`` does
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            code = code or 5
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _start_traced(
    command: list[str], become: Callable[..., NoReturn], under: Sequence[str], how: dict[str, Any]
) -> Child:
    """Fork a process, and let it go once strace says that it is there: nothing of an interpreter's start is traced."""
    waits, go = os.pipe()
    try:
        child = Child(command, **how, preexec_fn=functools.partial(become, waits))
        tracer = [*(word for word in under if word not in ("-qq", "--seccomp-bpf")), "-p", str(child.pid)]
        child.tracer = subprocess.Popen(tracer, stdin=-3, stdout=-3, stderr=subprocess.PIPE)
        assert child.tracer.stderr is not None
        said = child.tracer.stderr.readline()
        if b"attached" not in said:
            child.kill()
            raise AssertionError(said)
    finally:
        os.close(waits)
        os.close(go)
    return child


def _starting(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that count for how an interpreter starts."""
    return {name: value for name, value in environ.items() if name.startswith(("PYTHON", "LC_", "LANG", "LD_"))}


class Program:
    """The program in a scratch directory, with a home and an environment of its own."""

    def __init__(self, scratch: Path) -> None:
        switches.switch_now()  # a program without pytest, such as a storm, calls commands within its process, too
        self.scratch = scratch
        self.home = scratch / "home"
        self.cwd = scratch / "work"
        self.box = scratch / "box"
        self.forks = bool(PRODUCT)
        """Whether its processes are forked from this one, see ``start``. Those of a bench are not."""
        for directory in (self.home, self.cwd):
            directory.mkdir(parents=True, exist_ok=True)
        self.env = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
        self.user_state = self.home / ".local/state/agent-mailbox"
        self.env |= {"HOME": str(self.home), "PYTHONPATH": _OURS}
        self.env |= {"AGENT_MAILBOX_TEST_STATE": str(self.user_state), "AGENT_MAILBOX_TEST_CALLER": "as-said"}
        os.environ["AGENT_MAILBOX_TEST_STATE"] = str(
            self.user_state
        )  # for mailboxes that the test opens within its process

    def environ(self, more: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """The child's whole environment; a value of None takes a variable away."""
        merged: dict[str, str | None] = {**self.env, **(more or {})}
        return {key: value for key, value in merged.items() if value is not None}

    def _words(self, words: Sequence[object]) -> list[str]:
        return [os.fspath(w) if isinstance(w, os.PathLike) else str(w) for w in words]

    def start(
        self,
        *words: object,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        python: Sequence[str] = ("-m", "agent_mailbox"),
        under: Sequence[str] = (),
        forked: bool | None = None,
        **popen: Any,
    ) -> subprocess.Popen[bytes]:
        """A process of the program, to be talked to; perhaps ``under`` another, such as a tracer. ``forked`` from this
        one it has imported what this one has, and starts in a tenth of the time. Where something is said of its start,
        it starts."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        environ = self.environ(env)
        usual = python == ("-m", "agent_mailbox") and not {"preexec_fn", "pass_fds"} & popen.keys()
        usual = usual and _starting(environ) == _starting(self.env) and self.env["PYTHONPATH"] == _OURS
        usual = usual and (self.forks if forked is None else forked)
        how = {"env": environ, "cwd": cwd or self.cwd, **pipes, **popen}
        command = [*under, sys.executable, *python, *self._words(words)]
        if usual and not under:
            return Child(command, **how, preexec_fn=functools.partial(_become, self._words(words), environ))
        if usual and under[0] == "strace" and os.geteuid() == 0:
            return _start_traced(command, functools.partial(_become, self._words(words), environ), under, how)
        return Child(command, **how)

    def run(self, *words: object, stdin: bytes | str | None = None, **how: Any) -> Result:
        """One invocation in a process of its own."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        if data is None:
            how.setdefault("stdin", subprocess.DEVNULL)
        with self.start(*words, **how) as child:
            try:
                out, err = child.communicate(data, timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()
                raise
        return Result(child.returncode, out or b"", err or b"")

    def call(
        self,
        *words: object,
        stdin: bytes | str = b"",
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
    ) -> Result:
        """One invocation inside this process; a bug's exception comes straight through. It leaves none of our files
        open. Beside a thread of the test nobody can tell that."""
        from agent_mailbox.launch import main
        from agent_mailbox.store.files import system

        data = stdin.encode() if isinstance(stdin, str) else stdin
        out, err = io.BytesIO(), io.BytesIO()
        before, is_alone = _descriptors(), _is_alone()
        with _surroundings(self.environ(env), cwd or self.cwd, data, out, err):
            rc = main(self._words(words))
        if is_alone and _is_alone() and _descriptors() - before:
            gc.collect()  # what an exception holds
            left = open_files(self.scratch)
            assert left.keys() - before <= {*map(str, system.waiting)}, (words, left)
        return Result(rc, out.getvalue(), err.getvalue())

    def python(self, code: str, *words: object, **how: Any) -> Result:
        """A child that runs ``code`` (the arguments in ``sys.argv[1:]``)."""
        return self.run(*words, python=("-c", code), **how)


_threads = {*threading.enumerate()}
"""The threads of the test run itself."""


def _is_alone() -> bool:
    return _threads.issuperset(threading.enumerate())


def _descriptors() -> set[str]:
    """This process's descriptors; none but on Linux."""
    try:
        found = {*os.listdir("/proc/self/fd")}
    except FileNotFoundError:
        return set()
    own = os.open("/", os.O_RDONLY)  # the lowest that is free: so was that of the look
    os.close(own)
    return found - {str(own)}


def open_files(below: Path) -> dict[str, str]:
    """The files below a directory that this process has open, by their descriptors."""
    found = dict[str, str]()
    for number in _descriptors():
        with suppress(OSError):  # another thread may have closed it
            found[number] = os.readlink(f"/proc/self/fd/{number}")
    return {number: path for number, path in found.items() if path.startswith(f"{below}/") or path == str(below)}


def left_open(below: Path) -> dict[str, str]:
    """Those that nobody closes any more, nor waits with. A thread whose wait ends during a look closes its own before
    the next one."""
    from agent_mailbox.store.files import system

    def look() -> dict[str, str]:
        waiting = {*map(str, system.waiting)}
        return {number: path for number, path in open_files(below).items() if number not in waiting}

    if not (found := look()):
        return found
    gc.collect()  # what an exception holds
    return dict(found.items() & look().items())


@contextmanager
def _surroundings(
    environ: Mapping[str, str], cwd: Path, stdin: bytes, out: io.BytesIO, err: io.BytesIO
) -> Iterator[None]:
    with ExitStack() as undo:
        before = _set_variables({os.fsencode(name): os.fsencode(value) for name, value in environ.items()})
        undo.callback(_set_variables, before)
        undo.callback(os.chdir, os.getcwd())
        os.chdir(cwd)
        for name, stream in (("stdin", io.BytesIO(stdin)), ("stdout", out), ("stderr", err)):
            undo.callback(setattr, sys, name, getattr(sys, name))
            setattr(sys, name, io.TextIOWrapper(_Kept(stream), encoding="utf-8", write_through=True))
        yield


def _set_variables(wanted: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Have the environment be this one; return that of before."""
    # no public way is as fast: ``os.environ`` takes each variable out and puts it in again, one by one
    variables: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]
    before = variables.copy()
    for name in variables.keys() - wanted:
        os.unsetenv(name)
    for name, value in wanted.items():
        if variables.get(name) != value:
            os.putenv(name, value)
    variables.clear()
    variables.update(wanted)
    return before


class _Kept(io.BufferedIOBase):
    """Bytes that outlive the text stream around them."""

    def __init__(self, inner: io.BytesIO) -> None:
        self._inner = inner

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        return self._inner.read(size)

    def read1(self, size: int = -1) -> bytes:
        return self._inner.read1(size)

    def write(self, data: Any) -> int:
        return self._inner.write(data)


def copy_package(place: Path) -> Path:
    """Copy the package into a directory, with the switches of tests built in; returns the package's directory. Compiled
    modules come along, bundles do not: those name the files of the first."""
    package = place / "agent_mailbox"
    shutil.copytree(ROOT / "agent_mailbox", package, ignore=shutil.ignore_patterns("*.bundle*"))
    with open(package / "__init__.py", "a", encoding="utf-8") as file:
        file.write(f"""
import sys as _sys

_sys.path[:0] = [{str(DOOR)!r}, _sys._stdlib_dir]
import switches

del _sys.path[:2]
switches.switch_as_imported()
""")
    return package


def made_once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a directory that one worker of the run filled, for all."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    place, making = base / name, base / f"{name}.making"
    with open(base / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            making.mkdir()
            make(making)
            making.rename(place)
    return place


def waiting_bytes(pipe: Any) -> int:
    """Return how many bytes wait in a pipe for their reader."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4), sys.byteorder)


def start_at_once(children: list[subprocess.Popen[bytes]]) -> None:
    """Let processes go that say ``ready`` and then wait for the end of their input, once all are."""
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.close()
        child.stdin = None


class Post(Program):
    """A ``Program`` whose mailbox is in ``box`` and is named by ``AGENT_MAILBOX_DIR``."""

    def __init__(self, scratch: Path) -> None:
        super().__init__(scratch)
        assert self.call("init", self.box).rc == 0
        self.settings = ""
        """What each configuration of the person's has besides."""
        self.env["AGENT_MAILBOX_DIR"] = str(self.box)

    def file(self, *names: str) -> Path:
        """A file of the mailbox."""
        return self.box.joinpath(*names)

    def configure(self, text: str) -> None:
        """Write the person's own configuration."""
        self.user_state.mkdir(parents=True, exist_ok=True)
        (self.user_state / "config.toml").write_text(text + self.settings)

    def lines(self, name: str) -> list[bytes]:
        """The lines of a log that are not empty."""
        path = self.file(name)
        return [line for line in path.read_bytes().split(b"\n") if line] if path.exists() else []

    def objects(self, name: str) -> list[dict[str, Any]]:
        """The records of a log, raw; without one that a process is writing at this moment."""
        data = path.read_bytes() if (path := self.file(name)).exists() else b""
        whole, _, last = data.rpartition(b"\n")
        found = [json.loads(line) for line in whole.split(b"\n") if line]
        try:
            return [*found, *([json.loads(last)] if last else [])]
        except ValueError:
            return found

    def ok(self, *words: object, **how: Any) -> Any:
        """The JSON answer of a command that must succeed."""
        result = self.call(*words, "--json", **how)
        assert result.rc == 0, result
        return result.json

    def register(self, session_id: str, *words: object) -> None:
        """Put an agent into the roster."""
        self.ok("roster", "register", "--session-id", session_id, *words)

    def send(self, sender: str, to: str, body: str = "hello", *words: object) -> str:
        """Send; returns the id."""
        return str(self.ok("send", "--from", sender, "--to", to, "--body", body, *words)["message"]["id"])

    def unread(self, session_id: str) -> list[str]:
        """The ids of a session's unread mail; nothing is marked."""
        answer = self.ok("check", "--session", session_id, "--peek", "--limit", "0")
        return [m["id"] for m in answer["messages"]]

    def check(self, session_id: str, *words: object) -> list[str]:
        """Check for real; the ids shown."""
        return [m["id"] for m in self.ok("check", "--session", session_id, "--limit", "0", *words)["messages"]]

    def snapshot(self) -> dict[str, bytes]:
        """Every file of the mailbox with its bytes, but for the derived ones."""
        files = {str(path.relative_to(self.box)): path for path in sorted(self.box.rglob("*")) if path.is_file()}
        return {name: path.read_bytes() for name, path in files.items() if not name.startswith(".cache/")}

    def append(self, name: str, *records: Mapping[str, Any] | bytes) -> None:
        """Write into a log as a foreign program does."""
        with open(self.file(name), "ab", opener=_private) as file:
            for record in records:
                file.write(record if isinstance(record, bytes) else json.dumps(record).encode() + b"\n")

    def doctor(self) -> list[dict[str, Any]]:
        """What the doctor finds."""
        result = self.call("doctor", "--json")
        assert result.rc == (0 if result.json["ok"] else 3), result
        return list(result.json["problems"])


def begin_again(box: Path, environ: Mapping[str, str]) -> None:
    """Have the user's records take a mailbox as it is now, after its files were put there again."""
    from agent_mailbox.store.files import paths
    from agent_mailbox.store.log import custody, custody_setup

    if (known := custody.find(str(box), paths.state_directory(environ))) is not None:
        custody_setup.remove(known.directory)
    custody_setup.ensure(str(box), environ)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def record(sender: str = "stranger", recipient: Any = "all", content: str = "foreign", **more: Any) -> dict[str, Any]:
    """A message record as another program may write it."""
    return {
        "id": str(uuid.uuid4()),
        "sender": sender,
        "recipient": recipient,
        "timestamp": stamp(),
        "content": content,
        "thread": None,
        "ttl_hours": None,
        "read_by": [],
        **more,
    }


def stamp(millis: int | None = None) -> str:
    """An instant as the logs write it; now by default."""
    from agent_mailbox.core import instant

    return instant.text(time.time_ns() // 1_000_000 if millis is None else millis)


NOBODY = 65534
"""The user id of nobody in particular."""


def as_nobody(do: Callable[[], list[Any]]) -> list[Any]:
    """What it returns in a process of another user: a fork, for this interpreter may lie where only we may go."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writing, json.dumps(do()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        told = file.read()
    os.waitpid(child, 0)
    return list(json.loads(told))


def refused(result: Result, rc: int, *said: str) -> Result:
    """The result is an error as the contract has it: its code, one ``error:`` line, at most one ``hint:`` line."""
    assert result.rc == rc, result
    lines = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
    assert lines, result
    assert lines[0].startswith("error: "), result
    assert len(lines) <= 2, result
    assert all(line.startswith("hint: ") for line in lines[1:]), result
    assert "Traceback" not in result.stderr
    assert all(line.isprintable() for line in result.stderr.splitlines()), result
    for word in said:
        assert word in " ".join(lines), (word, result)
    return result


def hinted_commands(hint: str) -> list[list[str]]:
    """The words of each command of ours that a hint names."""
    return [shlex.split(said) for said in re.findall("`agent-mailbox ([^`]*)`", hint)]


def refused_both(run: Callable[..., Result], rc: int, *words: object, said: Sequence[str] = (), **how: Any) -> Result:
    """The command is refused alike in text and under ``--json``, where stdout is the error and nothing else."""
    plain = refused(run(*words, **how), rc, *said)
    assert plain.stdout == "", plain
    told = refused(run(*words, "--json", **how), rc, *said)
    assert list(told.json) == ["error"]
    error = told.json["error"]
    assert set(error) == {"code", "message", "hint"}
    assert all(isinstance(value, str) for value in error.values())
    assert [*map(str, words)] not in hinted_commands(error["hint"]), "a hint leads on"
    lines = [line for line in told.stderr.splitlines() if not line.startswith("warning: ")]
    assert lines[0] == f"error: {error['message']}"
    assert (lines[1:] or ["hint: "])[0] == f"hint: {error['hint']}"
    return told


def each(name: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Have one test look at all values, where a case for each would cost more than the look; it tells all that fail.
    ``name``: of the argument, or of several (``"words, said"``), and each value is as many."""
    values, names = list(values), name.split(", ")

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def of_all(**fixtures: Any) -> None:
            wrong = []
            for value in values:
                try:
                    test(**dict(zip(names, value if len(names) > 1 else [value], strict=True)), **fixtures)
                except AssertionError as error:
                    wrong.append(f"{value!r}: {error}")
            assert not wrong, "\n\n".join(wrong)
            assert values

        given = inspect.signature(test).parameters.values()
        # pytest takes from it which fixtures the test wants
        of_all.__signature__ = inspect.Signature([one for one in given if one.name not in names])  # type: ignore[attr-defined]
        return of_all

    return decorated


def until(condition: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Poll a condition until it holds; a test that waits longer has found a hang. Looking takes at most a
    quarter of the time: what is waited for needs the processor."""
    began = time.monotonic()
    give_up = began + patience
    while not (value := condition()):
        now = time.monotonic()
        assert now < give_up, "the condition never came true"
        time.sleep(min(0.1, max(0.002, 3 * (now - began))))
        began = time.monotonic()
    return value


def delete(directory: Path) -> None:
    """Delete it although a process that runs writes there: such a file makes one pass end early."""

    def is_gone() -> bool:
        shutil.rmtree(directory, ignore_errors=True)
        return not directory.exists()

    until(is_gone)


def utf16(text: str) -> int:
    """The length a JavaScript client counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
