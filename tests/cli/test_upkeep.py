"""init, steward, doctor, export and the seed's scripts: each option, in text and as JSON."""

from __future__ import annotations

import json
import mailbox as mailboxes
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.core import clocks
from agent_mailbox.core.clocks import ClockDoubt
from agent_mailbox.core.instant import HOUR
from agent_mailbox.errors import Refused
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.store.archive import rotation
from agent_mailbox.store.files import small_files
from agent_mailbox.upkeep import steward as stewards
from agent_mailbox.upkeep.crontab import TAG, remove_crontab
from agent_mailbox.upkeep.doctor.log_checks import check_logs
from tests import surroundings
from tests.helpers import (
    ARCHIVE,
    HEARTBEATS,
    MESSAGES,
    PATIENCE,
    READS,
    ROOT,
    ROSTER,
    Post,
    Program,
    Result,
    copy_package,
    each,
    record,
    refused,
    refused_both,
    stamp,
)

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400_000


# -- init -------------------------------------------------------------------------------------------------------------


def test_init_says_where_in_text_and_json(program: Program) -> None:
    """DIR before --dir before AGENT_MAILBOX_DIR before ``data/`` here."""
    box = program.scratch
    named = {"AGENT_MAILBOX_DIR": str(box / "env")}
    assert program.call("init", "--json").json == {"dir": str(program.cwd / "data")}
    assert program.call("init", "--json", env=named).json == {"dir": str(box / "env")}
    assert program.call("init", "--json", "--dir", box / "option", env=named).json == {"dir": str(box / "option")}
    words = ("init", box / "given", "--dir", box / "other")
    assert program.call(*words, env=named).stdout == f"mailbox at {box / 'given'}\n"
    assert not (box / "other").exists()


def test_the_files_of_a_project_in_the_mailbox_s_directory_are_left_alone(program: Program) -> None:
    """``init .`` in a project: the doctor finds no fault with its files, repairs none, and git sees them."""
    subprocess.run(["git", "init", "-q"], cwd=program.cwd, check=True)
    scripts = [program.cwd / name / "run" for name in ("agent-mailbox", "attachments", ".cache/tool/sub")]
    for script in scripts:
        script.parent.mkdir(parents=True)
        script.write_text("#!/bin/sh\n")
        script.chmod(0o755)
    (settings := program.cwd / "config.toml").write_text("")
    settings.chmod(0o644)
    warning = f"warning: {settings} counts as the mailbox's settings from now on"
    assert [program.call("init", ".").stderr.count(warning) for _ in "12"] == [1, 0]
    log = program.cwd / MESSAGES
    log.chmod(0o644)
    assert [one["file"] for one in program.call("doctor", "--json").json["problems"]] == [str(log)]
    assert program.call("doctor", "--repair").rc == 0
    assert [stat.S_IMODE(path.stat().st_mode) for path in (log, settings, *scripts)] == [0o600, 0o644, *[0o755] * 3]
    words = ["git", "status", "--porcelain", "--untracked-files=all"]
    assert subprocess.run(words, cwd=program.cwd, check=True, capture_output=True).stdout == b"?? agent-mailbox/run\n"


def test_a_mailbox_that_vanished_is_named_in_its_project(program: Program) -> None:
    """After ``git clean -fdx`` commands tell that there was one; a project beside it had none."""
    other = program.cwd / "other"
    other.mkdir()
    for place in (program.cwd / "data", program.cwd / ".git/agent-mailbox", program.cwd / "box"):
        assert program.call("init", place).rc == 0
        shutil.rmtree(place)
        said = program.call("history", "--all", cwd=other)
        assert said.rc == 1
        assert (f"the mailbox that you made at {place} is gone\n" in said.stderr) == (place.name != "box")
        (program.user_state / "mailboxes").unlink()


@pytest.mark.parametrize(
    ("left", "code"), [(READS, 5), (ROSTER, 5), (f"{ARCHIVE}/MANIFEST.jsonl", 5), (f"{ARCHIVE}/notes", 1), ("notes", 1)]
)
def test_what_only_a_mailbox_has_tells_that_one_was_there(program: Program, left: str, code: int) -> None:
    """Its mail was lost then. A directory with anything else never held mail."""
    path = program.cwd / "place" / left
    path.parent.mkdir(parents=True)
    path.touch()
    said = program.call("check", "--session", "x", "--dir", program.cwd / "place")
    assert (said.rc, "all live mail with it" in said.stderr) == (code, code == 5)


def test_the_mail_of_a_mailbox_that_is_gone_goes_to_no_other(program: Program) -> None:
    """Commands and a session's start tell of it, until the person makes it again or forgets it."""
    inner, box = program.cwd / "inner", program.cwd / "inner/data"
    inner.mkdir()
    assert [program.call("init", cwd=place).rc for place in (inner, program.cwd)] == [0, 0]
    told = f"the mailbox that you made at {box} is gone; the next one above is {program.cwd / 'data'}"
    words = ("send", "--from", "x", "--to", "everyone", "--body", "TO INNER")
    start = json.dumps({"session_id": "s", "cwd": str(inner), "hook_event_name": "SessionStart", "source": "startup"})
    assert program.call("init", "--forget", box).rc == 1
    (box / MESSAGES).unlink()
    (box / ROSTER).touch()
    assert f"{box / MESSAGES} is gone, and all live mail with it" in program.call(*words, cwd=inner).stderr
    shutil.rmtree(box)
    assert told in program.call(*words, cwd=inner).stderr
    assert told in program.call("hook", "session-start", cwd=inner, stdin=start).json["systemMessage"]
    assert program.call("hook", "session-start", cwd=program.cwd, stdin=start).rc == 0
    assert program.call("init", cwd=inner).stdout == f"mailbox at {box}\n"
    assert program.call("history", "--all", cwd=inner).rc == 0
    shutil.rmtree(box)
    assert program.call("init", "--forget", cwd=inner).stdout == f"forgot {box}\n"
    assert program.call("init", "--forget", cwd=inner).rc == 1
    assert program.call("init", cwd=inner).rc == 1
    assert program.call("history", "--all", cwd=inner).rc == 0
    (program.user_state / "mailboxes").unlink()
    assert program.call("setup", "--remove").rc == 0, "one that nobody recorded is removed, too"
    assert not (program.cwd / "data").exists()


