"""When files are not what they should be, or cannot be written: exit 5 (or 4), one line, and nothing is lost.

Derived files that cannot be written stop no mail, every command says what it could not do, and the doctor tells.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Mailbox
from agent_mailbox.store.locks.lock import FileLock
from tests.helpers import ARCHIVE, HEARTBEATS, MESSAGES, READS, ROOT, ROSTER, Post, refused, refused_both
from tests.surroundings import can_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

SEND = ("send", "--from", "x", "--to", "all", "--body", "new")


@pytest.fixture
def pair(post: Post) -> Post:
    """A mailbox with two agents, one message read and one unread."""
    post.register("a", "--role", "builder")
    post.register("b")
    post.send("b", "a", "read")
    post.check("a")
    post.send("b", "a", "unread")
    return post


@pytest.mark.parametrize("where", ["repo/.git", "worktree/commondir"])
def test_nobody_waits_for_a_pipe_in_a_repository_s_place(pair: Post, where: str) -> None:
    """Any agent can make one where sessions work: it would hold up each hook that looks for the mailbox."""
    repo = pair.scratch / "repo"
    repo.mkdir()
    (pair.scratch / "worktree").mkdir()
    os.mkfifo(pair.scratch / where)
    if where != "repo/.git":
        (repo / ".git").write_text("gitdir: ../worktree\n")
    call = json.dumps({"session_id": "new", "cwd": str(repo), "source": "startup"})
    started = pair.run("hook", "SessionStart", stdin=call, cwd=repo, env={"AGENT_MAILBOX_DIR": None})
    assert (started.rc, started.stdout) == (0, "")
    refused(pair.run("check", "--session", "a", cwd=repo, env={"AGENT_MAILBOX_DIR": None}), 1, "no mailbox here")
    assert pair.run("lease", "x", "--session", "a", cwd=repo).rc == 0


# -- something else is in a file's place --------------------------------------------------------------------------


def put(path: Path, what: str) -> None:
    """Replace a file by a directory, a FIFO, a link to a file, or a link to nowhere."""
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()
    if what == "directory":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "file":
        path.write_text("not a directory")
    else:
        target = path.parent.parent / "elsewhere"
        if what == "link":
            target.write_text("precious\n")
        path.symlink_to(target)


def mail(post: Post) -> dict[str, bytes]:
    """The logs, live and archived, that are files."""
    return {name: data for name, data in post.snapshot().items() if name.endswith(".jsonl")}


USES: dict[str, list[tuple[str, ...]]] = {
    MESSAGES: [
        SEND,
        (*SEND, "--id", "00000000-0000-4000-8000-000000000000"),
        ("check", "--session", "a"),
        ("check", "--session", "a", "--peek"),
        ("history", "--all"),
        ("show", "abcdef"),
        ("search", "x"),
        ("status", "--session", "a"),
        ("dead-letters", "--all"),
        ("wait", "--session", "a", "--timeout", "0"),
        ("steward", "run"),
    ],
    READS: [("check", "--session", "a"), ("history", "--all"), ("status", "--session", "a"), ("steward", "run")],
    ROSTER: [SEND, ("check", "--session", "a"), ("roster", "register", "--session-id", "c"), ("roster", "list")],
    f"{HEARTBEATS}/a": [("check", "--session", "a"), ("roster", "heartbeat", "a")],
}


@pytest.mark.parametrize("what", ["directory", "fifo", "link", "dangling"])
@pytest.mark.parametrize("name", USES)
def test_what_stands_in_the_place_of_a_file_is_refused(pair: Post, name: str, what: str) -> None:
    """A directory, a FIFO (nothing blocks on it) or a link: exit 5 naming it; what the link leads to is untouched."""
    put(pair.file(name), what)
    before = mail(pair)
    for words in USES[name]:
        refused_both(pair.call, 5, *words, said=[os.path.basename(name)])
    assert mail(pair) == before
    elsewhere = pair.scratch / "elsewhere"
    assert not elsewhere.exists() or elsewhere.read_text() == "precious\n"


def test_a_fifo_in_the_place_of_the_configuration_blocks_nobody(pair: Post) -> None:
    """A FIFO, a directory or a dangling link in the configuration's place gives a warning, and mail goes on."""
    for what in ("directory", "fifo", "dangling"):
        put(pair.file("config.toml"), what)
        code = "import signal, sys; signal.alarm(100); from agent_mailbox.launch import main; sys.exit(main())"
        result = pair.python(code, "check", "--session", "a")
        assert result.rc == 0, result
        (warning,) = result.warnings
        assert "config.toml" in warning


