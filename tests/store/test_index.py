"""The index's answer is the full scan's answer, whatever happened to the mailbox, or to the index, in between.

The plain way is below (``whole``, ``history``, ``search``, ``thread``): read every log, fold, filter. ``Indexed``
is a queries that must not scan, so that what is compared really came from the index.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from hypothesis.stateful import initialize, invariant, rule

from agent_mailbox import Draft, Mailbox, MailboxError, Request
from agent_mailbox.core import address, codec, conversations, instant, message_reads, words
from agent_mailbox.core.inbox import InboxState
from agent_mailbox.core.records import BadLine, Message
from agent_mailbox.core.roster import Roster
from agent_mailbox.errors import NotFound
from agent_mailbox.mailbox import mailbox as facade
from agent_mailbox.mailbox.mail_stream import stream
from agent_mailbox.mailbox.queries import MailQueries
from agent_mailbox.store.files import paths, system
from agent_mailbox.store.locks.lock import FileLock
from agent_mailbox.store.projection import index_keys, intake, line_facts, lookup, projection_file
from agent_mailbox.store.projection.lookup import ask_index
from agent_mailbox.store.projection.projection_file import connect, sqlite3
from agent_mailbox.upkeep import steward as stewards
from tests.helpers import PATIENCE, Post, start_at_once
from tests.store.history import AGENTS, BODIES, NOON, History, mailbox, rotate

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable
    from pathlib import Path

FILLED = (*AGENTS, "role:dev", "project:x", "all")
QUERIES = (
    "alpha",
    "BETA gamma",
    "beta-gamma",
    "strasse",
    "日本",
    "NOT",
    "amy",
    "...",
    "alph",
    "alph*",
    "beta-ga*",
    "日*",
    "*",
    "beta alpha",
)
WITHS = (*AGENTS, "dev", "role:dev", "project:x", "all", "nan", "nobody")

# -- the plain way ----------------------------------------------------------------------------------------------------

READING = ("SELECT", "UPDATE", "DELETE")
SMALL = ("sources", "seal", "words_config", "INDEX moving", "CONSTANT ROW")
"""What a statement may read from end to end: it is small, however much mail there is."""


def whole(box: Mailbox) -> InboxState:
    """Every message that counts, oldest first, then archive before live, then as written; every read."""
    archive = box.archive
    sources = [*(archive.log(month) for month in archive.months()), box.logs.messages]
    records = [(place, codec.message(line)) for place, log in enumerate(sources) for _, line in log.lines()]
    messages = [(place, record) for place, record in records if not isinstance(record, BadLine)]
    counting: dict[str, tuple[int, Message]] = {}
    for place, message in [*(pair for pair in messages if pair[0] == len(sources) - 1), *messages]:
        counting.setdefault(message.id, (place, message))
    standing = [(place, message) for place, message in messages if counting[message.id] == (place, message)]
    ordered = sorted(standing, key=lambda pair: (pair[1].timestamp, pair[0]))
    found: dict[str, Message] = {}
    for _, message in ordered:
        found.setdefault(message.id, message)
    reads = message_reads.Reads([*archive.reads(), *box.logs.read_records()])
    return InboxState(messages=found, reads=reads, roster=box.logs.read_roster(), ttls=box.config.ttls)


def newest(found: list[Message], limit: int) -> list[Message]:
    return found[-limit:] if limit else found


def history(state: InboxState, who: str | None, with_: str | None, since: int | None, limit: int) -> list[Message]:
    found = list(state.messages.values())
    if who is not None:
        reader = state.roster.reader(who)
        found = [m for m in found if address.is_concerned(m, reader)]
    if with_ is not None:
        found = _exchanged(found, with_, state.roster)
    return newest([m for m in found if since is None or m.timestamp >= since], limit)


def _exchanged(found: list[Message], with_: str, roster: Roster) -> list[Message]:
    try:
        return conversations.exchanged(found, with_, roster)
    except NotFound:  # mail to a name that nobody has yet is kept under the role of that name
        parked = [] if ":" in with_ else conversations.exchanged(found, f"role:{with_}", roster)
        if not parked:
            raise
        return parked


def search(state: InboxState, query: str, limit: int) -> list[Message]:
    phrases = words.phrases(query)
    return newest([m for m in state.messages.values() if phrases and words.matches(m, phrases)], limit)


def told(messages: Iterable[Message], reads: message_reads.Reads) -> list[object]:
    """An answer as what a reader sees of it: the messages, who read each, who dealt with it or gave it back."""
    return [
        (
            *(m, reads.of(m.id), message_reads.readers(m, reads)),
            *([reads.acked(m, [who]), reads.released(m.id, [who])] for who in AGENTS),
        )
        for m in messages
    ]


def outcome(ask: Callable[[], tuple[list[Message], message_reads.Reads]]) -> object:
    try:
        return told(*ask())
    except MailboxError as error:
        return type(error)


class Indexed(MailQueries):
    """A queries without the way round the index."""

    def everything(self) -> InboxState:
        raise AssertionError("scanned")


def compare(box: Mailbox, *, queries: type[MailQueries] = Indexed, chains: int = 3) -> None:
    """Every question of the index, asked both ways; and the whole history, message by message."""
    state, asked = whole(box), queries(box)
    assert [one for m, reads in stream(box) for one in told([m], reads)] == told(state.messages.values(), state.reads)
    for query in QUERIES:
        for limit in (0, 2):
            assert outcome(lambda: asked.search(query, limit)) == told(search(state, query, limit), state.reads)  # noqa: B023 - called at once
    for who in (*AGENTS, None):
        for with_, since, limit in [(None, None, 0), (None, NOON + 5, 3), *((w, None, 2) for w in WITHS)]:
            plainly = outcome(lambda: (history(state, who, with_, since, limit), state.reads))  # noqa: B023
            assert outcome(lambda: asked.history(who, with_address=with_, since=since, limit=limit)) == plainly  # noqa: B023
    for message_id in list(state.messages)[-chains:]:
        chain = conversations.thread_of(message_id, state.messages)
        for word in (message_id, message_id.upper(), message_id[:12]):
            assert outcome(lambda: asked.thread(word)) == told(chain, state.reads)  # noqa: B023
            if queries is Indexed:
                found, plainly = looked_up(box, word), box._scanned(word)
                assert (found.message, found.position) == (plainly.message, plainly.position)
                assert told([found.message], found.reads) == told([found.message], state.reads)


def looked_up(box: Mailbox, word: str) -> facade.FoundMessage:
    """A message by the index alone."""
    found = ask_index(box.logs, box.archive, lambda view: facade._indexed(word, view), at_once=True)
    assert found is not None, "scanned"
    return found


def one(found: facade.FoundMessage) -> object:
    return found.position, told([found.message], found.reads)


# -- random histories -------------------------------------------------------------------------------------------------


def index_file(box: Mailbox) -> str:
    return box.logs.cache(index_keys.FILE)


class IndexMachine(History):
    @initialize(many=st.sampled_from((-1, intake.MANY)))
    def choose(self, many: int) -> None:
        self.many, intake.MANY = intake.MANY, many  # -1: lines are taken in as from a large log

    def teardown(self) -> None:
        intake.MANY = getattr(self, "many", intake.MANY)
        super().teardown()

    def derived(self) -> list[str]:
        return [path for path in [index_file(self.box)] if os.path.exists(path)]

    @rule(name=st.sampled_from((paths.MESSAGES, paths.READS)), lines=st.integers(0, 3), copy=st.booleans())
    def cut_back(self, name: str, lines: int, copy: bool) -> None:
        """A restored log: shorter, in place or as another file."""
        path = self.box.logs.path(name)
        if os.path.exists(path):
            with open(path, "rb") as file:
                content = b"".join(file.read().splitlines(True)[: -lines or None])
            with open(path + ".copy" if copy else path, "wb") as file:
                file.write(content)
            if copy:
                os.rename(path + ".copy", path)

    # -- the claim ----------------------------------------------------------------------------------------------------

    @invariant()
    def the_index_answers_as_the_scan_does(self) -> None:
        compare(self.box)


IndexMachine.TestCase.settings = settings(
    max_examples=settings().max_examples // 9, stateful_step_count=25, deadline=None
)
TestIndex = IndexMachine.TestCase


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty messages of a few agents, partly read, partly archived, partly in threads."""
    root = tmp_path_factory.mktemp("filled")
    made = mailbox(str(root))
    for who in AGENTS:
        role = ("role:dev",) if who == "cat" else None
        made.register(Request(session_id=who, roles=role, tags=("project:x",)), "user")
    for n in range(40):
        draft = Draft(sender=AGENTS[(n + 1) % 3], to=(FILLED[n % 6],), content=f"{BODIES[n % 6]} number{n}")
        known = list(made.state().messages)
        made.send(draft.replace(thread=known[-2] if n % 5 == 4 else None))
        if n == 20:
            made.deliver("bob", lambda items: items)
            rotate(made)
    made.deliver("amy", lambda items: items[:3])
    assert made.archive.months()
    return root


