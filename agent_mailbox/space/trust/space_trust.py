"""The person's word on the other machines: changing it, and judging again what came before it.

Belongs here: those steps, and what waits for that word. A log is replaced as the steward replaces it, so a kill leaves
the old one or the new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core import codec, proofs
from ...core.address import ALL, check_id
from ...core.machine_rights import Rights, SessionMachines
from ...core.proofs import is_machine
from ...core.records import USER, Proof, Record, RosterEvent
from ...core.roster import Roster
from ...errors import Malformed, Refused
from ...store.archive.rotation import reseal
from ...store.files import paths
from . import machine_keys
from .space_judge import lines_that_wait, waiting_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...store.log.log import Log
    from ...store.log.logs import Logs
    from ...store.log.proof_view import ProofView
    from ..copy.replica import Replica
    from .space_judge import SpaceJudge

NOBODY = "nobody"
HEX = frozenset("0123456789abcdef")
FINGERPRINT = 32
"""Hex digits of a key's fingerprint."""


class RightsChange(Record):
    """The person's new word on a machine; None leaves that part as it is."""

    machine: str
    fingerprint: str | None = None
    user: bool | None = None
    sessions: tuple[str, ...] | None = None


def read_changes(keys: Sequence[str], words: Sequence[str]) -> list[RightsChange]:
    """Return the changes that options say: ``MACHINE=FINGERPRINT`` and ``MACHINE=WHO,WHO``; raise ``Malformed``."""
    found = []
    for text in keys:
        machine, fingerprint = _split_option(text)
        fingerprint = fingerprint.replace(":", "").replace("-", "").lower()
        if len(fingerprint) != FINGERPRINT or not HEX.issuperset(fingerprint):
            raise Malformed(f"fingerprint is not {FINGERPRINT} hex digits: {text}", "`engine status` there shows it")
        found.append(RightsChange(machine, fingerprint))
    for text in words:
        machine, who = _split_option(text)
        said = [word for word in who.split(",") if word]
        if not said or (NOBODY in said and len(said) > 1):
            raise Malformed(f"speakers are missing: {text}", f"write {machine}=user,all, or {machine}={NOBODY}")
        sessions = tuple(dict.fromkeys(w if w == ALL else check_id(w) for w in said if w not in (USER, NOBODY)))
        found.append(RightsChange(machine, None, USER in said, sessions))
    return found


def _split_option(text: str) -> tuple[str, str]:
    machine, parted, rest = text.partition("=")
    if not parted or not is_machine(machine):
        raise Malformed(f"option is not MACHINE=…: {text}", "write it as in south=user,all")
    return machine, rest


def change_rights(directory: str, own: str, changes: Iterable[RightsChange]) -> None:
    """Keep the person's word. Raises ``Refused`` for this machine itself, and for one whose key is not confirmed."""
    rights = dict(machine_keys.load_rights(directory))
    before = dict(rights)
    for one in changes:
        if one.machine == own:
            raise Refused(f"machine is this one: {own}", "name another machine")
        known = rights.get(one.machine)
        if known is None and one.fingerprint is None:
            raise Refused(
                f"machine's key is not confirmed: {one.machine}",
                f"add --key {one.machine}=FINGERPRINT, as `engine status` there shows it",
            )
        known = known or Rights("")
        user = known.user if one.user is None else one.user
        sessions = known.sessions if one.sessions is None else one.sessions
        rights[one.machine] = Rights(one.fingerprint or known.fingerprint, user, sessions)
    if rights != before:
        machine_keys.save_rights(directory, rights, applied=False)


def judge_waiting(copy: Replica) -> int:
    """Judge the lines that wait here by the person's present word, under the machine's lock; return how many count now.

    Nothing is done if the word did not change since, or if nothing here can verify."""
    judge = copy.judge
    if machine_keys.is_applied(copy.directory) or not machine_keys.is_available():
        return 0
    copy.catch_up()
    logs = copy.logs.roster, copy.logs.messages, copy.logs.reads
    numbers, true = judge.true_seals(*logs)
    copy.keep_state(numbers)  # before a line counts: so no copy of it ever does
    done = 0
    for log in logs:
        if true:
            roster = Roster() if log is copy.logs.roster else copy.logs.read_roster()
            count, fresh = reseal(copy.logs, log, _Again(judge, true, log, roster))
            done += count
            if fresh is not None:
                copy.go_on_in(fresh)
                copy.keep_state({})
    machine_keys.save_rights(copy.directory, judge.rights, applied=True)
    copy.catch_up()
    return done


def unheard_lines(logs: Logs) -> list[dict[str, object]]:
    """Return what waits here for the person's word: of each machine and key, how many lines."""
    found: dict[tuple[str, str], int] = {}
    for log in (logs.roster, logs.messages, logs.reads):
        for one in lines_that_wait(log):
            key = one.seal.machine, machine_keys.key_fingerprint(one.seal.key)
            found[key] = found.get(key, 0) + 1
    return [{"machine": one, "fingerprint": key, "lines": lines} for (one, key), lines in sorted(found.items())]


class _Again:
    """Judges the lines of a log in turn. The roster of a roster log is folded on the way, as it was line by line."""

    def __init__(self, judge: SpaceJudge, true: set[bytes], log: Log, roster: Roster) -> None:
        self._judge = judge
        self._true = true
        self._log = log
        self._roster = roster
        self._homes = SessionMachines(roster)

    def __call__(self, position: int, line: bytes, view: ProofView) -> tuple[bytes, Proof] | None:
        """See ``rotation.Judge``."""
        found = self._judge_again(position, line, view)
        counted = line if found is None else found[0]
        event = codec.roster_event(counted) if self._log.path.endswith(paths.ROSTER) else None
        if isinstance(event, RosterEvent):
            proof = (view.proof(line, position) or view.bare_word(line, position)) if found is None else found[1]
            self._roster.apply(event if proof is None else event.replace(proof=proof))
        return found

    def _judge_again(self, position: int, line: bytes, view: ProofView) -> tuple[bytes, Proof] | None:
        one = waiting_at(self._log, position, line, view)
        if one is None or one.seal.signature not in self._true:
            return None
        self._true.remove(one.seal.signature)  # a copy of the line is no second one
        judged = self._judge.weigh_seal(one.seal, one.log, one.line, self._homes)
        if judged.proof is None or not proofs.proves(judged.proof):
            return None
        return judged.line, judged.proof
