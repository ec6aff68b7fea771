"""What cannot be looked at is not gone: a look that fails is a failure of the storage, or counts as the safe answer."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from agent_mailbox import Mailbox
from agent_mailbox.core import attachments
from agent_mailbox.errors import NotFound, StorageFailed
from agent_mailbox.store.attachments import attachment_files
from agent_mailbox.store.files import paths, system
from agent_mailbox.store.files.board import TASKS, Board
from agent_mailbox.store.files.paths import BOUND
from agent_mailbox.store.log.stamps import EVERYONE, QUIET, UNBOUND, StampFiles
from agent_mailbox.store.user_state import bindings
from tests.helpers import ARCHIVE, HEARTBEATS, MESSAGES, NOBODY, Post, as_nobody, refused, refused_both


def hide(path: Path) -> Path:
    """Put a directory aside, and a link in its place that leads nowhere but to itself; return where it is."""
    aside = path.with_name(f"{path.name} aside")
    if path.exists():
        path.rename(aside)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(path)
    return aside


def show(path: Path) -> None:
    """Put a hidden directory back."""
    path.unlink()
    path.with_name(f"{path.name} aside").rename(path)


@pytest.fixture
def box(post: Post) -> Mailbox:
    """A mailbox with two agents."""
    post.register("ann")
    post.register("bob")
    return Mailbox(str(post.box))


def test_stamps_that_cannot_be_listed_are_an_error(box: Mailbox) -> None:
    """Else a session would be told that nothing waits, though somebody wrote."""
    hide(Path(box.logs.cache(QUIET)))
    with pytest.raises(StorageFailed, match="look through"):
        box.logs.stamp_files.disturb(EVERYONE)


def test_a_sign_of_life_that_cannot_be_left_is_an_error(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the session would count as gone, and never learn why."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(system, "utime", refuse)
    with pytest.raises(StorageFailed, match="touch"):
        box.logs.beat("ann", 1)


def test_archived_mail_is_not_unknown_where_the_archive_cannot_be_listed(post: Post) -> None:
    """A command that acks, shows or sends archived mail again exits with 5 if the archive cannot be listed. It says
    nothing of an id and writes nothing."""
    post.register("ann")
    post.register("bob")
    sent = post.send("ann", "bob", "hello")
    post.check("bob")
    assert post.ok("steward", "run", "--max-live", "0")["archived"] == 1
    before = post.snapshot()
    hide(post.file(ARCHIVE))
    for words in (
        ("ack", sent, "--session", "bob"),
        ("show", sent),
        ("send", "--from", "ann", "--to", "bob", "--body", "hello", "--id", sent),
    ):
        refused(post.call(*words), 5, "cannot look through", ARCHIVE)
    show(post.file(ARCHIVE))
    refused(post.call("ack", "0" * 8, "--session", "bob"), 1, "no message")
    assert {name: data for name, data in post.snapshot().items() if name in before and ".jsonl" in name} == {
        name: data for name, data in before.items() if ".jsonl" in name
    }


def test_a_claimer_whose_heartbeat_cannot_be_looked_at_may_be_alive(post: Post, box: Mailbox) -> None:
    """Its claim counts; what is no id at all never beat."""
    now = box.now()
    assert box.logs.sign("nobody") == 0
    assert box.logs.sign("../x") == 0
    hide(post.file(HEARTBEATS, "ann"))
    assert box.logs.sign("ann") >= now


def test_nobody_is_silent_because_the_heartbeats_cannot_be_looked_at(post: Post, box: Mailbox) -> None:
    """A steward fails, and freezes nobody. One without a heartbeat hides nobody else's."""
    assert box.logs.last_seen(["ann", "nobody", "../x", "x" * 999, "bob"]).keys() == {"ann", "bob"}
    hide(post.file(HEARTBEATS))
    for sessions in (None, ["ann"]):
        with pytest.raises(StorageFailed):
            box.logs.last_seen(sessions)
    refused_both(post.call, 5, "steward", "run")


def test_a_mailbox_is_no_machine_s_own_because_its_record_cannot_be_looked_at(post: Post, box: Mailbox) -> None:
    """Whether others share it decides how role mail is claimed."""
    assert box.logs.custody is not None
    assert not box.logs.is_shared
    hide(post.scratch / box.logs.custody.path("engine"))
    with pytest.raises(StorageFailed):
        _ = box.logs.is_shared


def test_a_path_that_cannot_be_followed_is_not_taken_for_no_mailbox(post: Post) -> None:
    """Exit 5, and not the advice to make one."""
    hide(post.scratch / "loop")
    result = refused(post.call("check", "--session", "ann", "--dir", str(post.scratch / "loop")), 5, "look into")
    assert "init" not in result.stderr