def test_a_project_s_file_named_attachments_stops_no_upkeep(program: Program) -> None:
    """Only the doctor tells that no file can be attached."""
    (program.cwd / "attachments").write_text("a list\n")
    assert [program.call(*words).rc for words in (["init", "."], ["steward", "run"], ["backup", "b.tar"])] == [0, 0, 0]
    assert "so no file can be attached" in program.call("doctor").stdout
    assert (program.cwd / "attachments").read_text() == "a list\n"


# -- steward ----------------------------------------------------------------------------------------------------------


def test_a_steward_archives_above_the_limit_and_prints_what_it_did(post: Post) -> None:
    """Nothing up to the limit; above it all that is finished; pending mail never; counts in text and JSON."""
    post.register("a")
    for n in range(3):
        post.send("x", "a", f"read {n}")
    post.check("a")
    post.send("x", "a", "unread")
    post.send("x", "role:nobody", "waits")
    first = post.ok("steward", "run")
    assert list(first) == ["archived", "kept", "pending", "frozen", "retired", "problems"]
    assert list(first.values()) == [0, 5, 2, 0, 0, []]
    assert post.ok("steward", "run", "--max-live", "5")["archived"] == 0
    answer = post.ok("steward", "run", "--max-live", "4")
    assert (answer["archived"], answer["kept"], answer["pending"]) == (3, 2, 2)
    month = stamp()[:7]
    names = {p.name for p in post.file(ARCHIVE).iterdir() if not p.name.startswith(".")}
    assert names == {f"{month}.jsonl", f"{month}-reads.jsonl", "MANIFEST.jsonl"}
    assert len(post.lines(f"{ARCHIVE}/{month}.jsonl")) == len(post.lines(f"{ARCHIVE}/{month}-reads.jsonl")) == 3
    assert (len(post.lines(MESSAGES)), len(post.lines(READS))) == (2, 0)
    text = post.call("steward", "run", "--max-live", "0").stdout
    assert text == "archived 0, kept 2 (2 not yet delivered)\nfroze 0, retired 0\n"
    for path in post.box.rglob("*"):
        assert not path.stat().st_mode & 0o077, path


def test_the_configured_limit_counts_where_none_is_given(post: Post) -> None:
    """``[steward] max_live`` of config.toml; the option overrides it."""
    post.file("config.toml").write_text("[steward]\nmax_live = 1\n")
    post.register("a")
    for _ in range(2):
        post.send("x", "a")
    post.check("a")
    assert post.ok("steward", "run", "--max-live", "2")["archived"] == 0
    assert post.ok("steward", "run")["archived"] == 2


def test_a_steward_freezes_the_silent_and_retires_the_long_frozen(post: Post) -> None:
    """24 hours of silence; 7 days frozen; what the dead still owed goes back to its role."""
    post.register("silent", "--role", "builder")
    owed = post.send("x", "builder", "please", "--ack")
    post.check("silent")
    now = record()["timestamp"]
    for session, days in (("silent", 2), ("gone", 9)):
        at = stamp(_millis(now) - days * DAY)
        events = [{"event": "register", "session_id": session, "timestamp": at, "tags": ["role:builder"]}]
        events += [{"event": "freeze", "session_id": session, "timestamp": at}] if session == "gone" else []
        post.append(ROSTER, *events)
        old = (_millis(now) - days * DAY) / 1000
        post.file("agent-heartbeats", session).touch()
        os.utime(post.file("agent-heartbeats", session), (old, old))
    post.file(ROSTER).write_bytes(b"\n".join(post.lines(ROSTER)[1:]) + b"\n")
    assert post.call("doctor", "--trust", "--yes").rc == 0
    post.register("eve")
    post.ok("watch", "silent", "--dead", "--session", "eve")
    answer = post.ok("steward", "run")
    assert (answer["frozen"], answer["retired"]) == (1, 1)
    assert [one["sender"] for one in post.ok("check", "--session", "eve")["messages"]] == ["steward"]
    states = {a["session_id"]: a["state"] for a in post.ok("roster", "list")["agents"]}
    assert states == {"silent": "frozen", "gone": "dead", "eve": "alive"}
    assert post.ok("steward", "run")["frozen"] == 0
    post.ok("roster", "retire", "silent")
    post.register("next", "--role", "builder")
    assert post.check("next") == [owed]


def _millis(text: str) -> int:
    from agent_mailbox.core import instant

    return instant.parse(text)


