"""Where a command may come from, as real processes: below a client, at a terminal of its own, or from neither.

The client is a script called ``claude`` that starts hooks and a tool's shell as Claude Code 2.1.329 was seen to: a hook
has one end of a socket pair of the client's as its standard input, a tool's shell ``/dev/null``.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Self

from tests.helpers import DOOR, MAIN, PATIENCE, Child, Result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.helpers import Post

NOBODY_SAID: dict[str, str | None] = {"AGENT_MAILBOX_TEST_CALLER": None}
"""Callers are told by their processes, as they are outside tests."""

CLIENT = f"""#!{sys.executable} -IS
import json, os, socket, subprocess, sys
for line in sys.stdin:
    asked = json.loads(line)
    environ = {{**os.environ, **{{k: str(os.getpid()) if v == "PID" else v for k, v in asked["env"].items()}}}}
    if "json" in asked:
        mine, theirs = socket.socketpair()
        mine.sendall(asked["json"].encode())  # before: a busy machine may let a hook give up waiting for it
        mine.close()
        process = subprocess.Popen(asked["words"], env=environ, stdin=theirs, stdout=-1, stderr=-1,
                                   start_new_session=True)
        theirs.close()
    else:
        process = subprocess.Popen(asked["words"], env=environ, stdin=-3, stdout=-1, stderr=-1, start_new_session=True)
    out, err = process.communicate()
    print(json.dumps([process.returncode, out.decode(), err.decode()]), flush=True)
"""

TERMINAL = """
import json, os, pty, sys
ours, theirs = os.pipe()
if (between := os.fork()) == 0:
    os.setsid()
    me = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == me:
        pass
    pid, master = pty.fork()
    if pid == 0:
        os.execvp(sys.argv[2], sys.argv[2:])
    said, answered = b"", 0
    try:
        while part := os.read(master, 65536):
            said += part
            if said.count(b"[y/N] ") > answered:
                answered += 1
                typed = sys.argv[1].splitlines(True)
                os.write(master, typed[min(answered, len(typed)) - 1].encode())
    except OSError:
        pass
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with open(theirs, "w") as answer:
        json.dump([status, said.decode("utf-8", "replace")], answer)
    os._exit(0)
os.close(theirs)
os.waitpid(between, 0)
print(open(ours).read())
"""


PROMPT = ("bash", "--norc", "--noprofile", "-i")
"""The person's shell. It runs what it is given as it runs what is typed: as a job of its own."""


def words(*command: object) -> list[str]:
    """The words that start the program under test."""
    return [sys.executable, str(MAIN), *map(str, command)]


def line(*command: object) -> str:
    """The same as a shell's text."""
    return shlex.join(words(*command))


WHO = (
    f"import json, os, sys; sys.path.insert(0, {str(DOOR)!r}); from agent_mailbox.identity import callers;"
    "found = callers.caller_of(os.environ);"
    "print(json.dumps([found.kind, *found.sessions[:1], *([found.why] if found.why else [])]))"
)


def who() -> str:
    """A shell's text that prints who calls, as JSON: the kind, then the session, or why it is not the person."""
    return shlex.join([sys.executable, "-c", WHO])


SEVERAL = f"""
import io, json, os, sys
sys.path[:0] = [{str(DOOR)!r}]
from agent_mailbox.launch import main
from agent_mailbox.commands.main import load_command
wanted = json.loads(sys.argv[1])
for words in wanted:
    load_command(words[0])
for words in wanted:
    streams = [os.memfd_create(name) for name in ("out", "err")]
    if (child := os.fork()) == 0:
        code = 70
        try:
            os.dup2(streams[0], 1)
            os.dup2(streams[1], 2)
            sys.argv[1:] = words
            code = main(words)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    rc = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([rc, *(os.pread(fd, 2**20, 0).decode() for fd in streams)]), flush=True)
"""
"""Runs several commands, each in a process of its own that is forked from one that has imported the program."""


def several(commands: Sequence[Sequence[object]]) -> str:
    """A shell's text that runs the commands one after another; what ``results_of`` reads."""
    return shlex.join([sys.executable, "-c", SEVERAL, json.dumps([list(map(str, command)) for command in commands])])


def results_of(result: Result) -> list[Result]:
    """How each of several commands ended."""
    assert result.rc == 0, result
    told = map(json.loads, result.stdout.splitlines())
    return [Result(rc, out.encode(), err.encode()) for rc, out, err in told]


def kind(result: Result) -> list[str]:
    """What ``who`` printed."""
    assert result.rc == 0, result
    return list(json.loads(result.stdout))


def can_run(*words: str) -> bool:
    """Whether this machine lets this user run it: namespaces of one's own are not allowed everywhere."""
    return bool(shutil.which(words[0])) and not subprocess.run(words, capture_output=True, check=False).returncode


class Client:
    """A client's process, for a ``with`` block."""

    def __init__(self, post: Post, *, name: str = "claude", under: Sequence[str] = ()) -> None:
        self.post = post
        self.file: Path = post.scratch / "bin" / name
        self.file.parent.mkdir(exist_ok=True)
        if not self.file.exists():  # an earlier one may be about to start it
            self.file.write_text(CLIENT)
            self.file.chmod(0o755)
        self.process = Child(
            [*under, str(self.file)],
            env=post.environ(NOBODY_SAID),
            cwd=post.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def run(self, command: Sequence[str], env: Mapping[str, str], **more: Any) -> Result:
        """Run a command as a tool, or (with ``json``) as a hook with that on its standard input."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"words": [*command], "env": {**env}, **more}).encode() + b"\n")
        self.process.stdin.flush()
        rc, out, err = json.loads(self.process.stdout.readline())
        return Result(rc, out.encode(), err.encode())

    def hook(
        self, session_id: str, event: str = "SessionStart", *, settings: Mapping[str, str] | None = None, **more: Any
    ) -> Result:
        """Call a hook for a session, as a client does; ``settings``: variables that its own files add."""
        told = {"session_id": session_id, "cwd": str(self.post.cwd), **more}
        env = {"CLAUDE_CODE_SESSION_ID": session_id, "CLAUDE_PID": "PID", "CLAUDECODE": "1", **(settings or {})}
        return self.run(words("hook", event), env, json=json.dumps(told))

    def bash(self, text: str, session_id: str | None = None, **env: str) -> Result:
        """Run a shell's text as a tool of a session does."""
        named = {} if session_id is None else {"CLAUDE_CODE_SESSION_ID": session_id, "CLAUDE_PID": "PID"}
        return self.run(["bash", "-c", text], {**named, "CLAUDECODE": "1", **env})


def at_terminal(
    post: Post,
    text: str,
    env: Mapping[str, str | None] | None = None,
    *,
    answer: str = "\x04",
    shell: Sequence[str] = PROMPT,
) -> Result:
    """Run a text at an interactive shell's prompt, at a terminal of its own, with nothing of this process above it.

    ``answer``: what is typed at each question, a line each, the last one at all others; by default its end, which is no
    answer.
    """
    typed = {"PROMPT_COMMAND": f"unset PROMPT_COMMAND; {text}\nexit"} if shell is PROMPT else {}
    done = subprocess.run(
        [sys.executable, "-IS", "-c", TERMINAL, answer, *shell, *([] if typed else [text])],
        env=post.environ({**NOBODY_SAID, **typed, **(env or {})}),
        cwd=post.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    rc, said = json.loads(done.stdout)
    return Result(rc, said.encode(), b"")
