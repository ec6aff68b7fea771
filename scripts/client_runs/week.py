"""``scripts/clients week``: real sessions of five clients for many turns, with everything that goes wrong in a week.

Belongs here: who is sent what, what goes wrong in which turn, and the judgement. A process is killed in a turn, a tool
fails, the API answers 400, 429 or 500 or breaks off, and each next turn resumes the session. At the end each session's
conversation must hold each of its messages once. ``week_places`` has the sessions that are no headless runs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.known_clients.codex import CODEX
from agent_mailbox.known_clients.copilot_cli import COPILOT_CLI
from agent_mailbox.known_clients.gemini_cli import GEMINI_CLI
from agent_mailbox.known_clients.opencode import OPENCODE
from tests.e2e import completions, conftest, gemini, responses, standin, test_codex, test_copilot, test_gemini
from tests.e2e import test_opencode as opencode
from tests.e2e.standin import Failed
from tests.helpers import Post

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_mailbox.known_clients.known_client import KnownClient
    from tests.e2e.standin import Body, Server

FAULTS = ("none", "tool", "bad tool", "400", "429", "500", "cut", "kill", "kill behind a tool", "400 behind a tool")
MOST = 120
"""Seconds of one turn, after which its client is killed: that, too, is a fault."""
PROMPT = re.compile(r"(?:TURN|MAIL)-(\d+)-\d+-")
DONE = "DONE"


class Kind:
    """A client, its model, and how a turn of a session is started and what its conversation is."""

    def __init__(self, post: Post, client: KnownClient) -> None:
        self.client, self.program = client, conftest.client_program(client)
        make, model, call, bad, self.said = _OF[client.name]
        self.model: Server = model()
        self.model.__enter__()
        self.it = make(post, self.program, self.model)
        if client is not CLAUDE_CODE:
            post.ok("install", client.name, "--project", self.it.project)
        self.call, self.bad = call, bad

    def words(self, session: str, prompt: str, *, is_new: bool) -> list[str]:
        """Return the words after the program's name for one turn."""
        if self.client is CLAUDE_CODE:
            named = ["--session-id", session] if is_new else ["--resume", session]
            return ["-p", prompt, "--dangerously-skip-permissions", *named]
        if self.client is CODEX:
            more = [] if is_new else ["resume", session]
            return ["exec", test_codex.TRUSTING, *more, "--skip-git-repo-check", "--json", prompt]
        if self.client is GEMINI_CLI:
            named = ["--session-id", session] if is_new else ["--resume", session]
            return [*named, "--approval-mode", "yolo", "-p", prompt, "-m", "gemini-2.5-pro"]
        if self.client is OPENCODE:
            return ["run", "--format", "json", *([] if is_new else ["--session", session]), prompt]
        return ["-p", prompt, *(["--session-id", session] if is_new else ["--resume", session])]

    def start(self, words: list[str]) -> subprocess.Popen[bytes]:
        """Start a turn's process."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        if self.client is CLAUDE_CODE:
            env = {"IS_SANDBOX": "1", "CLAUDE_CODE_MAX_RETRIES": "3"}
            return self.it.start(*words, start_new_session=True, **streams, env=env)  # type: ignore[no-any-return]
        if self.client is COPILOT_CLI:
            return self.it.start(*words, start_new_session=True, **streams)  # type: ignore[no-any-return]
        env = (
            self.it.environ() if hasattr(self.it, "environ") else self.it.post.environ(test_gemini.environ(self.model))
        )
        return subprocess.Popen(
            [str(self.program), *words], env=env, cwd=self.it.project, start_new_session=True, **streams
        )

    def talk(self, body: Body) -> str:
        """Return a conversation as the model got it; Gemini CLI itself repeats a tool's result when it is resumed."""
        if self.client is not GEMINI_CLI:
            return self.model.talk(body)
        return "\n".join(dict.fromkeys(json.dumps(part) for content in body["contents"] for part in content["parts"]))


