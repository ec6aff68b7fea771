"""Before a tool that writes files: what it may not write, by the shim's builtins and by Python alike.

That is a mailbox, clients' settings, our program, and what the person's terminal runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients.permission import file_guard, guarded_names
from agent_mailbox.known_clients.every_client import CLIENTS
from tests.claude.shim import ME, SHELLS, Shim
from tests.helpers import MESSAGES, PATIENCE, Post

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.helpers import Post

KEYS = {"NotebookEdit": "notebook_path"}


def call_of(tool: str, given: dict[str, Any], cwd: object = "/") -> bytes:
    """A call as the client writes it."""
    call = {"session_id": ME, "cwd": str(cwd), "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given}
    return json.dumps({**call, "tool_use_id": "toolu_1"}, ensure_ascii=False, separators=(",", ":")).encode()


def writing(path: object, tool: str = "Write", **more: Any) -> bytes:
    """A call that writes the file at the path."""
    return call_of(tool, {KEYS.get(tool, "file_path"): str(path), "content": 'x "\\ \n', **more})


def is_refused(answer: bytes) -> bool:
    """Whether the answer is the client's refusal, whole; nothing at all is the other one."""
    if not answer:
        return False
    told = json.loads(answer)["hookSpecificOutput"]
    assert (told["hookEventName"], told["permissionDecision"]) == ("PreToolUse", "deny")
    return True


