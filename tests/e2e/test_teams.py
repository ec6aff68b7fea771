"""The real client with Agent Teams on: mail both ways between its team and the mailbox, under its lock, and kills."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.standin import ANSWER, bash, said, use
from tests.e2e.terminal import Terminal
from tests.faults import faults
from tests.helpers import READS, until
from tests.night import nightly

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.client import Client
    from tests.e2e.standin import Body

TEAMS_ON = {"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"}
FIRST, TASK, TELL_WORKER = "START_THE_TEAM_NOW", "WORKER_TASK", "TELL_YOUR_WORKER"


class Lead:
    """The lead's session at its terminal, with one teammate, ``worker``."""

    def __init__(self, client: Client, terminal: Terminal) -> None:
        self.client = client
        self.terminal = terminal
        self.post = client.post
        self.native: list[str] = []
        """What the worker is to tell the lead, a tool call each."""
        self.shell: list[str] = []
        """What the worker is to run before."""
        self._lock = threading.Lock()
        client.model.script = self._script

    def _script(self, body: Body) -> list[Body]:
        if not body.get("tools"):
            return [said("title")]
        talk = self.client.model.talk(body)
        if TASK not in talk and FIRST in talk and "tool_result" not in talk:
            return [use("Agent", description="work", prompt=TASK, subagent_type="general-purpose", name="worker")]
        if TASK in talk and self._is_worker(body):
            with self._lock:
                if self.shell:
                    return [bash(self.shell.pop(0))]
                if self.native:
                    return [use("SendMessage", to="team-lead", message=self.native.pop(0), summary="s")]
        elif talk.count(TELL_WORKER) == 1 and "FROM_THE_LEAD" not in talk:
            return [use("SendMessage", to="worker", message="FROM_THE_LEAD", summary="s")]
        return [said(ANSWER)]

    @staticmethod
    def _is_worker(body: Body) -> bool:
        return any(tool["name"] == "SendMessage" for tool in body["tools"])

    @property
    def directory(self) -> Path | None:
        """The team's directory."""
        found = list((self.post.home / ".claude/teams").glob("*/config.json"))
        return found[0].parent if found else None

    @property
    def team(self) -> str:
        """The team's name."""
        assert self.directory is not None
        return self.directory.name

    def told(self, who: str = "worker") -> list[str]:
        """What the teammate's model (or the lead's) was sent, the longest conversation's texts in order."""
        mine = [b for b in self.client.model.requests if b.get("tools") and self._is_worker(b) == (who == "worker")]
        longest = max(mine, key=lambda body: len(body["messages"]), default={"messages": []})
        return [json.dumps(message, ensure_ascii=False) for message in longest["messages"]]

    def everything(self) -> str:
        """Everything any model was ever sent."""
        return "\n".join(self.client.model.talk(body) for body in self.client.model.requests if body.get("tools"))

    def inbox(self, name: str) -> Any:
        """What is in an inbox; None while the client writes it."""
        assert self.directory is not None
        try:
            return json.loads((self.directory / "inboxes" / f"{name}.json").read_text())
        except FileNotFoundError:
            return []
        except ValueError:
            return None


@contextmanager
def lead(client: Client) -> Iterator[Lead]:
    """A session with a teammate that has done its first task."""
    with Terminal(client, "--allowedTools", "SendMessage", env=TEAMS_ON) as terminal:
        made = Lead(client, terminal)
        terminal.wait(terminal.idle)
        terminal.submit(FIRST)
        terminal.wait(lambda: any(TASK in text for text in made.told()))
        yield made


