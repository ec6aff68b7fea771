"""A session whose client's process was killed is gone at once: real clients, ``kill -9``, the installed command."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core import codec
from agent_mailbox.core.records import RosterEvent
from agent_mailbox.core.roster import CLIENT_ENDED
from agent_mailbox.mailbox import absence
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import MANY_HOLDERS
from agent_mailbox.store.user_state import processes
from agent_mailbox.store.user_state.processes import DIRECTORY
from tests.helpers import MESSAGES, READS, ROSTER, Result, record, until
from tests.surroundings import NOBODY_SAID, Client, at_terminal, line, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tests.helpers import Post

DEAD, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
THIRD = "33333333-3333-4333-8333-333333333333"


class Killed(Client):
    """A client that a test kills."""

    def kill(self) -> None:
        """Kill it with SIGKILL; it runs no hook any more. Nobody asks how it ended: it stays as a zombie."""
        self.process.send_signal(signal.SIGKILL)
        until(lambda: (read := processes.read(self.process.pid)) is None or read.is_over)

    def leave(self, session_id: str, event: str) -> None:
        """Call a hook of an attended session, and wait for no answer."""
        told = json.dumps({"session_id": session_id, "hook_event_name": event, "cwd": str(self.post.cwd)})
        named = {"CLAUDE_PID": "PID", "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ATTENDED": "1"}
        asked = {"words": words("hook", event), "env": named, "json": told}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        self.process.stdin.flush()

    def __exit__(self, *rest: object) -> None:
        with contextlib.suppress(BrokenPipeError):
            super().__exit__(*rest)


def started(post: Post, session_id: str, **named: str) -> Killed:
    """A client that runs the session, with these variables of ours."""
    for name, value in named.items():
        post.env[f"AGENT_MAILBOX_{name.upper()}"] = value
    client = Killed(post)
    for name in named:
        del post.env[f"AGENT_MAILBOX_{name.upper()}"]
    assert client.hook(session_id).rc == 0
    return client


def offered(post: Post, client: Client, session_id: str) -> str:
    """Have a prompt's hook offer the session its mail, with a transcript that says nothing yet; what it was told."""
    path = post.scratch / f"{session_id}.jsonl"
    path.touch()
    return client.hook(session_id, "UserPromptSubmit", transcript_path=str(path)).stdout


def said(post: Post, *command: object) -> Result:
    """The command at the person's terminal."""
    done = at_terminal(post, line(*command))
    assert done.rc == 0, done
    return done


def state(post: Post, session_id: str) -> tuple[str, bool]:
    """A session's state in the roster, and whether it is gone: the person and programs are told that in its place."""
    told = post.ok("roster", "show", session_id)["agent"]["state"]
    ours = [e["event"] for e in post.objects(ROSTER) if e["session_id"] == session_id and "seal" in e]
    ends = [event for event in ours if event != "update"]
    return {"freeze": "frozen"}.get(ends[-1], "alive") if told == "gone" else told, told == "gone"


@pytest.fixture
def pair(post: Post) -> Iterator[tuple[Killed, Killed]]:
    """Two clients; their sessions hold the role ``builder``."""
    with started(post, DEAD, role="builder", name="Ada") as one, started(post, OTHER, role="builder") as other:
        yield one, other


def sent(post: Post, to: str) -> dict[str, list[str]]:
    """Send as the person; where it went."""
    return dict(post.ok("send", "--from", "user", "--to", to, "--body", "work")["delivery"])


