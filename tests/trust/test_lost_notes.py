"""A file on which a session's bounds rest is lost or replaced, one at a time: it stays bound, and nothing waits."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.core.control import messages as m
from agent_mailbox.store.user_state import bindings
from tests.helpers import MESSAGES, ROOT
from tests.trust.scene import DENIED, LEAD, OTHER, WORKER, Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RULE = "Bash(curl:*)"
HANGS = 20
"""Seconds after which a hook that waits for a FIFO counts as hung."""


class Records:
    """The user's records and the mailbox, which every damage finds as they were: content, times and identities."""

    def __init__(self, scene: Scene, keep: Path) -> None:
        self.state, self.box = scene.post.user_state, scene.post.box
        self.elsewhere = keep / "elsewhere"
        self.elsewhere.mkdir(parents=True)
        (self.elsewhere / "directory").mkdir()
        (self.elsewhere / "file").write_text("x\n")
        self.directories: list[Path] = []
        self._files: dict[Path, tuple[Path, bytes, tuple[int, int]]] = {}
        for number, root in enumerate((self.state, self.box)):
            shutil.copytree(root, keep / str(number), copy_function=os.link)
            for path in (root, *sorted(root.rglob("*"))):
                if path.is_dir():
                    self.directories.append(path)
                    continue
                at = path.stat()
                copy = keep / str(number) / path.relative_to(root)
                self._files[path] = copy, path.read_bytes(), (at.st_atime_ns, at.st_mtime_ns)

    def paths(self, root: Path | None = None) -> list[Path]:
        """Every file and directory, or those below one."""
        return [path for path in (*self.directories, *self._files) if root is None or path.is_relative_to(root)]

    def name(self, path: Path) -> str:
        """A path as a failure tells it."""
        return str(path.relative_to(self.state.parent if path.is_relative_to(self.state) else self.box.parent))

    def restore(self) -> None:
        """Put everything back."""
        for root in (self.state, self.box):
            if root.is_symlink() or (root.exists() and not root.is_dir()):
                root.unlink()
            for path in sorted(root.rglob("*"), reverse=True) if root.is_dir() else ():
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o700)
                    if path not in self.directories:
                        path.rmdir()
                elif path.is_symlink() or path not in self._files or not path.samefile(self._files[path][0]):
                    path.unlink()
        for path in self.directories:
            path.mkdir(0o700, exist_ok=True)
            path.chmod(0o700)
        for path, (copy, data, times) in self._files.items():
            copy.chmod(0o600)
            if (at := copy.stat()).st_mtime_ns != times[1] or at.st_size != len(data):
                copy.write_bytes(data)
                os.utime(copy, ns=times)
            if not path.exists():
                os.link(copy, path)


