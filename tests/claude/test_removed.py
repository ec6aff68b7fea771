"""The shim that outlives its package: it holds what it can prove, lets all else go, and says once how to remove it.

And the settings of a session that runs: do they still let its client call our hooks?
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients.client import Client
from agent_mailbox.clients.install.installation import UNBAKED
from agent_mailbox.known_clients.every_client import INSTALLED, USUAL
from tests.claude.shim import ME, SHELLS
from tests.claude.test_files import OTHERS, OURS, _links, call_of, is_refused, writing
from tests.helpers import MESSAGES, PATIENCE, ROOT, Post, each

if TYPE_CHECKING:
    from pathlib import Path

STRANGER = "5d1c4d0e-91a4-4f2c-8a52-07a9f4f1a001"
"""A session in a repository that never had a mailbox."""
CLIENTS = {"" if client is USUAL else client.word: client for client in INSTALLED}
"""Each client by the word with which its hooks call the shim."""


class Remains:
    """An installed shim whose package was removed."""

    def __init__(self, post: Post) -> None:
        self.post = post
        self.path = post.scratch / "share" / "agent-mailbox-hook"
        self.path.parent.mkdir()
        self.bake(post.scratch / "gone/bin/python", post.scratch / "gone/agent_mailbox/__main__.py")
        self.tools = post.scratch / "tools"
        self.tools.mkdir()

    def bake(self, python: Path, main: Path) -> None:
        """Write the shim as an installation with these paths would."""
        state = shlex.quote(str(self.post.user_state))
        filled = f"python={shlex.quote(str(python))} main={shlex.quote(str(main))} state={state}"
        text = (ROOT / "hooks/agent-mailbox-hook").read_text()
        assert f"\n{UNBAKED}\n" in text
        self.path.write_text(text.replace(f"\n{UNBAKED}\n", f"\n{filled}\n"))
        self.path.chmod(0o755)

    def hook(self, event: str, data: bytes, client: str = "", session: str = STRANGER, **how: Any) -> bytes:
        """What it answers a hook; it fails none and says nothing on standard error."""
        names = {"": "CLAUDE_CODE_SESSION_ID", "gemini": "GEMINI_SESSION_ID", "opencode": "OPENCODE_SESSION_ID"}
        env = {"AGENT_MAILBOX_DIR": None, "PATH": f"{self.tools}:/usr/bin:/bin", **how.get("env", {})}
        env |= {names[client]: session} if client in names else {}
        words = [*how.get("shell", ()), str(self.path), event, *([client] if client else [])]
        done = subprocess.run(
            words, input=data, env=self.post.environ(env), cwd=self.post.cwd, capture_output=True, timeout=PATIENCE
        )
        assert (done.returncode, done.stderr) == (0, b""), done
        return done.stdout


def event_of(name: str, session: str = STRANGER) -> bytes:
    """An event's JSON as a client writes it, as far as the shim reads it."""
    return json.dumps(
        {"session_id": session, "cwd": "/", "hook_event_name": name, "prompt": "x"}, separators=(",", ":")
    ).encode()


@pytest.fixture
def remains(post: Post) -> Remains:
    """A mailbox, whose package is gone, and whose path only the user's own records hold."""
    post.ok("send", "--from", "a", "--to", "b", "--body", "x")
    post.env.pop("AGENT_MAILBOX_DIR")
    return Remains(post)


def bind(post: Post) -> None:
    """The marks of a session that a policy binds."""
    for name in ("bound", "sessions"):
        (post.user_state / name).mkdir(exist_ok=True)
        (post.user_state / name / ME).write_text(f"{post.box}\n")


def run_by(shell: str) -> tuple[str, ...]:
    """The words that run a script by a shell."""
    return (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))


