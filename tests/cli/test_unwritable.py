"""What cannot be written: derived files stop no mail, every command says what it could not do, and the doctor tells."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Mailbox
from tests.helpers import ARCHIVE, HEARTBEATS, MESSAGES, READS, ROOT, ROSTER, Post
from tests.surroundings import can_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

SHIM = ROOT / "hooks/agent-mailbox-hook"
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
NAMESPACE = ("unshare", "-rm", "sh", "-c", READ_ONLY, "sh")


@pytest.fixture
def marked() -> Iterator[Callable[[str, Path], None]]:
    """Mark a file immutable (``i``) or append-only (``a``), as chattr(1) does; not after the test."""
    marks: list[tuple[str, Path]] = []

    def mark(flag: str, path: Path) -> None:
        done = shutil.which("chattr") and subprocess.run(["chattr", f"+{flag}", path], capture_output=True, check=False)
        if not done or done.returncode:
            pytest.skip("this user or file system marks no file immutable")
        marks.append((flag, path))

    yield mark
    for flag, path in marks:
        subprocess.run(["chattr", f"-{flag}", path], check=True)


def read_only(path: Path) -> Sequence[str]:
    """The words under which a process has that path mounted read-only; skip where there is no such thing."""
    under = (*NAMESPACE, str(path))
    if not can_run(*under, "true"):
        pytest.skip("no mount namespaces here")
    return under


@pytest.fixture
def quiet(post: Post) -> Post:
    """Two agents; one has read its mail, and has a quiet stamp."""
    post.register("a")
    post.register("b")
    post.send("b", "a", "before")
    post.check("a")
    assert Mailbox(str(post.box)).logs.stamp_files.believed("a", Mailbox(str(post.box)).now())
    return post


def hooked(post: Post, event: str = "UserPromptSubmit", **how: Any) -> str:
    """What the installed guard answers to a hook of session ``a``."""
    call = json.dumps({"session_id": "a", "cwd": "/", "hook_event_name": event, "prompt": "go"})
    how.setdefault("env", {**post.environ(), "CLAUDE_CODE_SESSION_ID": "a"})
    under = how.pop("under", ())
    done = subprocess.run([*under, "sh", SHIM, event], input=call.encode(), capture_output=True, check=True, **how)
    return done.stdout.decode()


def ruin(post: Post, what: str, mark: Callable[[str, Path], None]) -> Sequence[str]:
    """Make what is derived unwritable; return the words under which that holds."""
    cache = post.file(".cache")
    if what == "a directory is in the place of the stamp":
        (cache / "quiet/a").unlink()
        (cache / "quiet/a/full").mkdir(parents=True)
    elif what == "the stamp is immutable":
        mark("i", cache / "quiet/a")
    elif what == "its directory is immutable":
        mark("i", cache / "quiet")
    elif what == "all is a file":
        shutil.rmtree(cache)
        cache.touch(0o600)
    elif what == "all is read-only":
        return read_only(cache)
    return ()


DERIVED = (
    *("a directory is in the place of the stamp", "the stamp is immutable", "its directory is immutable"),
    *("all is a file", "all is read-only"),
)


@pytest.mark.parametrize("what", DERIVED)
def test_what_is_derived_and_cannot_be_written_stops_no_mail(
    quiet: Post, what: str, marked: Callable[[str, Path], None]
) -> None:
    """Mail is sent, shown and acknowledged; a stamp that cannot be removed hides none from the guard of the hooks."""
    under = ruin(quiet, what, marked)

    def ok(*words: str) -> Any:
        done = quiet.run(*words, "--json", under=under)
        assert (done.rc, done.stderr) == (0, ""), (what, words, done)
        return done.json

    first = ok("send", "--from", "b", "--to", "a", "--ack", "--body", "first")["message"]["id"]
    assert "first" in hooked(quiet, under=under)
    ok("reply", first, "--from", "a", "--body", "done")
    assert ok("wait", "--session", "b", "--timeout", "30")["unread"] == 1
    second = ok("send", "--from", "b", "--to", "a", "--body", "second")["message"]["id"]
    assert [m["id"] for m in ok("check", "--session", "a")["messages"]] == [second]
    assert ok("check", "--session", "a")["messages"] == []
    assert hooked(quiet, under=under) == ""
    ok("ack", first, "--session", "a")
    ok("status", "--session", "a")
    assert len(ok("history", "--all", "--limit", "0")["messages"]) == 4
    assert len(ok("search", "second")["messages"]) == 1
    ok("steward", "run", "--max-live", "0")
    third = ok("send", "--from", "b", "--to", "a", "--body", "third")["message"]["id"]
    assert "third" in hooked(quiet, "PostToolUse", under=under)
    ok("release", third, "--session", "a")
    assert "third" in hooked(quiet, "Stop", under=under)


def test_a_stamp_that_stayed_counts_for_nothing_until_it_can_go(
    quiet: Post, marked: Callable[[str, Path], None]
) -> None:
    """A quiet stamp that cannot be removed hides no mail, until it can be removed: not by a clock that was slow."""
    ruin(quiet, DERIVED[0], marked)
    desk, log = Mailbox(str(quiet.box)), quiet.file(MESSAGES)
    at = log.stat().st_mtime_ns
    assert desk.logs.stamp_files.believed("a", desk.now() + 1000)
    quiet.send("b", "a", "hidden?")
    os.utime(log, ns=(at, at))
    assert not desk.logs.stamp_files.believed("a", desk.now() + 1000)
    quiet.send("a", "b", "another")
    quiet.check("b")
    assert not desk.logs.stamp_files.believed("a", desk.now())
    assert "hidden?" in hooked(quiet)
    shutil.rmtree(quiet.file(".cache/quiet/a"))
    quiet.check("a")
    assert desk.logs.stamp_files.believed("a", desk.now())
    quiet.send("b", "a", "seen")
    assert not os.path.exists(quiet.file(".cache/quiet/a"))


# -- the doctor -------------------------------------------------------------------------------------------------------


@pytest.fixture
def used(quiet: Post) -> Post:
    """The same with an archive, an attachment and telemetry."""
    quiet.ok("steward", "run", "--max-live", "0")
    (quiet.scratch / "notes.txt").write_text("notes")
    quiet.send("b", "a", "with a file", "--attach", str(quiet.scratch / "notes.txt"))
    quiet.file("agent-mailbox-events.jsonl").touch(0o600)
    quiet.check("a")
    assert quiet.doctor() == []
    return quiet


def places(post: Post) -> dict[str, Path]:
    """Every place that commands write, by a name for the test."""
    record = next((post.user_state / "boxes").iterdir())
    archive = post.file(ARCHIVE)
    named = (MESSAGES, READS, ROSTER, "agent-mailbox-events.jsonl", HEARTBEATS, f"{HEARTBEATS}/a", ARCHIVE)
    derived = (
        ".cache",
        ".cache/quiet",
        ".cache/quiet/a",
        ".cache/ends/agent-mailbox",
        ".cache/cursors/a",
        "attachments",
    )
    return {
        **{name: post.file(name) for name in (*named, *derived, "attachments")},
        "a month": next(path for path in archive.iterdir() if path.name[:2] == "20"),
        "the manifest": archive / "MANIFEST.jsonl",
        "the user's records": post.user_state,
        "the mailbox's record": record,
        "the record of a log": record / "agent-mailbox",
    }


def test_an_immutable_place_is_told_with_the_command_that_mends_it(
    used: Post, marked: Callable[[str, Path], None]
) -> None:
    """The command is run as it is printed; then nothing is wrong any more, and trying left nothing."""
    before = used.snapshot()
    for name, path in places(used).items():
        marked("i", path)
        (problem,) = used.doctor()
        assert (problem["file"], problem["line"]) == (str(path), None), name
        command = problem["what"].split("`")[1]
        assert command == f"sudo chattr -i {path}", name
        subprocess.run(command.removeprefix("sudo ").split(), check=True)
        assert used.doctor() == [], name
    assert used.snapshot() == before


def test_a_place_that_is_mounted_read_only_is_told_once(used: Post) -> None:
    """The doctor reports a read-only mount once, with the command that makes its mount point writable."""
    known = places(used)
    for path in (used.box, known[MESSAGES], known[HEARTBEATS], known[".cache"], known["the mailbox's record"]):
        done = used.run("doctor", "--json", under=read_only(path))
        assert done.rc == 3, path
        (problem,) = done.json["problems"]
        assert f"run `sudo mount -o remount,rw {path}`" in problem["what"], path


@pytest.mark.parametrize(
    ("name", "kind"),
    [(READS, "a directory"), (READS, "a FIFO"), (f"{HEARTBEATS}/a", "a symbolic link"), (".cache/cursors/a", "a FIFO")],
)
def test_something_else_in_the_place_of_a_file_is_told(used: Post, name: str, kind: str) -> None:
    """The doctor reports a directory, a FIFO or a link in a file's place, without waiting for it. The command that puts
    it aside is run as it is printed, and ends that."""
    path = used.file(name)
    path.unlink()
    if kind == "a directory":
        path.mkdir(0o700)
    elif kind == "a FIFO":
        os.mkfifo(path, 0o600)
    else:
        path.symlink_to(used.scratch / "nowhere")
    told = [p["what"] for p in used.doctor() if p["file"] == str(path)]
    assert [f"{kind} is in the place of this file" in what for what in told] == [True]
    subprocess.run(told[0].split("`")[1].split(), check=True)
    assert not [p for p in used.doctor() if "in the place of" in p["what"]]


@pytest.mark.parametrize("name", ["rollbook", "agent-mailbox"])
def test_a_directory_in_the_place_of_a_record_of_the_mailbox_is_told(used: Post, name: str) -> None:
    """It is no directory of ours, though files can be made in it; the same holds for a session's cursor."""
    record = places(used)["the mailbox's record"] / name
    cursor = used.file(".cache/cursors/a")
    for path in (record, cursor):
        path.unlink()
        path.mkdir(0o700)
    told = {p["file"]: p["what"] for p in used.doctor()}
    for path in (record, cursor):
        assert "a directory is in the place of this file" in told[str(path)]