@pytest.mark.parametrize("what", ["file", "dangling"])
@pytest.mark.parametrize(("name", "failed"), [(HEARTBEATS, ""), (ARCHIVE, "cannot make ")])
def test_what_stands_in_the_place_of_a_directory_is_refused(pair: Post, name: str, failed: str, what: str) -> None:
    """Heartbeats for who checks, the archive for the steward: exit 5, no traceback, and mail is still mail."""
    put(pair.file(name), what)
    words = ("check", "--session", "a") if name == HEARTBEATS else ("steward", "run", "--max-live", "0")
    refused_both(pair.call, 5, *words, said=[f"{failed}{pair.file(name)}"])
    assert len(pair.unread("a")) == 1
    assert len(pair.lines(MESSAGES)) == 2


@pytest.mark.parametrize("what", ["directory", "fifo", "dangling"])
def test_what_stands_in_the_place_of_the_stewards_lock_is_refused(pair: Post, what: str) -> None:
    """Exit 5, at once."""
    put(pair.file(ARCHIVE, ".lock"), what)
    code = "import signal, sys; signal.alarm(100); from agent_mailbox.launch import main; sys.exit(main())"
    refused(pair.python(code, "steward", "run", "--max-live", "0"), 5, ".lock")
    assert len(pair.lines(MESSAGES)) == 2


def test_a_leftover_that_cannot_be_removed_stops_the_steward(pair: Post) -> None:
    """A directory in the place of the fresh log: exit 5 says what was tried, and live mail stays live."""
    put(pair.file(f"{MESSAGES}.new"), "directory")
    before = mail(pair)
    refused_both(pair.call, 5, "steward", "run", "--max-live", "0", said=[f"cannot remove {pair.file(MESSAGES)}.new"])
    assert mail(pair) == before


@pytest.mark.parametrize("what", ["directory", "link", "fifo"])
def test_a_month_that_is_no_file_stops_the_steward_before_it_moves_anything(pair: Post, what: str) -> None:
    """Exit 5 naming it; live mail stays live, and is moved once the obstacle is gone."""
    month = pair.file(ARCHIVE, pair.objects(MESSAGES)[0]["timestamp"][:7] + ".jsonl")
    put(month, what)
    before = (pair.lines(MESSAGES), pair.lines(READS))
    refused_both(pair.call, 5, "steward", "run", "--max-live", "0", said=[month.name])
    assert (pair.lines(MESSAGES), pair.lines(READS)) == before
    month.rmdir() if what == "directory" else month.unlink()
    assert pair.ok("steward", "run", "--max-live", "0")["archived"] == 1


# -- read-only --------------------------------------------------------------------------------------------------------


class Bound(Post):
    """A mailbox whose processes are bound by file modes, even where the tests run as root."""

    def start(self, *words: object, **how: Any) -> Any:
        if os.geteuid() == 0:
            how["preexec_fn"] = _without_override
        return super().start(*words, **how)