@pytest.fixture
def box(filled: Path, tmp_path: Path) -> Mailbox:
    """A copy of that mailbox, not indexed yet."""
    shutil.copytree(filled / "box", tmp_path / "box")
    return mailbox(str(tmp_path), seed=9)


def test_what_is_new_is_taken_in_without_a_look_at_all_messages(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """No statement of a lookup behind new mail and new reads reads a table from end to end."""
    said: list[str] = []
    early = box.send(Draft(sender="amy", to=("bob",), content="early", ack=True)).message.id
    assert ask_index(box.logs, box.archive, lambda view: facade._indexed(early, view)) is not None

    def watched(path: str) -> Any:
        db = connect(path)
        db.set_trace_callback(said.append)
        return db

    monkeypatch.setattr(projection_file, "connect", watched)
    sent = box.send(Draft(sender="amy", to=("bob",), content="late", ack=True)).message.id
    box.deliver("bob", lambda items: items)
    looked_up(box, sent)
    assert any("UPDATE reads" in one for one in said)
    with closing(connect(index_file(box))) as db:
        plans = {one: [*db.execute(f"EXPLAIN QUERY PLAN {one}")] for one in said if one.startswith(READING)}
    steps = [(one, step[3]) for one, plan in plans.items() for step in plan]
    assert [at for at in steps if at[1].startswith("SCAN") and not any(small in at[1] for small in SMALL)] == []


def test_a_long_beginning_of_an_id_is_one_message_s(box: Mailbox) -> None:
    """The index keeps the first eight characters of an id, and two ids may have these."""
    for rest in ("1111-4111-8111-111111111111", "2222-4222-8222-222222222222"):
        box.send(Draft(sender="amy", to=("bob",), content="x", id=f"0f8fad5b-{rest}"))
    for wanted, count in (("0f8fad5b-2", 1), ("0f8fad5b", 2)):
        found = ask_index(box.logs, box.archive, lambda view, word=wanted: view.ids(word, prefix=True))
        assert len(found or ()) == count, wanted


# -- words ------------------------------------------------------------------------------------------------------------


def message(content: str, subject: str | None = None, n: int = 0) -> Message:
    return Message(id=f"{n:08}", sender="amy", recipients=("bob",), timestamp=NOON, content=content, subject=subject)


@pytest.mark.parametrize(
    ("content", "query", "found"),
    [
        ("The ledger", "LEDGER the", True),
        ("The ledgers", "ledger", False),
        ("The ledgers", "ledger*", True),
        ("A ledger", "edger*", False),
        ("store/index.python", "index.py*", True),
        ("store/index.python", "inde.py*", False),
        ("see store/projection/index.py", "index.py", True),
        ("index in py", "index.py", False),
        ("snake_case", "case", True),
        ("Straße öffnen", "STRASSE OFFNEN", True),
        ("cafe\u0301", "café", True),
        ("ｗｉｄｅ", "wide", True),
        ("日本語のメール", "メール", True),
        ("日本語のメール", "日語", False),
        ("it is 3.14", "3.14", True),
        ("wait… what", "what ...", True),
    ],
)
def test_a_word_is_a_whole_word_in_any_case(content: str, query: str, found: bool) -> None:
    """Letters and digits count, case and accents do not; what is written in one go is in a row."""
    assert words.matches(message(content), words.phrases(query)) is found


def test_words_of_a_query_may_stand_in_different_fields_but_none_across_two() -> None:
    """Subject, content and sender are searched alike; the end of one and the beginning of the next are no phrase."""
    assert words.matches(message("about it", "a ledger"), words.phrases("it amy ledger"))
    assert not words.matches(message("about it", "a ledger"), words.phrases("ledger-about"))


texts = st.text(st.sampled_from("aAbB1 _-.\"'*:(){}^+\0\n\u0130ßée\u0301日本กา\u2028ﬁ\U0001f600\ud7a3"), max_size=12)


@given(st.lists(texts, min_size=1, max_size=8), st.lists(texts, min_size=1, max_size=8))
@settings(max_examples=settings().max_examples)
def test_fts_finds_what_the_plain_words_find(contents: list[str], queries: list[str]) -> None:
    """FTS5 and the pure match find the same messages, for any text and any query."""
    with tempfile.TemporaryDirectory() as root:
        box = mailbox(root)
        lines = [codec.spell_message(message(f"x{text}", text or None, n)) for n, text in enumerate(contents)]
        box.logs.messages.append(lines)
        state = whole(box)
        for query in [*queries, *contents]:
            assert Indexed(box).search(query, 0)[0] == search(state, query, 0)


@pytest.mark.parametrize(
    "query",
    [
        *(
            '"',
            '""',
            'a"b',
            '"alpha',
            "alpha OR gamma",
            "alpha AND",
            "NOT alpha",
            "NEAR(alpha beta)",
            "alph*",
            "^alpha",
        ),
        *(
            "-alpha",
            "+alpha",
            "content:alpha",
            "{content}:alpha",
            "(alpha",
            "alpha)",
            "*",
            "!!!",
            "",
            " ",
            "\0",
            "a\0b",
        ),
        *("\ud800", "\udcff alpha", "'; DROP TABLE messages; --", "alpha " * 500, "é" * 70_000, "—", "rank:1", "words"),
    ],
)
def test_a_query_is_text(box: Mailbox, query: str) -> None:
    """No operator of FTS5 or SQL is reached, nothing crashes, and a query without a word finds nothing."""
    assert Indexed(box).search(query, 0)[0] == search(whole(box), query, 0)


# -- damage -----------------------------------------------------------------------------------------------------------


def test_a_flipped_byte_anywhere_changes_no_answer(box: Mailbox) -> None:
    """Every 97th byte of the index in turn: built again, the same answer, the logs untouched."""
    wanted = whole(box)
    compare(box)
    before = {
        name: (box.logs.path(name), open(box.logs.path(name), "rb").read()) for name in (paths.MESSAGES, paths.READS)
    }
    for place in range(0, os.path.getsize(index_file(box)), 97 * 16):
        with open(index_file(box), "r+b") as file:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 0x55]))
        assert told(*Indexed(box).search("alpha", 3)) == told(search(wanted, "alpha", 3), wanted.reads), place
    assert all(open(path, "rb").read() == content for path, content in before.values())