def test_a_link_to_nothing_in_the_place_of_a_directory_is_told(used: Post) -> None:
    """Nothing can be made there, and nothing is missing for somebody who looks."""
    path = used.file(".cache")
    shutil.rmtree(path)
    path.symlink_to(used.scratch / "nowhere")
    assert ["a link to nothing is in the place of this directory" in p["what"] for p in used.doctor()] == [True]


@pytest.mark.parametrize("how", ["missing", "empty", "another text", "a directory"])
def test_a_key_that_seals_nothing_is_told(post: Post, how: str) -> None:
    """Before anything was sealed, too; what the doctor says to do gives another one."""
    key = post.user_state / "key"
    key.unlink()
    if how == "a directory":
        key.mkdir()
    elif how != "missing":
        key.write_text("" if how == "empty" else how)
    (told,) = (p["what"] for p in post.doctor())
    assert "what is written now may count as unproven" in told
    if how != "missing":
        assert f"`mv {key} {key}.away`" in told
        key.rename(f"{key}.away")
    assert "`agent-mailbox init` makes another" in told
    post.ok("init", post.box)
    assert post.doctor() == []


@pytest.mark.parametrize("name", [HEARTBEATS, ARCHIVE, ".cache"])
def test_a_file_in_the_place_of_a_directory_is_told(used: Post, name: str) -> None:
    """The command that puts it aside is run as it is printed."""
    path = used.file(name)
    shutil.rmtree(path)
    path.touch(0o600)
    told = [p["what"] for p in used.doctor() if p["file"] == str(path)]
    assert len(told) == 1
    assert "a file is in the place of this directory" in told[0]
    subprocess.run(told[0].split("`")[1].split(), check=True)
    assert not [p for p in used.doctor() if p["file"] == str(path)]


