"""A backup is the mailbox of one moment, whole or not there at all; restoring it brings back everyone's mail."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import tarfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Draft, Mailbox
from agent_mailbox.core.roster import Agent
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import BadData, Busy, StorageFailed
from agent_mailbox.mailbox import agents
from agent_mailbox.mailbox.queries import MailQueries
from agent_mailbox.store.archive import rotation
from agent_mailbox.store.files import system
from agent_mailbox.upkeep import backup, doctor, restoring
from agent_mailbox.upkeep import steward as stewards
from agent_mailbox.upkeep.snapshot import Snapshot, SnapshotFile
from tests.faults.killing import killed
from tests.helpers import ARCHIVE, MESSAGES, READS, Post, Program, Result, refused, refused_both
from tests.store.test_processes import LAST, together

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = time.time_ns() // 1_000_000
READERS = ("ann", "bob", "cat")


@pytest.fixture
def full(post: Post) -> Post:
    """Archived and live mail of each mode; some of it unread, claimed or owed; a configuration, a foreign line."""
    mailbox = Mailbox(str(post.box))
    for name in READERS:
        mailbox.register(Registration(session_id=name, roles=("builder",) if name != "ann" else None), name)
    post.file("config.toml").write_text("[steward]\nmax_live = 3\n")
    post.file("config.toml").chmod(0o600)
    for turn in range(3):
        for word in ("bob", "cat", "role:builder", "all"):
            mailbox.send(Draft(sender="ann", to=(word,), content=f"{word} {turn} “€”", ack=turn == 1))
        mailbox.deliver("bob", lambda items: items[:2])
        stewards.run_upkeep(mailbox, 0)
    post.append(MESSAGES, b"foreign\n")
    post.append(READS, b'{"torn')
    return post


def views(box: Path) -> dict[str, Any]:
    """What there is for whom."""
    mailbox = Mailbox(str(box), clock=lambda: NOW)
    queries = MailQueries(mailbox)
    everything = queries.everything()
    return {
        **{name: [item.message.id for item in mailbox.peek(name)] for name in READERS},
        "owed": [m.id for m in queries.status("bob").obligations],
        "read": {i: [r.session_id for r in everything.reads.of(i)] for i in everything.messages},
        "seen": {name: unproven(agents.one(mailbox, name)) for name in READERS},
    }


def unproven(seen: tuple[Agent, int | None]) -> tuple[Agent, int | None]:
    """An agent without what was proven of it: a restored mailbox is another, until the person confirms it."""
    return seen[0].replace(proven=False, proven_leads=()), seen[1]


def test_a_backup_restores_to_the_same_mailbox(full: Post) -> None:
    """Byte for byte, with heartbeats, without anything derived; private; known as ``init`` makes it known."""
    file, place = full.scratch / "backup.tar", full.scratch / "elsewhere" / "box"
    made = full.ok("backup", file)
    assert list(made) == ["file", "files", "bytes", "made", "settings"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert full.ok("backup", "--verify", file, env={"AGENT_MAILBOX_DIR": None}) == made
    with tarfile.open(file) as tar:
        sizes = [entry.size for entry in tar if entry.name not in (backup.ABOUT, backup.SUMS)]
    assert (made["files"], made["bytes"]) == (len(sizes), sum(sizes))
    answer = full.ok("restore", file, place)
    assert answer == {"dir": str(place), **{key: made[key] for key in ("files", "made", "settings")}}
    wanted = {name: data for name, data in full.snapshot().items() if not name.endswith(".lock")}
    there = {str(p.relative_to(place)): p.read_bytes() for p in place.rglob("*") if p.is_file()}
    there.pop("agent-mailbox-archive/.lock", None)
    assert there == wanted
    assert {stat.S_IMODE(p.stat().st_mode) for p in place.rglob("*")} == {0o700, 0o600}
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert views(place) == views(full.box)
    assert str(place) in (full.home / ".local/state/agent-mailbox/mailboxes").read_text().splitlines()
    assert doctor.problems_among(doctor.examine_mailbox(Mailbox(str(place)))) == doctor.problems_among(
        p.replace(file=p.file.replace(str(full.box), str(place)))
        for p in doctor.examine_mailbox(Mailbox(str(full.box)))
    )


def test_what_others_leave_in_the_mailbox_keeps_nobody_from_a_backup(full: Post) -> None:
    """A file manager's or an editor's file among the heartbeats is no session's, and one beside the months keeps its
    name. A heartbeat of a time that no backup can tell is of the nearest one."""
    hearts, month = full.file("agent-heartbeats"), full.file(ARCHIVE, "2026-01 (Kopie für Jürgen).jsonl")
    for name in (".DS_Store", "bob copy", "bob~", "all"):
        (hearts / name).touch(0o600)
    shutil.copy(next(full.file(ARCHIVE).glob("????-??.jsonl")), month)
    full.file(ARCHIVE, "2026-02\n.jsonl").touch(0o600)
    os.utime(hearts / "bob", ns=(-1, -1))
    os.utime(hearts / "cat", ns=((1 << 63) + 10**15, (1 << 63) + 10**15))
    file, place = full.scratch / "backup.tar", full.scratch / "elsewhere"
    full.ok("backup", file)
    full.ok("restore", file, place)
    assert {path.name for path in (place / "agent-heartbeats").iterdir()} == {"ann", "bob", "cat"}
    assert (place / "agent-heartbeats" / "bob").stat().st_mtime_ns == 0
    assert (place / "agent-heartbeats" / "cat").stat().st_mtime_ns > 1 << 62
    assert (place / ARCHIVE / month.name).read_bytes() == month.read_bytes()


def test_other_tools_read_a_backup(full: Post) -> None:
    """tar unpacks it, sha256sum finds every file as it was."""
    file, out = full.scratch / "backup.tar", full.scratch / "out"
    full.ok("backup", file)
    out.mkdir()
    subprocess.run(["tar", "-xf", file, "-C", out], check=True)
    subprocess.run(["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"], cwd=out, check=True)
    assert (out / MESSAGES).read_bytes() == full.file(MESSAGES).read_bytes()


def test_nothing_is_overwritten(full: Post) -> None:
    """A file without ``--force``; a mailbox; a directory with anything in it. An empty directory is nothing."""
    file = full.scratch / "backup.tar"
    file.write_text("precious")
    told = [refused_both(full.call, 1, "backup", file, said=["--force"])]
    assert file.read_text() == "precious"
    full.ok("backup", "--force", file)
    before = full.snapshot()
    told += [refused_both(full.call, 1, "restore", file, full.box, said=["is a mailbox already"])]
    refused_both(full.call, 1, "restore", file, said=["is a mailbox already"])
    assert full.snapshot() == before
    place = full.scratch / "place"
    place.mkdir()
    (place / "mine").touch()
    told += [refused_both(full.call, 1, "restore", file, place, said=["not empty"])]
    assert [one.json["error"]["code"] for one in told] == ["exists"] * 3
    (place / "mine").unlink()
    (full.scratch / "link").symlink_to(place)
    full.ok("restore", file, full.scratch / "link")
    assert (full.scratch / "link").is_symlink()
    assert views(place) == views(full.box)
    refused(full.call("backup", full.scratch), 1, "directory")
    refused(full.call("restore", full.scratch / "none", full.scratch / "p"), 1, "backup file not found")


def test_the_working_directory_is_not_replaced(full: Post) -> None:
    """A restore is refused where its caller works: the caller would have no directory, and each next command fail."""
    file, here = full.scratch / "backup.tar", full.scratch / "here"
    full.ok("backup", file)
    here.mkdir()
    for words, env in (((here,), {}), ((".",), {}), ((), {"AGENT_MAILBOX_DIR": "."})):
        told = refused_both(full.call, 1, "restore", file, *words, cwd=here, env=env, said=["working directory", "cd"])
        assert str(here) in told.json["error"]["message"]
    assert list(here.iterdir()) == []
    full.ok("restore", file, "../here", cwd=full.box)


def test_a_file_that_came_while_a_backup_was_written_stays(full: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program made it meanwhile: the backup is refused, and leaves nothing of itself."""
    file, verify = full.scratch / "backup.tar", backup.verify_backup

    def verify_beside(path: str) -> backup.Backup:
        file.write_text("precious")
        return verify(path)

    monkeypatch.setattr(backup, "verify_backup", verify_beside)
    refused(full.call("backup", file), 1, "exists already")
    assert file.read_text() == "precious"
    assert [path.name for path in full.scratch.iterdir() if "unfinished" in path.name] == []