def test_a_steward_reports_problems_and_still_exits_zero(post: Post) -> None:
    """Verification is part of the run; a foreign line is told with its place, in both forms."""
    post.append(MESSAGES, b"not a record\n")
    result = post.call("steward", "run", "--json")
    assert result.rc == 0
    (problem,) = result.json["problems"]
    assert (problem["file"], problem["line"], problem["repair"]) == (str(post.file(MESSAGES)), 1, None)
    assert f"{post.file(MESSAGES)}:1: " in post.call("steward", "run").stdout


@pytest.fixture
def untouched(post: Post) -> Post:
    """Unread mail, a silent and a frozen agent; nobody wrote for 40 days, or the clock is 40 days ahead."""
    at = stamp(_millis(stamp()) - 40 * DAY)
    for session, events in (("a", ("register",)), ("b", ("register", "freeze"))):
        post.append(ROSTER, *({"event": event, "session_id": session, "timestamp": at} for event in events))
        post.file(HEARTBEATS, session).touch()
    post.append(MESSAGES, record("x", "a", "unread", timestamp=at))
    _age(post)
    return post


def _age(post: Post) -> None:
    """Give every file that the steward looks at a time 40 days ago."""
    for path in (*post.box.glob("*.jsonl"), *post.file(HEARTBEATS).iterdir()):
        os.utime(path, (path.stat().st_mtime - 40 * 86400,) * 2)


def test_a_steward_far_from_every_time_in_the_mailbox_moves_nothing_and_says_so(untouched: Post) -> None:
    """The steward refuses to run if its clock is far from all times in the mailbox. The person can confirm the
    clock."""
    before = untouched.snapshot()
    told = refused_both(untouched.call, 1, "steward", "run", "--max-live", "0", said=["40 days ahead", "--trust-clock"])
    assert told.json["error"]["code"] == "clock"
    assert untouched.snapshot() == {**before, f"{ARCHIVE}/.lock": b""}
    assert "refused to run" in untouched.call("doctor").stdout
    answer = untouched.ok("steward", "run", "--max-live", "0", "--trust-clock")
    assert (answer["archived"], answer["frozen"], answer["retired"]) == (1, 1, 1)
    assert "refused to run" not in untouched.call("doctor").stdout
    assert untouched.ok("steward", "run")["archived"] == 0, "its own run is a sign"


@pytest.mark.parametrize("days", [40, -40, 27000])
def test_no_line_in_a_log_frees_or_stops_a_steward_by_its_date(post: Post, days: int) -> None:
    """A stranger dates lines to a wrong clock; by the right one the steward goes on."""
    post.register("a")
    wrong = _millis(stamp()) + days * DAY
    post.append(MESSAGES, record("x", "a", timestamp=stamp(wrong)), record("x", "all", timestamp="2099-01-01T00:00Z"))
    post.append(ROSTER, {"event": "update", "session_id": "a", "timestamp": stamp(wrong)})
    if days > 0:
        Mailbox(str(post.box)).logs.beat("b", wrong)  # a hook with its clock ahead, too
    with pytest.raises(Refused, match="the clock is"):
        stewards.run_upkeep(Mailbox(str(post.box), clock=lambda: wrong), 0)
    assert post.ok("steward", "run")["frozen"] == 0


def test_any_use_of_the_mailbox_ends_the_doubt(untouched: Post) -> None:
    """A heartbeat by the same clock."""
    refused(untouched.call("steward", "run"), 1)
    untouched.check("a")
    assert untouched.ok("steward", "run")["retired"] == 1


def test_a_doubted_clock_that_ran_steadily_for_a_day_is_believed() -> None:
    """The steward believes a doubted clock after it ran steadily for a day since the machine's start."""
    now, old = 50 * DAY, 10 * DAY
    first = clocks.doubted(ClockDoubt(now, "boot", 1000, old), [old], None)
    assert first is not None

    def later(hours: float, *, up: float | None = None, boot: str = "boot", newest: int = old) -> ClockDoubt | None:
        ran = int((hours if up is None else up) * HOUR)
        look = ClockDoubt(now + int(hours * HOUR), boot, 1000 + ran, newest)
        return clocks.doubted(look, [newest], first)

    assert later(24) is None
    half = later(23)
    assert half is not None
    assert half.steady == 23 * HOUR
    for look in (later(24, up=1), later(-5), later(24, up=48), later(24, newest=old + HOUR)):
        assert look is not None
        assert look.steady == 0, "set since, or others live by another clock"
    for before, after in ((first, first.replace(up=-1)), (first.replace(up=-1), first)):  # the system tells no start
        look = clocks.doubted(after.replace(now=now + 5 * HOUR), [old], before)
        assert look is not None
        assert look.steady == 5 * HOUR
    restarted = later(100, boot="another")
    assert restarted is not None
    assert restarted.steady == clocks.MOST_UNSEEN
    again = ClockDoubt(restarted.now + DAY, "a third", 0, old)
    assert clocks.doubted(again, [old], restarted) is None
    assert clocks.doubted(again, [again.now - 23 * HOUR, old], None) is None
    assert clocks.doubted(again, [], None) is None


def test_a_doubt_that_is_no_doubt_counts_as_none(untouched: Post) -> None:
    """The file is derived: torn, of another form, or gone, the day begins again."""
    refused(untouched.call("steward", "run"), 1)
    path = str(untouched.file(".cache/steward-clock"))
    for text in (b"[]", b"{}", b'{"now":"x","boot":"","up":0,"newest":0,"steady":0}', b"torn"):
        small_files.save_derived(path, text)
        refused(untouched.call("steward", "run"), 1, "40 days ahead")