@pytest.mark.parametrize("shell", SHELLS)
def test_only_a_file_that_is_proven_to_be_ours_is_kept(remains: Remains, shell: str) -> None:
    """Through every link; by the client's own tools and by those of servers. All else is let go, also what a shell
    cannot tell: an escape, a relative path, input without an end."""
    post, how = remains.post, {"shell": run_by(shell)}
    _links(post)
    (post.cwd / "elsewhere").symlink_to(post.home)
    (post.home / "there.txt").touch()
    (post.cwd / "link").symlink_to(post.home / "there.txt")
    for tool in ("Write", "NotebookEdit"):
        for what, place in OURS.items():
            assert is_refused(remains.hook("Files", writing(place(post), tool), **how)), (tool, what)
    for what, place in OURS.items():
        assert is_refused(remains.hook("Files", call_of("mcp__fs__put", {"x": ["y", str(place(post))]}), **how)), what
        swapped = call_of("Write", {"content": "x" * 5000, "file_path": str(place(post))})
        assert is_refused(remains.hook("Files", swapped, **how)), what
    for what, place in OTHERS.items():
        assert not remains.hook("Files", writing(place(post)), **how), what
        assert not remains.hook("Files", call_of("mcp__fs__put", {"path": str(place(post))}), **how), what
    ours = str(post.box / MESSAGES)
    patch = f"*** Begin Patch\n*** Update File: a.py\n*** Move to: {ours}\n*** End Patch"
    assert is_refused(remains.hook("Files", call_of("apply_patch", {"command": patch}), "codex", **how))
    for let_go in (
        call_of(
            "mcp__docs__get", {"url": "https://example.org/", "about": "a \\ b", "home": "~/x", "file": "file:///x"}
        ),
        call_of("mcp__docs__get", {"text": f"see {ours}"}),
        call_of("Write", {"file_path": str(post.cwd / "link"), "content": f'"{ours}"\nfile_path: {ours}'}),
        call_of("Write", {"file_path": "relative/x", "content": ""}),
        call_of("apply_patch", {"command": "*** Begin Patch\n*** Add File: a b/c.py\n+x\n*** End Patch"}),
        b"{broken" + b"/" * 5000,
        b"",
    ):
        assert remains.hook("Files", let_go, **how) == b"", let_go


@pytest.mark.parametrize("client", CLIENTS)
def test_a_session_without_a_mailbox_is_left_alone_in_every_client(remains: Remains, client: str) -> None:
    """No tool of it is refused; it is told once, at its start or with its first prompt, what to do."""
    tools = [("Bash", {"command": "agent-mailbox check"}), ("mcp__docs__get", {"url": "https://example.org/"})]
    for event in ("Permit", "PermissionRequest", "PreToolUse", "Files"):
        for tool, given in (*tools, ("Write", {"file_path": "/new/x", "content": ""})):
            call = json.loads(call_of(tool, given)) | {"session_id": STRANGER}
            assert remains.hook(event, json.dumps(call, separators=(",", ":")).encode(), client) == b""
    begins = "SessionStart" if "SessionStart" in CLIENTS[client].events.values() else "UserPromptSubmit"
    for event in ("PostToolUse", "Stop", "PreCompact", "SessionEnd"):
        assert remains.hook(event, event_of(event), client) == b""
    told = remains.hook(begins, event_of(begins), client)
    for event in (begins, "UserPromptSubmit", "Stop"):
        assert remains.hook(event, event_of(event), client) == b""
    said = json.loads(told)["systemMessage"]
    assert said.startswith(
        "agent-mailbox is not installed, so its hooks do nothing. To remove them: install it again, "
    )
    assert "`agent-mailbox uninstall --all`" in said
    settings = CLIENTS[client].settings[1]
    assert said.endswith(settings), f"name {settings} at the end of clients/agent-mailbox-hook"


def test_a_session_that_ran_before_is_told_with_its_next_prompt(remains: Remains) -> None:
    """Its start was before the package went; the record of who was told is the user's alone."""
    assert b"To remove them" in remains.hook("UserPromptSubmit", event_of("UserPromptSubmit"))
    assert remains.hook("UserPromptSubmit", event_of("UserPromptSubmit")) == b""
    assert (remains.post.user_state / "told").stat().st_mode & 0o777 == 0o600
    shutil.rmtree(remains.post.user_state)
    assert b"To remove them" in remains.hook("SessionStart", event_of("SessionStart"))
    assert not remains.post.user_state.exists()