def test_any_damage_is_found_before_anything_is_restored(full: Post) -> None:
    """A flipped bit in any member's header or content, or a cut anywhere: exit 3, and there is no mailbox."""
    file, place = full.scratch / "backup.tar", full.scratch / "place"
    full.ok("backup", file)
    whole = file.read_bytes()
    with tarfile.open(file) as tar:
        entries = tar.getmembers()
    assert len(entries) > 6
    spots = [e.offset + 10 for e in entries] + [e.offset_data + e.size // 2 for e in entries if e.size]
    for spot in spots:
        changed = bytearray(whole)
        changed[spot] ^= 4
        file.write_bytes(changed)
        refused(full.call("backup", "--verify", file), 3)
        refused(full.call("restore", file, place), 3)
        assert not place.exists()
    for cut in (0, 100, entries[2].offset_data + 1, entries[-1].offset):
        file.write_bytes(whole[:cut])
        refused(full.call("restore", file, place), 3)
    assert not place.exists()
    file.write_bytes(whole)
    full.ok("restore", file, place)


def hostile(*entries: tarfile.TarInfo, log: str = MESSAGES, **about: object) -> bytes:
    """A tar of our kind with these members and true checksums. ``log`` is its first one; ``about``: what it says of
    itself."""
    out, sums = io.BytesIO(), []
    said = {"format": "agent-mailbox backup", "version": 1, "made": "2026-01-01T00:00:00.000Z", "heartbeats": {}}
    with tarfile.open(fileobj=out, mode="w") as tar:
        members = [
            (tarfile.TarInfo("backup.json"), json.dumps({**said, **about}).encode()),
            (tarfile.TarInfo(log), b""),
        ]
        members += [(entry, b"x" if entry.isreg() else b"") for entry in entries]
        for entry, data in members:
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
            sums.append(f"{hashlib.sha256(data).hexdigest()}  {entry.name}\n")
        last = tarfile.TarInfo("SHA256SUMS")
        last.size = len("".join(sums))
        tar.addfile(last, io.BytesIO("".join(sums).encode()))
    return out.getvalue()


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/tmp/evil",
        f"{ARCHIVE}/../../evil.jsonl",
        f"{ARCHIVE}/.lock",
        ".cache/quiet/bob",
        f"{ARCHIVE}/a/b.jsonl",
    ],
)
def test_a_name_that_is_none_of_ours_is_refused(program: Any, name: str) -> None:
    """Whatever its checksums say: no path leads out, nothing derived comes in."""
    file, place = program.scratch / "evil.tar", program.scratch / "place"
    file.write_bytes(hostile(tarfile.TarInfo(name)))
    refused(program.call("restore", file, place), 3, "does not belong")
    assert not place.exists()
    file.write_bytes(hostile())
    assert program.call("restore", file, place).rc == 0


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """The block before a file's content."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, kind
    return entry.tobuf(tarfile.GNU_FORMAT)


PAX = b"14 size=-1024\n"


@pytest.mark.parametrize(
    "data",
    [
        *(header("backup.json", 1 << 60, kind) for kind in (b"L", b"K", b"x", b"g", b"0", b"S")),
        header("backup.json", -1024),
        header("SHA256SUMS", 0) * 3,
        (header("x", len(PAX), b"x") + PAX.ljust(512, b"\0")) * 2000,
    ],
    ids=["long name", "long link", "extended", "global", "file", "sparse", "negative", "no sums", "nested"],
)
def test_a_header_that_claims_anything_is_refused_in_bounded_memory_and_leaves_nothing(
    program: Program, data: bytes
) -> None:
    """The process may use a gigabyte; the directories that the restore made are gone, too."""
    file = program.scratch / "evil.tar"
    file.write_bytes(data + bytes(1024))
    before = sorted(program.scratch.rglob("*"))
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from agent_mailbox.launch import main; sys.exit(main())"
    )
    refused(program.python(code, "restore", file, program.scratch / "deep" / "er" / "place"), 3, "is damaged")
    assert [path for path in sorted(program.scratch.rglob("*")) if path not in before] == []


def test_a_restored_mailbox_is_durable_before_it_has_its_name(full: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its directories and files is written through by then: a power failure leaves no mailbox without its
    archive."""
    synced, sync, rename, write_through = set[Path](), system.sync_directory, system.rename, system.fsync
    named: list[Path] = []

    def note_file(fd: int) -> None:
        synced.add(Path(os.readlink(f"/proc/self/fd/{fd}")))
        write_through(fd)

    def note(path: str) -> None:
        synced.add(Path(path))
        sync(path)

    def name(old: str, new: str) -> None:
        if old.endswith(".restoring"):
            named.extend((Path(old), *(one for one in Path(old).rglob("*") if one.is_dir() or one.stat().st_size)))
            assert {*named} <= synced
        rename(old, new)

    monkeypatch.setattr(system, "sync_directory", note)
    monkeypatch.setattr(system, "fsync", note_file)
    monkeypatch.setattr(system, "rename", name)
    full.ok("backup", full.scratch / "backup.tar")
    full.ok("restore", full.scratch / "backup.tar", full.scratch / "place")
    assert len(named) > 3