def test_mail_reaches_a_teammate_and_its_answer_the_mailbox(client: Client) -> None:
    """The teammate's next request has it, framed, as a teammate's message; what it tells the lead is here, sent by it;
    the receipt says seen; the team's end ends the bridge, and the history stays."""
    with lead(client) as here:
        post, team = here.post, here.team
        with post.start("teams", "bridge", "--interval", "0.05") as worker:
            until(lambda: {f"worker@{team}", f"team-lead@{team}"} <= {a["session_id"] for a in agents(here)})
            here.native.append("TOLD_THE_LEAD")
            sent = post.send("bob", f"team:{team}/worker", '{"type":"shutdown_request"} MAIL_ONE')
            here.terminal.wait(lambda: "MAIL_ONE" in "".join(here.told()))
            (text,) = [t for t in here.told() if "MAIL_ONE" in t]
            assert f"[agent-mailbox {sent[:8]}  bob → you" in text
            assert 'teammate_id=\\"bob@agent-mailbox' in text
            mirrored = here.terminal.wait(lambda: [m for m in messages(here) if m["content"] == "TOLD_THE_LEAD"])
            assert (mirrored[0]["sender"], mirrored[0]["recipient"]) == (f"worker@{team}", f"team-lead@{team}")
            here.terminal.wait(lambda: "TOLD_THE_LEAD" in "".join(here.told("lead")))
            here.terminal.wait(lambda: (sent, "seen") in receipts(here))
            here.terminal.wait(lambda: (mirrored[0]["id"], "read") in receipts(here))
            protocol = {m["metadata"].get("protocol", {}).get("type") for m in messages(here) if m["metadata"]}
            assert "idle_notification" in protocol
            assert here.terminal.leave() == 0
            _, err = worker.communicate()
            assert worker.returncode == 0, err
        assert here.directory is None
        assert {a["state"] for a in agents(here) if a["session_id"].endswith(team)} == {"dead"}
        assert "> TOLD_THE_LEAD" in post.call("teams", "export", team).stdout
        assert post.doctor() == []


def agents(here: Lead) -> list[dict[str, Any]]:
    """The roster."""
    return list(here.post.ok("roster", "list")["agents"])


def messages(here: Lead) -> list[dict[str, Any]]:
    """The messages log, raw; ``metadata`` is always there."""
    return [{"metadata": None, **m} for m in here.post.objects("agent-mailbox.jsonl")]


def receipts(here: Lead) -> set[tuple[str, str]]:
    """What the reads log says: (message, event)."""
    return {(r["message_id"], r.get("event", "read")) for r in here.post.objects(READS)}


def test_the_hook_starts_a_bridge_that_ends_with_the_session(client: Client) -> None:
    """The hook starts a team's bridge if the mailbox is configured so. The bridge ends with the session."""
    client.post.configure("[teams]\nbridge = true\n")
    with lead(client) as here:
        team = here.team
        until(lambda: f"worker@{team}" in {a["session_id"] for a in agents(here)})
        here.post.send("bob", f"team:{team}/worker", "MAIL_ONE")
        here.terminal.wait(lambda: "| MAIL_ONE" in "".join(here.told()))
        lock = here.post.file(".cache/teams", team)
        assert bridges(lock)
        assert here.terminal.leave() == 0
        until(lambda: not bridges(lock))
    assert {a["state"] for a in agents(here) if a["session_id"].endswith(team)} == {"dead"}


def test_a_client_nobody_sits_at_leaves_no_bridge_behind(client: Client) -> None:
    """It sets up no teammates (``-p``): nothing is started for it that would look for its team."""
    client.post.configure("[teams]\nbridge = true\n")
    client.model.script = lambda _: [said(ANSWER)]
    client.ask("hello", env=TEAMS_ON)
    assert not running("bridge", str(client.post.box))


def running(*words: str) -> list[bytes]:
    """The command lines of processes with these words."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if {word.encode() for word in words} <= {*line.split(b"\0")}:
            found.append(line)
    return found


def bridges(lock: Path) -> list[str]:
    """The processes that have the bridge's lock open."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if link.readlink() == lock:
                found.append(link.parts[2])
        except OSError:
            pass
    return found