def break_below(monkeypatch: pytest.MonkeyPatch, call: str, place: Path, error: int) -> None:
    """A system call about whatever is below a place fails."""
    real = getattr(system, call)

    def fails(path: str, *how: Any, **more: Any) -> Any:
        if path.startswith(str(place)):
            raise OSError(error, "broken")
        return real(path, *how, **more)

    monkeypatch.setattr(system, call, fails)


@pytest.mark.parametrize(
    ("error", "found"),
    [(errno.EIO, None), (errno.ESTALE, None), (errno.EACCES, None), (errno.ELOOP, "outer")],
    ids=errno.errorcode.get,
)
def test_a_mailbox_that_cannot_be_looked_at_sends_nobody_to_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, found: str | None
) -> None:
    """Mail would go to the mailbox of the directory above. Where nothing of the user's can be, the search goes on."""
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    (inner / "data").mkdir(parents=True)
    (outer / paths.MESSAGES).touch()
    break_below(monkeypatch, "lstat", inner / "data", error)
    if found:
        assert paths.find(str(inner)) == str(tmp_path / found)
    else:
        with pytest.raises(StorageFailed, match=r"look into .*inner/data"):
            paths.find(str(inner))


@pytest.mark.parametrize(
    ("error", "found"), [(errno.EIO, None), (errno.ENOENT, "outer"), (errno.EACCES, None)], ids=errno.errorcode.get
)
def test_a_worktree_whose_repository_cannot_be_looked_at_takes_no_other_mailbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, found: str | None
) -> None:
    """The repository may be on a mount that does not answer; one that is gone has no mailbox."""
    worktree, git = tmp_path / "outer" / "worktree", tmp_path / "main" / ".git"
    inside = git / "worktrees" / "w"
    for directory in (worktree, inside, tmp_path / "main" / "data"):
        directory.mkdir(parents=True)
    (worktree / ".git").write_text(f"gitdir: {inside}\n")
    (inside / "commondir").write_text("../..\n")
    (inside / "gitdir").write_text(f"{worktree}/.git\n")
    for mailbox in ("outer", "main/data"):
        (tmp_path / mailbox / paths.MESSAGES).touch()
    assert paths.find(str(worktree)) == str(tmp_path / "main" / "data")
    break_below(monkeypatch, "open", git, error)
    if found:
        assert paths.find(str(worktree)) == str(tmp_path / found)
    else:
        with pytest.raises(StorageFailed, match=r"look into .*main/\.git"):
            paths.find(str(worktree))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_closed_directory_of_the_user_s_own_ends_the_search() -> None:
    """Mail would go to the mailbox of the directory above. Another user's closed directory is passed by."""
    with tempfile.TemporaryDirectory() as scratch:
        outer = Path(scratch)
        outer.chmod(0o755)
        (outer / paths.MESSAGES).touch()
        for start, inside in ((outer / "box", "data"), (outer / "repository", ".git")):
            closed = start / inside
            (closed / paths.IN_GIT).mkdir(parents=True)
            closed.chmod(0)
            assert as_nobody(lambda start=start: [paths.find(str(start))]) == [scratch]
            os.chown(closed, NOBODY, NOBODY)
            (said,) = as_nobody(lambda start=start: [str(_failure(start))])
            assert f"cannot look into {closed}: Permission denied" in said


def _failure(start: Path) -> StorageFailed:
    with pytest.raises(StorageFailed) as caught:
        paths.find(str(start))
    return caught.value


def test_a_session_joins_no_other_mailbox_because_its_own_cannot_be_looked_at(post: Post) -> None:
    """Its later directory has one, too. The hook tells the person what is wrong."""
    other = post.scratch / "other"
    for box in (post.box, other):
        post.ok("init", box)
    del post.env["AGENT_MAILBOX_DIR"]
    start = json.dumps({"session_id": "ann", "source": "startup", "cwd": str(post.box)})
    prompt = json.dumps({"session_id": "ann", "cwd": str(other)})
    post.call("hook", "SessionStart", stdin=start)
    hide(post.box)
    said = post.call("hook", "UserPromptSubmit", stdin=prompt).stdout
    assert not (other / paths.ROSTER).exists()
    assert "cannot look into" in said
    show(post.box)
    assert post.call("hook", "UserPromptSubmit", stdin=prompt).stdout == ""