def test_a_refused_restore_leaves_nothing_of_itself(full: Post) -> None:
    """Damaged at its very end, not there, no tar, or something came into its place: no file, no directory."""
    file = full.scratch / "backup.tar"
    full.ok("backup", file)
    file.write_bytes(file.read_bytes().replace(b"  backup.json\n", b"  backup.jsom\n"))
    (full.scratch / "junk").write_bytes(b"junk" * 1000)
    before = sorted(full.scratch.rglob("*"))
    for name in ("backup.tar", "none", "junk"):
        for place in ("place", "deep/er/place"):
            assert full.call("restore", full.scratch / name, full.scratch / place).rc in (1, 3)
            assert sorted(full.scratch.rglob("*")) == before, (name, place)


def test_the_settings_that_a_backup_brings_are_shown_before_and_when_it_is_restored(full: Post) -> None:
    """Those that differ from the defaults; whatever their text, it is on one short line and does nothing."""
    file = full.scratch / "backup.tar"
    full.ok("backup", file)
    assert full.ok("backup", "--verify", file)["settings"] == ["[steward] max_live = 3"]
    full.file("config.toml").write_text(
        '[ttl]\nbroadcast = 5\ndirect = 24\n[swarm]\nwake_url = "https://x"\n[session]\n'
        f'role = "a\\u001b[31m\\n{"b" * 5000}"\n[evil]\n"k\\u202ey" = 1\n'
    )
    full.ok("backup", "--force", file)
    verified = full.call("backup", "--verify", file)
    restored = full.call("restore", file, full.scratch / "place")
    assert verified.rc == restored.rc == 0
    for told in (verified.stdout, restored.stdout):
        assert "it sets [ttl] broadcast = 5\n" in told
        assert "direct" not in told
        assert "wake_url" in told
        assert "ignored" in told
        assert "wrong" in told
        assert len(told) < 1000
        assert all(line.isprintable() for line in told.splitlines())
    assert (
        full.ok("restore", file, full.scratch / "again")["settings"] == full.ok("backup", "--verify", file)["settings"]
    )
    full.file("config.toml").write_text("broken")
    full.ok("backup", "--force", file)
    assert full.ok("backup", "--verify", file)["settings"] == ["config.toml is not valid TOML"]


READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
NAMESPACE = ("unshare", "-rm", "sh", "-c", READ_ONLY, "sh")


@pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*NAMESPACE[:2], "mount", "--bind", "/tmp", "/tmp"]).returncode,
    reason="no mount namespaces here",
)
def test_a_read_only_mailbox_is_backed_up_under_the_locks_of_its_writers(full: Post) -> None:
    """A backup takes the writers' locks even if the file system is read-only to us alone. It holds one moment, and it
    does not run beside a steward."""
    file = full.scratch / "backup.tar"

    def backed_up() -> Result:
        return full.run("backup", "--force", file, under=(*NAMESPACE, str(full.box)))

    before = full.snapshot()
    assert backed_up().rc == 0
    assert full.snapshot() == before
    full.ok("restore", file, full.scratch / "place")
    assert views(full.scratch / "place") == views(full.box)
    with rotation.alone(Mailbox(str(full.box)).archive, 0):
        code = (
            "import sys; from agent_mailbox.mailbox import open_mailbox; open_mailbox.WAIT = 0.1\n"
            "from agent_mailbox.launch import main; sys.exit(main())"
        )
        refused(full.python(code, "backup", "--force", file, under=(*NAMESPACE, str(full.box))), 4, ".lock")


def test_a_backup_beside_a_steward_is_told_to_be_made_again(full: Post) -> None:
    """The steward does other work, so nobody may think that the backup is made."""
    with rotation.alone(Mailbox(str(full.box)).archive, 0), pytest.raises(Busy) as said:
        backup.write_backup(Mailbox(str(full.box), wait=0), str(full.scratch / "backup.tar"))
    assert said.value.hint == "wait for it, then try again"