_COMPLETIONS = (completions.Completions, completions.shell)
_OF: dict[str, tuple[Any, ...]] = {
    "claude-code": (
        *(conftest.Client, standin.StandIn, standin.bash),
        *(standin.use("Read", file_path="/missing"), standin.said),
    ),
    "codex": (test_codex.Codex, responses.Responses, responses.shell, responses.shell("exit 3"), responses.said),
    "gemini": (
        *(test_gemini.Client, gemini.Gemini, gemini.shell),
        *(gemini.use("read_file", file_path="/missing"), gemini.said),
    ),
    "opencode": (
        *(opencode.Served, *_COMPLETIONS),
        *(completions.use("read", filePath="/missing"), completions.said),
    ),
    "copilot": (
        *(test_copilot.Copilot, *_COMPLETIONS),
        *(completions.use("view", path="/missing"), completions.said),
    ),
}
"""By name: the client as tests have it, its model, how that calls a command, a call that fails, and what it says."""


class Session:
    """One session: its turns, what goes wrong in each, and what it was sent."""

    place = "headless"
    faults = FAULTS

    def __init__(self, week: Week, number: int, kind: Kind) -> None:
        self.week, self.number, self.kind = week, number, kind
        self.id, self.turn, self.calls = "", 0, 0
        self.past: list[str] = []
        """Its conversations before it was cleared."""
        self.fault, self.last = "none", ""
        self.process: subprocess.Popen[bytes] | None = None
        self.sent: list[str] = []
        self.is_mailed = True
        self.log: list[str] = []

    def mail(self) -> None:
        """Send it messages."""
        for _ in range(self.week.mails if self.is_mailed else 0):
            with self.week.lock:  # commands are called within this process
                self.sent.append(word := f"MAIL-{self.number}-{len(self.sent)}-")
                self.send(word)

    def send(self, word: str) -> None:
        """Send it this message."""
        self.week.post.send("bob", self.id, word)

    def kill(self) -> None:
        """Kill its client, with all that it started."""
        os.killpg(self.process.pid, signal.SIGKILL)  # type: ignore[union-attr]

    def end(self) -> None:
        """End what still runs of it."""

    def note(self, line: str) -> None:
        """Note how a turn ended, and say it at once."""
        self.log.append(line)
        print(f"{self.kind.client.title}, {self.place} ({self.number}): {line}", file=sys.stderr, flush=True)

    def prompt(self) -> str:
        """Begin a turn; its prompt."""
        self.turn, self.calls = self.turn + 1, 0
        return f"TURN-{self.number}-{self.turn}-go-on"  # no space: a terminal may show one as it likes

    def script(self, body: Body) -> list[Body]:
        """Return the answer of its model in this turn, or fail."""
        self.last = self.kind.talk(body)
        self.calls += 1
        is_first, fault = self.calls == 1, self.fault
        behind = fault.endswith("behind a tool")
        if is_first and self.id:
            self.mail()
        if is_first and (behind or "tool" in fault):
            return [self.kind.bad if fault == "bad tool" else self.kind.call("true")]
        if fault == "bad tool" and self.calls == 2:
            return [self.kind.call("true")]
        if fault.startswith("kill") and (behind or is_first):
            self.kill()
            raise Failed(500)
        if fault.startswith("400"):
            raise Failed(400)
        if fault in ("429", "500", "cut") and is_first:
            raise Failed(int(fault) if fault.isdigit() else 0)
        return [self.kind.said(DONE)]

    def take_turn(self, fault: str) -> None:
        """Run one turn with that fault."""
        is_new, self.fault = not self.id, fault
        session = self.id or str(uuid.uuid4())
        if self.id:
            self.mail()
        began = time.monotonic()
        words = self.kind.words(session, self.prompt(), is_new=is_new)
        self.process = self.kind.start(words)
        try:
            out, _ = self.process.communicate(timeout=MOST)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            out, _ = self.process.communicate()
        if is_new:
            found = re.search(rb'"(?:thread_id|sessionID)":"([^"]+)"', out)
            self.id = found[1].decode() if found else session
        self.note(f"{fault}: {self.process.returncode}, {time.monotonic() - began:.0f} s, {self.calls} requests")


