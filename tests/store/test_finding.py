"""Where a mailbox is found, whose it must be, and what is in the way."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agent_mailbox.store.files import paths, system
from agent_mailbox.store.user_state import project_paths
from tests.door import switches
from tests.helpers import MESSAGES, ROOT, Program, each, refused, refused_both

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def git(where: Path, *words: object) -> None:
    """Run git in a directory, with an identity of its own."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    command = ["git", *identity, *map(str, words)]
    environ = {"PATH": os.environ["PATH"], "HOME": str(where), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(command, cwd=where, check=True, capture_output=True, env=environ)


def sent_from(program: Program, where: Path, *words: str) -> None:
    """A message is sent from there; where it went is for the caller to look up."""
    where.mkdir(parents=True, exist_ok=True)
    result = program.call("send", "--from", "a", "--to", "all", "--body", "x", *words, cwd=where)
    assert result.rc == 0, result


def project(program: Program, session_id: str, where: Path) -> list[str]:
    """The tags a session that starts there gets by itself."""
    call = json.dumps({"session_id": session_id, "source": "startup"})
    assert program.call("hook", "SessionStart", stdin=call, env={"CLAUDE_PROJECT_DIR": str(where)}, cwd=where).rc == 0
    return list(program.call("roster", "show", session_id, "--json", cwd=where).json["agent"]["tags"])


def size(directory: Path) -> int:
    """How many messages a mailbox holds."""
    return (directory / MESSAGES).read_bytes().count(b"\n")


def test_the_nearest_mailbox_upwards_is_found(program: Program) -> None:
    """A directory itself, or its ``data/``; the nearest wins; links on the way are followed to where they lead."""
    outer, inner = program.scratch / "project", program.scratch / "project/part/deep"
    program.cwd.joinpath("x").mkdir()
    outer.mkdir()
    assert program.call("init", cwd=outer).rc == 0
    assert (outer / "data" / MESSAGES).exists()
    sent_from(program, inner)
    assert size(outer / "data") == 1
    assert program.call("init", inner.parent, "--here").rc == 0
    sent_from(program, inner)
    assert (size(outer / "data"), size(inner.parent)) == (1, 1)
    (program.cwd / "link").symlink_to(inner)
    sent_from(program, program.cwd / "link")
    assert size(inner.parent) == 2
    sent_from(program, outer / "data")
    assert size(outer / "data") == 2


def test_what_is_named_comes_before_what_is_found(program: Program) -> None:
    """--dir before AGENT_MAILBOX_DIR before looking; --dir is before or behind the command."""
    for name in ("one", "two", "three"):
        assert program.call("init", program.scratch / name).rc == 0
    one, two, three = (program.scratch / name for name in ("one", "two", "three"))
    sent_from(program, one)
    program.env["AGENT_MAILBOX_DIR"] = str(two)
    sent_from(program, one)
    sent_from(program, one, "--dir", str(three))
    assert program.call("--dir", three, "send", "--from", "a", "--to", "all", "--body", "x", cwd=one).rc == 0
    assert (size(one), size(two), size(three)) == (1, 1, 2)


def test_no_mailbox_is_said_with_what_to_do(program: Program) -> None:
    """Exit 1 for every command that needs one, and nothing is made by looking."""
    commands = [
        ("check", "--session", "a"),
        ("send", "--from", "a", "--to", "b", "--body", "x"),
        ("status", "--session", "a"),
        ("history", "--all"),
        ("roster", "list"),
        ("roster", "register", "--session-id", "a"),
        ("steward", "run"),
        ("steward", "crontab"),
        ("doctor",),
        ("wait", "--session", "a", "--timeout", "0"),
    ]
    for words in commands:
        assert refused_both(program.call, 1, *words, said=["agent-mailbox setup"]).json["error"]["code"] == "no_mailbox"
        refused_both(program.call, 1, *words, "--dir", program.scratch / "nowhere", said=["nowhere"])
    assert not (program.scratch / "nowhere").exists()
    assert list(program.cwd.iterdir()) == []
    refused(program.run("export"), 1, "no mailbox")


@needs_git
def test_every_worktree_of_a_repository_finds_the_same_mailbox(program: Program) -> None:
    """A linked worktree, also one outside the repository, a bare directory in it, and ``init`` from within it."""
    main, linked = program.scratch / "inscription", program.scratch / "elsewhere/linked"
    main.mkdir()
    git(main, "init", "-q")
    (main / "data").mkdir()
    (main / "data/.gitkeep").touch()
    (main / "README").write_text("x")
    git(main, "add", ".")
    git(main, "commit", "-qm", "x")
    git(main, "worktree", "add", "-q", linked)
    assert program.call("init", "--json", cwd=linked).json == {"dir": str(main / "data")}
    assert not (linked / "data" / MESSAGES).exists()
    sent_from(program, linked / "deep/down")
    sent_from(program, main)
    assert size(main / "data") == 2
    for number, where in enumerate((main / "data", linked / "deep", linked)):
        assert project(program, f"session-{number}", where) == ["project:inscription"]


@needs_git
def test_a_worktree_beside_a_repository_whose_name_begins_with_its_own_finds_its_mailbox(program: Program) -> None:
    """A name that begins as another's is another directory."""
    main, linked = program.scratch / "plate-main", program.scratch / "plate"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-qm", "x", "--allow-empty")
    git(main, "worktree", "add", "-q", linked)
    assert program.call("init", "--json", cwd=linked).json == {"dir": str(main / "data")}


@needs_git
def test_a_submodule_is_not_mistaken_for_a_worktree(program: Program) -> None:
    """Its ``.git`` file leads elsewhere; its own root counts, and the mailbox above is found all the same."""
    outer, part = program.scratch / "outer", program.scratch / "part"
    for where in (outer, part):
        where.mkdir()
        git(where, "init", "-q")
        (where / "file").write_text("x")
        git(where, "add", ".")
        git(where, "commit", "-qm", "x")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", part, "sub")
    assert program.call("init", cwd=outer).rc == 0
    sent_from(program, outer / "sub")
    assert size(outer / "data") == 1
    assert project(program, "me", outer / "sub") == ["project:sub"]


def test_a_bare_repository_of_any_name_is_the_project_of_its_work_trees(tmp_path: Path) -> None:
    """The project of a `.git` is the directory that has it."""
    for name, project in ((".git", "."), (".git-store", ".git-store"), ("repo.git", "repo.git")):
        place = tmp_path / name.strip(".")
        tree, inside = place / "tree", place / name / "worktrees" / "w"
        for directory in (tree, inside):
            directory.mkdir(parents=True)
        (tree / ".git").write_text(f"gitdir: {inside}\n")
        (inside / "commondir").write_text("../..\n")
        (inside / "gitdir").write_text(f"{tree}/.git\n")
        assert project_paths.of("file", str(tree)).project == str(place / project)


@each("back", [None, b"", b"gone/.git", b"../../../other/.git", b"a\0b", b"\xff/.git"])
def test_a_worktree_that_its_repository_does_not_name_is_none_of_it(tmp_path: Path, back: bytes | None) -> None:
    """The repository tells nothing, nothing readable, or another place."""
    place = Path(tempfile.mkdtemp(dir=tmp_path))
    tree, inside = place / "tree", place / "main/.git/worktrees/w"
    for directory in (tree, inside, place / "main/other"):
        directory.mkdir(parents=True)
    for name in ("tree", "main/other"):
        (place / name / ".git").write_text(f"gitdir: {inside}\n")
    (inside / "commondir").write_text("../..\n")
    (inside / "gitdir").write_text(f"{tree}/.git\n")
    assert paths.common_directory(str(tree)) == str(place / "main/.git")
    (inside / "gitdir").unlink()
    if back is not None:
        (inside / "gitdir").write_bytes(back)
    assert paths.common_directory(str(tree)) is None


def test_init_is_idempotent_and_private(program: Program) -> None:
    """0700 and 0600 whatever the umask; again changes nothing; recorded once; the doctor is content."""
    before = os.umask(0)
    try:
        first = program.call("init", program.scratch / "a/b")
        second = program.call("init", program.scratch / "a/b", "--json")
    finally:
        os.umask(before)
    assert first.rc == second.rc == 0
    assert second.json == {"dir": str(program.scratch / "a/b")}
    for path in (program.scratch / "a/b").rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    assert (program.scratch / "a/b").stat().st_mode & 0o777 == 0o700
    recorded = (program.home / ".local/state/agent-mailbox/mailboxes").read_text().splitlines()
    assert recorded == [str(program.scratch / "a/b")]
    assert program.call("doctor", "--dir", program.scratch / "a/b").rc == 0


def test_init_in_a_checkout_leaves_the_doctor_content(program: Program) -> None:
    """`init` leaves a sound mailbox where ``data/`` came with the checkout, world readable as git makes it."""
    (program.cwd / "data").mkdir(mode=0o755)
    (program.cwd / "data/.gitkeep").touch(0o644)
    assert program.call("init").rc == 0
    assert program.call("doctor", "--json").json == {"ok": True, "problems": []}


def test_the_user_s_records_are_in_the_home_of_the_password_database() -> None:
    """The user's records are in the home directory that the password database knows, whatever the environment says."""
    state = f"{pwd.getpwuid(os.geteuid()).pw_dir}/.local/state/agent-mailbox"
    code = (
        "import os; from agent_mailbox.store.files import paths, system;"
        "print(paths.state_directory(os.environ), paths.state_directory(system.environment()))"
    )
    for lying in ({}, {"HOME": "/tmp", "XDG_STATE_HOME": "/tmp/state"}, {switches.STATE: "/tmp/test"}):
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **lying}
        said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
        assert said.split() == [state, state], lying