@pytest.mark.parametrize("client", ["", "codex", "copilot", "opencode"])
def test_a_bound_session_stays_bound_and_so_does_its_subagent(remains: Remains, client: str) -> None:
    """The shim of a removed package refuses each call of a bound session and of its subagent. An unbound session is
    free."""
    post = remains.post
    bind(post)
    call = call_of("Bash", {"command": "/x", "session_id": STRANGER, "parent_agent_id": STRANGER})
    for event in ("Permit", "Files"):
        assert is_refused(remains.hook(event, call.replace(b"Bash", b"mcp__x__y"), client, ME)), event
    other = call.replace(ME.encode(), STRANGER.encode())
    assert remains.hook("Permit", other, client) == b""
    if client == "copilot":
        below = other.replace(b'","cwd"', b'","parent_agent_id":"%s","cwd"' % ME.encode(), 1)
        assert is_refused(remains.hook("Permit", below, client))


def test_a_plugin_without_the_package_names_the_command_that_removes_it(remains: Remains) -> None:
    """It may never have been installed; the client copied the whole checkout, but no environment."""
    root = remains.post.scratch / "plugin"
    shutil.copytree(ROOT / "hooks", root / "hooks")
    (root / "agent_mailbox").symlink_to(ROOT / "agent_mailbox")
    remains.path = root / "hooks/agent-mailbox-hook"
    told = remains.hook("SessionStart", event_of("SessionStart"), env={"CLAUDE_PLUGIN_ROOT": str(root)})
    assert json.loads(told)["systemMessage"].endswith("To remove them: run `claude plugin uninstall agent-mailbox`")