def _without_override() -> None:
    """prctl(2), PR_CAPBSET_DROP of CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: what is executed next has neither."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):
        libc.prctl(24, capability, 0, 0, 0)


@contextlib.contextmanager
def closed(root: Path) -> Iterator[None]:
    """Nothing below may be written while this lasts."""
    paths = [root, *root.rglob("*")]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    for path in reversed(paths):
        path.chmod(modes[path] & 0o555)
    try:
        yield
    finally:
        for path in paths:
            path.chmod(modes[path])


@pytest.fixture
def frugal(tmp_path: Path) -> Bound:
    """A mailbox with two agents, one message read and one unread, whose files' modes count."""
    post = Bound(tmp_path)
    post.register("a", "--role", "builder")
    post.register("b")
    post.send("b", "a", "read", "--ack")
    post.check("a")
    post.send("b", "a", "unread")
    with closed(post.cwd):
        if post.python("open('probe', 'w')").rc == 0:
            pytest.skip("file modes do not bind this user")
    return post


def test_a_mailbox_that_may_only_be_read_can_be_read(frugal: Bound) -> None:
    """Looking works; whatever would write is exit 5, shows no mail it could not record, and loses none."""
    read, unread = (m["id"] for m in frugal.objects(MESSAGES))
    before = frugal.snapshot()
    with closed(frugal.box):
        for words, wanted in (
            (("check", "--session", "a", "--peek"), unread),
            (("history", "--all"), read),
            (("show", read), read),
            (("status", "--session", "a"), "alive"),
            (("roster", "list"), "builder"),
        ):
            result = frugal.run(*words, "--json")
            assert (result.rc, result.stderr) == (0, ""), result
            assert wanted in result.stdout
        examined = frugal.run("doctor", "--json")
        assert (examined.rc, examined.stderr) == (3, ""), examined
        assert all("read-only: mode 0" in one["what"] for one in examined.json["problems"]), examined
        for words in (
            ("check", "--session", "a"),
            ("check", "--session", "stranger"),
            ("ack", read, "--session", "a"),
            ("release", read, "--session", "a"),
            ("roster", "register", "--session-id", "c"),
            ("roster", "freeze", "a"),
            ("steward", "run", "--max-live", "0"),
        ):
            result = refused(frugal.run(*words, "--json"), 5)
            assert list(result.json) == ["error"], words
            assert unread not in result.stdout
        sent = refused(frugal.run(*SEND, "--json"), 5, "--id ", MESSAGES)
        hook = frugal.run("hook", "UserPromptSubmit", stdin=json.dumps({"session_id": "a"}))
        assert hook.rc == 0
        assert list(hook.json) == ["systemMessage"]
    assert frugal.snapshot() == before
    retry = sent.json["error"]["hint"].split("--id ")[1].split(":")[0].split()[0]
    assert frugal.run(*SEND, "--id", retry, "--json").json["message"]["id"] == retry
    assert json.loads(frugal.run("check", "--session", "a", "--json").stdout)["count"] == 2


def test_a_mailbox_that_may_not_be_looked_into_is_not_taken_for_none(frugal: Bound) -> None:
    """Exit 5 and its mode, not the advice to make one."""
    frugal.box.chmod(0)
    try:
        for words in (("check", "--session", "a"), ("doctor",)):
            result = refused(frugal.run(*words, "--dir", str(frugal.box)), 5, "look into", "owner and mode")
            assert "init" not in result.stderr
    finally:
        frugal.box.chmod(0o700)


def test_a_place_where_nothing_can_be_made_refuses_init(frugal: Bound) -> None:
    """Exit 5 with the reason; nothing half made; an unwritable state directory is an error as well."""
    with closed(frugal.cwd):
        refused(frugal.run("init", env={"AGENT_MAILBOX_DIR": None}), 5, "data")
        refused(frugal.run("init", frugal.cwd / "deep/er"), 5)
    assert list(frugal.cwd.iterdir()) == []
    (frugal.scratch / "file").write_text("")
    refused(frugal.run("init", frugal.scratch / "file"), 5)
    with closed(frugal.home):
        refused(
            frugal.run("init", frugal.cwd / "new", env={"AGENT_MAILBOX_TEST_STATE": str(frugal.home / "other")}),
            5,
            "other",
        )


