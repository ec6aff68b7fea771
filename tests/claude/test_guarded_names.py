"""Before a tool that writes files: clients' settings, our program, and what the person's terminal runs."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients.permission import file_guard, guarded_names
from agent_mailbox.known_clients.every_client import CLIENTS
from tests.claude.test_files import by_python, by_shim, call_of, guarded, is_refused, writing  # noqa: F401
from tests.claude.test_guard import ME, Shim, shim  # noqa: F401 - the fixtures

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Post

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


def test_no_session_s_tool_writes_the_settings_of_a_client(guarded: Shim) -> None:  # noqa: F811
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


def test_they_are_found_by_links_by_variables_and_in_any_case(guarded: Shim) -> None:  # noqa: F811
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
    guarded: Shim,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
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


def test_a_bound_session_s_tools_write_nothing_that_the_person_s_terminal_runs(guarded: Shim) -> None:  # noqa: F811
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


def test_a_bound_session_s_tools_write_no_commands_that_a_client_runs_past_our_hooks(guarded: Shim) -> None:  # noqa: F811
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


def test_a_session_that_cannot_be_told_is_bound_if_anybody_is(guarded: Shim) -> None:  # noqa: F811
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
def test_an_mcp_server_s_tool_is_understood_in_every_spelling(guarded: Shim, way: str) -> None:  # noqa: F811
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