def test_a_backup_that_says_nonsense_of_itself_is_damaged(post: Post) -> None:
    """Its time and its heartbeats are looked at, though its checksums are right; no mailbox is made."""
    file, place = post.scratch / "backup.tar", post.scratch / "place"
    beats: tuple[object, ...] = ([], {"../evil": 1}, {"bob": "1"}, {"bob": -1}, {"bob": 1 << 63})
    for about in ({"made": 5}, *({"heartbeats": said} for said in beats)):
        file.write_bytes(hostile(**about))
        refused(post.call("restore", file, place), 3, "is damaged")
        assert not place.exists()


def test_what_is_no_backup_of_ours_is_told(full: Post) -> None:
    """Another format, a version to come, no messages log, a file behind the checksums, a header of a terabyte."""
    file, whole = full.scratch / "backup.tar", hostile().rstrip(b"\0")
    for told, data in {
        "not a backup of a mailbox": hostile(format="a photo album"),
        "unknown version of the backup": hostile(version=2),
        f"{MESSAGES} is missing": hostile(log=READS),
        "'late' follows the checksums": whole + bytes(-len(whole) % 512) + header("late", 0),
        "a header claims": header("backup.json", 1 << 40, b"L"),
    }.items():
        file.write_bytes(data + bytes(1024))
        refused(full.call("backup", "--verify", file), 3, told)
    refused(full.call("backup", "--verify", full.scratch), 5, f"cannot read {full.scratch}")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_what_is_no_regular_file_is_refused(program: Any, kind: bytes) -> None:
    """Links, directories and pipes under names of ours too."""
    entry = tarfile.TarInfo("config.toml")
    entry.type, entry.linkname = kind, "/etc/passwd"
    file = program.scratch / "evil.tar"
    file.write_bytes(hostile(entry))
    refused(program.call("restore", file, program.scratch / "place"), 3, "does not belong")