class Week:
    """The mailbox and all its sessions."""

    def __init__(self, scratch: Path, clients: list[KnownClient], each: int, seed: int, mails: int, least: int) -> None:
        from . import week_places  # it builds on this module

        self.post, self.mails = Post(scratch), mails
        self.chance, self.lock = random.Random(seed), threading.Lock()
        kinds = [Kind(self.post, client) for client in clients]
        made = [(Session, kind) for kind in kinds for _ in range(each)]
        made += [(place, kind) for kind in kinds for place in week_places.OF.get(kind.client.name, ())]
        made += [(Session, kinds[number % len(kinds)]) for number in range(least - len(made))]
        self.sessions = [make(self, number, kind) for number, (make, kind) in enumerate(made)]
        for kind in kinds:
            kind.model.script = self.script(kind)

    def script(self, kind: Kind) -> Callable[[Body], list[Body]]:
        """Return the script of a client's model: each session by its last prompt or mail."""

        def answer(body: Body) -> list[Body]:
            found = PROMPT.findall(kind.model.talk(body))
            if not found or not body.get("tools"):
                return [kind.said(DONE)]
            return self.sessions[int(found[-1])].script(body)

        return answer

    def run(self, turns: int, minutes: float) -> None:
        """Run every session's turns: two sessions at a time, a last one of each without a fault. After these minutes
        nothing goes wrong any more."""
        gate, over = threading.Semaphore(2), time.monotonic() + minutes * 60

        def live(session: Session, faults: list[str]) -> None:
            for fault in ["none", *faults, "none"]:
                with gate:
                    if session.turn == 0 or time.monotonic() < over:
                        session.take_turn(fault)
            session.is_mailed = False  # whatever waits comes now
            with gate:
                session.take_turn("none")
            session.end()

        lives = [threading.Thread(target=live, args=dealt) for dealt in self.deal(turns)]
        for thread in lives:
            thread.start()
        for thread in lives:
            thread.join()

    def deal(self, turns: int) -> list[tuple[Session, list[str]]]:
        """Return what goes wrong in each session's turns: everything once while there are turns, then by chance."""
        dealt: list[tuple[Session, list[str]]] = [(session, []) for session in self.sessions]
        every = sorted({fault for session in self.sessions for fault in session.faults} - {"none"})
        self.chance.shuffle(every)
        for fault in sorted(every, key=lambda fault: sum(fault in session.faults for session in self.sessions)):
            free = [faults for session, faults in dealt if fault in session.faults and len(faults) < turns]
            if free:
                min(free, key=len).append(fault)
        for session, faults in dealt:
            faults += [self.chance.choice(session.faults) for _ in range(turns - len(faults))]
        return dealt

    def judged(self) -> list[str]:
        """Return what is wrong, and print what there was, as a table."""
        print("| client | place | sent | seen | twice | its turns |\n| --- | --- | --- | --- | --- | --- |")
        wrong, total = [], Counter[str]()
        for session in self.sessions:
            talks = [*session.past, session.last]
            counts = {word: sum(talk.count(word) for talk in talks) for word in session.sent}
            lost, twice = [w for w, n in counts.items() if not n], [w for w, n in counts.items() if n > 1]
            total += Counter(sent=len(counts), seen=len(counts) - len(lost), twice=len(twice))
            who = f"{session.kind.client.title}, {session.place} ({session.number})"
            cells = session.kind.client.title, session.place, len(counts), len(counts) - len(lost), len(twice)
            turns = " · ".join(line.partition(":")[0] for line in session.log)
            print(f"| {' | '.join(map(str, cells))} | {turns} |")
            wrong += [f"{who} lost {lost}"] * bool(lost) + [f"{who} was shown {twice} twice"] * bool(twice)
        print(dict(total))
        return wrong


def main(given: list[str]) -> int:
    """Run a week; exit 1 if a message was lost or shown twice."""
    parser = argparse.ArgumentParser(prog="scripts/clients week", description=__doc__)
    every = {client.name: client for client in (CLAUDE_CODE, CODEX, GEMINI_CLI, OPENCODE, COPILOT_CLI)}
    parser.add_argument("--each", type=int, default=3, help="headless sessions of each client, beside its other places")
    parser.add_argument("--turns", type=int, default=12, help="turns of each session in which something may go wrong")
    parser.add_argument("--mails", type=int, default=1, help="messages that are sent at once")
    parser.add_argument("--sessions", type=int, default=0, help="sessions at least; the further ones are headless")
    parser.add_argument("--minutes", type=float, default=600, help="after these, only the last turns are run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("clients", nargs="*", choices=[*every, []], metavar="CLIENT")
    args = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as scratch:
        chosen = [every[name] for name in args.clients or every]
        week = Week(Path(scratch), chosen, args.each, args.seed, args.mails, args.sessions)
        week.run(args.turns, args.minutes)
        wrong = week.judged()
    print("\n".join(wrong) or "sent = seen, none twice")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
