"""A second mailbox in a project, by mistake or by an agent: it is refused, and each command tells which one answers."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from agent_mailbox.store.files.paths import GITIGNORE
from tests.cli.test_terminal import on_terminal
from tests.helpers import MESSAGES, Post, Program, refused, refused_both
from tests.store.test_finding import git
from tests.surroundings import Client, line

ME = "8d2f4a8e-3a0a-4f0f-9a3f-0d6c6a1f7b11"


@pytest.fixture
def project(program: Program) -> Path:
    """A repository with a mailbox in its ``data/``, and a subdirectory."""
    made = program.scratch / "project"
    (made / "sub").mkdir(parents=True)
    git(made, "init", "-q")
    assert program.call("init", cwd=made).rc == 0
    return made


def mailboxes(where: Path) -> list[Path]:
    """Every mailbox below a directory."""
    return sorted(path.parent for path in where.rglob(MESSAGES))


def test_a_covered_place_gets_no_second_mailbox_unless_told(program: Program, project: Path) -> None:
    """Wherever it is asked from, however the place is written: the first is named, with the command that makes another.
    That command works when pasted."""
    (program.scratch / "link").symlink_to(project / "sub")
    git(project, "commit", "-q", "--allow-empty", "-m", "x")
    git(project, "worktree", "add", "-q", str(program.scratch / "tree"))
    (program.scratch / "tree/sub").mkdir()
    tried: list[tuple[tuple[object, ...], Path]] = [
        ((), project / "sub"),
        ((), program.scratch / "tree/sub"),
        ((), program.scratch / "link"),
        (("data",), project / "sub"),
        ((".",), project),
        ((program.scratch / "link/new",), program.cwd),
        ((project / "sub/deep er/x",), program.cwd),
        (("--dir", project / "sub/data"), program.cwd),
        (("--git",), project),
    ]
    for given, where in tried:
        said = refused_both(program.call, 1, "init", *given, cwd=where, said=[str(project / "data"), "--here"])
        assert said.json["error"]["code"] == "covered", (given, where)
    assert mailboxes(program.scratch) == [project / "data"]
    hint = said.json["error"]["hint"]
    assert "`agent-mailbox init --git --here`" in hint
    for given, where in tried[6:8]:
        hint = program.call("init", *given, "--json", cwd=where).json["error"]["hint"]
        pasted = hint.split("`")[1].removeprefix("agent-mailbox ")
        assert program.run(*shlex.split(pasted), cwd=where).rc == 0
    assert mailboxes(program.scratch) == [project / "data", project / "sub/data", project / "sub/deep er/x"]
    backup = program.scratch / "b.tar"
    assert program.call("backup", backup, cwd=project).rc == 0
    (project / "other").mkdir()
    refused(program.call("restore", backup, cwd=project / "other"), 1, "covers this place already")


@pytest.mark.parametrize("place", ["/", "/data", "/."])
def test_a_mailbox_of_the_whole_machine_is_not_made_by_mistake(program: Program, place: str) -> None:
    """Every directory would find it. The command that was meant is named, and nothing is written there."""
    said = refused_both(program.call, 1, "init", place, said=["every directory on this machine", "--here"])
    assert said.json["error"]["code"] == "covered"
    if os.path.realpath(place) == "/":
        refused(program.call("init", cwd=Path("/")), 1, "every directory on this machine")
    assert not os.path.exists(os.path.join(place, MESSAGES))


def test_what_is_there_may_be_made_again_and_adopted_by_its_place(program: Program, project: Path) -> None:
    """Idempotent. ``--adopt`` makes none: it names the one that was meant, and prints which it adopted."""
    assert program.call("init", cwd=project).rc == 0
    said = refused_both(program.call, 1, "init", "--adopt", cwd=project / "sub", said=[f"--adopt {project / 'data'}"])
    assert said.json["error"]["code"] == "no_mailbox"
    refused(program.call("init", "--adopt", cwd=program.cwd), 1, "no mailbox to adopt")
    assert mailboxes(program.scratch) == [project / "data"]
    assert program.call("init", "--adopt", cwd=project).stdout.startswith(f"mailbox at {project / 'data'}\n")


def test_git_passes_by_a_new_mailbox(program: Program, project: Path) -> None:
    """Git ignores a new or restored mailbox. In a project's own directory it ignores only our files."""
    assert program.call("send", "--from", "a", "--to", "all", "--body", "x", cwd=project).rc == 0
    assert program.call("check", "--session", "b", cwd=project).rc == 0
    assert program.call("steward", "run", cwd=project).rc == 0
    backup = program.scratch / "b.tar"
    assert program.call("backup", backup, cwd=project).rc == 0
    assert program.call("doctor", "--json", cwd=project).json == {"ok": True, "problems": []}

    def untracked(where: Path) -> str:
        return subprocess.run(
            ["git", "-C", where, "status", "--porcelain"], capture_output=True, text=True, check=True
        ).stdout

    assert untracked(project) == ""
    other, shared, kept = (program.scratch / name for name in ("other", "shared", "kept"))
    for one in (other, shared, kept):
        one.mkdir()
        git(one, "init", "-q")
    assert program.call("restore", backup, cwd=other).rc == 0
    assert untracked(other) == ""
    for one in (shared, kept):
        (one / "data").mkdir()
        (one / "data/table.csv").touch()
    (kept / "data" / GITIGNORE).write_text("mine\n")
    for one in (shared, kept):
        assert program.call("init", cwd=one).rc == 0
        assert program.call("send", "--from", "a", "--to", "all", "--body", "x", cwd=one).rc == 0
        git(one, "add", "data/table.csv")
    assert untracked(shared) == "A  data/table.csv\n"
    assert (kept / "data" / GITIGNORE).read_text() == "mine\n"