@pytest.mark.parametrize(("options", "why"), [("size=256k", "file system is full"), ("nr_inodes=64", "no inode left")])
def test_a_full_file_system_is_named_in_the_error(used: Post, options: str, why: str) -> None:
    """No page is left, or no inode; with room again nothing is wrong."""
    small = used.scratch / "small"
    small.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", f"{options},mode=0700", "none", small]
    if os.geteuid() or subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        used.env["AGENT_MAILBOX_DIR"] = str(small / "box")
        used.ok("init", small / "box")
        ballast = small / "ballast"
        ballast.mkdir()
        with contextlib.suppress(OSError), open(ballast / "0", "wb", buffering=0) as file:
            for number in range(1 << 12):
                file.write(bytes(4096)) if "size" in options else (ballast / f"n{number}").touch()
        assert [why in p["what"] for p in used.doctor()] == [True]
        shutil.rmtree(ballast)
        assert used.doctor() == []
    finally:
        subprocess.run(["umount", small], check=True)


# -- the steward ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mark", "name"), [("a", MESSAGES), ("a", READS), ("a", "."), ("i", "."), ("i", "the record of a log")]
)
def test_what_cannot_be_replaced_is_not_archived_half_way(
    used: Post, name: str, mark: str, marked: Callable[[str, Path], None]
) -> None:
    """The steward does the rest of its work and says why; nothing is in two places; mended, it archives."""
    used.send("b", "a", "done")
    used.check("a")
    path = used.box if name == "." else places(used)[name]
    before = used.snapshot()
    marked(mark, path)
    report = used.ok("steward", "run", "--max-live", "0")
    assert report["archived"] == 0
    assert [p["file"] for p in report["problems"]] == [str(path)]
    assert "so nothing was archived" in report["problems"][0]["what"]
    assert f"sudo chattr -{mark} {path}" in report["problems"][0]["what"]
    assert {k: v for k, v in used.snapshot().items() if ".lock" not in k} == {
        k: v for k, v in before.items() if ".lock" not in k
    }
    assert str(path) in [p["file"] for p in used.doctor()]
    subprocess.run(["chattr", f"-{mark}", path], check=True)
    assert used.ok("steward", "run", "--max-live", "0")["archived"] == 2
    assert used.doctor() == []