def test_mail_to_the_killed_waits_and_send_says_so(post: Post, pair: tuple[Killed, Killed]) -> None:
    """Nothing says that it will be seen now; the roster, the status and the text of ``send`` call it gone."""
    assert sent(post, "Ada")["agents"] == [DEAD]
    pair[0].kill()
    assert state(post, DEAD) == ("alive", True)
    assert "gone" in said(post, "status", "--session", DEAD).stdout
    delivery = sent(post, "Ada")
    assert (delivery["agents"], delivery["waiting_for"], delivery["gone"]) == ([], [DEAD], [DEAD])
    text = said(post, "send", "--from", "user", "--to", "Ada", "--body", "x").stdout
    assert "waits for: Ada" in text
    assert "gone, client ended: Ada" in text
    assert "gone" in said(post, "roster", "list").stdout
    assert state(post, DEAD) == ("frozen", True)
    assert sent(post, "role:builder")["agents"] == [OTHER]


def test_role_mail_that_the_killed_never_saw_goes_to_the_next_holder_at_once(
    post: Post, pair: tuple[Killed, Killed]
) -> None:
    """The other holder's check brings it, whatever other roles that one has. The killed one stays frozen until it comes
    back, and is shown nothing."""
    one, other = pair
    post.ok("roster", "update", "--session-id", OTHER, "--remove-tags", "role:builder")
    for role in ("role:aide", "role:builder", "role:zeal"):
        post.ok("roster", "update", "--session-id", OTHER, "--add-tags", role)
    message_id = post.send("user", "role:builder")
    assert message_id[:8] in offered(post, one, DEAD)
    assert other.bash(line("check", "--json"), OTHER).stdout.count(message_id) == 0
    one.kill()
    assert message_id in other.bash(line("check", "--json"), OTHER).stdout
    assert [(r["reader_session_id"][0], r["event"]) for r in post.objects(READS)] == [
        ("1", "claim"),
        ("1", "read"),
        ("1", "release"),
        ("2", "claim"),
        ("2", "read"),
    ]
    assert state(post, DEAD) == ("frozen", True)
    with started(post, DEAD) as again:
        assert state(post, DEAD) == ("alive", False)
        assert message_id[:8] not in offered(post, again, DEAD)
        assert sent(post, "Ada")["agents"] == [DEAD]


def test_of_two_killed_who_never_saw_it_the_one_that_had_it_by_role_gives_it_back(
    post: Post, pair: tuple[Killed, Killed]
) -> None:
    """It was shown first to another, whom it named, and whose own copy waits. A sender meets both at once."""
    with started(post, THIRD, name="Cid") as third:
        message_id = post.send("user", "Cid,role:builder")
        for client, who in ((third, THIRD), (pair[0], DEAD)):
            assert message_id[:8] in offered(post, client, who)
            client.kill()
        post.send("user", "all", "anybody there?")
        assert [r["reader_session_id"] for r in post.objects(READS) if r["event"] == "release"] == [DEAD]
        assert message_id in pair[1].bash(line("check", "--json"), OTHER).stdout


def test_a_check_in_the_name_of_the_killed_is_its_sign_of_life(post: Post, pair: tuple[Killed, Killed]) -> None:
    """The person looks at what it was offered, at a terminal. It is not frozen by that, and gives nothing back."""
    message_id = post.send("user", "role:builder")
    assert message_id[:8] in offered(post, pair[0], DEAD)
    pair[0].kill()
    before = post.objects(READS)
    assert json.loads(said(post, "check", "--session", DEAD, "--json").stdout)["messages"] == []
    assert (state(post, DEAD), post.objects(READS)) == (("alive", True), before)


def test_among_many_holders_the_killed_one_gives_back_its_role_mail_too(
    post: Post, pair: tuple[Killed, Killed]
) -> None:
    """The holders are not asked one by one then, but the clients that ended."""
    one, other = pair
    lines = [
        codec.spell_event(RosterEvent("register", f"h-{n}", 1, tags=("role:builder",))) for n in range(MANY_HOLDERS)
    ]
    with post.file(ROSTER).open("ab") as log:
        log.write(b"".join(lines))
    message_id = post.send("user", "role:builder")
    assert message_id[:8] in offered(post, one, DEAD)
    assert message_id not in other.bash(line("check", "--json"), OTHER).stdout
    one.kill()
    assert message_id in other.bash(line("check", "--json"), OTHER).stdout
    assert state(post, DEAD) == ("frozen", True)