def test_an_agent_makes_no_mailbox_and_is_told_that_nothing_is_to_do(post: Post) -> None:
    """A command of an agent in a project without a mailbox says that nothing is to do. ``init`` refuses the agent."""
    strange = post.scratch / "strange"
    strange.mkdir()
    with Client(post) as claude:
        claude.hook("SessionStart", ME)
        for command in (("check",), ("status",), ("send", "--to", "all", "--body", "x"), ("roster", "list")):
            said = claude.bash(f"cd {strange}; {line(*command)}", ME, AGENT_MAILBOX_DIR="")
            refused(said, 1, "no mailbox here or above", "nothing to do: this project has no agent mail")
            assert "init" not in said.stderr
        for given in ((), ("data",), ("--here",), ("--git",)):
            refused(claude.bash(f"cd {strange}; {line('init', *given)}", ME, AGENT_MAILBOX_DIR=""), 1)
        told = claude.bash(f"cd {strange}; {line('init')}", ME, AGENT_MAILBOX_DIR="")
        refused(told, 1, "only the person may run", f"`agent-mailbox init {strange / 'data'}`")
    assert list(strange.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_an_agent_is_not_sent_to_init_by_another_users_mailbox(post: Post) -> None:
    """A mailbox of another user is an error for an agent, without a hint to run ``init``."""
    with Client(post) as claude:
        claude.hook("SessionStart", ME)
        os.chown(post.box, 12345, -1)
        said = claude.bash(line("check"), ME)
        refused(said, 1, "belongs to another user (uid 12345)", "nothing to do")
        assert "init" not in said.stderr
        os.chown(post.box, os.geteuid(), -1)


def test_a_person_is_told_which_mailbox_answers(post: Post) -> None:
    """``status`` and ``roster list`` begin with its path at a terminal alone; their JSON has it everywhere."""
    post.register("bob")
    for words in (("status", "--session", "bob"), ("roster", "list")):
        first = on_terminal(post, *words)[1].splitlines()[0].decode().rstrip()
        assert first == f"mailbox {post.box}"
        assert not post.run(*words).stdout.startswith("mailbox ")
        assert post.ok(*words)["dir"] == str(post.box)


def test_repositories_share_a_mailbox_that_is_above_them_or_named(program: Program) -> None:
    """Sessions in several repositories find the mailbox in a directory above them, or the one that the environment
    names."""
    work = program.scratch / "work space"
    for name in ("a", "b"):
        (work / name).mkdir(parents=True)
        git(work / name, "init", "-q")
    assert program.call("init", work / "data").rc == 0
    far = program.scratch / "far"
    far.mkdir()
    for where, env in ((work / "a", {}), (work / "b", {}), (far, {"AGENT_MAILBOX_DIR": str(work / "data")})):
        done = program.call("send", "--from", "x", "--to", "all", "--body", where.name, cwd=where, env=env)
        assert done.rc == 0, done
    assert (work / "data" / MESSAGES).read_bytes().count(b"\n") == 3