def test_mail_in_an_append_only_mailbox_works_as_ever(used: Post, marked: Callable[[str, Path], None]) -> None:
    """Sent, read, acknowledged, given back, repeated by its id: none of this needs another write than at the end."""
    for name in (MESSAGES, READS, ROSTER):
        marked("a", used.file(name))
    mine = used.send("b", "a", "once", "--ack")
    assert used.send("b", "a", "once", "--ack", "--id", mine) == mine
    assert used.check("a") == [mine]
    used.ok("release", mine, "--session", "a")
    used.ok("release", mine, "--session", "a")
    assert used.check("a") == [mine]
    used.ok("ack", mine, "--session", "a")
    used.ok("ack", mine, "--session", "a")
    used.register("c")
    assert len(used.lines(MESSAGES)) == 2


def test_a_log_that_takes_no_writes_can_still_be_backed_up(used: Post, marked: Callable[[str, Path], None]) -> None:
    """Each is locked as it may be opened; the backup is what is there, and verifies."""
    for number, name in enumerate((READS, ROSTER, MESSAGES, f"{ARCHIVE}/.lock")):
        marked("i", used.file(name))
        file = used.scratch / f"{number}.tar"
        used.ok("backup", file)
        used.ok("backup", "--verify", file)


def test_where_no_end_can_be_noted_no_other_program_is_accused(
    quiet: Post, marked: Callable[[str, Path], None]
) -> None:
    """The log grew by our own mail; only what is in the way is told."""
    ruin(quiet, DERIVED[2], marked)
    quiet.send("b", "a", "ours")
    told = quiet.call("doctor", "--json").json
    assert [p["file"] for p in told["problems"]] == [str(quiet.file(".cache/quiet"))]
    assert "notes" not in told
