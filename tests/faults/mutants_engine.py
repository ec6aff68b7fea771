"""The protections of a mailbox that several machines share, each taken away."""

from __future__ import annotations

from tests.faults.mutant import Mutant

TESTS = "tests/engine/test_replica.py"

MUTANTS = (
    Mutant(
        "a decision counts only if no other machine was first",
        "Replica.publish",
        ("expect=None if ids else self.last.get(kind, 0)", "expect=None"),
        tests=f"{TESTS}::test_who_is_overtaken_while_it_claims_is_shown_nothing",
    ),
    Mutant(
        "a killed process's lines are found again",
        "Replica._write",
        ("            if not self.parts[kind].strike(record.line):\n", "            if True:\n"),
        tests=f"{TESTS}::test_a_killed_process_leaves_nothing_twice",
    ),
    Mutant(
        "a seal of one machine proves nothing on another",
        "Replica._write",
        (" if r.machine == self.order.machine else None", ""),
        ("self._proofs.get(r.line)", '"user@terminal"'),
        tests=f"{TESTS}::test_what_comes_from_another_machine_proves_nothing",
    ),
)