def test_a_link_where_a_restore_works_aside_is_not_followed(full: Post) -> None:
    """Emptying it would empty somebody's directory."""
    file, precious = full.scratch / "backup.tar", full.scratch / "precious"
    full.ok("backup", file)
    precious.mkdir()
    (precious / "file").touch()
    (full.scratch / ".place.restoring").symlink_to(precious)
    refused(full.call("restore", file, full.scratch / "place"), 1, "is taken")
    assert (precious / "file").exists()


# -- killed -----------------------------------------------------------------------------------------------------------


def test_a_backup_killed_at_any_step_leaves_a_whole_one_or_none(full: Post) -> None:
    """Under its name is what stood there before, or a backup that verifies; repeated, it is made; the mailbox is
    as it was."""
    wanted, made, again = views(full.box), full.scratch / "made", full.scratch / "again"
    made.mkdir()
    file = made / "backup.tar"
    full.ok("backup", file)
    for _ in killed(full, "backup", "--force", file, places=[made]):
        backup.verify_backup(str(file))
        backup.write_backup(Mailbox(str(full.box)), str(file), force=True)
        assert [p.name for p in made.iterdir() if "unfinished" in p.name] == []
        restoring.restore_backup(str(file), str(again), full.env)
        assert views(again) == wanted
        assert views(full.box) == wanted
        shutil.rmtree(again)


def test_a_restore_killed_at_any_step_leaves_a_whole_mailbox_or_none(full: Post) -> None:
    """Repeated it is made, or refused because it is there; nothing is left beside it."""
    wanted, file, place = views(full.box), full.scratch / "backup.tar", full.scratch / "place"
    full.ok("backup", file)
    place.mkdir()
    new, seen = place / "new", set()
    for _ in killed(full, "restore", str(file), new, places=[place]):
        seen.add(new.exists())
        if new.exists():
            assert views(new) == wanted
            refused(full.call("restore", file, new), 1, "init")
        else:
            full.ok("restore", file, new)
        full.ok("init", new)
        assert views(new) == wanted
        assert not list(place.glob(".*"))
        assert str(new) in (full.home / ".local/state/agent-mailbox/mailboxes").read_text().splitlines()
    assert seen == {True, False}


# -- while everyone works ---------------------------------------------------------------------------------------------


def test_backups_beside_writers_readers_and_a_steward_are_of_one_moment(post: Post) -> None:
    """A backup beside writers, readers and a steward loses no record. Each read in it has its message, and no mail is
    claimed twice. Its unread mail is exactly what the mailbox of that moment had unread."""
    for agent in ("r1", "r2", "h1", "h2"):
        post.register(agent, *(("--role", "builder") if agent[0] == "h" else ()))
    files: list[Path] = []
    mailbox = Mailbox(str(post.box))
    sent_before: list[set[str]] = []

    def meanwhile() -> None:
        for turn in range(12):
            sent_before.append({m.id for m in MailQueries(mailbox).everything().messages.values()})
            files.append(post.scratch / f"{turn}.tar")
            backup.write_backup(mailbox, str(files[-1]))
            stewards.run_upkeep(mailbox, 0)
        mailbox.send(Draft(sender="a", to=("role:builder",), content=LAST))

    jobs = [("send", f"s{n}", 60, "r1", "r2", "role:builder") for n in range(3)]
    jobs += [("read", "r1", 60), ("read", "r2", 60), ("share", "h1", LAST)]
    *sent, first, second, _ = together(post, *jobs, meanwhile=meanwhile)
    order = [i for ids in sent for i in ids]
    shown = {"r1": first, "r2": second}
    for number, file in enumerate(files):
        place = post.scratch / f"restored-{number}"
        restoring.restore_backup(str(file), str(place), post.env)
        assert doctor.problems_among(doctor.examine_mailbox(Mailbox(str(place)))) == []
        there = Mailbox(str(place))
        everything = MailQueries(there).everything()
        assert sent_before[number] <= set(everything.messages)
        for ids in sent:
            kept = [i for i in ids if i in everything.messages]
            assert kept == ids[: len(kept)], "a sender's message is missing from the middle"
        for reader, wanted in shown.items():
            unread = [item.message.id for item in there.peek(reader)]
            read = [i for i in wanted if reader in {r.session_id for r in everything.reads.of(i)}]
            mine = {i for i in order if i in everything.messages and everything.messages[i].recipients == (reader,)}
            assert set(unread) | set(read) == mine
            assert not set(unread) & set(read)
            assert read == wanted[: len(read)]
    assert len({len(s) for s in sent_before}) > 1, "the backups saw no growth"