# -- the disk says no -------------------------------------------------------------------------------------------------

FULL = """
import os, resource, sys
sys.dont_write_bytecode = True  # Python would keep what it could write of a module
room = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
from agent_mailbox.launch import main
sys.exit(main())
"""
BROKEN = """
import errno, os, sys
def fail(fd):
    raise OSError(errno.EIO, os.strerror(errno.EIO))
from agent_mailbox.store.files import system
system.fdatasync = fail
from agent_mailbox.launch import main
sys.exit(main())
"""


def test_a_send_on_a_full_disk_takes_back_its_bytes_and_names_the_id(pair: Post) -> None:
    """Exit 5; the log is as before; the retry it names is the message."""
    before = pair.file(MESSAGES).read_bytes()
    words = ("send", "--from", "b", "--to", "a", "--body", "x" * 2000)
    failed = refused(pair.python(FULL, len(before) + 100, *words, "--json"), 5, MESSAGES, "--id ")
    assert pair.file(MESSAGES).read_bytes() == before
    retry = failed.json["error"]["hint"].split("--id ")[1][:36]
    assert pair.ok(*words, "--id", retry)["message"]["id"] == retry
    for words in (("lease", "x" * 900, "--session", "b"), ("watch", "a", "--idle", "--session", "b")):
        failed = refused(pair.python(FULL, len(pair.file(MESSAGES).read_bytes()) + 100, *words), 5, MESSAGES)
        assert "--id" not in failed.stderr, "these commands take none"
    batch = "\n".join(json.dumps({"recipient": "a", "content": f"{n}" * 500}) for n in range(5))
    before = pair.file(MESSAGES).read_bytes()
    told = refused(pair.python(FULL, len(before) + 1200, "send", "--jsonl", "-", "--from", "b", stdin=batch), 5)
    assert pair.file(MESSAGES).read_bytes() == before
    assert told.stderr.count("-4") >= 5  # the ids of all five lines


def test_a_failed_sync_is_never_an_acknowledgement(pair: Post) -> None:
    """send, check, ack and register exit 5 when the disk does not confirm; a retry by id doubles nothing."""
    own = "00000000-0000-4000-8000-00000000000a"
    refused(pair.python(BROKEN, *SEND, "--id", own), 5, "sync", own)
    assert pair.ok(*SEND, "--id", own)["message"]["id"] == own
    assert [m["id"] for m in pair.objects(MESSAGES)].count(own) == 1
    refused(pair.python(BROKEN, *SEND, "--id", own), 5, "sync", own)
    refused(pair.python(BROKEN, "roster", "register", "--session-id", "new"), 5, "sync")


def test_a_check_whose_record_fails_shows_again(pair: Post) -> None:
    """Nothing is lost: what could not be recorded is unread."""
    unread = pair.unread("a")
    size = pair.file(READS).stat().st_size
    failed = pair.python(FULL, size + 10, "check", "--session", "a", "--json")
    assert failed.rc == 5
    assert pair.unread("a") == unread
    assert pair.check("a") == unread


# -- busy -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program's ten seconds for a lock, shortened."""
    monkeypatch.setitem(Mailbox.__init__.__kwdefaults__, "wait", 0.02)