def test_a_list_of_mailboxes_that_cannot_be_read_is_not_empty(post: Post) -> None:
    """The person hears why a session is shown no mail, and no tool writes what may be a mailbox's file."""
    post.ok("init", post.box)
    del post.env["AGENT_MAILBOX_DIR"]
    start = json.dumps({"session_id": "ann", "source": "startup", "cwd": str(post.box)})
    given = {"file_path": str(post.file(MESSAGES)), "content": "x"}
    write = json.dumps({"session_id": "ann", "cwd": str(post.box), "tool_name": "Write", "tool_input": given})
    post.call("hook", "SessionStart", stdin=start)
    hide(post.user_state / "mailboxes")
    assert "cannot open" in post.call("hook", "UserPromptSubmit", stdin=start).json["systemMessage"]
    denied = post.call("hook", "Files", stdin=write).json["hookSpecificOutput"]
    assert denied["permissionDecision"] == "deny"


def test_where_the_bound_cannot_be_listed_somebody_is_bound(post: Post, box: Mailbox) -> None:
    """A program does not get the person's commands by it, and a mailbox keeps its record."""
    state = box.logs.stamp_files.kept()
    assert not paths.bound_sessions(state)
    assert bindings.here(state, box.directory) == []
    bindings.bind(box.logs.stamp_files, "ann")
    assert bindings.here(state, box.directory) == ["ann"]
    hide(post.scratch / state / BOUND)
    assert paths.bound_sessions(state)
    with pytest.raises(StorageFailed):
        bindings.here(state, box.directory)


def test_who_cannot_be_looked_at_is_bound(post: Post, box: Mailbox) -> None:
    """Binding restricts: a stamp that cannot be looked at, read, or compared binds; one that is not there does not.
    One that is freed here is bound by the other mailbox alone."""
    stamp_files = box.logs.stamp_files
    state, bound = stamp_files.kept(), post.scratch / stamp_files.kept(BOUND)
    there = StampFiles(str(post.scratch / "other" / ".cache"), state)
    (post.scratch / "other").mkdir()
    assert not paths.is_bound(state, "ann")
    bindings.bind(stamp_files, "ann")
    bindings.bind(there, "bob")
    assert paths.is_bound(state, "ann")
    assert [bindings.is_bound(stamp_files, who) for who in ("ann", "bob", "cat")] == [True, False, False]
    (bound / "cat").symlink_to(bound / "cat")
    assert bindings.is_bound(stamp_files, "cat")

    hide(post.scratch / "other")
    assert bindings.is_bound(stamp_files, "bob")  # its stamp may mean this mailbox under another path
    bindings.bind(stamp_files, "bob")
    show(post.scratch / "other")
    assert len((bound / "bob").read_bytes().splitlines()) == 2
    for who in ("ann", "bob"):
        bindings.unbind(stamp_files, who, box.now())
    assert not paths.is_bound(state, "ann")
    assert (bound / "bob").read_bytes() == there.line()

    hide(bound)
    assert paths.is_bound(state, "nobody")
    assert bindings.is_bound(stamp_files, "nobody")


def test_a_stamp_that_cannot_be_read_goes_when_all_go(post: Post, box: Mailbox) -> None:
    """It may free a session of this mailbox; one that names another mailbox stays."""
    stamp_files = box.logs.stamp_files
    unbound = post.scratch / stamp_files.kept(UNBOUND)
    bindings.unbind(stamp_files, "ann", box.now())
    bindings.unbind(StampFiles(str(post.scratch / "other" / ".cache"), stamp_files.kept()), "bob", box.now())
    (unbound / "cat").symlink_to(unbound / "ann")
    stamp_files.disturb(EVERYONE)
    assert [path.name for path in unbound.iterdir()] == ["bob"]
    hide(unbound)
    with pytest.raises(StorageFailed):
        bindings.unbound(stamp_files)


def test_files_that_cannot_be_looked_at_are_not_missing(post: Post, box: Mailbox) -> None:
    """A message that names one is refused for the storage, and can be sent again as it is."""
    plan = post.scratch / "plan.txt"
    plan.write_text("a plan")
    sent = post.ok("send", "--from", "ann", "--to", "bob", "--body", "look", "--attach", str(plan))["message"]["id"]
    message = box.state().messages[sent]
    aside = hide(post.file(attachments.DIRECTORY))
    with pytest.raises(StorageFailed):
        attachment_files.check(box.directory, message)
    show(post.file(attachments.DIRECTORY))
    attachment_files.check(box.directory, message)
    post.file(attachments.DIRECTORY).rename(aside)
    with pytest.raises(NotFound):
        attachment_files.check(box.directory, message)


def test_marks_of_a_mailbox_that_is_gone_are_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the working directory is read, kept or removed in the place of them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ann").write_text("hers")
    board = Board(StampFiles(str(tmp_path / "gone" / ".cache"), str(tmp_path / "state")), TASKS)
    board.note_use()
    board.keep_told("ann", ["told"])
    assert (board.is_used(), board.has("ann"), board.read_told("ann")) == (False, False, [])
    board.forget("ann")
    assert [path.name for path in tmp_path.iterdir()] == ["ann"]