@pytest.mark.parametrize("on_path", [False, True])
def test_a_python_that_was_replaced_is_named_and_holds_what_was_bound(remains: Remains, on_path: bool) -> None:
    """The environment's interpreter is a link to one that is gone: the hook says "install it again", and neither lets
    a bound session go nor starts the command that cannot start."""
    place = remains.post.scratch / "venv"
    main = place / "lib/python3.11/site-packages/agent_mailbox/__main__.py"
    main.parent.mkdir(parents=True)
    main.touch()
    (place / "bin").mkdir()
    for name in ("python", "python3.11"):
        (place / "bin" / name).symlink_to("/gone/python3.11")
    shutil.copy(ROOT / "agent_mailbox/start/agent-mailbox", place / "bin")
    (place / "bin/agent-mailbox-python").write_text(f"#!{place}/bin/python\n")
    (place / "bin/agent-mailbox-python").chmod(0o755)
    if on_path:
        for name in ("agent-mailbox", "agent-mailbox-python"):
            (remains.tools / name).symlink_to(place / "bin" / name)
    else:
        remains.bake(place / "bin/python", main)
    bind(remains.post)
    assert is_refused(remains.hook("Permit", call_of("Bash", {"command": "x"}), "codex", ME))
    assert is_refused(remains.hook("Files", call_of("mcp__x__y", {"z": "/"}), "", ME))
    said = json.loads(remains.hook("SessionStart", event_of("SessionStart")))["systemMessage"]
    assert "its Python is gone" in said
    assert "`pipx install --force .`" in said
    done = subprocess.run([place / "bin/agent-mailbox", "check"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 5
    assert done.stderr.startswith(f"error: agent-mailbox cannot start: its Python is gone: {place}/bin/python\nhint: ")
    assert "pipx install --force ." in done.stderr


@pytest.mark.parametrize("missing", ["__main__.py", "launch.py", "commands"])
def test_a_part_that_is_missing_blocks_no_client_and_holds_what_was_bound(remains: Remains, missing: str) -> None:
    """An upgrade takes a part of the package away as the hook's Python starts, which ends with 2 for a lost file. The
    hook holds a bound session and our files all the same, lets others go on, and says once what is wrong."""
    package = remains.post.scratch / "packages/agent_mailbox"
    shutil.copytree(ROOT / "agent_mailbox", package, ignore=shutil.ignore_patterns("__pycache__"))
    python = remains.post.scratch / "python"
    python.write_text(f'#!/bin/sh\nrm -rf {package / missing}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    remains.bake(python, package / "__main__.py")
    bind(remains.post)
    assert is_refused(remains.hook("Permit", call_of("Bash", {"command": "x"}), "codex", ME))
    (package / missing).touch()  # where it was taken away: it is there until Python starts again
    assert is_refused(remains.hook("Files", call_of("mcp__x__y", {"z": str(remains.post.box / MESSAGES)}), "", ME))
    (package / missing).touch()
    assert remains.hook("Stop", event_of("Stop")) == b""
    (package / missing).touch()
    said = json.loads(remains.hook("SessionStart", event_of("SessionStart")))["systemMessage"]
    assert said.startswith("agent-mailbox cannot start because a part of it is missing")
    assert "`pipx install --force .`" in said


@pytest.mark.parametrize("name", ["mailboxes", "shims"])
@pytest.mark.parametrize("shell", SHELLS)
def test_a_list_that_cannot_be_read_is_not_an_empty_one(remains: Remains, shell: str, name: str) -> None:
    """Python is asked, and refuses. A last line without an end and an empty line count as they do there."""
    post, how = remains.post, {"shell": run_by(shell)}
    python = post.scratch / "started"
    python.write_text('#!/bin/sh\necho "{}"\n')
    python.chmod(0o755)
    remains.bake(python, python)
    target = writing(post.cwd / "x")
    assert remains.hook("Files", target, **how) == b""
    listed = post.user_state / name
    kept = listed.read_bytes() if listed.exists() else b""
    listed.unlink(missing_ok=True)
    listed.mkdir()  # also for root, whom no mode keeps out
    assert remains.hook("Files", target, **how) == b"{}\n"
    assert is_refused(post.call("hook", "Files", stdin=target).raw)
    listed.rmdir()
    listed.write_bytes(kept.rstrip(b"\n") + b"\n\n" + os.fsencode(post.cwd / "x"))
    assert is_refused(remains.hook("Files", target, **how))
    assert remains.hook("Files", writing(post.cwd / "y"), **how) == b""


# -- the settings of a session that runs ------------------------------------------------------------------------------


WITH_OURS = {"hooks": {"Stop": "agent-mailbox-hook Stop"}}
WITHOUT_OURS: dict[str, Any] = {"hooks": {"Stop": "true"}, "permissions": ["Bash(agent-mailbox send:*)"]}
OFF = {"disableAllHooks": True}


CASES = [
    ("switched", WITH_OURS, {**WITH_OURS, **OFF}, 0, True),
    ("switched back", WITH_OURS, {**WITH_OURS, "disableAllHooks": False}, 0, False),
    ("taken out", WITH_OURS, WITHOUT_OURS, 0, True),
    ("another key", WITH_OURS, {**WITH_OURS, "model": "x"}, 0, False),
    ("a plugin's", WITHOUT_OURS, {**WITHOUT_OURS, "model": "x"}, 0, False),
    ("a plugin's, switched", WITHOUT_OURS, OFF, 0, True),
    ("long ago", WITH_OURS, {**WITH_OURS, **OFF}, 60, False),
]
"""A change: the settings before and after, how many seconds before the last hook, and what that tells."""


@each("case", CASES)
def test_a_change_of_the_settings_tells_whether_our_hooks_are_called(tmp_path: Path, case: tuple[Any, ...]) -> None:
    """A switch takes them away, and so does a removal by hand. Where none of the files held them, they are a plugin's,
    and only the switch does. Settings as they were at the last hook say nothing."""
    _, before, after, age, off = case
    own, heart = tmp_path / "project/.claude/settings.local.json", tmp_path / "heart"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(json.dumps(before))
    with Client(os.getpid(), {"HOME": str(tmp_path / "home")}, project=str(tmp_path / "project")) as client:
        own.write_text(json.dumps(after))
        heart.touch()
        for path in (own, own.parent):
            os.utime(path, (heart.stat().st_mtime - age,) * 2)
        assert client.is_switched_off(str(heart)) is off
