"""The archive's manifest: what a steward appended is sealed, damage is found, a killed run is no damage."""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Draft, Mailbox
from agent_mailbox.store.archive import rotation
from agent_mailbox.upkeep import steward as stewards
from tests.helpers import ARCHIVE, MESSAGES, Post

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400_000
NAME = f"{ARCHIVE}/MANIFEST.jsonl"


def run(post: Post) -> None:
    """One steward run that archives whatever is finished."""
    post.ok("steward", "run", "--max-live", "0")


@pytest.fixture
def kept(post: Post) -> Post:
    """An archive of two months and three runs."""
    now = time.time_ns() // 1_000_000 - 40 * DAY
    mailbox = Mailbox(str(post.box), clock=lambda: now)
    mailbox.check_in("bob")
    for days in (0, 0, 40):
        now += days * DAY
        for _ in range(3):
            mailbox.send(Draft(sender="ann", to=("bob",), content="x" * 40))
        mailbox.deliver("bob", lambda items: items)
        stewards.run_upkeep(mailbox, 0)
    return post


def archived(post: Post) -> list[Path]:
    """The archived logs."""
    return sorted(p for p in post.file(ARCHIVE).glob("*.jsonl") if p.name != "MANIFEST.jsonl")


def entries(post: Post) -> dict[str, list[dict[str, Any]]]:
    """The manifest by file, as any program reads it."""
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in post.objects(NAME):
        found.setdefault(entry["file"], []).append(entry)
    return found


def assert_sealed(box: Path) -> None:
    """Every byte of the archive is covered by the manifest, without gap or overlap, and is what was sealed."""
    manifest = [json.loads(line) for line in (box / NAME).read_bytes().split(b"\n") if line]
    for path in (box / ARCHIVE).glob("*.jsonl"):
        data, position = path.read_bytes(), 0
        if path.name == "MANIFEST.jsonl":
            continue
        for entry in (e for e in manifest if e["file"] == path.name):
            assert entry["offset"] == position
            position += entry["length"]
            assert hashlib.sha256(data[entry["offset"] : position]).hexdigest() == entry["sha256"]
        assert position == len(data)


def test_each_run_seals_exactly_what_it_appended(kept: Post) -> None:
    """Stretch by stretch, by the SHA-256 that any program computes; a run without work seals nothing."""
    assert_sealed(kept.box)
    assert [len(e) for e in entries(kept).values()] == [2, 2, 1, 1]
    before = kept.file(NAME).read_bytes()
    run(kept)
    assert kept.file(NAME).read_bytes() == before
    assert kept.doctor() == []


def test_an_archive_of_an_older_version_is_adopted_by_the_next_run(kept: Post) -> None:
    """Without a manifest nothing is wrong, but said; the next run seals every file as it is."""
    kept.file(NAME).unlink()
    result = kept.call("doctor", "--json")
    assert (result.rc, result.json["ok"]) == (0, True)
    assert [n["file"] for n in result.json["notes"]] == [str(p) for p in archived(kept)]
    run(kept)
    assert_sealed(kept.box)
    assert [len(e) for e in entries(kept).values()] == [1, 1, 1, 1]
    assert kept.ok("doctor") == {"ok": True, "problems": []}


def test_a_flipped_bit_in_old_mail_is_found_with_its_place(kept: Post) -> None:
    """The doctor finds a changed bit anywhere in archived mail, with its file, line and byte range. It exits with 3,
    and no repair touches the file."""
    for path in archived(kept):
        whole = path.read_bytes()
        for entry in entries(kept)[path.name]:
            position = entry["offset"] + entry["length"] // 2
            changed = bytearray(whole)
            changed[position] ^= 1
            path.write_bytes(changed)
            (found,) = [p for p in kept.doctor() if "differ from what was archived" in p["what"]]
            first = whole[: entry["offset"]].count(b"\n") + 1
            assert (found["file"], found["line"], found["repair"]) == (str(path), first, None)
            assert f"bytes {entry['offset']} to {entry['offset'] + entry['length']}" in found["what"]
            assert kept.call("doctor", "--repair").rc == 3
            assert path.read_bytes() == changed
            path.write_bytes(whole)
    assert kept.doctor() == []


