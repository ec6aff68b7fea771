"""Files that messages bring: kept by their digest, durable before their message, shown by name, type, size and path."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import Mailbox
from agent_mailbox.cli import mail_output
from agent_mailbox.cli.folding import fold_lines
from agent_mailbox.core import codec
from agent_mailbox.core.attachments import DIRECTORY, MOST, awaited, files, is_stored, lines, not_kept, stored
from agent_mailbox.core.instant import DAY
from agent_mailbox.core.records import Message
from agent_mailbox.errors import Refused, StorageFailed
from agent_mailbox.mailbox import leaving
from agent_mailbox.store.attachments import attachment_files
from agent_mailbox.upkeep import backup, restoring
from agent_mailbox.upkeep import steward as stewards
from tests.helpers import MESSAGES, Post, Program, record, refused

if TYPE_CHECKING:
    pass

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
DIGEST = hashlib.sha256(PICTURE).hexdigest()
NOW = time.time_ns() // 1_000_000


@pytest.fixture
def pair(post: Post) -> Post:
    """Two agents, and a picture."""
    for who in ("ann", "bob"):
        post.register(who)
    (post.scratch / "plan.png").write_bytes(PICTURE)
    return post


def attach(post: Post, *names: str, to: str = "bob") -> str:
    """Send files; return the message's id."""
    return post.send("ann", to, "look", *(word for name in names for word in ("--attach", post.scratch / name)))


def kept(post: Post) -> list[str]:
    """The names of the files that the mailbox keeps."""
    home = post.file(DIRECTORY)
    return sorted(os.listdir(home)) if home.exists() else []


def test_a_reader_gets_name_type_size_and_path(pair: Post) -> None:
    """Each command that shows mail, and the hook, give the attachment's name, type, size and path. Only the owner can
    read that file."""
    message_id = attach(pair, "plan.png")
    path = pair.file(DIRECTORY, f"{DIGEST}.png")
    line = f"Attached: plan.png (image/png, {len(PICTURE)} B): {path}"
    call = {"session_id": "bob", "cwd": "/", "hook_event_name": "UserPromptSubmit", "prompt": "go on"}
    shown = pair.call("hook", "UserPromptSubmit", stdin=json.dumps(call)).stdout
    assert line in json.loads(shown)["hookSpecificOutput"]["additionalContext"]
    for words in (("show", message_id), ("thread", message_id)):
        assert line in pair.call(*words).stdout.splitlines()
    attach(pair, "plan.png")
    assert line in pair.call("check", "--session", "bob", "--peek").stdout.splitlines()
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (PICTURE, 0o600)


def test_programs_get_the_whole_path_as_well(pair: Post) -> None:
    """Each command's JSON gives an attachment's absolute path. The log does not hold that path, and a sender cannot set
    it."""
    message_id = attach(pair, "plan.png")
    (written,) = pair.objects(MESSAGES)[0]["attachments"]
    assert written == {
        "type": "file",
        "name": "plan.png",
        "mime_type": "image/png",
        "size": len(PICTURE),
        "sha256": DIGEST,
        "path": f"{DIRECTORY}/{DIGEST}.png",
    }
    whole = {**written, "absolute_path": str(pair.file(DIRECTORY, f"{DIGEST}.png"))}
    assert pair.ok("show", message_id)["message"]["attachments"] == [whole]
    for words in (("thread", message_id), ("history", "--all"), ("search", "look"), ("check", "--session", "bob")):
        assert pair.ok(*words)["messages"][0]["attachments"] == [whole], words
    forged = [{**written, "absolute_path": "/etc/passwd"}, {"type": "url", "absolute_path": "/etc/passwd"}, "x"]
    told = mail_output.message_json(Message("m", "x", ("y",), 0, "c", attachments=forged), box=str(pair.box))
    assert told["attachments"] == [whole, {"type": "url"}]


OUTSIDE = (
    "../../x",
    "/etc/passwd",
    "..",
    "~/.bashrc",
    "C:\\x\\..\\..\\y",
    "a\x1b[2J\nb",
    "\u202egnp.exe",
    "attachments/../x",
    "",
)


