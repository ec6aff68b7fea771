"""The protections of a mailbox that several machines share, each taken away."""

from __future__ import annotations

from tests.faults.mutant import Mutant

TESTS = "tests/engine/test_replica.py"
FILES = "tests/engine/test_files.py"
POSTGRES = "tests/engine/test_postgres_order.py"
CLUSTER = "tests/engine/test_cluster.py"

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
        ("            if not self.parts[kind].strike(key):\n", "            if True:\n"),
        tests=f"{TESTS}::test_a_killed_process_leaves_nothing_twice",
    ),
    Mutant(
        "a seal of one machine proves nothing on another",
        "Replica._judged",
        (" if record.machine == self.order.machine else None", ""),
        ("self._proofs.get(line)", '"user@terminal"'),
        tests=f"{TESTS}::test_what_comes_from_another_machine_proves_nothing",
    ),
    Mutant(
        "a machine publishes below its own name alone",
        "cluster",
        ('"mbx.$space.$machine.>", "mbxf', '"mbx.$space.>", "mbxf'),
        tests=f"{CLUSTER}::test_a_machine_speaks_for_itself_alone",
    ),
    Mutant(
        "a machine ships files below its own name alone",
        "cluster",
        ('"mbxf.$space.$machine.>"', '"mbxf.$space.>"'),
        tests=f"{CLUSTER}::test_a_machine_speaks_for_itself_alone",
    ),
    Mutant(
        "a file from another machine is the one that its message names",
        "ExchangedFiles._fetch",
        (" and attachment_files.digest(data) == stored[:64]", ""),
        tests=f"{FILES}::test_a_false_file_is_none",
    ),
    Mutant(
        "a role of the database speaks for its machine alone",
        "space_tables",
        ("WHERE role = session_user AND machine = who) THEN", "WHERE role = session_user) THEN"),
        tests=f"{POSTGRES}::test_a_machine_speaks_for_itself_alone",
    ),
    Mutant(
        "a role of the database appends to no log of another machine",
        "space_tables",
        ("NOT IN ('messages', 'roster', 'claims', 'reads.' || who)", "= ''"),
        tests=f"{POSTGRES}::test_a_machine_speaks_for_itself_alone",
    ),
    Mutant(
        "a machine hears the answers to itself alone",
        "cluster",
        ('"_INBOX.$machine.>"', '"_INBOX.>"'),
        tests=f"{CLUSTER}::test_a_machine_speaks_for_itself_alone",
    ),
    Mutant(
        "a name brings no line into a server's configuration",
        "cluster.write",
        ("        if not host or not _HOST.issuperset(host):\n", "        if False:\n"),
        tests=f"{CLUSTER}::test_what_is_no_cluster_is_said",
    ),
    Mutant(
        "a machine that is added changes no secret",
        "cluster._kept",
        ("    if found is None:\n", "    if True:\n"),
        tests=f"{CLUSTER}::test_a_machine_is_added",
    ),
    Mutant(
        "a server that may lose mail is named",
        "server_checks._of_one",
        ('    if config.get("sync_always") is not True:\n', "    if False:\n"),
        tests=f"{CLUSTER}::test_a_server_that_may_lose_mail_is_named",
    ),
    Mutant(
        "a copy is compared before joining is done",
        "Replica.compare",
        ("all(part.total() == self._heard[kind] for kind, part in self.parts.items())", "True"),
        tests=f"{TESTS}::test_a_copy_that_was_changed_is_found_by_the_sums_alone",
    ),
    Mutant(
        "the nearest server's gaps are asked of the leader",
        "NatsOrder._read_on",
        ("missing = [seq for seq in range(place, end) if seq not in records]", "missing = list[int]()"),
        tests="tests/engine/test_nats_order.py::test_what_the_nearest_server_lacks_the_leader_has",
    ),
    Mutant(
        "a machine that is given up has the agents that it registered",
        "joining_space.forget",
        ("if where == machine]", "if where]"),
        tests="tests/engine/test_commands.py::test_a_machine_that_is_lost_is_given_up",
    ),
    Mutant(
        "a machine whose clock is ahead makes nobody seen tomorrow",
        "elsewhere._understood",
        ("min(max(at, 0), now)", "at"),
        tests="tests/engine/test_commands.py::test_a_word_of_another_form_counts_for_nothing",
    ),
)