def by_shim(shim: Shim, data: bytes, *words: str, **env: str | None) -> bytes:
    """What the shim answers."""
    command = [*words, str(shim.checkout / "hooks/agent-mailbox-hook"), "Files"]
    surroundings = shim.post.environ({**shim.env, **env})
    done = subprocess.run(
        command, input=data, env=surroundings, cwd=shim.post.cwd, capture_output=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout


def by_python(post: Post, data: bytes) -> bytes:
    """What Python answers without a shim before it."""
    return post.call("hook", "Files", stdin=data).raw


@pytest.fixture
def guarded(shim: Shim) -> Shim:
    """The guard where nothing names the mailbox but the user's own records."""
    shim.post.ok("send", "--from", "a", "--to", "b", "--body", "x")
    shim.env["AGENT_MAILBOX_DIR"] = None
    shim.post.env.pop("AGENT_MAILBOX_DIR")
    return shim


def _links(post: Post) -> dict[str, Path]:
    """Ways to a mailbox's files that do not look like it."""
    work, box = post.cwd, post.box
    (work / "to-box").symlink_to(box)
    (work / "to-archive").symlink_to(box / "agent-mailbox-archive")
    (work / "to-state").symlink_to(post.user_state)
    (work / "notes.md").symlink_to(box / MESSAGES)
    (work / "dangling").symlink_to(box / ".cache/unbound-new")
    os.link(box / MESSAGES, work / "hard.txt")
    os.link(post.user_state / "mailboxes", work / "hard-state.txt")
    return {name: work / name for name in ("to-box", "to-archive", "to-state", "notes.md", "dangling")}


OURS: dict[str, Callable[[Post], object]] = {
    "the log": lambda post: post.box / MESSAGES,
    "a stamp that is not there yet": lambda post: post.box / ".cache/quiet/x",
    "directories that are not there yet": lambda post: post.box / "new/newer/x",
    "the configuration": lambda post: post.box / "config.toml",
    "the directory": lambda post: post.box,
    "a stamp that frees": lambda post: post.user_state / "unbound" / ME,
    "the key": lambda post: post.user_state / "key",
    "by ..": lambda post: post.cwd / "../box" / MESSAGES,
    "by .": lambda post: post.scratch / "./box" / MESSAGES,
    "by slashes": lambda post: f"/{post.scratch}//box///{MESSAGES}",
    "a linked directory": lambda post: post.cwd / "to-box/x",
    "a directory linked deeper": lambda post: post.cwd / "to-archive/x",
    "a linked state": lambda post: post.cwd / "to-state/unbound/x",
    "a linked file": lambda post: post.cwd / "notes.md",
    "a link that leads nowhere yet": lambda post: post.cwd / "dangling",
    "a hard link": lambda post: post.cwd / "hard.txt",
    "a hard link to the records": lambda post: post.cwd / "hard-state.txt",
}
OTHERS: dict[str, Callable[[Post], object]] = {
    "a new file": lambda post: post.cwd / "src/new.py",
    "a file that is there": lambda post: post.home / "there.txt",
    "one called alike": lambda post: f"{post.box}2/{MESSAGES}",
    "one named as ours elsewhere": lambda post: post.cwd / MESSAGES,
    "below a linked directory": lambda post: post.cwd / "elsewhere/x",
    "the root": lambda _: "/x",
    "with a space, a star and a dollar": lambda post: post.cwd / "a *$(touch y).md",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_no_tool_writes_a_file_of_ours_however_it_is_named(guarded: Shim, shell: str) -> None:
    """The shim and Python refuse the same writes to our files: both decide by the file's real place."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    post = guarded.post
    _links(post)
    (post.cwd / "elsewhere").symlink_to(post.home)
    (post.home / "there.txt").touch()
    for tool in ("Write", "Edit", "MultiEdit", "NotebookEdit"):
        for what, place in OURS.items():
            assert is_refused(by_shim(guarded, writing(place(post), tool), *words)), (tool, what)
    for what, place in OTHERS.items():
        assert not is_refused(by_shim(guarded, writing(place(post)), *words)), what
    for what, place in [*OURS.items(), *OTHERS.items()]:
        assert is_refused(by_python(post, writing(place(post)))) == (what in OURS), what
    before = post.snapshot()
    assert by_shim(guarded, writing(post.box / MESSAGES), *words).decode() == file_guard.refusal_answer(file_guard.WHY)
    assert post.snapshot() == before


@pytest.mark.parametrize("shell", SHELLS)
def test_what_the_shim_cannot_tell_python_does_and_all_else_starts_no_python(guarded: Shim, shell: str) -> None:
    """Escapes, relative paths, another order of the keys; a long file costs no more than a short one."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    post = guarded.post
    escaped = writing(post.box / MESSAGES).replace(b"box", b"\\u0062ox")
    upside = call_of("Write", {"content": "x" * 9000, "file_path": str(post.box / MESSAGES)})
    decoy = call_of("Write", {"content": '"file_path":"/tmp/x"', "file_path": str(post.box / MESSAGES)})
    nested = call_of("MultiEdit", {"edits": [{"file_path": "/tmp/x"}], "file_path": str(post.box / MESSAGES)})
    inner = {"tool_name": "Write", "tool_input": {"file_path": "/tmp/x"}}
    forged = call_of("Write", {"x": inner, "file_path": str(post.box / MESSAGES)})
    long = call_of("Write", {"file_path": f"{post.box}/{'x/' * 3000}y", "content": ""})
    relative = call_of("Write", {"file_path": f"../box/{MESSAGES}"}, post.cwd)
    guarded.starts()
    for data in (escaped, upside, decoy, nested, forged, long, relative):
        assert is_refused(by_shim(guarded, data, *words)), data[:300]
        assert guarded.starts() == 1
        assert is_refused(by_python(post, data))
    assert not is_refused(by_shim(guarded, call_of("Write", {"file_path": "x/y"}, post.cwd), *words))
    guarded.starts()
    for size in (0, 3900, 4096, 100_000):
        data = writing(post.cwd / "x", content='\\é"\n' * size)
        assert not is_refused(by_shim(guarded, data, *words))
        assert is_refused(by_shim(guarded, writing(post.box / "x", content="y" * size), *words))
    assert guarded.starts() == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_an_mcp_server_s_tool_writes_none_of_them_either(guarded: Shim, shell: str) -> None:
    """Whatever its inputs are called, wherever in them the path is; one without a path starts no Python."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    post = guarded.post
    _links(post)
    log = str(post.box / MESSAGES)
    guarded.starts()
    for given in (
        *({"path": log}, {"edits": [{"to": log}]}, {"target": f"file://{log}"}, {"dir": str(post.box), "name": "x"}),
        *({"root": str(post.scratch), "file": f"box/{MESSAGES}"}, {"path": "notes.md"}, {"path": "hard.txt"}),
        {"n": 1, "path": "dangling"},
    ):
        data = call_of("mcp__fs__write", given, post.cwd)
        assert is_refused(by_shim(guarded, data, *words)), given
        assert guarded.starts() == 1
        assert is_refused(by_python(post, data)), given
    assert not is_refused(by_shim(guarded, call_of("mcp__fs__write", {"path": "/elsewhere/x"}), *words))
    guarded.starts()
    for given in ({"query": "SELECT * FROM mail", "limit": 5}, {}, {"text": "see config.toml"}):
        assert not is_refused(by_shim(guarded, call_of("mcp__x__y", given), *words)), given
    assert guarded.starts() == 0


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"tool_name":"Write"}', b'{"tool_name":5,"tool_input":{}}', b"\xff"]
)
def test_a_call_that_cannot_be_read_is_refused(guarded: Shim, data: bytes) -> None:
    """This hook sees only tools that write files, so a refusal costs no other. Without its package it refuses only
    what it proves (``test_removed``)."""
    assert is_refused(by_shim(guarded, data))
    assert is_refused(by_python(guarded.post, data))
    (guarded.checkout / ".venv/bin/python").unlink()
    assert not is_refused(by_shim(guarded, data))
    assert is_refused(by_shim(guarded, writing(guarded.post.box / MESSAGES)))


def test_a_mailbox_that_is_gone_or_only_named_is_guarded_as_well(guarded: Shim) -> None:
    """The guard refuses writes to the place of a removed mailbox, and to the mailbox that the environment names."""
    post = guarded.post
    other = post.scratch / "named"
    other.mkdir()
    assert not is_refused(by_shim(guarded, writing(other / "x")))
    for refused in (by_shim(guarded, writing(other / "x"), AGENT_MAILBOX_DIR=str(other)),):
        assert is_refused(refused)
    shutil.rmtree(post.box)
    assert is_refused(by_shim(guarded, writing(post.box / MESSAGES)))
    assert is_refused(by_python(post, writing(post.box / MESSAGES)))


def test_installed_shims_are_guarded_and_those_of_a_checkout_are_not(guarded: Shim) -> None:
    """The guard refuses writes to the shims that ``install`` recorded, and lets a checkout's own hooks be written."""
    post = guarded.post
    installed = post.scratch / "share/agent-mailbox-hook"
    installed.parent.mkdir()
    installed.touch()
    assert not is_refused(by_shim(guarded, writing(installed)))
    file_guard.record_shims(str(post.user_state), [str(installed)])
    (post.cwd / "linked").symlink_to(installed)
    os.link(installed, post.cwd / "hard")
    for name in (installed, post.cwd / "linked", post.cwd / "hard"):
        assert is_refused(by_shim(guarded, writing(name)))
        assert is_refused(by_python(post, writing(name)))
    assert not is_refused(by_shim(guarded, writing(guarded.checkout / "hooks/agent-mailbox-hook")))
    assert not is_refused(by_python(post, writing(guarded.checkout / "hooks/agent-mailbox-hook")))


def test_a_file_system_that_cannot_be_asked_refuses(guarded: Shim, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug of ours here is a refusal, for a hook that fails lets the tool run."""

    def broken(*_: object) -> bool:
        raise RuntimeError

    monkeypatch.setattr(file_guard.GuardedFiles, "is_guarded", broken)
    assert is_refused(by_python(guarded.post, writing("/tmp/x")))


@pytest.mark.parametrize("head", ["Add File", "Update File", "Delete File", "Move to"])
@pytest.mark.parametrize("spelled", ["*** {}: {}", "  *** {}:{}  ", "*** {}: {}\r"])
def test_a_patch_names_its_files_in_its_text(post: Post, head: str, spelled: str) -> None:
    """Codex takes spaces around a line of it. Any of them may be the mailbox's, by any name; the words of a file name
    none."""
    link = post.cwd / "link"
    link.symlink_to(post.box)

    def patched(path: object) -> bytes:
        lines = ["*** Begin Patch", "*** Update File: free", "@@", "-x", f"+{head}", spelled.format(head, path)]
        return call_of("apply_patch", {"command": "\n".join([*lines, "*** End Patch", ""])}, cwd=post.cwd)

    for path in (post.box / MESSAGES, post.box / "new", f"../{post.box.name}/new", f"link/{MESSAGES}"):
        assert is_refused(by_python(post, patched(path))), path
    assert not is_refused(by_python(post, patched("src/new")))
    quoted = f"*** Begin Patch\n*** Add File: free\n+*** Add File: {post.box}/x\n*** End Patch\n"
    assert not is_refused(by_python(post, call_of("apply_patch", {"command": quoted}, cwd=post.cwd)))


# -- clients' settings, our program, what the person's terminal runs --------------------------------------------------


IN_SHIM = "add it to `judge` in clients/agent-mailbox-hook"


def bind(post: Post) -> None:
    """Have the user's records say that the session is bound."""
    (post.user_state / "bound").mkdir(exist_ok=True)
    (post.user_state / "bound" / ME).touch()


def named(name: str) -> str:
    """A file of that name; one in it, if it is a directory's."""
    return f"{name}x.js" if name.endswith("/") else name


def settings(post: Post) -> list[Path]:
    """The settings of every client, in a project and for all sessions."""
    found = [post.cwd / name for client in CLIENTS for name in client.beside]
    for client in CLIENTS:
        for directory in {client.directory, client.home_directory} - {""}:
            found += [base / directory / named(name) for base in (post.cwd, post.home) for name in client.guarded]
        if client.below_config:
            found += [post.home / ".config" / client.below_config / named(name) for name in client.guarded]
    return found


def test_no_session_s_tool_writes_the_settings_of_a_client(guarded: Shim) -> None:
    """The shim refuses a write to a client's settings without starting Python, and Python refuses it as well."""
    post = guarded.post
    places = settings(post)
    assert len(places) > 20
    guarded.starts()
    for place in places:
        answer = by_shim(guarded, writing(place)).decode()
        assert answer == file_guard.refusal_answer(file_guard.SETTINGS), f"{IN_SHIM}: {place}"
    assert guarded.starts() == 0
    for place in places:
        assert by_python(post, writing(place)).decode() == file_guard.refusal_answer(file_guard.SETTINGS), place
    for other in (
        ".claude/commands/x.md",
        ".claude/agents/settings.md",
        "src/hooks/useState.ts",
        ".github/workflows/ci.yml",
    ):
        assert not is_refused(by_shim(guarded, writing(post.cwd / other))), other
        assert not is_refused(by_python(post, writing(post.cwd / other))), other
    assert guarded.starts() == 0


def test_they_are_found_by_links_by_variables_and_in_any_case(guarded: Shim) -> None:
    """A link to them, a name that a link gives them, a directory that a variable names, another spelling."""
    post = guarded.post
    real = post.home / ".claude/settings.json"
    real.parent.mkdir()
    (post.home / "dotfiles").mkdir()
    (post.home / "dotfiles/claude").write_text("{}")
    real.symlink_to(post.home / "dotfiles/claude")
    (post.cwd / "notes").symlink_to(real)
    (post.cwd / "home").symlink_to(post.home)
    elsewhere = {"CLAUDE_CONFIG_DIR": str(post.home / "other")}
    ways: list[tuple[object, dict[str, str | None]]] = [
        (real, {}),
        (post.home / "dotfiles/claude", {}),
        (post.cwd / "notes", {}),
        (f"{post.cwd}/home/.codex/hooks.json", {}),
        (f"{post.cwd}/../home/.codex/hooks.json", {}),
        (f"/proc/self/root{post.home}/.codex/hooks.json", {}),
        (post.cwd / ".CLAUDE/Settings.JSON", {}),
        (post.home / "other/settings.json", elsewhere),
        (post.home / "other/plugins/x/plugin.json", elsewhere),
    ]
    for place, env in ways:
        assert is_refused(by_shim(guarded, writing(place), **env)), place
        assert is_refused(post.call("hook", "Files", stdin=writing(place), env=env).raw), place


def test_no_tool_writes_the_person_s_configuration_or_what_an_installed_hook_starts(
    guarded: Shim, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration names programs; the package and its environment are what decides."""
    post = guarded.post
    package, environment = post.scratch / "lib/agent_mailbox", post.scratch / "venv"
    for directory in (package, environment / "bin"):
        directory.mkdir(parents=True)
    (environment / "pyvenv.cfg").touch()
    monkeypatch.setattr(
        "agent_mailbox.store.files.paths.configuration_directory", lambda _: str(post.home / ".config/agent-mailbox")
    )
    (installed := post.scratch / "share/agent-mailbox-hook").parent.mkdir()
    shipped = (guarded.checkout / "hooks/agent-mailbox-hook").read_text()
    baked = f"python={environment}/bin/python main={package}/__main__.py state={post.user_state}"
    installed.write_text(shipped.replace("\npython= main= state=", f"\n{baked}"))
    installed.chmod(0o755)
    file_guard.record_shims(str(post.user_state), [str(installed)])
    for place in (
        post.home / ".config/agent-mailbox/config.toml",
        package / "launch.py",
        package / "new/module.py",
        environment / "lib/python3.11/site-packages/x.pth",
        environment / "bin/python",
        post.home / ".local/bin/agent-mailbox",
    ):
        env = post.environ(guarded.env)
        told = subprocess.run([installed, "Files"], input=writing(place), env=env, cwd=post.cwd, capture_output=True)
        assert told.stdout.decode() == file_guard.refusal_answer(file_guard.WHY), place
        assert by_python(post, writing(place)).decode() == file_guard.refusal_answer(file_guard.WHY), place
    assert not is_refused(by_python(post, writing(post.scratch / "lib/other/x")))


RUN = (
    *(".git/hooks/pre-commit", ".git/config", ".git/hooks/new/x", ".git/modules/sub/config", ".git", "sub/.git"),
    *(
        ".bashrc",
        ".profile",
        ".zshrc",
        ".envrc",
        "deep/er/.envrc",
        ".BashRC",
        ".husky/pre-commit",
        ".config/fish/x.fish",
    ),
    *(
        ".local/bin/git",
        ".config/systemd/user/x.service",
        ".config/autostart/x.desktop",
        ".vimrc",
        ".config/nvim/init.lua",
    ),
    *("bare/hooks/post-checkout", "mine/pre-push", "mine/sub/x", "to-hooks/pre-commit", "link.txt", "hard.txt"),
)
FREE = ("src/x.py", "git/hooks/pre-commit", "Makefile", ".github/workflows/x.yml", "README.md", ".gitignore")


def test_a_bound_session_s_tools_write_nothing_that_the_person_s_terminal_runs(guarded: Shim) -> None:
    """Git's hooks where the repository has them, its settings, start files of shells, by any link; told why. A session
    that nobody bound writes them as before."""
    post = guarded.post
    for words in (("init", "-q"), ("config", "core.hooksPath", "mine"), ("init", "-q", "--bare", "bare")):
        subprocess.run(["git", *words], cwd=post.cwd, check=True, env=post.environ())
    (post.home / ".zshenv").touch()
    (post.cwd / "link.txt").symlink_to(post.home / ".zshenv")
    os.link(post.home / ".zshenv", post.cwd / "hard.txt")
    (post.cwd / "to-hooks").symlink_to(".git/hooks")
    for name in RUN:
        assert not is_refused(by_python(post, writing(post.cwd / name))), name
    bind(post)
    home = {"HOME": str(post.home)}
    for name in RUN:
        told = post.call("hook", "Files", stdin=call_of("Write", {"file_path": name}, post.cwd), env=home).raw.decode()
        assert told == file_guard.refusal_answer(file_guard.STARTS), name
    for name in FREE:
        assert not is_refused(by_python(post, writing(post.cwd / name))), name
    for name, tool in ((".git/hooks/pre-commit", "Write"), ("mine/pre-push", "Edit"), (".envrc", "NotebookEdit")):
        assert is_refused(by_shim(guarded, writing(post.cwd / name, tool))), (name, tool)
    assert is_refused(by_shim(guarded, call_of("mcp__fs__put", {"path": ".envrc"}, post.cwd)))
    assert not is_refused(by_shim(guarded, writing(post.cwd / "src/x.py")))
    patch = "*** Begin Patch\n*** Add File: .git/hooks/pre-commit\n+x\n*** End Patch"
    assert is_refused(by_python(post, call_of("apply_patch", {"command": patch}, post.cwd)))


def test_a_bound_session_s_tools_write_no_commands_that_a_client_runs_past_our_hooks(guarded: Shim) -> None:
    """Skills, commands and agents, in a project, below it, for all sessions, and where a variable says. A session that
    nobody bound writes them as before."""
    post = guarded.post
    names = [
        *(".claude/skills/x/SKILL.md", "sub/.claude/commands/x.md", ".claude/agents/x.md", ".Claude/Skills/x/SKILL.md"),
        *(".claude/session-env/x/setup-hook-0.sh", ".claude/shell-snapshots/x.sh"),
        *(".github/agents/x.agent.md", ".github/extensions/x/extension.mjs"),
        *(".claude/hooks/x.sh", ".opencode/command/x.md", ".gemini/commands/x.toml", "other/skills/x/SKILL.md"),
        str(post.home / ".claude/commands/x.md"),
        str(post.home / ".config/opencode/commands/x.md"),
    ]
    env: dict[str, str | None] = {"HOME": str(post.home), "CLAUDE_CONFIG_DIR": str(post.cwd / "other")}
    for name in names:
        assert not is_refused(by_shim(guarded, writing(post.cwd / name), **env)), name
    bind(post)
    for name in names:
        told = by_shim(guarded, writing(post.cwd / name), **env).decode()
        assert told == file_guard.refusal_answer(file_guard.RUNNING), name
    for name in ("skills/x.md", "src/commands/x.py", ".claude/notes.md"):
        assert not is_refused(by_shim(guarded, writing(post.cwd / name), **env)), name


def test_a_session_that_cannot_be_told_is_bound_if_anybody_is(guarded: Shim) -> None:
    """If any session is bound, the guard treats a call that names no session as that of a bound one."""
    post = guarded.post
    call = writing(post.cwd / ".envrc").replace(f'"session_id":"{ME}",'.encode(), b"")
    unnamed: dict[str, Any] = {"env": {"CLAUDE_CODE_SESSION_ID": None}}
    assert not is_refused(post.call("hook", "Files", stdin=call, **unnamed).raw)
    bind(post)
    assert is_refused(post.call("hook", "Files", stdin=call, **unnamed).raw)


WAYS = (
    *("FILE://{}", "File:{}", "file:{}", "file://localhost{}", "FILE://{}?x#y", "--out={}", "-o{}", "--out=file://{}"),
    *("@{}", "tee --output={} x", "of={}", "convert a -o{}", "/proc/self/root{}"),
)


@pytest.mark.parametrize("way", WAYS)
def test_an_mcp_server_s_tool_is_understood_in_every_spelling(guarded: Shim, way: str) -> None:
    """Addresses in any case, the value of an option, a word of a command."""
    post = guarded.post
    for place in (post.user_state / "key", post.home / ".claude/settings.json"):
        data = call_of("mcp__x__write", {"args": ["a", way.format(place)]}, post.cwd)
        assert is_refused(by_python(post, data)), (way, place)
    assert not is_refused(by_python(post, call_of("mcp__x__write", {"args": [way.format("/tmp/x")]}, post.cwd)))


def test_the_shim_knows_every_name_that_the_clients_modules_have() -> None:
    """It has them in a list of its own."""
    text = (guarded_names.__file__ and os.path.dirname(guarded_names.__file__)) + "/../agent-mailbox-hook"
    with open(text, encoding="utf-8") as file:
        shipped = file.read()
    for client in CLIENTS:
        for name in client.guarded:
            directory = client.directory or client.below_config
            assert f"*/{directory}/{name}" in shipped or f"*/{name}" in shipped, f"{IN_SHIM}: {directory}/{name}"