def test_a_user_whom_the_password_database_lacks_has_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some containers have such a user: nothing ends with an error for it."""
    monkeypatch.setattr(system, "geteuid", lambda: 4_000_000_000)
    assert [system.home(), system.home()] == ["", ""]


def test_a_mailbox_that_is_a_link_is_the_directory_it_leads_to(program: Program) -> None:
    """Made, found, recorded and used under its real path, by commands and hooks alike."""
    real = program.scratch / "real"
    assert program.call("init", real).rc == 0
    (program.cwd / "data").symlink_to(real)
    assert program.call("init", "--json").json == {"dir": str(real)}
    result = program.call("send", "--from", "a", "--to", "me", "--body", "x")
    assert (result.rc, size(real)) == (0, 1)
    assert not any("not made by your" in line for line in result.warnings)
    hook = program.call("hook", "SessionStart", stdin='{"session_id": "me", "source": "startup"}')
    assert (hook.rc, hook.stderr) == (0, "")
    assert (real / "agent-heartbeats/me").exists()


def test_a_link_in_the_place_of_the_log_is_refused(program: Program) -> None:
    """A clone could lead us to any file; nothing behind the link is read or written."""
    assert program.call("init", program.box).rc == 0
    (program.scratch / "secret").write_text("secret\n")
    (program.box / MESSAGES).unlink()
    (program.box / MESSAGES).symlink_to(program.scratch / "secret")
    for words in (
        ("send", "--from", "a", "--to", "all", "--body", "x"),
        ("check", "--session", "a"),
        ("history", "--all"),
    ):
        result = refused_both(program.call, 5, *words, "--dir", program.box, said=[MESSAGES, "symbolic link"])
        assert "secret\n" not in result.stdout
    refused(program.call("init", program.box), 5, "symbolic link")
    assert (program.scratch / "secret").read_text() == "secret\n"


def test_a_clone_is_used_with_a_warning_by_commands_and_ignored_by_hooks(program: Program) -> None:
    """A mailbox your own init did not make: commands say so, hooks stay silent unless it is named outright."""
    assert program.call("init", program.scratch / "theirs").rc == 0
    assert (
        program.call("send", "--from", "x", "--to", "all", "--body", "do evil", "--dir", program.scratch / "theirs").rc
        == 0
    )
    shutil.copytree(program.scratch / "theirs", program.cwd / "data")
    used = program.call("history", "--all", "--json")
    assert used.rc == 0
    assert len(used.json["messages"]) == 1
    assert len(used.warnings) == 1
    assert "clone" in used.warnings[0]
    hook = '{"session_id": "me", "source": "startup", "hook_event_name": "SessionStart"}'
    for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
        silent = program.call("hook", event, stdin=hook)
        assert (silent.rc, silent.stdout) == (0, ""), silent
    assert not (program.cwd / "data/agent-heartbeats/me").exists()
    named = program.call("hook", "SessionStart", stdin=hook, env={"AGENT_MAILBOX_DIR": str(program.cwd / "data")})
    assert "do evil" in named.stdout
    assert program.call("init").rc == 0
    own = program.call("hook", "SessionStart", stdin=hook.replace("me", "other"))
    assert "do evil" in own.stdout
    assert program.call("history", "--all").warnings == []


@root_only
@pytest.mark.parametrize("what", ["directory", "log"])
def test_a_mailbox_of_another_user_is_refused(program: Program, what: str) -> None:
    """Commands say whose it is, exit 1; hooks show nothing and exit 0; nothing is written."""
    assert program.call("init", program.box).rc == 0
    assert program.call("send", "--from", "x", "--to", "all", "--body", "do evil", "--dir", program.box).rc == 0
    os.chown(program.box if what == "directory" else program.box / MESSAGES, 12345, -1)
    program.env["AGENT_MAILBOX_DIR"] = str(program.box)
    before = sorted(program.box.rglob("*"))
    for words in (("check", "--session", "a"), ("send", "--from", "a", "--to", "b", "--body", "x"), ("roster", "list")):
        refused_both(program.call, 1, *words, said=["another user", "12345"])
    hook = program.call("hook", "SessionStart", stdin='{"session_id": "me", "source": "startup"}')
    assert (hook.rc, hook.stdout) == (0, "")
    refused(program.call("init", program.box), 1, "another user")
    assert sorted(program.box.rglob("*")) == before
    own = re.findall(r"`agent-mailbox ([^`]*)`", refused(program.call("init"), 1, "without sudo").stderr)
    assert own == [f"init {pwd.getpwuid(os.geteuid()).pw_dir}/agent-mailbox"]


def test_a_directory_that_is_gone_is_no_traceback(program: Program) -> None:
    """A command in a deleted working directory: what is named works, what must be looked for is an error in order."""
    assert program.call("init", program.box).rc == 0
    gone = "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); "
    gone += "from agent_mailbox.launch import main; sys.exit(main(sys.argv[1:]))"
    looked_for = program.python(gone, "roster", "list")
    refused(looked_for, looked_for.rc)
    assert looked_for.rc in (1, 5)
    hook = program.python(gone, "hook", "SessionStart", stdin='{"session_id": "me"}')
    assert (hook.rc, hook.stdout) == (0, ""), hook
    named = program.python(gone, "roster", "list", "--json", "--dir", program.box)
    assert (named.rc, named.json) == (0, {"agents": [], "dir": str(program.box)}), named


def test_a_hook_of_a_linked_directory_finds_the_mailbox_above_what_it_leads_to(program: Program) -> None:
    """The client may name a project by a link from elsewhere; the mailbox is the one of the real place."""
    project = program.cwd / "project"
    (project / "sub").mkdir(parents=True)
    assert program.call("init", project / "data").rc == 0
    link = program.scratch / "link"
    link.symlink_to(project / "sub")
    call = b'{"session_id": "s-1", "cwd": "/", "source": "startup"}'
    env = {"CLAUDE_PROJECT_DIR": str(link)}
    assert program.call("hook", "SessionStart", stdin=call, env=env).rc == 0
    assert b'"s-1"' in (project / "data" / "agent-roster.jsonl").read_bytes()


# -- in the repository's own directory --------------------------------------------------------------------------------


@pytest.fixture
def repository(program: Program) -> Path:
    """A repository with a commit, a linked worktree beside it, and a submodule in it."""
    main, part = program.scratch / "main", program.scratch / "part"
    for where in (part, main):
        where.mkdir()
        git(where, "init", "-q")
        (where / "README").write_text("x")
        git(where, "add", ".")
        git(where, "commit", "-qm", "x")
    git(main, "-c", "protocol.file.allow=always", "submodule", "add", "-q", part, "sub")
    git(main, "commit", "-qm", "sub")
    git(main, "worktree", "add", "-q", program.scratch / "linked")
    return main


@needs_git
@pytest.mark.parametrize("start", ["main", "main/sub", "linked"])
def test_a_mailbox_in_git_is_one_for_worktrees_and_submodules(program: Program, repository: Path, start: str) -> None:
    """Wherever it is made from; found from each of them, also below."""
    box = repository / ".git/agent-mailbox"
    assert program.call("init", "--git", "--json", cwd=program.scratch / start).json == {"dir": str(box)}
    for where in ("main", "main/sub", "main/sub/deep", "linked", "linked/deep"):
        sent_from(program, program.scratch / where)
    assert size(box) == 5
    assert program.call("doctor", cwd=repository).rc == 0
    assert box.stat().st_mode & 0o777 == 0o700


@needs_git
def test_a_mailbox_in_git_outlives_what_git_does_to_a_checkout(program: Program, repository: Path) -> None:
    """Cleaning, switching, resetting, a pull that brings a mailbox, a new worktree: mail stays, none is added."""
    box = repository / ".git/agent-mailbox"
    assert program.call("init", "--git", cwd=repository).rc == 0
    sent_from(program, repository)
    before = {path: path.read_bytes() for path in box.rglob("*") if path.is_file() and ".cache" not in path.parts}
    for name in ("data", "."):
        (repository / name).mkdir(exist_ok=True)
        (repository / name / MESSAGES).write_text("{}\n")
    git(repository, "add", "-f", ".")
    git(repository, "commit", "-qm", "a mailbox comes with the checkout")
    git(repository, "checkout", "-q", "-f", "HEAD~1")
    git(repository, "clean", "-ffdxq")
    git(repository, "checkout", "-q", "main")
    git(repository, "gc", "-q", "--prune=now")
    git(repository, "worktree", "add", "-q", "--detach", program.scratch / "again")
    assert {path: path.read_bytes() for path in before} == before
    for where in (repository, program.scratch / "again"):
        sent_from(program, where)
    assert size(box) == 3
    assert (repository / "data" / MESSAGES).read_text() == "{}\n"


@needs_git
def test_a_bare_repository_has_one_mailbox_for_its_worktrees(program: Program, repository: Path) -> None:
    """A bare repository itself holds the one mailbox of its worktrees. `init --git` fails outside any repository."""
    bare = program.scratch / "bare.git"
    git(program.scratch, "clone", "-q", "--bare", repository, bare)
    git(bare, "worktree", "add", "-q", "--detach", program.scratch / "tree")
    made = program.call("init", "--git", "--json", cwd=program.scratch / "tree").json
    assert made == {"dir": str(bare / "agent-mailbox")}
    for where in (bare, bare / "refs", program.scratch / "tree"):
        sent_from(program, where)
    assert size(bare / "agent-mailbox") == 3
    refused_both(program.call, 1, "init", "--git", cwd=program.home, said=["not in a git repository"])


def test_a_file_laid_down_since_hides_no_session_s_mailbox(program: Program) -> None:
    """A bound session that makes a log nearer to itself stays bound: its start told which mailbox is its own."""
    place = program.scratch / "project"
    place.mkdir()
    assert program.call("init", cwd=place).rc == 0
    env = {"CLAUDE_PROJECT_DIR": str(place), "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "worker"}
    call = json.dumps(
        {"session_id": "worker", "source": "startup", "tool_name": "Bash", "tool_input": {"command": "x"}}
    )
    assert program.call("hook", "SessionStart", stdin=call, env=env, cwd=place).rc == 0
    policy = ("control", "policy", "worker", "--deny", "Bash", "--session", "user")
    assert program.call(*policy, cwd=place).rc == 0
    assert "deny" in program.call("hook", "Permit", stdin=call, env=env, cwd=place).stdout
    (place / MESSAGES).touch()
    assert "deny" in program.call("hook", "Permit", stdin=call, env=env, cwd=place).stdout