def test_the_moment_is_held_still_and_the_copying_holds_nobody_up(full: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the logs are taken nobody writes or archives; while they are copied all do, and none of it is in."""
    box, others = Mailbox(str(full.box)), Mailbox(str(full.box), wait=0)
    file, place = full.scratch / "backup.tar", full.scratch / "place"
    wanted, refusals, sent = views(full.box), [], []
    take, chunks = Snapshot._take_file, SnapshotFile.read_chunks

    def taking(self: Snapshot, name: str, path: str, *, whole_lines: bool) -> None:
        for work in (
            lambda: others.send(Draft(sender="x", to=("bob",), content="now")),
            lambda: rotation.alone(others.archive, 0).__enter__(),
        ):
            with pytest.raises(Busy):
                work()
            refusals.append(name)
        take(self, name, path, whole_lines=whole_lines)

    def copying(self: SnapshotFile) -> Iterator[bytes]:
        sent.append(others.send(Draft(sender="x", to=("bob",), content="now")).message.id)
        others.deliver("bob", lambda items: items)
        stewards.run_upkeep(others, 0)
        return chunks(self)

    monkeypatch.setattr(Snapshot, "_take_file", taking)
    monkeypatch.setattr(SnapshotFile, "read_chunks", copying)
    backup.write_backup(box, str(file))
    assert len(refusals) > 10
    assert len(sent) > 5
    restoring.restore_backup(str(file), str(place), full.env)
    there = views(place)
    assert {key: there[key] for key in there if key != "seen"} == {key: wanted[key] for key in wanted if key != "seen"}
    assert doctor.problems_among(doctor.examine_mailbox(Mailbox(str(place)))) != []  # the foreign lines came along


def test_a_full_disk_leaves_no_half_a_backup(full: Post) -> None:
    """Exit 5, nothing under the name, nothing beside it."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "sys.dont_write_bytecode = True  # Python would keep what it could write of a module\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "from agent_mailbox.launch import main; sys.exit(main())"
    )
    refused(full.python(code, "backup", full.scratch / "out.tar"), 5, "out.tar")
    assert [p.name for p in full.scratch.iterdir() if "out.tar" in p.name] == []


def test_a_backup_whose_name_a_power_failure_may_take_is_an_error(full: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup is an error unless its name is durable: else somebody deletes what was backed up."""

    def broken(path: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(system, "sync_directory", broken)
    with pytest.raises(StorageFailed, match=r"cannot write .*out\.tar"):
        backup.write_backup(Mailbox(str(full.box)), str(full.scratch / "out.tar"))


def test_what_does_not_read_back_is_no_backup(full: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that returns other bytes than were written: exit 3, nothing under the name."""
    real = tarfile.TarFile.addfile

    def flipped(self: tarfile.TarFile, entry: tarfile.TarInfo, source: Any) -> None:
        real(self, entry, io.BytesIO(source.read(entry.size).swapcase()) if entry.name == MESSAGES else source)

    monkeypatch.setattr(tarfile.TarFile, "addfile", flipped)
    with pytest.raises(BadData, match="does not match its checksum"):
        backup.write_backup(Mailbox(str(full.box)), str(full.scratch / "out.tar"))
    assert [p.name for p in full.scratch.iterdir() if "out.tar" in p.name] == []
