"""A mailbox found through a link: a clone may hold one to any mailbox of the user's, and shows nobody its mail."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.helpers import ARCHIVE, HEARTBEATS, MESSAGES, Post, refused

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "MAIL_OF_ANOTHER_PROJECT"


def git(*words: str, cwd: Path) -> None:
    """Run git."""
    own = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *own, *words], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def clone(post: Post) -> Path:
    """A repository that somebody else made; the user's mailbox is another project's."""
    del post.env["AGENT_MAILBOX_DIR"]
    post.ok("send", "--from", "bot", "--to", "all", "--body", SECRET, "--dir", str(post.box))
    (clone := post.scratch / "clone").mkdir()
    git("init", "-q", cwd=clone)
    post.cwd = clone
    return clone


def linked_data(post: Post, clone: Path) -> None:
    """Its ``data`` is a link."""
    (clone / "data").symlink_to(post.box)


def linked_beside(post: Post, clone: Path) -> None:
    """Its ``data`` is a link to the mailbox in a directory beside it, whose name begins with that."""
    post.box.rename(inside := clone / "data-of-old")
    post.ok("init", inside)
    (clone / "data").symlink_to(inside)


def linked_parent(post: Post, clone: Path) -> None:
    """Its ``.git`` is a link to a repository that has the mailbox."""
    inside = post.scratch / "other/.git"
    inside.mkdir(parents=True)
    post.box.rename(inside / "agent-mailbox")
    post.ok("init", inside / "agent-mailbox")
    for path in sorted((clone / ".git").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (clone / ".git").rmdir()
    (clone / ".git").symlink_to(inside)


def linked_variable(post: Post, clone: Path) -> None:
    """A variable of the person's names ``data`` of each directory."""
    linked_data(post, clone)
    post.env["AGENT_MAILBOX_DIR"] = "./data"


def pointer(post: Post, clone: Path) -> None:
    """A file ``.git`` below it, as a worktree has, names another repository by files of its own."""
    (project := post.scratch / "project").mkdir()
    git("init", "-q", cwd=project)
    post.box.rename(project / "data")
    post.ok("init", project / "data")
    (clone / "lib/fake").mkdir(parents=True)
    (clone / "lib/.git").write_text("gitdir: fake\n")
    (clone / "lib/fake/commondir").write_text(f"{project}/.git\n")
    (clone / "lib/fake/gitdir").write_text(f"{clone}/lib/.git\n")
    post.cwd = clone / "lib"


def worktree_of_another(post: Post, clone: Path) -> None:
    """The file names the place of a true worktree of that repository, which is elsewhere."""
    pointer(post, clone)
    project = post.scratch / "project"
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=project)
    git("worktree", "add", "-q", str(post.scratch / "tree"), cwd=project)
    (clone / "lib/.git").write_text(f"gitdir: {project}/.git/worktrees/tree\n")


def linked_archive(post: Post, clone: Path) -> None:
    """Its ``data`` is a mailbox of its own, whose archive is a link to the user's."""
    post.ok("roster", "register", "--session-id", "ann", "--dir", str(post.box))
    post.ok("check", "--session", "ann", "--dir", str(post.box))
    (clone / "data").mkdir()
    (clone / "data" / MESSAGES).touch(0o600)
    (clone / "data" / ARCHIVE).symlink_to(post.box / ARCHIVE)


@pytest.mark.parametrize(
    "how", [linked_data, linked_beside, linked_parent, linked_variable, pointer, worktree_of_another, linked_archive]
)
def test_a_clone_s_link_shows_no_mail_of_another_project(post: Post, clone: Path, how: object) -> None:
    """Neither to a command nor to a hook, which registers nobody there."""
    how(post, clone)  # type: ignore[operator]
    for words in (("history",), ("check", "--peek"), ("search", "MAIL"), ("roster", "list")):
        done = refused(post.call(*words, env={"CLAUDE_CODE_SESSION_ID": "s"}), 1)
        assert SECRET not in done.stdout + done.stderr
    told = json.dumps({"session_id": "s", "cwd": str(post.cwd), "source": "startup"})
    env = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s", "CLAUDE_PROJECT_DIR": str(post.cwd)}
    for event in ("SessionStart", "UserPromptSubmit"):
        assert SECRET not in post.call("hook", event, stdin=told, env=env).stdout
    assert list(post.scratch.rglob("agent-heartbeats/s")) == []


def test_the_person_may_share_a_mailbox_by_a_link(post: Post, clone: Path) -> None:
    """``init`` by that path records it; a linked worktree finds its repository's without."""
    linked_data(post, clone)
    refused(post.call("status"), 1, f"agent-mailbox init {clone}/data")
    post.ok("init", clone / "data")
    assert post.ok("history", "--all")["messages"][0]["content"] == SECRET
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=clone)
    git("worktree", "add", "-q", str(post.scratch / "tree"), cwd=clone)
    post.cwd = post.scratch / "tree"
    assert post.ok("history", "--all")["messages"][0]["content"] == SECRET


@pytest.mark.parametrize("name", ["attachments", ".cache", ".cache/quiet", HEARTBEATS, ARCHIVE])
def test_the_steward_removes_nothing_behind_a_link(post: Post, name: str) -> None:
    """A pull brings a link to the user's documents in the place of a directory of ours; cron runs the steward."""
    post.register("alice")
    post.ok("roster", "retire", "alice")
    (documents := post.scratch / "documents").mkdir()
    for one in ("thesis.txt", "alice"):
        (documents / one).write_text("x")
        os.utime(documents / one, (1e9, 1e9))
    if (place := post.file(name)).is_dir():
        place.rename(post.scratch / "aside")
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(documents)
    refused(post.call("steward", "run"), 1, f"{place}: a symbolic link", f"mv {place}")
    assert sorted(path.name for path in documents.iterdir()) == ["alice", "thesis.txt"]
    assert str(place) in str(post.doctor())
    place.unlink()
    post.ok("steward", "run")