def test_mail_of_its_own_stays_with_the_killed_until_it_returns(post: Post, pair: tuple[Killed, Killed]) -> None:
    """Direct mail that it was offered and did not see is nobody else's; its own transcript decides when it is back."""
    one, other = pair
    message_id = post.send("user", "Ada")
    assert message_id[:8] in offered(post, one, DEAD)
    one.kill()
    assert other.bash(line("check", "--json"), OTHER).rc == 0
    post.ok("steward", "run")
    assert [r["event"] for r in post.objects(READS)] == ["read"]
    path = post.scratch / f"{DEAD}.jsonl"
    with Killed(post) as again:
        told = again.hook(DEAD, "SessionStart", source="resume", transcript_path=str(path)).stdout
        assert message_id[:8] in told


def test_the_successor_of_the_killed_is_shown_what_that_never_saw(post: Post, pair: tuple[Killed, Killed]) -> None:
    """Its name is free at once. Who takes it takes its mail, of which a message that was only offered is not read."""
    one, _ = pair
    seen, unseen = post.send("user", "Ada"), ""
    assert seen in one.bash(line("check", "--json"), DEAD).stdout
    unseen = post.send("user", "Ada")
    assert unseen[:8] in offered(post, one, DEAD)
    one.kill()
    post.env["AGENT_MAILBOX_NAME"] = "Ada"
    with Killed(post) as heir:
        shown = heir.hook(THIRD).stdout
        assert unseen[:8] in shown
        assert seen[:8] not in shown
    assert post.ok("roster", "show", "Ada")["agent"]["session_id"] == THIRD


@pytest.mark.parametrize("how", ["send", "steward"])
def test_whoever_meets_the_gone_wakes_the_other_holders(post: Post, pair: tuple[Killed, Killed], how: str) -> None:
    """The other holder was quiet: its guard asks nothing. A message to the killed, or the steward, ends its stamp."""
    one, other = pair
    message_id = post.send("user", "role:builder")
    offered(post, one, DEAD)
    other.hook(OTHER, "UserPromptSubmit")
    assert post.file(".cache", "quiet", OTHER).exists()
    one.kill()
    if how == "send":
        sent(post, "Ada")
    else:
        assert post.ok("steward", "run")["frozen"] == 1
    assert not post.file(".cache", "quiet", OTHER).exists()
    assert state(post, DEAD) == ("frozen", True)
    assert message_id[:8] in other.hook(OTHER, "UserPromptSubmit").stdout
    assert post.ok("steward", "run")["frozen"] == 0


def test_mail_that_the_killed_saw_or_answered_stays_with_it(post: Post, pair: tuple[Killed, Killed]) -> None:
    """A claim that was read is kept, as by any frozen holder; so is mail that it answered in the turn it died in."""
    one, other = pair
    read, answered = post.send("user", "role:builder"), ""
    assert read in one.bash(line("check", "--json"), DEAD).stdout
    answered = post.send("user", "role:builder")
    assert answered[:8] in offered(post, one, DEAD)
    assert one.bash(line("reply", answered, "--body", "done"), DEAD).rc == 0
    one.kill()
    assert json.loads(other.bash(line("check", "--json"), OTHER).stdout)["count"] == 0
    assert state(post, DEAD) == ("frozen", True)
    assert "release" not in [r["event"] for r in post.objects(READS)]


def test_an_answer_that_was_read_and_could_be_archived_still_counts(post: Post, pair: tuple[Killed, Killed]) -> None:
    """The steward leaves it beside the mail that it answers, until that is finished, too."""
    one, other = pair
    asked = post.send("user", "role:builder")
    assert asked[:8] in offered(post, one, DEAD)
    assert one.bash(line("reply", asked, "--body", "done"), DEAD).rc == 0
    assert "done" in said(post, "check").stdout
    assert post.ok("steward", "run", "--max-live", "0")["archived"] == 0
    one.kill()
    assert json.loads(other.bash(line("check", "--json"), OTHER).stdout)["count"] == 0
    assert "release" not in [r["event"] for r in post.objects(READS)]