def test_the_cron_line_works_from_anywhere_with_cron_s_bare_environment(tmp_path: Path) -> None:
    """Whatever characters stand in the path: run by a shell in ``/`` with almost no environment, it archives."""
    box = tmp_path / 'it\'s a $box; "quoted" & more'
    box.mkdir()
    post = Post(box)
    post.register("a")
    post.append(MESSAGES, record("x", "a", timestamp=stamp(1)))
    post.file("config.toml").write_text("[steward]\nmax_live = 1\n")
    post.append(MESSAGES, record("x", "a", timestamp=stamp(1)))
    line = post.ok("steward", "crontab")["line"]
    assert post.call("steward", "crontab").stdout == f"{line}\n"
    *when, command = line.split(" ", 5)
    assert len(when) == 5
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(post.home), "SHELL": "/bin/sh"}
    done = subprocess.run(["/bin/sh", "-c", command], cwd="/", env=bare, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert post.lines(MESSAGES) == []
    percent = Post(tmp_path / "100%")
    refused(percent.call("steward", "crontab"), 1, "%")
    latin = Post(tmp_path / os.fsdecode(b"caf\xe9"))
    refused(latin.call("steward", "crontab"), 1, "does not print")


CRONTAB = """#!/bin/sh
# Is in for crontab(1): -l prints the file, - replaces it.
case $1 in
"$CRONTAB_FAILS") printf 'crontab: der K\\374ster \\033[31msagt nein: no space\\n' >&2; exit 1 ;;
-l)
    [ -e "$HOME/crontab" ] || { echo 'no crontab for you' >&2; exit 1; }
    cat "$HOME/crontab" ;;
-) cat >"$HOME/crontab" ;;
esac
"""


@pytest.fixture
def cron(post: Post) -> Post:
    """A mailbox beside a ``crontab`` program of our own, which keeps its table in the home."""
    tools = post.scratch / "tools"
    tools.mkdir()
    (tools / "crontab").write_text(CRONTAB)
    (tools / "crontab").chmod(0o755)
    post.env["PATH"] = f"{tools}:{post.env['PATH']}"
    return post


def test_the_cron_line_is_installed_once_beside_what_is_there(cron: Post) -> None:
    """An empty table gets it; again changes nothing; other lines stay byte for byte, whatever they hold."""
    line = cron.ok("steward", "crontab", "--install")["line"]
    table = cron.home / "crontab"
    assert table.read_text() == f"{line}\n"
    assert cron.call("steward", "crontab", "--install").stdout == f"already in your crontab: {line}\n"
    foreign = b"# caf\xe9 \x0c form feed\n5 4 * * * mine --dir x\n"
    table.write_bytes(foreign)
    assert cron.ok("steward", "crontab", "--install")["line"] == line
    assert table.read_bytes() == foreign + line.encode() + b"\n"
    earlier = line.replace("17 *", "3 4").replace(">/dev/null", ">/dev/null 2>&1")
    table.write_text(f"{earlier}\n1 2 3 4 5 other\n")
    cron.ok("steward", "crontab", "--install")
    assert table.read_text() == f"1 2 3 4 5 other\n{line}\n"


def test_a_crontab_that_cannot_be_read_is_not_overwritten(cron: Post) -> None:
    """``steward crontab --install`` refuses to write a crontab that it cannot read. It shows what the program says as
    it fails, to read or to write, in whatever encoding. To take the line out says the same. A program
    that may not be started is missing."""
    table = cron.home / "crontab"
    line = cron.ok("steward", "crontab")["line"]
    for text, words in (
        ("1 2 3 4 5 precious\n", ("steward", "crontab", "--install")),
        (f"1 2 3 4 5 precious\n{line}\n", ("setup", "--remove")),
    ):
        table.write_text(text)
        for step, what in (("-l", "cannot read your crontab"), ("-", "crontab refused the line")):
            failed = cron.call(*words, env={"CRONTAB_FAILS": step})
            refused(failed, 1, f"{what}: crontab: der K\ufffdster")
            assert "[31msagt nein: no space" in failed.stderr
            assert "\033" not in failed.stderr
            assert table.read_text() == text
    for is_there in (False, True):
        no_program = cron.call("steward", "crontab", "--install", env={"PATH": str(cron.scratch)})
        refused(no_program, 1, "crontab program is missing")
        assert is_there == (cron.scratch / "crontab").exists()
        (cron.scratch / "crontab").touch(0o600)  # nobody may start it
    assert "steward run`" in no_program.stderr
    assert "17 *" not in no_program.stderr


# -- doctor -----------------------------------------------------------------------------------------------------------


def test_the_doctor_leaves_a_newer_version_s_events(post: Post) -> None:
    """The doctor calls no event that it does not know a problem, and has nobody remove it. After a way back to an older
    version the logs hold such lines, and the newer one reads them."""
    for log in (READS, ROSTER):
        event = {"event": "later", "message_id": "m", "reader_session_id": "a", "session_id": "a"}
        post.append(log, {**event, "timestamp": "2026-01-01T00:00:00Z"})
        post.file(log).chmod(0o600)
    done = post.call("doctor", "--json")
    left = {note["file"] for note in done.json["notes"] if note["what"].endswith("; leave it")}
    assert (done.rc, done.json["problems"], left) == (0, [], {str(post.file(log)) for log in (READS, ROSTER)})


def test_the_doctor_names_every_problem_with_its_place(post: Post) -> None:
    """Foreign and torn lines, twins, modes, months, configuration, leftovers: file, line, what, repair; exit 3."""
    assert post.call("doctor").stdout == "no problems found\n"
    assert post.ok("doctor") == {"ok": True, "problems": []}
    twin = record(content="one")
    post.append(MESSAGES, twin, {**twin, "content": "two"}, b"\n\nforeign\n", b'{"id":"to')
    post.append(READS, b"[]\n")
    post.append(ROSTER, b'{"event":"freeze","timestamp":"2026-01-01T00:00:00Z"}\n')
    post.append(f"{ARCHIVE}/2020-01.jsonl", record(timestamp="2021-05-05T00:00:00Z"))
    post.file(f"{MESSAGES}.new").touch(0o600)
    for name in (READS, ROSTER, f"{ARCHIVE}/2020-01.jsonl"):
        post.file(name).chmod(0o600)
    post.file(MESSAGES).chmod(0o644)
    post.box.chmod(0o755)  # else nobody could reach the log
    fine = post.call("doctor", "--json")
    assert fine.rc == 3
    assert fine.json["ok"] is False
    found = {(os.path.relpath(p["file"], post.box), p["line"], p["repair"]) for p in fine.json["problems"]}
    assert found == {
        (MESSAGES, None, "chmod"),
        (MESSAGES, 2, None),
        (MESSAGES, 5, None),
        (MESSAGES, 6, "remove torn line"),
        (READS, 1, None),
        (ROSTER, 1, None),
        (f"{ARCHIVE}/2020-01.jsonl", 1, None),
        (f"{MESSAGES}.new", None, None),
    }
    text = post.call("doctor")
    assert (text.rc, text.stderr) == (3, "")
    assert len([line for line in text.stdout.splitlines() if ": note: " not in line]) == 8
    assert f"{post.file(MESSAGES)}:5: " in text.stdout
    assert f"id {twin['id']} is used again with another body" in text.stdout


def test_a_live_line_with_the_id_of_archived_mail_is_reported_as_a_duplicate(post: Post) -> None:
    """It is no remains of a steward's run, which no further run would complete."""
    one, two = record(), record()
    post.append(MESSAGES, one, two)
    post.append(f"{ARCHIVE}/{one['timestamp'][:7]}.jsonl", {**one, "content": "archived"}, two)
    found = {(os.path.basename(p["file"]), p["line"], p["what"].partition(":")[0]) for p in post.doctor()}
    assert (MESSAGES, 1, f"id {one['id']} is used again with another body; the first line counts") in found
    assert {f"1 archived and still live (the first is {two['id']})"} == {w for _, _, w in found if "still live" in w}


def test_mail_that_is_archived_twice_is_reported_whether_or_not_it_is_live_too(post: Post) -> None:
    """Only what is live, and in an archive for the first time, is the remains of a steward's run. Each archive is
    counted by itself. At another time it is the same mail. While a steward works, nothing is the remains of a run."""
    only, both, one, two, late = (record() for _ in range(5))
    post.append(MESSAGES, both, one, two, late)
    post.append(f"{ARCHIVE}/2020-01.jsonl", only, both, one, two)
    post.append(f"{ARCHIVE}/2020-02.jsonl", late, only, both)
    later = {**one, "timestamp": "2020-03-01T00:00:00Z"}
    post.append(f"{ARCHIVE}/2020-03.jsonl", later, {**two, "content": "ü"})
    found = {(os.path.basename(p["file"]), p["line"], p["what"].partition(":")[0]) for p in post.doctor()}
    twice, other = "id {} is written twice; the first line counts", "id {} is used again with another body; the first"
    assert {said for said in found if re.search("twice|still live|used again", said[2])} == {
        ("2020-01.jsonl", 2, f"3 archived and still live (the first is {both['id']})"),
        ("2020-02.jsonl", 1, f"1 archived and still live (the first is {late['id']})"),
        ("2020-02.jsonl", 2, twice.format(only["id"])),
        ("2020-02.jsonl", 3, twice.format(both["id"])),
        ("2020-03.jsonl", 1, twice.format(one["id"])),
        ("2020-03.jsonl", 2, f"{other.format(two['id'])} line counts"),
    }
    with rotation.alone(Mailbox(str(post.box)).archive, 0):
        said = " ".join(problem["what"] for problem in post.doctor())
    assert ("still live" in said, said.count("written twice")) == (False, 3)


def test_a_run_that_ends_while_the_doctor_looks_was_not_interrupted(post: Post) -> None:
    """The steward has copied the mail to the archive when the doctor reads it. It ends before the doctor asks."""
    one = record(timestamp="2020-01-05T00:00:00Z")
    post.append(MESSAGES, one)
    post.append(f"{ARCHIVE}/2020-01.jsonl", one)
    mailbox = Mailbox(str(post.box))

    def at_work() -> bool:
        post.ok("steward", "run", "--max-live", "0")
        return False

    assert [one.what for one in check_logs(mailbox, archived=True, at_work=at_work) if not one.note] == []


def test_what_others_cannot_reach_is_no_problem_whatever_its_mode(post: Post) -> None:
    """An editor writes 0644; below a directory that others cannot enter that opens nothing."""
    post.send("x", "all")
    post.file("config.toml").write_text("[ttl]\ntag = 5\n")
    for path in (post.file("config.toml"), post.file(MESSAGES)):
        path.chmod(0o644)
    for directory in (post.file(ARCHIVE), post.file(HEARTBEATS)):
        directory.mkdir(exist_ok=True)
        directory.chmod(0o755)
    (post.file(ARCHIVE) / "MANIFEST.jsonl").touch(0o644)
    post.box.chmod(0o700)
    assert post.call("doctor").stdout == "no problems found\n"
    post.box.chmod(0o711)
    assert {os.path.basename(problem["file"]) for problem in post.doctor()} >= {"config.toml", MESSAGES, ARCHIVE}


def test_the_doctor_reports_a_wrong_configuration(post: Post) -> None:
    """Among its findings, not in their place: the rest of the mailbox is looked at all the same."""
    post.append(MESSAGES, b"foreign\n")
    post.file("config.toml").write_text("[ttl]\ndirect = 'never'\n")
    post.file("config.toml").chmod(0o600)
    result = post.call("doctor", "--json")
    assert result.rc == 3
    assert [(os.path.basename(p["file"]), p["line"]) for p in result.json.get("problems", ())] == [
        *(("config.toml", None), (MESSAGES, 1))
    ]


def test_a_repair_mends_only_modes_and_torn_lines_and_keeps_what_it_cut(post: Post) -> None:
    """Foreign lines, twins and records stay; every torn byte is beside the log, with its place; what remains is still
    exit 3."""
    first = post.send("x", "all", "first")
    post.append(MESSAGES, b"foreign\r\n", b'{"id":"torn', b"\n", b'{"id":"\xff', b"\n", b"\0\0\0\n")
    post.append(MESSAGES, b'{"whole": "json, no record"}\n')
    second = post.send("x", "all", "second")
    post.file(ROSTER).touch()
    opened = {post.box: (0o700, 0o777), post.file(MESSAGES): (0o600, 0o666), post.file(ROSTER): (0o600, 0o644)}
    for path, (_, mode) in opened.items():
        path.chmod(mode)
    before = post.file(MESSAGES).read_bytes()
    result = post.call("doctor", "--repair", "--json")
    assert result.rc == 3
    done = {(one["file"], one["done"]) for one in result.json["repaired"]}
    for path, (closed, mode) in opened.items():
        assert stat.S_IMODE(path.stat().st_mode) == closed
        assert (str(path), f"its mode is {closed:o} now, and was {mode:o}") in done
    assert [(p["line"], p["repair"]) for p in result.json["problems"]] == [(2, None), (3, None)]
    beside = post.file(f"{MESSAGES}.torn")
    cut = [b'{"id":"torn', b'{"id":"\xff', b"\0\0\0"]
    kept = [json.loads(line) for line in beside.read_bytes().splitlines()]
    assert [one["position"] for one in kept] == [before.index(line) for line in cut]
    assert (kept[0]["text"].encode(), bytes.fromhex(kept[1]["hex"]), bytes(kept[2]["zeros"])) == tuple(cut)
    assert stat.S_IMODE(beside.stat().st_mode) == 0o600
    for line in cut:
        before = before.replace(line + b"\n", b"")
    assert post.file(MESSAGES).read_bytes() == before
    assert post.unread("b") == [first, second]
    again = post.call("doctor", "--repair", "--json")
    assert again.json == {**result.json, "repaired": []}
    assert [json.loads(line) for line in beside.read_bytes().splitlines()] == kept


def test_repairs_keep_as_many_bytes_as_they_cut(post: Post) -> None:
    """However long the log is and however often it is torn: no copy of it is left."""
    for _ in range(5):
        post.send("x", "all", "long " * 1000)
        post.append(MESSAGES, b'{"id":"torn\n', b"\0" * 100_000 + b"\n")
        post.call("doctor", "--repair")
    others = [p for p in post.box.iterdir() if p.is_file() and p.name != MESSAGES]
    assert sum(p.stat().st_size for p in others if p.name.startswith(MESSAGES)) < 2000


def test_a_whole_line_that_is_too_long_is_not_taken_for_a_torn_one(post: Post) -> None:
    """Only what is provably torn is mended: the giant stays, is reported as no record, and no copy is made of it."""
    giant = json.dumps(record(content="x" * (2 << 20))).encode() + b"\n"
    post.append(MESSAGES, giant)
    sent = post.send("x", "all")
    assert [(p["line"], p["repair"]) for p in post.doctor()] == [(1, None)]
    assert post.call("doctor", "--repair").rc == 3
    assert post.file(MESSAGES).read_bytes().startswith(giant)
    assert not post.file(f"{MESSAGES}.torn").exists()
    assert post.check("b") == [sent]


# -- export -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def history(post: Post) -> Post:
    """Archived and live mail of each mode, read, replied to, with every awkward text."""
    post.register("ann", "--role", "builder")
    post.register("bob")
    texts = [
        "plain",
        "From the start\nFrom within\n>From quoted",
        "line\r\nends\rthree ways\n",
        "“€” \U0001f600\u2028x",
        ".",
    ]
    for text in texts:
        post.send("bob", "ann", text, "--subject", "s\u00e9e: From\r\nBcc: evil@example.org")
    post.check("ann")
    post.ok("steward", "run", "--max-live", "0")
    question = post.send("bob", "role:builder,all", "who?")
    post.check("ann")
    post.ok("reply", question, "--from", "ann", "--body", "me " * 400)
    return post


def test_jsonl_is_the_whole_history_in_canonical_records(history: Post) -> None:
    """Archived first, ``read_by`` filled; ``--since`` cuts; the default format; a batch can be made of it."""
    plain = history.call("export")
    lines = [json.loads(line) for line in plain.raw.split(b"\n") if line]
    assert plain.raw == history.call("export", "--format", "jsonl").raw
    wanted = history.ok("history", "--all", "--limit", "0")["messages"]
    assert lines == wanted
    assert [line["read_by"] for line in lines] == [["ann"]] * 6 + [[]]
    since = lines[5]["timestamp"]
    assert [json.loads(x) for x in history.call("export", "--since", since).raw.splitlines()] == [
        *(line for line in wanted if line["timestamp"] >= since)
    ]
    other = Post(history.scratch / "other")
    for who in ("ann", "bob"):
        other.register(who, "--role", "builder")
    assert other.ok("send", "--jsonl", "-", stdin=plain.raw)["ids"] == [line["id"] for line in wanted]


def test_an_mbox_gives_every_text_back(post: Post) -> None:
    """Byte for byte, by mboxrd's rule: whatever its lines begin and end with."""
    texts = [
        "From here",
        ">From here\n>>From there\nFrom",
        "a\nFrom b\n\n",
        "one\r\ntwo\rthree",
        "\n\nlate \n",
        "x" * 2000,
    ]
    texts += ["a\x0b\x0cFrom b", "ü\u2028From c", " From d\n> From e\n.\n"]
    for text in texts:
        post.send("ann", "all", text)
    data = post.call("export", "--format", "mbox").raw
    found = re.split(rb"(?:\A|(?<=\n\n))From ann@agent-mailbox [^\n]*\n", data)[1:]
    bodies = [mail.partition(b"\n\n")[2].removesuffix(b"\n\n") for mail in found]
    assert [re.sub(rb"^>(>*From )", rb"\1", body, flags=re.MULTILINE).decode() for body in bodies] == texts


@each("form", ["jsonl", "mbox", "entities"])
def test_an_export_to_a_terminal_moves_no_cursor(post: Post, form: str) -> None:
    """A file has every text as it was sent; what a terminal gets is neutral, as all that is shown."""
    post.send("x", "y", "red \x1b[31m\u202e\u2028forged\rX", "--subject", "s")
    done = surroundings.at_terminal(post, surroundings.line("export", "--format", form))
    assert done.rc == 0
    assert "forged" in done.stdout
    assert not {"\x1b", "\u202e", "\u2028"} & {*done.stdout}
    assert "\rX" not in done.stdout


def test_mbox_is_read_by_the_standard_library(history: Post) -> None:
    """Python's ``mailbox`` module reads an mbox export with all its messages, addresses, threads and bodies."""
    path = history.scratch / "mail.mbox"
    path.write_bytes(history.call("export", "--format", "mbox").raw)
    mails = list(mailboxes.mbox(path, create=False))
    wanted = history.ok("history", "--all", "--limit", "0")["messages"]
    assert len(mails) == len(wanted) == 7
    for mail, message in zip(mails, wanted, strict=True):
        assert mail["From"] == f"{message['sender']}@agent-mailbox"
        assert mail["Message-ID"] == f"<{message['id']}@agent-mailbox>"
        assert mail["Bcc"] is None
        assert mail.get_content_type() == "text/plain"
        body = re.sub(r"^>(>*From )", r"\1", mail.get_payload(decode=True).decode(), flags=re.MULTILINE)
        text = message["content"].replace("\r\n", "\n").replace("\r", "\n")
        assert body.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n") == text.rstrip("\n")
    assert mails[-1]["In-Reply-To"] == mails[-2]["Message-ID"]
    assert mails[-2]["To"] == "role_builder@agent-mailbox, all@agent-mailbox"


def test_entities_are_statements_a_librarian_can_resume_from(history: Post) -> None:
    """type, belongs-to, quality; actual readers of role and broadcast mail; from the last ``at`` on none is missed."""

    def statements(*words: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in history.call("export", "--format", "entities", *words).raw.splitlines()]

    before = statements()
    assert [s["at"] for s in before] == sorted(s["at"] for s in before)
    assert {tuple(sorted(s)) for s in before} == {
        ("at", "entity", "type"),
        ("at", "belongs-to", "entity", "quality"),
        ("at", "belongs-to", "content", "entity", "quality"),
    }
    question = history.ok("history", "--all")["messages"][5]["id"]
    actors = {s["entity"] for s in before if s.get("belongs-to") == f"situation:mailbox-msg-{question}"}
    assert actors == {"agent:bob", "agent:ann", f"message-content:{question}"}
    last = before[-1]["at"]
    history.check("bob")
    history.register("cat")
    history.check("cat")
    history.send("cat", "bob", "news")
    after = statements()
    resumed = statements("--since", last)
    fresh = [s for s in after if s not in before]
    assert fresh
    assert all(s in resumed for s in fresh)
    assert [s for s in resumed if s["at"] > last] == [s for s in after if s["at"] > last]


OLD = (("all", "0001-01-01T00:00:00Z"), ("role:x", "1969-12-31T23:59:59Z"), ("project:y", "1971-01-01T00:00:00Z"))


def test_mail_dated_before_1970_is_in_every_list(post: Post) -> None:
    """Another program may date a line so: all of it is exported and told of; mail without an end is no dead letter."""
    post.register("ann")
    old, role, new = (record("ann", to, "old", timestamp=when) for to, when in OLD)
    post.append(MESSAGES, old, role, new)
    for form in ("jsonl", "mbox", "entities"):
        exported = post.call("export", "--format", form).stdout
        assert all(one["id"] in exported for one in (old, role, new)), form
    assert new["id"] not in post.call("export", "--since", "1980-01-01").stdout
    assert {one["id"] for one in post.ok("dead-letters", "--all")["messages"]} == {old["id"], new["id"]}
    assert {one["id"] for one in post.ok("dead-letters", "--session", "ann")["messages"]} == {old["id"], new["id"]}


def test_export_refuses_an_unknown_format_and_a_bad_instant(post: Post) -> None:
    """Exit 2, naming what would do; an empty history is empty in every format."""
    refused(post.call("export", "--format", "pdf"), 2, "mbox")
    refused(post.call("export", "--since", "yesterday"), 2, "yesterday")
    for form in ("jsonl", "mbox", "entities"):
        assert post.call("export", "--format", form).raw == b""


# -- the seed's scripts -----------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> Program:
    """A plain checkout (no installation, no PYTHONPATH) and a working directory elsewhere."""
    program = Program(tmp_path)
    del program.env["PYTHONPATH"]
    copy_package(tmp_path / "checkout")
    shutil.copytree(ROOT / "scripts", tmp_path / "checkout/scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "checkout/data").mkdir()
    return program


def script(program: Program, cwd: Path, name: str, *words: str) -> Result:
    """One of the checkout's scripts, run by its path as seen from the working directory."""
    path = os.path.relpath(program.scratch / "checkout/scripts" / name, cwd)
    return program.run(*words, python=(path,), cwd=cwd)


SEND = shlex.split('send --from ID --to "project:inscription" --subject "Schema" --body "The schema has changed"')
UPDATE = shlex.split('update --session-id ID --tags "project:inscription,concern:governance"')


def test_the_seeds_two_lines_work_from_the_checkout(checkout: Program) -> None:
    """Word for word, from its root; the roster script is the roster command."""
    root = checkout.scratch / "checkout"
    assert script(checkout, root, "agent_mailbox.py", "init").rc == 0
    assert script(checkout, root, "agent_roster.py", *UPDATE).rc == 0
    sent = script(checkout, root, "agent_mailbox.py", *SEND)
    assert (sent.rc, sent.stderr) == (0, ""), sent
    box = root / "data"
    assert json.loads((box / MESSAGES).read_bytes())["recipient"] == "project:inscription"
    assert json.loads((box / ROSTER).read_bytes())["tags"] == ["project:inscription", "concern:governance"]


def test_the_seeds_two_lines_work_from_any_working_directory(checkout: Program) -> None:
    """The two scripts of the seed use the checkout's own mailbox if no other is named or above."""
    root = checkout.scratch / "checkout"
    assert script(checkout, root, "agent_mailbox.py", "init").rc == 0
    assert script(checkout, checkout.cwd, "agent_roster.py", *UPDATE).rc == 0
    sent = script(checkout, checkout.cwd, "agent_mailbox.py", *SEND)
    assert sent.rc == 0, sent
    assert json.loads((root / "data" / MESSAGES).read_bytes())["recipient"] == "project:inscription"
    assert list(checkout.cwd.iterdir()) == []


def test_the_module_the_script_and_the_console_script_are_one_program(checkout: Program) -> None:
    """The same version from each."""
    root = checkout.scratch / "checkout"
    wanted = script(checkout, root, "agent_mailbox.py", "--version").stdout
    assert wanted.startswith("agent-mailbox, version ")
    assert checkout.run("--version", env={"PYTHONPATH": str(root)}).stdout == wanted
    installed = os.path.join(os.path.dirname(sys.executable), "agent-mailbox")
    if not os.access(installed, os.X_OK):
        pytest.skip("the package is not installed: there is no console script")
    done = subprocess.run([installed, "--version"], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == wanted


def test_a_mailbox_that_is_set_up_no_more_has_no_cron_line(cron: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other lines stay, among them that of a mailbox beside it, and one that the person wrote. No table is made."""
    monkeypatch.setenv("PATH", cron.env["PATH"])
    monkeypatch.setenv("HOME", str(cron.home))
    table = cron.home / "crontab"
    line = cron.ok("steward", "crontab", "--install")["line"]
    other, mine = line.replace(str(cron.box), f"{cron.box}-2"), line.replace(TAG, " # täglich")
    table.write_text(f"\n{other}\n{mine}\n1 2 3 4 5 mine\n{line}\n\n")
    assert remove_crontab(str(cron.box)) is True
    assert table.read_text() == f"\n{other}\n{mine}\n1 2 3 4 5 mine\n\n"
    table.unlink()
    for path in (cron.env["PATH"], str(cron.scratch / "nothing")):
        monkeypatch.setenv("PATH", path)
        assert remove_crontab(str(cron.box)) is False
    assert not table.exists()


def test_the_steward_removes_the_stamps_that_were_put_aside(post: Post) -> None:
    """A rename alone is quick, so those who put stamps aside leave them there."""
    quiet = post.box / ".cache/quiet"
    asides = [quiet.with_name(f"quiet.gone-{number}") for number in (0, 9)]
    for aside in asides:
        aside.mkdir(parents=True)
        (aside / "ann").write_text("")
    post.ok("steward", "run")
    assert not any(aside.exists() for aside in asides)
