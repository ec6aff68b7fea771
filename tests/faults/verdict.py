"""What must hold after a fault, and after the next commands have run without one.

Belongs here: the invariants, in the order they are asked. The logs are read by ``evidence``; only showing mail to
readers is left to the program itself, for that is what readers see.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from tests.faults import world
from tests.faults.evidence import Evidence, parsed, unchanged
from tests.faults.world import READERS, WAITING
from tests.helpers import MESSAGES

if TYPE_CHECKING:
    from tests.faults.commands import Command
    from tests.helpers import Post, Result

KILLED = -9


class Verdict:
    """One command that met a fault in one mailbox."""

    def __init__(self, post: Post, command: Command, before: Evidence, result: Result) -> None:
        self.post = post
        self.command = command
        self.before = before
        self.result = result
        self.shown: Counter[tuple[str, str]] = Counter()
        self.twice: set[tuple[str, str]] = set()

    def all(self, *, fails: bool | None = None, torn: bool = False) -> None:
        """Every invariant. ``fails``: the fault is one that the command must report, or (False) must not; ``torn``:
        half a line may have been left."""
        self.ended_as_documented(fails)
        after = Evidence(self.post.box)
        self.nothing_earlier_changed(after, torn)
        self.acknowledged_is_written(after)
        self.nothing_hides_mail()
        self.completes()
        self.everyone_is_shown_everything_once()
        self.in_order()

    def ended_as_documented(self, fails: bool | None) -> None:
        """With an exit code of the contract, an error in a line, no traceback."""
        rc, said = self.result.rc, self.result.stderr
        assert rc == KILLED or 0 <= rc <= 5, self.result
        assert "Traceback" not in said, self.result
        assert "defect" not in said, self.result
        if rc > 0:
            assert said.startswith("error: "), self.result
        if fails is not None:
            failed = "agent-mailbox: " in said if self.command.hook else rc == 5
            assert failed == fails, self.result
        if rc == 5 and self.command.hints:
            assert self._hinted(), f"no id to repeat it with: {self.result}"
        assert self.result.stderr.count("repeat") <= 1, f"told twice to repeat it: {self.result}"
        if self.command.hook and rc == 0 and self.result.stdout and "cannot write the output" not in said:
            assert isinstance(self.result.json, dict), "a hook answers with one document"

    def _hinted(self) -> list[str]:
        return re.findall(r"--id ([0-9a-f-]{36})", self.result.stderr)[:1]

    def nothing_earlier_changed(self, after: Evidence, torn: bool) -> None:
        """Nobody's record changed, no role mail that waits was moved, and no half line is where none may."""
        unchanged(self.before, after, rewritten=self.command.steward)
        assert after.ids(archived=False).keys() >= WAITING, "mail that waits was moved"
        news = Counter(after.bad()) - Counter(self.before.bad())
        assert torn or not news, f"half a line: {news}"

    def acknowledged_is_written(self, after: Evidence) -> None:
        """What the command said it did is in the logs, and whatever it recorded as read it had shown."""
        if self.command.reads is not None:
            self._account_for_shown(after)
        elif self.result.rc == 0:
            assert self.command.done(after), "acknowledged, and not there"

    def _account_for_shown(self, after: Evidence) -> None:
        reader = self.command.reads
        assert reader is not None
        mine = world.UNREAD[reader] | {number for number, holders in world.UNCLAIMED.items() if reader in holders}
        shown = {number for number in mine if self._shows(number)}
        recorded = {number for number in mine if (reader, number) in after.standing()}
        assert recorded <= shown, f"recorded, and not shown: {recorded - shown}"
        if self.result.rc == 0 and not (self.command.hook and self.result.stderr):
            assert shown == recorded == mine, (shown, recorded)
        self.shown.update((reader, number) for number in shown)
        self.twice = {(reader, number) for number in shown - recorded}

    def _shows(self, number: str) -> bool:
        """Does the output, whole as it must be to be understood, hold the message?"""
        if parsed(self.result.raw) is None:
            return False
        text = self.result.stdout
        if self.command.hook:  # which may also answer with nothing but a word for the person
            text = self.result.json.get("hookSpecificOutput", {}).get("additionalContext", "")
        return world.body(number) in text

    def nothing_hides_mail(self) -> None:
        """No quiet stamp is in front of unread mail."""
        quiet = self.post.box / ".cache" / "quiet"
        for stamp in quiet.iterdir() if quiet.is_dir() else ():
            assert self.post.unread(stamp.name) == [], f"a stamp hides mail from {stamp.name}"

    def completes(self) -> None:
        """The same command, run again without a fault, ends well and has its effect, once."""
        if self.command.reads is None:
            again = [*self.command.words, "--id", *self._hinted()] if self._hinted() else self.command.again
            result = self.post.call(*again, stdin=self.command.stdin)
            gone = self.command.gone and result.rc == 1 and "dead" in result.stderr
            assert result.rc == 0 or gone, result
        if self.command.then:
            assert self.post.call(*self.command.then).rc == 0
        after = Evidence(self.post.box)
        if self.command.reads is None and (self._hinted() or self.command.again == self.command.words):
            assert self.command.done(after)
            contents = Counter(record["content"] for record in after.records(MESSAGES) if "content" in record)
            assert set(contents.values()) == {1}, "a message stands there twice"
        assert set(after.ids().values()) == {1}, "a message stands there twice"

    def everyone_is_shown_everything_once(self) -> None:
        """Each reader is shown what it is for, role mail goes to one holder, and nothing comes again; only what a
        command showed that did not live to record it may be seen twice."""
        adds = self.command.adds
        readers = [r for r in (*READERS, *(adds.keys() - set(READERS))) if r != self.command.gone]
        notices = self._notices()
        for reader in readers:
            self.shown.update((reader, number) for number in self.post.check(reader) if number not in notices)
        again = {(reader, number) for number_of in readers for reader, number in self._unread(number_of)}
        assert not again, f"shown, and unread again: {again}"
        wanted = {(r, n) for r in readers for n in world.UNREAD.get(r, set()) | adds.get(r, set())}
        held = {key for key in self.shown if key[1] in self.command.claims}
        for number, holders in self.command.claims.items():
            takers = {reader for reader, claimed in held if claimed == number}
            assert len(takers) == 1, f"{number} went to {takers}"
            assert takers <= holders
        assert self.shown.keys() - held == wanted
        for key, times in self.shown.items():
            assert times == 1 + (key in self.twice), (key, times)
        standing = Evidence(self.post.box).standing()
        assert all(standing[key] == 1 for key in self.shown), "recorded twice, or not at all"

    def _notices(self) -> set[str]:
        """The ids of the steward's notices, which tell each sender of each dead letter once."""
        notices = [r for r in Evidence(self.post.box).records(MESSAGES) if r.get("sender") == "steward"]
        told = Counter(letter for notice in notices for letter in notice["metadata"]["dead_letters"])
        assert set(told.values()) <= {1}, f"told twice: {told}"
        assert told or not self.command.steward, "nobody was told of the broadcast that nobody read"
        return {notice["id"] for notice in notices}

    def _unread(self, reader: str) -> list[tuple[str, str]]:
        return [(reader, number) for number in self.post.unread(reader)]

    def in_order(self) -> None:
        """The doctor finds nothing but the line that was foreign before, torn lines, and reads of what those were."""
        for problem in self.post.doctor():
            what = problem["what"]
            expected = what.startswith("not a record") or "of a missing message" in what
            assert expected or problem["repair"] == "remove torn line", problem