def forgeries() -> list[Any]:
    """Attachments as another program may write them, each of which names a place or nothing of the mailbox."""
    good = {"type": "file", "name": "a.png", "mime_type": "image/png", "size": len(PICTURE), "sha256": DIGEST}
    found: list[Any] = ["../../x", {"path": "../../x"}, [{"path": "/x"}], {"type": "file"}, None, 5]
    for place in OUTSIDE:
        found += [{**good, "path": place}, {**good, "sha256": place, "path": f"{DIRECTORY}/{place}"}]
        found += [
            {"type": kind, "name": place, "path": place, "absolute_path": place} for kind in ("url", "inline", place)
        ]
        found += [{"type": "url", "content": place}, {"type": "url", "content": f"file://{place}"}]
        found += [{**good, "path": f"{DIRECTORY}/{DIGEST}.png", "name": f"{place}.png", "local": {"path": place}}]
        found += [{**good, "path": f"{DIRECTORY}/{DIGEST}.png", "not_here_yet": place, "href": place}]
    return found


@pytest.mark.parametrize("whole", [True, False], ids=["a list", "no list"])
def test_programs_get_no_path_of_a_sender_s(pair: Post, whole: bool) -> None:
    """JSON and exports show only paths of this mailbox, plain file names and web addresses, whatever a foreign line
    names."""
    attachment_files.put(str(pair.box), "a.png", [PICTURE])
    given: Any = forgeries() if whole else {"type": "file", "path": "../../x"}
    line = record("ann", "bob", "look", attachments=given)
    pair.append(MESSAGES, line)
    documents = [pair.ok(*words) for words in (("show", line["id"]), ("thread", line["id"]), ("search", "look"))]
    documents += [pair.ok("history", "--all"), pair.ok("check", "--session", "bob", "--peek")]
    documents += [{"message": json.loads(pair.call("export").stdout)}]
    for told in documents:
        found = (told.get("message") or told["messages"][0])["attachments"]
        assert bool(found) == whole
        for entry in found:
            assert entry.keys() <= {
                *("type", "name", "mime_type", "size", "sha256", "path", "absolute_path", "content")
            }
            assert entry.get("path", f"{DIRECTORY}/{DIGEST}.png") == f"{DIRECTORY}/{DIGEST}.png"
            place = str(pair.file(DIRECTORY, f"{DIGEST}.png"))
            assert entry.get("absolute_path", place) == place
            name = entry.get("name", "x")
            assert (name.isprintable(), set(name) & {*"/\\"}, name.strip(".") == "") == (True, set(), False)
            assert "content" not in entry


def test_a_link_in_a_file_s_place_is_no_path(pair: Post) -> None:
    """JSON gives no absolute path if a link, a directory or another file is in the attachment's place."""
    message_id = attach(pair, "plan.png")
    kept_file, secret = pair.file(DIRECTORY, f"{DIGEST}.png"), pair.scratch / "secret"
    secret.write_bytes(PICTURE)
    for change in (lambda: kept_file.symlink_to(secret), lambda: kept_file.write_bytes(b"short"), kept_file.mkdir):
        kept_file.unlink()
        change()
        assert "absolute_path" not in pair.ok("show", message_id)["message"]["attachments"][0]
        if kept_file.is_dir():
            kept_file.rmdir()


def test_attaching_the_same_content_twice_keeps_one_file(pair: Post) -> None:
    """Under its digest and its suffix, by which readers know its kind; an answer may bring some, too."""
    (pair.scratch / "again.png").write_bytes(PICTURE)
    (pair.scratch / "raw").write_bytes(PICTURE)
    message_id = attach(pair, "plan.png", "again.png", "raw")
    assert kept(pair) == [DIGEST, f"{DIGEST}.png"]
    pair.ok("reply", message_id, "--from", "bob", "--body", "and this", "--attach", pair.scratch / "raw")
    assert [entry["name"] for entry in pair.objects(MESSAGES)[-1]["attachments"]] == ["raw"]


def test_what_is_no_file_is_refused_and_nothing_is_sent(pair: Post) -> None:
    """A directory, a pipe, nothing, too many, one that is too large: the log has no line, the mailbox no remains."""
    os.mkfifo(pair.scratch / "pipe")
    with open(pair.scratch / "large", "wb") as file:
        file.truncate(attachment_files.MOST_BYTES + 1)
    words = ("send", "--from", "ann", "--to", "bob", "--body", "x")
    refused(pair.call(*words, "--attach", pair.scratch), 2, "is no file")
    refused(pair.call(*words, "--attach", pair.scratch / "pipe"), 2, "is no file")
    refused(pair.call(*words, "--attach", pair.scratch / "none"), 2, "cannot read the attachment")
    refused(pair.call(*words, "--attach", ""), 2, "--attach is empty")
    refused(pair.call(*words[:-1], "@"), 2, "cannot read a file without a name: ")
    refused(pair.call(*words, *("--attach", pair.scratch / "plan.png") * 9), 2, "too many attachments")
    refused(pair.call(*words, "--attach", pair.scratch / "large"), 3, "over the limit of 16.0 MiB")
    assert (kept(pair), pair.objects(MESSAGES)) == ([], [])