@pytest.mark.usefixtures("impatient")
def test_a_lock_that_is_not_to_be_had_is_exit_4_naming_its_holder(pair: Post) -> None:
    """Each writing command says which file and, where the system tells, whose pid; nothing changes."""
    unread = pair.unread("a")
    before = mail(pair)
    who = [f"pid {os.getpid()}"] if sys.platform.startswith("linux") else []
    with FileLock(str(pair.file(MESSAGES))):
        refused_both(pair.call, 4, *SEND, said=[MESSAGES, *who])
        refused_both(pair.call, 4, "steward", "run", "--max-live", "0", said=[MESSAGES, *who])
    with FileLock(str(pair.file(READS))):
        told = refused_both(pair.call, 4, "check", "--session", "a", said=[READS, *who])
        assert unread[0] not in told.stdout
    with FileLock(str(pair.file(ROSTER))):
        refused_both(pair.call, 4, "roster", "register", "--session-id", "c", said=[ROSTER, *who])
    with FileLock(str(pair.file(HEARTBEATS, "a"))):
        refused_both(pair.call, 4, "check", "--session", "a", said=who)
    with FileLock(str(pair.file(ARCHIVE, ".lock"))):
        refused_both(pair.call, 4, "steward", "run", said=["steward"])
    assert mail(pair) == before
    assert pair.unread("a") == unread


@pytest.mark.usefixtures("impatient")
# -- derived files ----------------------------------------------------------------------------------------------------


def test_derived_files_may_be_deleted_or_ruined_at_any_time(pair: Post) -> None:
    """``.cache/`` gone, a file, a link, full of rubbish or of an older state: the same answers, the same mail."""

    def answers() -> list[Any]:
        return [
            pair.ok("check", "--session", "a", "--peek"),
            pair.ok("status", "--session", "a"),
            pair.ok("history", "--all"),
            pair.ok("search", "unread"),
            pair.ok("roster", "list")["agents"],
            pair.ok("thread", pair.objects(MESSAGES)[0]["id"]),
        ]

    cache = pair.file(".cache")
    wanted = answers()
    older = pair.scratch / "older"
    if cache.exists():
        shutil.copytree(cache, older)
    pair.send("b", "all", "newer")
    pair.register("c", "--role", "librarian")
    wanted = answers()
    for ruin in ("delete", "rubbish", "zeros", "cut", "older", "directories", "file", "link", "nothing"):
        files = [p for p in cache.rglob("*") if p.is_file()] if cache.is_dir() else []
        if ruin in ("delete", "file", "link", "older"):
            cache.unlink() if cache.is_symlink() or cache.is_file() else shutil.rmtree(cache, ignore_errors=True)
        if ruin == "file":
            cache.write_text("in the way")
        elif ruin == "link":
            (pair.scratch / "target").mkdir()
            cache.symlink_to(pair.scratch / "target")
        elif ruin == "older" and older.exists():
            shutil.copytree(older, cache)
        for path in files if ruin in ("rubbish", "zeros", "cut", "directories") else ():
            data = path.read_bytes()
            path.unlink()
            if ruin == "directories":
                path.mkdir()
            else:
                path.write_bytes({"rubbish": b"\xff{[1 2 3\n" * 50, "zeros": bytes(len(data)), "cut": data[:-3]}[ruin])
        assert answers() == wanted, ruin
        assert pair.call("check", "--session", "b", "--json").rc == 0, ruin
        pair.ok("release", wanted[2]["messages"][0]["id"], "--session", "a")
        assert len(pair.check("a")) >= 1, ruin
        for message in wanted[0]["messages"]:
            pair.ok("release", message["id"], "--session", "a")
        wanted = answers()


def test_parents_made_for_a_mailbox_are_the_user_s_alone_to_write(post: Post) -> None:
    """Else, under a loose umask, anybody could put another mailbox in its place."""
    assert post.start("init", post.scratch / "new/deeper/box", umask=0).wait() == 0
    modes = {made.name: made.stat().st_mode & 0o777 for made in (post.scratch / "new").rglob("*") if made.is_dir()}
    assert (modes["deeper"], modes["box"], {mode for name, mode in modes.items() if name != "deeper"}) == (
        0o755,
        0o700,
        {0o700},
    )
    assert (post.scratch / "new").stat().st_mode & 0o022 == 0


# -- what cannot be written -------------------------------------------------------------------------------------------


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