@nightly
def test_under_contention_each_arrives_once(client: Client) -> None:
    """60 of ours to the lead's inbox while the teammate sends it 25: the lead's model has each exactly once, in what
    it was told, and the mailbox the 25."""
    with lead(client) as here:
        post, team = here.post, here.team
        with post.start("teams", "bridge", "--interval", "0.01") as worker:
            until(lambda: f"worker@{team}" in {a["session_id"] for a in agents(here)})
            here.native += [f"NATIVE_{n:02}." for n in range(25)]
            post.send("bob", f"team:{team}/worker", "GO_AND_TELL")
            for n in range(60):
                post.send("bob", f"team:{team}/team-lead", f"BRIDGED_{n:02}.")
            wanted = {f"BRIDGED_{n:02}." for n in range(60)} | {f"NATIVE_{n:02}." for n in range(25)}
            here.terminal.wait(lambda: wanted <= set(words(here)))
            assert set(Counter(w for w in words(here) if w in wanted).values()) == {1}
            here.terminal.wait(lambda: sum(m["content"].startswith("NATIVE_") for m in messages(here)) == 25)
            here.terminal.wait(lambda: sum(event == "seen" for _, event in receipts(here)) == 61)
            worker.send_signal(signal.SIGKILL)
        here.post.ok("teams", "import")  # from the inboxes and the transcripts, which name the same messages
        told = Counter(m["content"] for m in messages(here) if m["content"].startswith("NATIVE_"))
        assert (len(told), set(told.values())) == (25, {1})


def fetched(here: Lead) -> bool:
    """Is everything that came to the lead's inbox read, its teammate's latest word that it is idle included?"""
    here.post.ok("teams", "import")
    return here.post.unread(f"team-lead@{here.team}") == []


@nightly
def test_what_was_said_before_anyone_looked_is_there(client: Client) -> None:
    """An import long after the lead fetched it: the client's own words for what it sent are the inbox's."""
    with lead(client) as here:
        here.native += ["SAID_EARLY_1", "SAID_EARLY_2"]
        here.post.ok("teams", "bridge", "--once")
        here.post.send("bob", f"team:{here.team}/worker", "GO_AND_TELL")
        here.post.ok("teams", "bridge", "--once")
        here.terminal.wait(lambda: "SAID_EARLY_2" in "".join(here.told("lead")))
        here.terminal.wait(lambda: here.inbox("team-lead") == [])

        def brought() -> list[tuple[str, str]]:
            here.post.ok("teams", "import")
            mine = [m for m in messages(here) if m["content"].startswith("SAID_EARLY_")]
            return [(m["content"], m["sender"]) for m in mine]

        wanted = [(f"SAID_EARLY_{n}", f"worker@{here.team}") for n in (1, 2)]
        here.terminal.wait(lambda: len(brought()) >= len(wanted))  # the client writes its transcripts a little later
        assert brought() == wanted
        here.terminal.wait(lambda: fetched(here))


@nightly
def test_protocol_that_was_fetched_before_anyone_looked_is_there(client: Client) -> None:
    """An import long after: what the lead's model was told of its teammate is observed here, each once, as read."""
    with lead(client) as here:
        here.terminal.wait(here.terminal.idle)
        here.terminal.submit(TELL_WORKER)  # a busy lead is now and then not told that its teammate is idle
        here.terminal.wait(lambda: "FROM_THE_LEAD" in "".join(here.told()))
        here.terminal.wait(lambda: idle(here))
        here.terminal.wait(lambda: here.inbox("team-lead") == [])

        def observed() -> list[dict[str, Any]]:
            here.post.ok("teams", "import")
            return [m for m in messages(here) if "idle_notification" in m["content"]]

        for _ in range(3):
            here.terminal.wait(lambda: [m["metadata"]["protocol"]["timestamp"] for m in observed()] == idle(here))
        assert {(m["sender"], m["recipient"]) for m in observed()} == {
            (f"worker@{here.team}", f"team-lead@{here.team}")
        }
        here.terminal.wait(lambda: fetched(here))


def idle(here: Lead) -> list[str]:
    """The instants at which the teammate was idle, as its lead's model was told."""
    return re.findall(r'idle_notification[^{}]*?timestamp\\+":\\+"([^"\\]+)', "".join(here.told("lead")))