def test_who_comes_back_meanwhile_is_not_frozen(post: Post, pair: tuple[Killed, Killed]) -> None:
    """It is judged again under the roster's lock, and under that of the reads."""
    one, _ = pair
    post.send("user", "role:builder")
    offered(post, one, DEAD)
    one.kill()
    with ExitStack() as back:

        class Late(Mailbox):
            """A process that was stopped once it had found the session gone."""

            looks = 0

            def gone(self, sessions: Iterable[str]) -> set[str]:
                found = super().gone(sessions)
                self.looks += 1
                if self.looks == 1:
                    back.enter_context(started(post, DEAD))
                return found

        absence.note(Late(str(post.box)), [DEAD], "user")
        assert state(post, DEAD) == ("alive", False)
        assert [r["event"] for r in post.objects(READS)] == ["claim", "read"]


def test_a_session_that_ended_by_itself_is_not_gone(post: Post, pair: tuple[Killed, Killed]) -> None:
    """Its hook said so before its process ended; it is frozen as ever."""
    one, _ = pair
    assert one.hook(DEAD, "SessionEnd", reason="other").rc == 0
    one.kill()
    assert state(post, DEAD) == ("frozen", False)
    assert "gone" not in sent(post, "Ada")


# -- who may judge, and by what ---------------------------------------------------------------------------------------


def record_of(post: Post, client: Client) -> Path:
    """The user's record of the client's process."""
    return post.user_state / DIRECTORY / str(client.process.pid)


def rewrite(path: Path, change: dict[int, str]) -> None:
    """Change words of the record's first line: 1 start, 2 boot, 3 namespace."""
    first, *rest = path.read_text().split("\n")
    said = first.split(" ")
    for place, word in change.items():
        said[place] = word
    path.write_text("\n".join([" ".join(said), *rest]))


@pytest.mark.parametrize(
    ("change", "gone"),
    [({1: "1"}, True), ({}, True), ({2: "another-boot"}, False), ({3: "pid:[1]"}, False), ({2: "-", 3: "-"}, False)],
    ids=["number taken by another", "killed", "another boot", "another namespace", "unknown place"],
)
def test_only_a_process_of_this_boot_and_namespace_is_judged(
    post: Post, change: dict[int, str], gone: bool, pair: tuple[Killed, Killed]
) -> None:
    """A process elsewhere counts as before: the session is alive until it was silent for a day."""
    one, _ = pair
    if 1 not in change:
        one.kill()
    rewrite(record_of(post, one), change)
    assert state(post, DEAD) == ("alive", gone)
    assert sent(post, "Ada")["agents"] == ([] if gone else [DEAD])
    post.ok("steward", "run")
    assert state(post, DEAD) == ("frozen" if gone else "alive", gone)


def test_a_session_that_may_run_elsewhere_is_not_gone(post: Post, pair: tuple[Killed, Killed]) -> None:
    """Any second record of it of another namespace in this boot, or a later one of another machine."""
    one, _ = pair
    one.kill()
    mine = record_of(post, one)
    copied = mine.with_name("999999")
    for change, written, gone in (
        ({3: "pid:[1]"}, 1, False),
        ({2: "another-boot"}, 3, False),
        ({2: "another-boot"}, 1, True),  # it left that machine before it came here
    ):
        shutil.copy(mine, copied)
        rewrite(copied, change)
        os.utime(copied, ns=(written, written))
        os.utime(mine, ns=(2, 2))
        assert state(post, DEAD) == ("alive", gone)