def remove(path: Path, _: Path) -> None:
    """Nothing is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def empty(path: Path, elsewhere: Path) -> None:
    """A file without a byte, or a directory without a file."""
    if path.is_dir():
        remove(path, elsewhere)
        path.mkdir(0o700)
    else:
        os.truncate(path, 0)


def halve(path: Path, elsewhere: Path) -> None:
    """The first half of a file; in a directory's place a file."""
    if path.is_dir():
        remove(path, elsewhere)
        path.write_bytes(b"")
    else:
        os.truncate(path, path.stat().st_size // 2)


def turn(path: Path, elsewhere: Path) -> None:
    """A directory in a file's place, and the other way round."""
    was_directory = path.is_dir()
    remove(path, elsewhere)
    if was_directory:
        path.write_text("x\n")
    else:
        path.mkdir(0o700)


def fifo(path: Path, elsewhere: Path) -> None:
    """A FIFO, which makes whoever opens it wait."""
    remove(path, elsewhere)
    os.mkfifo(path)


def link_to_nowhere(path: Path, elsewhere: Path) -> None:
    """A link to a file that is not there."""
    remove(path, elsewhere)
    path.symlink_to(elsewhere / "nowhere")


def link_to_itself(path: Path, elsewhere: Path) -> None:
    """A link in a circle."""
    remove(path, elsewhere)
    path.symlink_to(path)


def link_elsewhere(path: Path, elsewhere: Path) -> None:
    """A link to another file or directory."""
    there = elsewhere / ("directory" if path.is_dir() else "file")
    remove(path, elsewhere)
    path.symlink_to(there)


def close(path: Path, _: Path) -> None:
    """A mode by which not even its owner may read it."""
    path.chmod(0)


DAMAGES = [remove, empty, halve, turn, fifo, link_to_nowhere, link_to_itself, link_elsewhere]


@pytest.fixture
def lost(scene: Scene, tmp_path: Path) -> Records:
    """The records of a session that its lead and the person bound, which has a request; and of one that nothing
    binds. Hooks find the mailbox: no variable names it."""
    post = scene.post
    del post.env["AGENT_MAILBOX_DIR"]
    post.cwd = post.box
    post.ok("init", tmp_path / "other/data")
    scene.control.set_policy(LEAD, [WORKER], deny=(RULE,))
    scene.policy(deny=(RULE,))
    scene.control.request(WORKER, m.PermissionRequest(tool="Bash", input={"command": "x"}))
    (post.user_state / "shims").touch()
    assert "team_permission_update" in start(scene, WORKER)
    start(scene, OTHER)
    assert scene.asked() == "deny"
    assert scene.asked(who=OTHER) is None
    bindings.grant(scene.mailbox.logs.stamp_files, "call")
    post.cwd = post.scratch
    return Records(scene, tmp_path / "kept")


def start(scene: Scene, who: str) -> str:
    """What a session's start tells."""
    told = json.dumps({"session_id": who, "cwd": str(scene.post.cwd), "source": "startup"})
    env = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": who, "CLAUDE_PROJECT_DIR": str(scene.post.cwd)}
    return scene.post.call("hook", "SessionStart", stdin=told, env=env).stdout


def freed(
    paths: Sequence[Path], lost: Records, ask: Callable[[], Any], *damages: Callable[[Path, Path], None]
) -> set[tuple[str, str]]:
    """The damages to one of the paths after which the question is not answered by "deny"; it must be answered."""
    found = set()

    def hung(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, hung)
    try:
        for path in paths:
            for damage in damages:
                damage(path, lost.elsewhere)
                signal.alarm(HANGS)
                if ask() != "deny":
                    found.add((damage.__name__, lost.name(path)))
                signal.alarm(0)
                lost.restore()
    finally:
        signal.signal(signal.SIGALRM, before)
    return found


RECORDS = "agent-mailbox"
UNTOLD = {(damage.__name__, RECORDS) for damage in (remove, empty, link_elsewhere)}
"""All of the user's records are gone: no mailbox is theirs any more, and the next start tells the person that."""


UNMARKED = {
    ("remove", f"{RECORDS}/bound/{WORKER}"),
    *((damage.__name__, f"{RECORDS}/bound") for damage in (remove, empty, link_elsewhere)),
}
"""The mark is gone, which alone tells what binds a session elsewhere, or without Python."""


def test_a_bound_session_stays_so_whatever_one_file_is_lost(scene: Scene, lost: Records) -> None:
    """Each file of the user's records and of the mailbox; its own mailbox judges it."""
    assert freed(lost.paths(), lost, scene.asked, *DAMAGES) == UNTOLD
    scene.post.cwd = scene.post.box
    shutil.rmtree(lost.state)
    assert "not one your `agent-mailbox init` made" in json.loads(start(scene, WORKER))["systemMessage"]


def test_it_stays_so_where_another_mailbox_would_judge_it(scene: Scene, lost: Records) -> None:
    """A settings file names another mailbox: the mark alone says what binds it, and any rest of that closes."""
    scene.post.env["AGENT_MAILBOX_DIR"] = str(scene.post.scratch / "other/data")
    assert scene.asked() == "deny"
    assert freed(lost.paths(lost.state), lost, scene.asked, *DAMAGES) == UNTOLD | UNMARKED
    (lost.state / "bound" / WORKER).unlink()
    start(scene, WORKER)  # it notes the other mailbox; the one where it was binds it
    assert scene.asked() == "deny"


class Shim:
    """The shim of a checkout, run by ``dash`` or what ``sh`` is; a word means our Python."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        checkout = scene.post.scratch / "checkout"
        shutil.copytree(ROOT / "hooks", checkout / "hooks")
        (checkout / "agent_mailbox").symlink_to(ROOT / "agent_mailbox")
        self.python = checkout / ".venv/bin/python"
        self.python.parent.mkdir(parents=True)
        self.python.write_text("#!/bin/sh\necho ASKED\n")
        self.python.chmod(0o755)
        self.words = [shutil.which("dash") or "sh", str(checkout / "hooks/agent-mailbox-hook")]

    def asked(self, event: str = "Permit", tool: str = "Bash", path: Path = Path("/tmp/x")) -> str:
        """What it answers: "deny", also where it leaves that to Python."""
        env = self.scene.post.environ({"CLAUDE_CODE_SESSION_ID": WORKER, "PATH": "/usr/bin:/bin"})
        told = {"session_id": WORKER, "tool_name": tool, "tool_input": {"file_path": str(path), **DENIED}}
        data = (json.dumps(told, separators=(",", ":")) + "\n").encode()
        done = subprocess.run(
            [*self.words, event], input=data, env=env, cwd=self.scene.post.cwd, capture_output=True, timeout=HANGS
        )
        assert done.returncode == 0, done
        return "deny" if done.stdout == b"ASKED\n" or b'"deny"' in done.stdout else done.stdout.decode()


def test_the_shim_asks_python_whatever_one_file_is_lost(scene: Scene, lost: Records) -> None:
    """The shim asks Python whatever one file of the records is lost. The mark denies the call where Python is gone. No
    event waits for a FIFO."""
    shim, state = Shim(scene), lost.paths(lost.state)
    notes = [path for path in state if lost.state in (path, path.parent) or path.name == WORKER]
    assert freed(notes, lost, shim.asked, *DAMAGES) == UNTOLD
    for event, tool in (
        ("UserPromptSubmit", ""),
        ("Stop", ""),
        ("Doorbell", ""),
        ("Files", "Write"),
        ("PreToolUse", "Bash"),
    ):
        for path in [*notes, *(path for path in lost.paths(lost.box) if path.name == WORKER)]:
            fifo(path, lost.elsewhere)
            shim.asked(event, tool)
            lost.restore()
    shim.python.unlink()
    assert freed(notes, lost, shim.asked, *DAMAGES) == UNTOLD | UNMARKED


def test_no_tool_writes_a_mailbox_whose_list_is_lost(scene: Scene, lost: Records) -> None:
    """Neither by the shim nor by Python: the record of a mailbox tells of it, too."""
    log, shim = lost.box / MESSAGES, Shim(scene)
    told = json.dumps({"session_id": OTHER, "tool_name": "Write", "tool_input": {"file_path": str(log)}})

    def asked() -> str:
        answer = scene.post.call("hook", "Files", stdin=told).stdout
        return "deny" if '"deny"' in answer else answer

    lists = [lost.state / name for name in ("mailboxes", "boxes", "shims")]
    assert freed(lists, lost, asked, *DAMAGES) == set()
    assert freed(lists, lost, lambda: shim.asked("Files", "Write", log), *DAMAGES) == set()


def without_root(do: Callable[[], Any]) -> Any:
    """What it returns in a process that may not read what a mode forbids: a fork without those two capabilities."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            libc, own = ctypes.CDLL(None, use_errno=True), (ctypes.c_uint32 * 6)()
            header = (ctypes.c_uint32 * 2)(0x20080522, 0)
            libc.capget(header, own)
            own[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            done = libc.capset(header, own)
            os.write(writing, json.dumps(done or [*do()]).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        told = file.read()
    os.waitpid(child, 0)
    return json.loads(told)


def test_a_file_that_may_not_be_read_frees_nobody(scene: Scene, lost: Records) -> None:
    """Neither where its own mailbox judges nor where another would."""
    assert without_root(lambda: sorted(freed(lost.paths(lost.state), lost, scene.asked, close))) == []
    scene.post.env["AGENT_MAILBOX_DIR"] = str(scene.post.scratch / "other/data")
    assert without_root(lambda: sorted(freed(lost.paths(lost.state), lost, scene.asked, close))) == []