@pytest.mark.usefixtures("on_path")
def test_a_teammate_answers_in_its_own_name(client: Client) -> None:
    """Its commands carry the lead's session id: one that names nobody is refused, and says how to; then it counts."""
    with lead(client) as here:
        post, me = here.post, f"worker@{here.team}"
        post.ok("teams", "bridge", "--once")
        sent = post.send("bob", f"team:{here.team}/worker", "PLEASE", "--ack")
        reply = f"agent-mailbox reply {sent[:8]} --body"
        here.shell += [
            f"{reply} WRONG",
            f"{reply} WRONG --from {here.terminal.session()}",
            f"{reply} RIGHT --from {me}",
        ]
        post.ok("teams", "bridge", "--once")
        here.terminal.wait(lambda: "RIGHT" in {m["content"] for m in messages(here)})
        assert [(m["sender"], m["recipient"]) for m in messages(here) if m["content"] in ("RIGHT", "WRONG")] == [
            (me, "bob")
        ]
        talk = "".join(here.told())
        assert f"To answer: agent-mailbox reply {sent[:8]} --from {me}" in talk
        assert f"Add `--from {me}`" in talk
        assert post.ok("status", "--session", me)["obligations"] == []


def words(here: Lead) -> list[str]:
    """The marked words in what the lead was told, in its bodies (our frame's summary line repeats none)."""
    talk = "".join(re.sub(r'summary=\\*"[^"]*"', "", text) for text in here.told("lead"))
    return re.findall(r"(?:BRIDGED|NATIVE)_\d\d\.", talk)


@nightly
def test_killed_inside_the_lock_the_client_goes_on(client: Client) -> None:
    """Before the rename and behind it, and nobody starts it again: the client takes the lock, empties its inbox, and
    its model has the mail once; what the lead sends meanwhile arrives."""
    reason = faults.why_no_strace()
    if reason:
        pytest.skip(reason)
    with lead(client) as here:
        post, team = here.post, here.team
        inbox = f"team:{team}/worker"
        assert here.directory is not None
        lock = here.directory / "inboxes/worker.json.lock"
        post.send("bob", inbox, "MAIL_ONE.")
        killed(here, "rename")
        assert lock.is_dir()
        here.terminal.submit(TELL_WORKER)
        here.terminal.wait(lambda: "FROM_THE_LEAD" in "".join(here.told()))
        assert not lock.exists()
        post.ok("teams", "bridge", "--once")
        here.terminal.wait(lambda: "| MAIL_ONE." in "".join(here.told()))
        post.send("bob", inbox, "MAIL_TWO.")
        killed(here, "rmdir")
        here.terminal.wait(lambda: here.inbox("worker") == [] and not lock.exists())
        here.terminal.wait(lambda: "| MAIL_TWO." in "".join(here.told()))
        post.ok("teams", "bridge", "--once")
        talk = "".join(here.told())
        assert [talk.count(f"| {text}") for text in ("MAIL_ONE.", "MAIL_TWO.")] == [1, 1]
        assert "possibly repeated" not in talk


def killed(here: Lead, call: str) -> None:
    """A bridge that is killed before its first such system call."""
    program = (sys.executable, "-B", "-m", "agent_mailbox", "teams", "bridge", "--once")
    trace = ("strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when=1")
    done = subprocess.run(
        [*trace, *program], env=here.post.environ(), cwd=here.post.cwd, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode in (-9, 137)


@nightly
def test_killed_at_random_nothing_is_lost_and_repetitions_say_so(client: Client) -> None:
    """kill -9 of the bridge, again and again, beside the real client: the teammate's model has everything, plain at
    most once."""
    chance = random.Random(1)
    with lead(client) as here:
        post, team = here.post, here.team
        post.ok("teams", "import")
        wanted = []
        for _ in range(8):
            for _ in range(3):
                wanted.append(f"BRIDGED_{len(wanted):02}.")
                post.send("bob", f"team:{team}/worker", wanted[-1])
            before = len(post.lines(READS))
            with post.start("teams", "bridge", "--interval", "0.01") as worker:
                until(lambda before=before: len(post.lines(READS)) > before)
                for _ in range(chance.choice((0, 1_000, 10_000, 100_000))):
                    pass
                worker.send_signal(signal.SIGKILL)
        with post.start("teams", "bridge", "--interval", "0.05") as worker:
            here.terminal.wait(lambda: all(f"| {word}" in "".join(here.told()) for word in wanted))
            worker.send_signal(signal.SIGKILL)
        talk = "".join(here.told())
        for word in wanted:
            heads = re.findall(rf"\[agent-mailbox ([^\]]*)\]\\+n\| {re.escape(word)}", talk)
            assert heads, word
            assert sum("possibly repeated" not in head for head in heads) <= 1, heads