def test_no_line_and_no_file_of_the_mailbox_declares_another_gone(post: Post, pair: tuple[Killed, Killed]) -> None:
    """The roster's word for a session's client counts for nothing; a program records no one's end."""
    one, _ = pair
    forged = {"event": "register", "session_id": DEAD, "timestamp": record()["timestamp"], "client": "999999"}
    post.append(ROSTER, forged, {**forged, "event": "freeze", "reason": CLIENT_ENDED})
    post.file(DIRECTORY).mkdir()
    shutil.copy(record_of(post, one), post.file(DIRECTORY, "999999"))
    assert state(post, DEAD) == ("alive", False)
    assert sent(post, "Ada")["agents"] == [DEAD]
    one.kill()
    program = post.run("send", "--from", "cron", "--to", "Ada", "--body", "x", "--json", env=NOBODY_SAID)
    assert program.json["delivery"]["gone"] == [DEAD]
    assert state(post, DEAD) == ("alive", True)


def test_a_process_that_is_invisible_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """``hidepid``, or another user's: its number is in use, and nothing more is known."""
    monkeypatch.setattr(processes, "read", lambda _: None)
    assert processes.lives(os.getpid(), "1") is None
    assert processes.lives(10**30, "1") is None


def waiting(post: Post) -> int:
    """The process of the doorbell; 0 for none yet."""
    told = post.file(".cache", "doorbell", DEAD).read_text().split()
    return int(told[0]) if told and told[0].isdigit() else 0


def test_the_killed_client_s_own_doorbell_hands_back(post: Post, pair: tuple[Killed, Killed]) -> None:
    """It waits beside the client, and sees it end: nobody else has to do anything."""
    one, _ = pair
    post.send("user", "role:builder")
    offered(post, one, DEAD)
    one.leave(DEAD, "Doorbell")
    pid = until(lambda: post.file(".cache", "doorbell", DEAD).exists() and waiting(post))
    one.kill()
    until(lambda: post.objects(ROSTER)[-1]["event"] == "freeze")
    until(lambda: processes.read(pid) is None)
    assert [r["event"] for r in post.objects(READS)] == ["claim", "read", "release"]
    assert state(post, DEAD) == ("frozen", True)


def test_a_watcher_s_doorbell_notes_a_killed_client(post: Post, pair: tuple[Killed, Killed]) -> None:
    """A watcher's doorbell notices that a watched client was killed. It freezes that agent and tells the watcher."""
    one, other = pair
    made = post.ok("watch", DEAD, "--idle", "--session", OTHER)["watches"][0]
    other.hook(OTHER, "UserPromptSubmit")
    other.leave(OTHER, "Doorbell")
    until(lambda: post.file(".cache", "doorbell", OTHER).exists())
    one.kill()
    until(lambda: post.objects(ROSTER)[-1]["event"] == "freeze")
    until(
        lambda: any(
            made["id"] in line and "watch_report" in line for line in post.file(MESSAGES).read_text().split("\n")
        )
    )
    told = post.call("check", "--session", OTHER)
    assert "has ended" in told.stdout
    assert post.ok("watch", "list", "--session", OTHER)["watches"] == []
    other.kill()  # it would wait for its doorbell


def test_a_killed_holder_s_task_is_open_again_and_told_once(pair: tuple[Killed, Killed], post: Post) -> None:
    """A client is killed that claimed a task. Its adder hears of that once, however often others look, and another one
    claims it."""
    one, other = pair
    added = ("task", "add", "--to", "role:builder", "--title", "T", "--task-id", "task-a")
    assert other.bash(line(*added), OTHER).rc == 0
    assert one.bash(line("task", "claim", "task-a"), DEAD).rc == 0
    one.kill()
    for _ in range(2):
        assert "open to role:builder" in other.bash(line("task", "list"), OTHER).stdout
    assert other.bash(line("task", "claim", "--next"), OTHER).rc == 0
    other.bash(line("task", "list"), OTHER)
    told = [one["content"] for one in post.objects(MESSAGES) if one.get("type") == "notification"]
    assert ["its holder ended; the task is open again" in text for text in told] == [True]