def test_a_large_file_is_sealed_in_stretches_that_end_with_a_line(kept: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seals of a large file cover stretches that end with a line, so damage has a place. A line that is longer than
    a stretch makes a longer one."""
    from agent_mailbox.store.archive import manifest

    monkeypatch.setattr(manifest, "STRETCH", 300)
    kept.file(NAME).unlink()
    kept.append(f"{ARCHIVE}/roster.jsonl", b'{"x":"' + b"y" * 2000 + b'"}\n', *[b'{"x":1}\n'] * 100)
    kept.file(ARCHIVE, "roster.jsonl").chmod(0o600)
    run(kept)
    assert_sealed(kept.box)
    stretches = entries(kept)["roster.jsonl"]
    assert [e["length"] for e in stretches] == [2393, 296, 120]
    data = kept.file(ARCHIVE, "roster.jsonl").read_bytes()
    assert all(data[e["offset"] + e["length"] - 1 :][:1] == b"\n" for e in stretches)
    kept.file(ARCHIVE, "roster.jsonl").write_bytes(data[:-300] + b"?" + data[-299:])
    (found,) = [p for p in kept.doctor() if "differ from what was archived" in p["what"]]
    assert (found["line"], "lines 50 to 86" in found["what"]) == (50, True)


def test_a_month_cut_short_or_gone_is_found(kept: Post) -> None:
    """Whole lines that are missing at the end, and a file that is missing, are damage."""
    path = archived(kept)[0]
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"\n") + 1])
    assert any("differ from what was archived" in p["what"] for p in kept.doctor())
    path.unlink()
    assert [p["file"] for p in kept.doctor() if "is missing" in p["what"]] == [str(path)]


@pytest.mark.parametrize(
    "changed",
    [
        {"file": 5}, {"offset": "0"}, {"length": None}, {"sha256": 5},
        {"file": "../messages.jsonl"}, {"file": "MANIFEST.jsonl"}, {"file": "2020-01.txt"}, {"length": 0},
    ],
    ids=str,
)  # fmt: skip
def test_a_manifest_line_that_seals_no_month_is_no_entry(kept: Post, changed: dict[str, Any]) -> None:
    """No file elsewhere is looked at for its sake, and it keeps the next run from nothing."""
    entry = {"file": "2020-01.jsonl", "offset": 0, "length": 5, "sha256": "0" * 64}
    kept.append(NAME, {**entry, **changed})
    ((line, what),) = [(p["line"], p["what"]) for p in kept.doctor()]
    assert (line, "not an entry" in what) == (len(kept.lines(NAME)), True)
    run(kept)
    assert [p["line"] for p in kept.doctor()] == [line]


def test_a_manifest_line_that_is_lost_or_foreign_is_found(kept: Post) -> None:
    """The doctor reports a lost or foreign line of the manifest. The steward seals a file again if all of its lines are
    removed there."""
    lines = kept.lines(NAME)
    kept.file(NAME).write_bytes(b"\n".join([lines[0], b"foreign", *lines[2:]]) + b"\n")
    result = kept.call("doctor", "--json")
    assert result.rc == 3
    told = {p["line"]: p["what"] for p in result.json["problems"] if p["file"] == str(kept.file(NAME))}
    name = json.loads(lines[1])["file"]
    (follows,) = [n for n, line in enumerate(lines, 1) if n > 2 and json.loads(line)["file"] == name]
    assert told.keys() == {2, follows}
    assert f"does not follow what is sealed of {name};" in told[follows]
    rest = [line for line in lines if json.loads(line)["file"] != name]
    kept.file(NAME).write_bytes(b"\n".join(rest) + b"\n")
    run(kept)
    assert kept.doctor() == []
    assert_sealed(kept.box)


def test_half_a_manifest_line_of_a_killed_steward_is_gone_with_the_next_run(kept: Post) -> None:
    """Its bytes are sealed by then, so nobody need look at it."""
    kept.append(NAME, b'{"file":"2020-')
    run(kept)
    assert kept.doctor() == []
    assert_sealed(kept.box)


@pytest.mark.parametrize("is_live", [True, False], ids=["of live mail", "of another program's"])
def test_half_an_archived_line_is_cut_off_if_its_mail_is_live(kept: Post, is_live: bool) -> None:
    """A steward was killed as it wrote it. What another program left there stays, and spoils no line behind it."""
    mailbox = Mailbox(str(kept.box))
    sent = mailbox.send(Draft(sender="ann", to=("bob",), content="more")).message
    (line,) = (line for line in kept.lines(MESSAGES) if sent.id.encode() in line)
    mailbox.deliver("bob", lambda items: items)
    month = kept.file(ARCHIVE) / f"{time.strftime('%Y-%m', time.gmtime(sent.timestamp / 1000))}.jsonl"
    before, torn = month.read_bytes() if month.exists() else b"", line[:60] if is_live else b'{"id":"other'
    month.write_bytes(before + torn)
    stewards.run_upkeep(mailbox, 0)
    assert month.read_bytes() == before + (b"" if is_live else torn + b"\n") + line + b"\n"
    assert_sealed(kept.box)


def test_what_is_no_lock_file_is_nobody_at_work(kept: Post) -> None:
    """A doctor looks at the archive all the same."""
    archive = Mailbox(str(kept.box)).archive
    assert archive is not None
    with rotation.alone(archive, 0):
        assert rotation.at_work(archive)
    assert not rotation.at_work(archive)
    lock = kept.file(ARCHIVE, rotation.LOCK)
    lock.unlink()
    lock.mkdir()
    assert not rotation.at_work(archive)


def test_a_torn_manifest_line_is_passed_over_and_mended(kept: Post) -> None:
    """Half a line with something behind it: the next run seals behind it, ``--repair`` takes the half away."""
    kept.append(NAME, b'{"file":"2020-\n')
    mailbox = Mailbox(str(kept.box))
    mailbox.send(Draft(sender="ann", to=("bob",), content="more"))
    mailbox.deliver("bob", lambda items: items)
    stewards.run_upkeep(mailbox, 0)
    (torn,) = kept.doctor()
    assert (torn["file"], torn["repair"]) == (str(kept.file(NAME)), "remove torn line")
    done = kept.ok("doctor", "--repair")
    assert (done["ok"], done["problems"], len(done["repaired"])) == (True, [], 1)
    assert_sealed(kept.box)


@pytest.mark.parametrize("how", ["removed", "emptied", "empty files"])
def test_an_archive_that_is_gone_as_a_whole_is_a_problem(kept: Post, how: str) -> None:
    """The user's record knows that there was one: ``doctor`` says so until the person accepts the loss."""
    archive = kept.file(ARCHIVE)
    for path in archive.iterdir():
        path.write_bytes(b"") if how == "empty files" else path.unlink()
    if how == "removed":
        archive.rmdir()
    assert "the archive is gone" in " ".join(problem["what"] for problem in kept.doctor())
    kept.ok("doctor", "--trust", "--yes")
    assert kept.doctor() == []