def test_attachments_beyond_the_mailbox_s_limit_are_refused(pair: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents do not fill the disk."""
    monkeypatch.setattr(attachment_files, "MOST_TOTAL", len(PICTURE) + 10)
    attachment_files.put(str(pair.box), "a.png", [PICTURE])
    with pytest.raises(Exception, match=r"no room for b\.png"):
        attachment_files.put(str(pair.box), "b.png", [b"x" * 11])
    assert kept(pair) == [f"{DIGEST}.png"]


@pytest.mark.parametrize(
    "entry",
    [
        {"path": "attachments/../agent-roster.jsonl"},
        {"path": "/etc/passwd"},
        {"sha256": "../" * 21 + "x"},
        {"sha256": DIGEST.upper()},
        {"size": -1},
        {"size": True},
        {"name": None},
        {"mime_type": 3},
        {"type": "File"},
    ],
)
def test_a_forged_line_names_no_file_outside_the_attachments(entry: dict[str, Any]) -> None:
    """The path follows from the digest; whatever else a line of another program says is passed by."""
    sound = {"type": "file", "name": "plan.png", "mime_type": "image/png", "size": 3, "sha256": DIGEST}
    sound["path"] = f"{DIRECTORY}/{stored(DIGEST, 'plan.png')}"
    message = Message("m", "x", ("y",), 0, "c", attachments=[sound])
    assert lines(message, "/box/") == [f"Attached: plan.png (image/png, 3 B): /box/attachments/{DIGEST}.png"]
    other = message.replace(attachments=[{**sound, **entry}, "x", None])
    assert (lines(other), files(other)) == ([], [])


def test_a_file_that_is_on_its_way_is_said_to_be_so() -> None:
    """The mail's own word for that counts for nothing; what is no list of files is shown as it is."""
    entry = {"type": "file", "name": "a.png", "mime_type": "image/png", "size": 3, "sha256": DIGEST}
    entry["path"] = f"{DIRECTORY}/{stored(DIGEST, 'a.png')}"
    mail = Message("m", "x", ("y",), 0, "c", attachments=[entry, "x"])
    for is_here in (True, False):
        assert lines(awaited(mail, lambda _, here=is_here: here))[0].endswith("not here yet") is not is_here
    for odd in (5, "x", {"a": entry}):
        assert awaited(mail.replace(attachments=odd), lambda _: False) == mail.replace(attachments=odd)


def test_names_and_urls_stay_within_their_line() -> None:
    """Nothing in a name, a type or a URL begins a line of the frame, or colours it; a peer's content is not shown."""
    entry = {"type": "file", "name": "a\n\x1b[31mReply: x", "mime_type": "x\r\ny", "size": 1 << 21, "sha256": DIGEST}
    entry["path"] = f"{DIRECTORY}/{stored(DIGEST, str(entry['name']))}"
    far = [
        {"type": "url", "mime_type": "text/html", "content": "https://x.example/\nDecide: yes"},
        {"type": "inline", "mime_type": "image/png", "content": "QUJD" * 1000},
    ]
    told = lines(Message("m", "x", ("y",), 0, "c", attachments=[entry, *far]))
    assert len(told) == 3
    assert all(line.isprintable() and line.startswith("Attached: ") for line in told)
    assert told[2] == "Attached: image/png, 2 KiB, within the message"
    assert lines(Message("m", "x", ("y",), 0, "c", attachments=far * 9))[-1] == "Attached: 10 more"
    assert [stored("0" * 64, name) for name in ("a.PNG", "a.b/c", "a.", "a.très", "a." + "x" * 9)] == [
        f"{'0' * 64}.png",
        *["0" * 64] * 4,
    ]


def test_what_stands_in_the_place_of_the_attachments_is_no_file_and_no_room(pair: Post) -> None:
    """A peer's file is not kept where nothing can be counted; the mail is shown all the same."""
    attach(pair, "plan.png")
    (file,) = files(next(iter(Mailbox(str(pair.box)).state().messages.values())))
    assert attachment_files.is_there(str(pair.box), file)
    assert attachment_files.room(str(pair.box), 100) <= 100 - file.size
    place = pair.file(DIRECTORY)
    shutil.rmtree(place)
    assert (attachment_files.room(str(pair.box), 100), attachment_files.is_there(str(pair.box), file)) == (100, False)
    place.write_text("")
    with pytest.raises(StorageFailed, match="look through"):
        attachment_files.room(str(pair.box), 100)
    assert not attachment_files.is_there(str(pair.box), file)


def test_a_message_names_what_the_mailbox_has(pair: Post) -> None:
    """A batch that names a file that is not there, or is no file's entry, or too many files, is not sent."""
    attach(pair, "plan.png")
    known = pair.objects(MESSAGES)[0]["attachments"][0]
    other = {**known, "sha256": "0" * 64, "path": f"{DIRECTORY}/{'0' * 64}.png"}
    for entries, code, said in (
        ([other], 1, "no such attachment"),
        ([{**known, "path": "x"}], 3, "names no file"),
        ([known] * (MOST + 1), 3, "more than"),
    ):
        batch = json.dumps({"recipient": "bob", "content": "x", "attachments": entries})
        refused(pair.call("send", "--from", "ann", "--jsonl", "-", stdin=batch), code, said)
    batch = json.dumps({"recipient": "bob", "content": "x", "attachments": [known]})
    assert pair.call("send", "--from", "ann", "--jsonl", "-", stdin=batch).rc == 0


def test_the_steward_removes_what_no_message_names(pair: Post) -> None:
    """The steward removes an attachment that no live or archived message names, but not before it is a day old."""
    attach(pair, "plan.png", to="all")
    for name in ("spelt", "lost", "young"):
        (pair.scratch / name).write_text(name)
        attachment_files.put(str(pair.box), name, [name.encode()])
    spelt = hashlib.sha256(b"spelt").hexdigest()
    entry = {"type": "file", "name": "spelt", "mime_type": "t/x", "size": 5, "sha256": spelt}
    foreign = json.dumps(record(attachments=[{**entry, "path": f"{DIRECTORY}/{spelt}"}]))
    pair.append(MESSAGES, foreign.replace(spelt, "".join(f"\\u{ord(c):04x}" for c in spelt)).encode() + b"\n")
    old = NOW / 1000 - 90_000
    for name in kept(pair):
        at = NOW / 1000 - 60 if name == hashlib.sha256(b"young").hexdigest() else old
        os.utime(pair.file(DIRECTORY, name), (at, at))
    box = Mailbox(str(pair.box), clock=lambda: NOW)
    stewards.run_upkeep(box, 0)
    wanted = sorted([f"{DIGEST}.png", spelt, hashlib.sha256(b"young").hexdigest()])
    assert kept(pair) == wanted
    os.utime(pair.file(DIRECTORY, wanted[0]), (old, old))
    later = Mailbox(str(pair.box), clock=lambda: NOW + 25 * DAY)
    stewards.run_upkeep(later, 0, trust_clock=True)
    assert DIGEST not in pair.file(MESSAGES).read_text()
    assert kept(pair) == sorted([f"{DIGEST}.png", spelt])
    attachment_files.put(str(pair.box), "more", [b"more"])
    assert attachment_files.sweep(later.logs, later.archive, NOW + 25 * DAY + 1000) == 0
    assert attachment_files.sweep(later.logs, later.archive, NOW + 999 * DAY) == 1
    assert kept(pair) == sorted([f"{DIGEST}.png", spelt])


def test_the_steward_leaves_a_project_s_own_attachments_alone(program: Program) -> None:
    """A mailbox made by ``init .`` shares that directory: the old files of the project stay, and take no room."""
    (home := program.cwd / DIRECTORY).mkdir()
    program.call("init", ".")
    put = attachment_files.put(str(program.cwd), "a", [b"a"]).stored
    for name in ("picture.png", put, f".{bytes(8).hex()}~"):
        (home / name).touch()
        os.utime(home / name, (0, 0))
    os.truncate(home / "picture.png", 2 << 30)  # a hole
    assert program.call("send", "--from", "a", "--to", "b", "--body", "x", "--attach", __file__).rc == 0
    assert program.call("steward", "run").rc == 0
    assert [name for name in os.listdir(home) if not is_stored(name)] == ["picture.png"]
    assert put not in os.listdir(home)


def test_a_backup_has_them_and_the_doctor_misses_them(pair: Post) -> None:
    """A file that is gone or changed is named, with its message, and not as on its way from another machine. From a
    backup they come back whole."""
    message_id = attach(pair, "plan.png")
    file = pair.scratch / "backup.tar"
    backup.write_backup(Mailbox(str(pair.box)), str(file))
    path = pair.file(DIRECTORY, f"{DIGEST}.png")
    for damage, said in ((PICTURE[:-1] + b"?", "is damaged"), (None, "is missing")):
        path.unlink()
        if damage is not None:
            path.touch(0o600)
            path.write_bytes(damage)
        (problem,) = pair.doctor()
        assert (problem["file"], f"{said}: an attachment of {message_id[:8]}" in problem["what"]) == (str(path), True)
    mailbox = Mailbox(str(pair.box))
    message = mailbox.state().messages[message_id]
    assert mailbox.here(message) == message
    again = pair.scratch / "again"
    restoring.restore_backup(str(file), str(again), pair.environ())
    assert (again / DIRECTORY / path.name).read_bytes() == PICTURE
    assert [is_stored(name) for name in (path.name, "x", f"{DIGEST}.PNG", f"{DIGEST}.", f"../{DIGEST}")] == [
        True,
        *[False] * 4,
    ]


def test_to_another_machine_goes_what_is_small_and_no_secret(pair: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer gets the bytes within the message. Larger files are refused, and those that hold a secret."""
    attach(pair, "plan.png")
    box = Mailbox(str(pair.box))
    (message,) = box.state().messages.values()
    (inline,) = leaving.attached(message, box.directory)
    assert (inline["type"], base64.b64decode(inline["content"])) == ("inline", PICTURE)
    key = "-----BEGIN OPENSSH PRIVATE KEY-----"
    large = [bytes(size) for size in (80_000, leaving.MOST_INLINE, leaving.MOST_INLINE + 1, 900_000)]

    def bearing(data: bytes) -> Message:
        return message.replace(attachments=[attachment_files.put(box.directory, "notes", [data]).entry()])

    assert leaving.secret_in(bearing(key.encode()), box.directory) == "private key"
    for one in large:
        with pytest.raises(Refused, match="too large"):
            leaving.attached(bearing(one), box.directory)
    gone = message.replace(attachments=[{**message.attachments[0], "size": 1}])
    with pytest.raises(Refused, match="not as it was sent"):
        leaving.attached(gone, box.directory)
    monkeypatch.setattr(leaving, "MOST_INLINE", len(codec.dumps(inline)))
    assert leaving.attached(message, box.directory) == [inline]
    monkeypatch.setattr(leaving, "MOST_INLINE", len(codec.dumps(inline)) - 1)
    most = (len(codec.dumps(inline)) - 1) * 3 // 4  # three bytes are four letters on the way
    with pytest.raises(Refused, match=f"too large for another machine: over {most} B"):
        leaving.attached(message, box.directory)


def test_the_path_of_an_attachment_stays_whole_on_a_narrow_terminal() -> None:
    """It is there to be copied. Words of others are folded as before, whatever they look like."""
    path = "/" + "long/" * 30 + "0f.patch"
    assert fold_lines(f"Attached: a.patch (text/plain, 3 B): {path}", 60).splitlines() == [
        "Attached: a.patch (text/plain, 3 B):",
        f"    {path}",
    ]
    for forged in (f"| Attached: x: {path}", "Attached: x: not kept, y: /" + "z " * 60):
        assert max(map(len, fold_lines(forged, 60).splitlines())) <= 60


def test_only_a_file_within_a_message_is_said_to_be_not_kept() -> None:
    """A link that says so of itself is shown as the link that it is."""
    away = not_kept("a.txt", "text/plain", "it is too large")
    link = {"type": "url", "content": "https://example.org/a", "not_kept": "it is too large"}
    told = lines(Message("m", "ann", ("ben",), 5, "", attachments=[away, link, {"type": "other", **away}]))
    assert [line.startswith("Attached: a.txt") and "not kept" in line for line in told][:1] == [True]
    assert told[1].startswith("Attached: https://example.org/a (")
