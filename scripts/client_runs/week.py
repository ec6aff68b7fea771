"""``scripts/clients week``: real sessions of five clients for many turns, with everything that goes wrong in a week.

Belongs here: who is there, what goes wrong in which turn, and the judgement: at the end each session's conversation
must hold each of its messages once.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.known_clients.codex import CODEX
from agent_mailbox.known_clients.copilot_cli import COPILOT_CLI
from agent_mailbox.known_clients.gemini_cli import GEMINI_CLI
from agent_mailbox.known_clients.opencode import OPENCODE
from tests.helpers import Post

from .week_places import PLACES
from .week_sessions import DONE, PROMPT, Kind, Session, WeekShare

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_mailbox.known_clients.known_client import KnownClient
    from tests.e2e.standin import Body


class Week:
    """The mailbox and all its sessions."""

    def __init__(self, scratch: Path, clients: list[KnownClient], each: int, seed: int, mails: int, least: int) -> None:
        share, self.chance = WeekShare(Post(scratch), mails), random.Random(seed)
        kinds = [Kind(share.post, client) for client in clients]
        made = [(Session, kind) for kind in kinds for _ in range(each)]
        made += [(place, kind) for kind in kinds for place in PLACES.get(kind.client.name, ())]
        made += [(Session, kinds[number % len(kinds)]) for number in range(least - len(made))]
        share.sessions += [make(share, number, kind) for number, (make, kind) in enumerate(made)]
        self.sessions = share.sessions
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
            turns = ", ".join(line.partition(":")[0] for line in session.log)
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