def test_a_schema_that_is_no_text_is_built_anew(box: Mailbox) -> None:
    """SQLite quotes the schema it cannot read, and what it quotes is not even UTF-8."""
    wanted = whole(box)
    compare(box)
    with open(index_file(box), "rb") as file:
        page = file.read(4096)
    creation = [place for place in range(100, 4096) if chr(page[place]).isalpha()]
    assert len(creation) > 500
    for place in creation[::10]:
        with open(index_file(box), "r+b") as file:
            file.seek(place)
            file.write(b"\x80")
        assert told(*Indexed(box).search("alpha", 3)) == told(search(wanted, "alpha", 3), wanted.reads), place


def test_a_process_killed_while_it_wrote_leaves_an_index_that_is_built_anew(box: Mailbox) -> None:
    """Committed but not sealed, half of the rows gone: not believed."""
    Indexed(box).search("alpha", 3)
    with sqlite3.connect(index_file(box)) as db:
        db.execute("DELETE FROM messages WHERE n % 2")
    db.close()
    compare(box)


def put(path: str, what: str) -> None:
    elsewhere = path + ".elsewhere"
    if os.path.exists(path):
        os.unlink(path)
    if what == "link":
        with open(elsewhere, "wb") as file:
            file.write(b"precious")
        os.symlink(elsewhere, path)
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "rubbish":
        with open(path, "wb") as file:
            file.write(b"SQLite format 3\0" + b"\xff" * 5000)
    elif what == "journal":
        with open(path + "-journal", "wb") as file:
            file.write(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\xff" * 5000)
    elif what == "wal":
        with open(path + "-wal", "wb") as file:
            file.write(b"\x37\x7f\x06\x82" + b"\xff" * 5000)


@pytest.mark.parametrize("what", ["nothing", "link", "fifo", "rubbish", "journal", "wal"])
def test_what_stands_in_the_place_of_the_index_makes_way_for_it(box: Mailbox, what: str) -> None:
    """Nothing blocks, nothing is followed, and the index is there again."""
    Indexed(box).search("alpha", 3)
    put(index_file(box), what)
    compare(box)
    assert stat.S_ISREG(os.lstat(index_file(box)).st_mode)
    if what == "link":
        with open(index_file(box) + ".elsewhere", "rb") as file:
            assert file.read() == b"precious"


def test_an_index_of_another_version_is_built_anew(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its seal holds, and still it is not read."""
    Indexed(box).search("alpha", 3)
    inode = os.stat(index_file(box)).st_ino, os.stat(index_file(box)).st_mtime_ns
    other = projection_file.VERSION + 1
    monkeypatch.setattr(
        projection_file,
        "_SCHEMA",
        projection_file._SCHEMA.replace(f"version = {projection_file.VERSION}", f"version = {other}"),
    )
    monkeypatch.setattr(projection_file, "VERSION", other)
    compare(box)
    assert (os.stat(index_file(box)).st_ino, os.stat(index_file(box)).st_mtime_ns) != inode


def test_an_index_from_before_the_machine_s_start_is_built_anew(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is synced, so a power failure may have torn it."""
    Indexed(box).search("alpha", 3)
    changed = os.stat(index_file(box)).st_ctime_ns
    compare(box)
    assert os.stat(index_file(box)).st_ctime_ns == changed
    monkeypatch.setattr(system, "booted", lambda: changed + 1)
    compare(box)
    assert os.stat(index_file(box)).st_ctime_ns > changed


def test_a_line_changed_in_place_is_noticed_when_it_is_read_back(box: Mailbox) -> None:
    """Far before the log's end, where no mark looks: what is shown is what the log says."""
    for n in range(100):
        box.send(Draft(sender="amy", to=("bob",), content=f"padding {n}", subject="p" * 100))
    Indexed(box).search("alpha", 3)
    path = box.logs.path(paths.MESSAGES)
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "r+b") as file:
        file.write(content.replace(b"number39", b"NUMBER93"))
    assert Indexed(box).search("number39", 1)[0] == []
    assert len(Indexed(box).search("number93", 1)[0]) == 1
    compare(box)


# -- without an index -------------------------------------------------------------------------------------------------


class Counted(MailQueries):
    """A queries that counts how often it scanned."""

    scans = 0

    def everything(self) -> InboxState:
        Counted.scans += 1
        return super().everything()


def scanned(box: Mailbox) -> None:
    Counted.scans = 0
    compare(box, queries=Counted)
    assert Counted.scans > 20


def test_without_sqlite_everything_is_scanned(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter built without it answers alike."""
    monkeypatch.setattr(projection_file, "sqlite3", None)
    scanned(box)


def test_without_fts5_everything_is_scanned(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A SQLite built without it answers alike."""
    monkeypatch.setattr(projection_file, "_SCHEMA", projection_file._SCHEMA.replace("fts5", "fts0"))
    scanned(box)


def test_while_its_log_changes_everything_is_scanned(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time words are taken in, another line is where a message was: whoever searches is answered alike."""
    with suppress(FileNotFoundError):
        os.unlink(index_file(box))
    monkeypatch.setattr(line_facts.Lines, "at", lambda *_: b"another line")
    scanned(box)


def test_while_another_holds_the_index_everything_is_scanned(box: Mailbox) -> None:
    """After the mailbox's wait, without an error."""
    impatient = Mailbox(box.directory, clock=box.now, wait=0)
    Indexed(box).search("alpha", 3)
    with FileLock(box.logs.cache(index_keys.LOCK)):
        scanned(impatient)


@pytest.mark.parametrize("what", ["file", "full"])
def test_where_no_index_can_be_kept_everything_is_scanned(box: Mailbox, what: str) -> None:
    """A file in the place of ``.cache``, a directory in that of the index."""
    if what == "file":
        shutil.rmtree(box.logs.derived, ignore_errors=True)
        with open(box.logs.derived, "wb"):
            pass
    else:
        os.makedirs(os.path.join(index_file(box), "in the way"))
    scanned(box)


def test_an_archive_file_named_by_no_month_is_scanned(box: Mailbox) -> None:
    """A queries scans archived mail whose file is named by no month. That mail counts as before."""
    record = Message(id="odd", sender="amy", recipients=("bob",), timestamp=NOON, content="alpha")
    with open(os.path.join(box.archive.directory, "2026-xx.jsonl"), "wb") as file:
        file.write(codec.spell_message(record))
    scanned(box)


# -- what it costs ----------------------------------------------------------------------------------------------------


def test_nothing_new_writes_nothing(box: Mailbox) -> None:
    """A warm answer leaves every derived file as it was."""
    Indexed(box).history("amy", limit=3)

    def files() -> list[tuple[str, int, int]]:
        return [(e.name, e.stat().st_mtime_ns, e.stat().st_size) for e in os.scandir(box.logs.derived) if e.is_file()]

    before = files()
    Indexed(box).search("beta", 3)
    Indexed(box).history("amy", limit=3)
    assert files() == before


def test_only_what_is_shown_is_read_back(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of five out of everyone's history reads five lines of messages; what is new is read once."""
    Indexed(box).search("alpha", 3)
    decoded: list[bytes] = []

    def counting(line: bytes) -> Message | BadLine:
        decoded.append(line)
        return plainly(line)

    plainly = codec.message
    monkeypatch.setattr(codec, "message", counting)
    for ask in (lambda: Indexed(box).history(None, limit=5), lambda: Indexed(box).search("alpha", 5)):
        decoded.clear()
        assert len(ask()[0]) == len(decoded) == 5
    monkeypatch.undo()
    box.send(Draft(sender="amy", to=("bob",), content="one more"))
    monkeypatch.setattr(codec, "message", counting)
    decoded.clear()
    Indexed(box).history(None, limit=1)
    assert len(decoded) == 3  # taken in, then its words, and read back


def test_what_the_steward_moved_keeps_its_entry(box: Mailbox) -> None:
    """Moved mail is not indexed again: nothing of it is in the index twice."""
    Indexed(box).search("alpha", 3)

    def entries() -> tuple[object, ...]:
        db = sqlite3.connect(index_file(box))
        try:
            return tuple(db.execute(f"SELECT count(*) FROM {t}").fetchone() for t in ("messages", "terms", "reads"))
        finally:
            db.close()

    before = entries()
    for who in AGENTS:
        box.deliver(who, lambda items: items)
    live = len(box.state().messages)
    with open(index_file(box), "rb") as index:
        rotate(box)
        assert len(box.state().messages) < live
        compare(box)
        assert os.fstat(index.fileno()).st_nlink == 1, "another file took its place"
    assert entries()[:2] == before[:2]


def test_the_index_is_private(box: Mailbox) -> None:
    """0600 in a directory of 0700, whatever the umask."""
    shutil.rmtree(box.logs.derived, ignore_errors=True)
    mask = os.umask(0)
    try:
        Indexed(box).search("alpha", 3)
    finally:
        os.umask(mask)
    for name in (index_keys.FILE, index_keys.LOCK, ""):
        assert stat.S_IMODE(os.stat(box.logs.cache(name)).st_mode) == (0o600 if name else 0o700), name


# -- the fast way through the reads -----------------------------------------------------------------------------------

keys = st.sampled_from(("message_id", "messageid", "reader_session_id", "timestamp", "event", "as", "x"))
values = st.sampled_from(("m1", "m2", 'm"3', "read", "2026-03-16", "é", 7, None, {"message_id": "m9"}, "message_id"))


@given(st.lists(st.tuples(keys, values), max_size=7), st.booleans(), st.booleans(), st.sampled_from((b"", b"}", b" ")))
@settings(max_examples=7 * settings().max_examples)
def test_no_read_is_filed_under_another_message(
    pairs: list[tuple[str, Any]], ascii_only: bool, spaced: bool, tail: bytes
) -> None:
    """Keys twice, nested, escaped, in any order: what the codec takes for a read is found under its message."""
    start = [("message_id", "m1"), ("reader_session_id", "amy"), ("timestamp", "2026-03-16")]
    colon = ": " if spaced else ":"
    members = [f"{json.dumps(k)}{colon}{json.dumps(v, ensure_ascii=ascii_only)}" for k, v in [*start, *pairs]]
    line = ("{" + ",".join(members) + "}").encode() + tail
    record = codec.read(line)
    if not isinstance(record, BadLine):
        assert line_facts.record_of(line) == (
            record.message_id.encode(),
            record.session_id.encode(),
            line_facts.kind_of(record),
        )


# -- several processes ------------------------------------------------------------------------------------------------

WORKER = """
import sys
from agent_mailbox import Draft, Mailbox
from agent_mailbox.mailbox import mailbox as facade
from agent_mailbox.mailbox.queries import MailQueries
from agent_mailbox.core.keeping import retention
from agent_mailbox.store.archive import rotation
from agent_mailbox.errors import Busy
box, me = Mailbox(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.read()
sent = []
for n in range(25):
    draft = Draft(sender=me, to=("all",), content=f"word{n} by", thread=sent[0] if sent else None)
    sent.append(box.send(draft).message.id)
    queries = MailQueries(box)
    assert [m.id for m in queries.search(f"by {me}", 0)[0]] == sent, (n, "search")
    assert [m.id for m in queries.history(None, with_address=me, limit=3)[0]] == sent[-3:], (n, "history")
    assert [m.id for m in queries.thread(sent[-1])[0]] == sent, (n, "thread")
    box.deliver(me, lambda items: items)
    if n % 4 == 0:
        try:
            with rotation.alone(box.archive, 0):
                now = box.now() + (5 * 3600 * 1000 if n % 8 else 0)
                rotation.rotate(box.logs, box.archive, box.config.ttls, lambda s: retention.plan(s, now, 0))
        except Busy:
            pass
"""


def test_three_processes_write_rotate_and_ask_at_once(post: Post) -> None:
    """Each finds all of its own mail at once, in order, whoever else catches up or moves mail; the index ends right."""
    for agent in AGENTS:
        post.register(agent)
    with ExitStack() as stack:
        children: list[subprocess.Popen[bytes]] = []
        for agent in AGENTS:
            child = post.start(post.box, agent, python=("-c", WORKER))
            stack.enter_context(child)
            stack.callback(child.kill)
            children.append(child)
        start_at_once(children)
        for child in children:
            _, err = child.communicate(timeout=PATIENCE)
            assert child.returncode == 0, err.decode()
    compare(Mailbox(str(post.box)))


def test_a_large_mailbox_looks_a_message_up_in_the_index_if_that_is_near(
    box: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Far behind, held by another, or not there yet, it is not waited for: the logs are scanned."""
    wanted = next(iter(whole(box).messages))
    scanned = box._scanned(wanted)
    ways: list[object] = []

    def scan(*words: object) -> facade.FoundMessage:
        ways.append(words)
        return scanned

    def scans(word: str = wanted) -> int:
        ways.clear()
        assert one(box.find(word)) == one(scanned)
        return len(ways)

    monkeypatch.setattr(Mailbox, "_scanned", scan)
    monkeypatch.setattr(facade, "NEWS", 0)
    assert scans() == 1
    assert not os.path.exists(index_file(box))
    MailQueries(box).search("alpha", 1)
    assert [scans(word) for word in (wanted, wanted[:-1], wanted.upper())] == [0, 0, 0]
    with FileLock(box.logs.cache(index_keys.LOCK), 1):
        assert scans() == 1
    monkeypatch.setattr(lookup, "NEWS", 10)
    box.send(Draft(sender="amy", to=("bob",), content="one more"))
    assert scans() == 1


@pytest.mark.parametrize("large", [True, False])
def test_the_steward_keeps_the_index_of_a_large_mailbox(
    box: Mailbox, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    """The steward keeps the index of a large mailbox, so no look-up has to take in much. A small one is scanned."""
    monkeypatch.setattr(facade, "NEWS", 0 if large else 1 << 30)
    stewards.run_upkeep(box)
    assert os.path.exists(index_file(box)) == large


def test_archived_mail_of_any_date_is_part_of_everything(box: Mailbox) -> None:
    """Another program may have dated it before 1970; only who asks for a time leaves out what is older."""
    old = Message(
        id="old", sender="zed", recipients=("bob",), timestamp=instant.parse("1965-03-16T12:00:00Z"), content="x"
    )
    box.archive.log("1965-03").append([codec.spell_message(old)])
    assert "old" in MailQueries(box).everything().messages
    assert "old" not in MailQueries(box).everything(NOON).messages


def test_mail_of_a_month_that_is_gone_is_found_no_more(box: Mailbox) -> None:
    """Another program removed the month behind the index: the thread is what a scan says."""
    box.deliver("bob", lambda items: items)
    first = box.send(Draft(sender="amy", to=("bob",), content="first")).message
    box.deliver("bob", lambda items: items)
    rotate(box)
    answer = box.send(Draft(sender="bob", to=("amy",), content="answer", thread=first.id)).message
    assert {m.id for m in MailQueries(box).thread(answer.id)[0]} == {first.id, answer.id}
    assert box.archive is not None
    os.unlink(box.archive.log(instant.month(first.timestamp)).path)
    assert [m.id for m in MailQueries(box).thread(answer.id)[0]] == [answer.id]
    compare(box)


def test_an_id_nobody_has_is_not_found(box: Mailbox) -> None:
    """The library scans for an id that nobody has, since only a scan can be sure. It then fails as ``Mailbox.find``
    does."""
    with pytest.raises(NotFound):
        MailQueries(box).thread("ffffffff")
