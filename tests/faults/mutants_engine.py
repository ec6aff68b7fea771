"""The protections of a mailbox that several machines share, each taken away."""

from __future__ import annotations

from tests.faults.mutant import Mutant

TESTS = "tests/engine/test_replica.py"
FILES = "tests/engine/test_files.py"
POSTGRES = "tests/engine/test_postgres_order.py"
CLUSTER = "tests/engine/test_cluster.py"
CLUSTER_FILES = "tests/engine/test_cluster_files.py"
ACCOUNTS = "tests/engine/test_accounts.py"
RESTORING = "tests/engine/test_restoring.py"
ARCHIVING = "tests/engine/test_archiving.py"

MUTANTS = (
    Mutant(
        "a decision counts only if no other machine was first",
        "Replica.publish",
        ("expect=None if ids else self.state.last.get(kind, 0)", "expect=None"),
        tests=f"{TESTS}::test_who_is_overtaken_while_it_claims_is_shown_nothing",
    ),
    Mutant(
        "of two equal lines the one that was not taken in is published",
        "Unordered._add",
        ("            if is_expected:\n                expected[key] -= 1\n", ""),
        tests="tests/store/test_unordered.py::test_what_waits_is_what_a_plain_list_says",
    ),
    Mutant(
        "a server with another's certificate is out of reach, and refuses nothing",
        "postgres_connection",
        ('"client certificate")', '"certificate")'),
        tests=f"{POSTGRES}::test_the_server_proves_who_it_is",
    ),
    Mutant(
        "what is said before TLS begins is not taken for the server's word",
        "NatsConnection._connect",
        (
            "            self._incoming = ServerBytes(self._socket)\n        hello",
            "            self._incoming.source = self._socket\n        hello",
        ),
        tests=f"{CLUSTER}::test_a_machine_speaks_for_itself_alone",
    ),
    Mutant(
        "a purge leaves strangers' messages where they are",
        "purging.plan",
        ('kept.isdisjoint((record.log, ""))', "kept.isdisjoint((record.log,))"),
        tests="tests/engine/test_nats_order.py::test_what_all_archived_goes_at_once_up_to_what_must_stay",
    ),
    Mutant(
        "a purge leaves what stands between",
        "purging.plan",
        ("            kept.add(record.log)\n", ""),
        tests="tests/engine/test_nats_order.py::test_what_all_archived_goes_at_once_up_to_what_must_stay",
    ),
    Mutant(
        "a killed process's lines are found again",
        "Replica._take_lines",
        (
            "            if not self.parts[kind].strike(key) and not (self.state.compares and self.filed.has(key)):\n",
            "            if True:\n",
        ),
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
        "server_accounts._own",
        ('f"mbx.{space}.{machine}.>"', 'f"mbx.{space}.>"'),
        tests=f"{ACCOUNTS}::test_no_credential_reaches_more_than_its_own",
    ),
    Mutant(
        "a machine ships files below its own name alone",
        "server_accounts._own",
        ('f"mbxf.{space}.{machine}.>"', 'f"mbxf.{space}.>"'),
        tests=f"{ACCOUNTS}::test_no_credential_reaches_more_than_its_own",
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
        ("NOT IN ('messages', 'roster', 'claims', 'archive', 'passed', 'reads.' || who)", "= ''"),
        tests=f"{POSTGRES}::test_a_machine_speaks_for_itself_alone",
    ),
    Mutant(
        "a machine hears the answers to itself alone",
        "server_accounts",
        ('f"_INBOX.{user}.>"', '"_INBOX.>"'),
        tests=f"{CLUSTER}::test_a_machine_speaks_for_itself_alone",
    ),
    Mutant(
        "an answer reaches no call that the asker may not make",
        "server_accounts.space_accounts",
        ("[keeper]) for call in removals),", "[keeper, *all_of_them]) for call in removals),"),
        ("for one in own),\n", "for one in own), *_api(removals, store).values(),\n"),
        tests=f"{ACCOUNTS}::test_no_credential_reaches_more_than_its_own",
    ),
    Mutant(
        "a machine's calls reach its own space alone",
        "server_accounts.space_accounts",
        ('[f"{call}.{kind}_{space}" for', '[f"{call}.*" for'),
        tests=f"{ACCOUNTS}::test_no_credential_reaches_more_than_its_own",
    ),
    Mutant(
        "a space that was made to pass records on is refused",
        "stream_settings.refuse_strange",
        ("    if strange:\n", "    if False:\n"),
        tests=f"{ACCOUNTS}::test_a_space_that_a_machine_made_as_it_likes_is_refused",
    ),
    Mutant(
        "servers by earlier files are told from others",
        "NatsConnection._complaint",
        ("""if f'"{API}INFO"' in text:""", "if False:"),
        tests=f"{CLUSTER}::test_files_of_an_earlier_version_are_written_again",
    ),
    Mutant(
        "no machine loses its access in silence",
        "cluster_record._machines",
        ("    if change.machines and (lost", "    if not change.machines and (lost"),
        tests=f"{CLUSTER_FILES}::test_nobody_loses_access_in_silence",
    ),
    Mutant(
        "a secret on which others rely is not made again",
        "cluster._kept",
        ("    if found is None and is_known:\n", "    if False:\n"),
        tests=f"{CLUSTER_FILES}::test_nobody_loses_access_in_silence",
    ),
    Mutant(
        "the last role of a database stays, for without any each speaks as any",
        "database_roles._remove_role",
        ("WHERE role <> %s', (role,)):", "WHERE role <> %s', ('',)):"),
        tests=f"{POSTGRES}::test_nobody_loses_access_in_silence",
    ),
    Mutant(
        "a name brings no line into a server's configuration",
        "cluster_record._check",
        ("        if not host or not _HOST.issuperset(host):\n", "        if False:\n"),
        tests=f"{CLUSTER_FILES}::test_what_is_no_cluster_is_said",
    ),
    Mutant(
        "a machine that is added changes no secret",
        "cluster._kept",
        ("    if found is None:\n", "    if True:\n"),
        tests=f"{CLUSTER_FILES}::test_a_machine_is_added",
    ),
    Mutant(
        "a server that may lose mail is named",
        "server_checks._of_one",
        ('    if config.get("sync_always") is not True:\n', "    if False:\n"),
        tests=f"{CLUSTER}::test_a_server_that_may_lose_mail_is_named",
    ),
    Mutant(
        "a copy is compared before joining is done",
        "comparison.compare",
        ("all(part.total() == copy.heard[kind] for kind, part in copy.parts.items())", "True"),
        tests=f"{TESTS}::test_a_copy_that_was_changed_is_found_by_the_sums_alone",
    ),
    Mutant(
        "what comes while a copy is compared is no difference",
        "comparison.compare",
        ("itertools.takewhile(lambda one: one.position <= copy.state.applied, copy.everything())", "copy.everything()"),
        tests=f"{TESTS}::test_what_comes_while_a_copy_is_compared_is_no_difference",
    ),
    Mutant(
        "the nearest server's gaps are asked of the leader",
        "NatsOrder._read_on",
        ("missing = [seq for seq in range(place, end) if seq not in records]", "missing = list[int]()"),
        tests="tests/engine/test_nats_order.py::test_what_the_nearest_server_lacks_the_leader_has",
    ),
    Mutant(
        "a publisher's headers name no other machine",
        "connection.header",
        ("head.rfind(mark)", "head.find(mark)"),
        tests="tests/engine/test_nats_order.py::test_a_publisher_says_neither_its_machine_nor_its_place",
    ),
    Mutant(
        "a machine that is given up has the agents that it registered",
        "joining_space.give_up",
        ("if not homes.is_another_s(who, machine)]", "if False]"),
        tests="tests/engine/test_commands.py::test_a_machine_that_is_lost_is_given_up",
    ),
    Mutant(
        "a machine whose clock is ahead makes nobody seen tomorrow",
        "elsewhere._understood",
        ("min(max(at, 0), now)", "at"),
        tests="tests/engine/test_commands.py::test_a_word_of_another_form_counts_for_nothing",
    ),
    Mutant(
        "a steward decides only if nothing came since it looked",
        "Replica.file_away",
        ("expect=end", "expect=None"),
        tests=f"{ARCHIVING}::test_a_steward_that_is_overtaken_looks_again",
    ),
    Mutant(
        "mail that is archived meanwhile is not given back",
        "Mailbox.release",
        ("        if self.replica is not None:  # another", "        if False:  # another"),
        tests=f"{ARCHIVING}::test_mail_that_is_archived_meanwhile_is_not_given_back",
    ),
    Mutant(
        "only what the order has is moved",
        "rotation._split",
        (" or (order is not None and not order.has(log, position))", ""),
        tests=f"{ARCHIVING}::test_a_read_that_is_not_shipped_is_not_lost",
    ),
    Mutant(
        "no other machine archives an order that stands here",
        "following._follow_messages",
        ('        if any(state.messages[i].type == "control" for i in move):\n', "        if False:\n"),
        tests=f"{ARCHIVING}::test_an_order_stands_whoever_says_that_it_is_archived",
    ),
    Mutant(
        "a bundle names an archive's file alone",
        "bundles.unpacked",
        (" or not is_file(file)", ""),
        tests=f"{ARCHIVING}::test_a_bundle_of_another_form_counts_for_nothing",
    ),
    Mutant(
        "a bundle does not fill the memory",
        "bundles.unpacked",
        ("unpacking.decompress(line, LARGEST)", "unpacking.decompress(line)"),
        tests=f"{ARCHIVING}::test_a_bundle_of_another_form_counts_for_nothing",
    ),
    Mutant(
        "the engine is purged of what all machines archived alone",
        "purging.plan",
        (", 0) <= floor\n", ", 0)\n"),
        tests=f"{ARCHIVING}::test_what_everybody_archived_is_purged_and_a_new_machine_has_it",
    ),
    Mutant(
        "the next decision finds the record that it expects",
        "purging.plan",
        (" or record.position == last[record.log]", ""),
        tests=f"{ARCHIVING}::test_what_everybody_archived_is_purged_and_a_new_machine_has_it",
    ),
    Mutant(
        "mail that waited is looked up here before it is sent",
        "publishing.send_queued",
        ("known = _known(copy, ids)", "known = list[bytes]()"),
        tests=f"{ARCHIVING}::test_a_retried_send_of_purged_mail_is_the_same_mail",
    ),
    Mutant(
        "an id of archived mail is taken, also where the engine has it no more",
        "publishing._publish_lines",
        ("    if log == MESSAGES and copy.state.purged and", "    if False and"),
        tests=f"{ARCHIVING}::test_a_foreign_line_with_a_purged_id_stays_here",
    ),
    Mutant(
        "archived mail is handed over once",
        "following.hand_over",
        ("if digest(line) not in known", "if True"),
        tests=f"{ARCHIVING}::test_mail_archived_before_joining_is_handed_over_once",
    ),
    Mutant(
        "a machine whose record is lost knows what it archived",
        "Replica._compare_all",
        ("        self.filed.look()\n", ""),
        tests=f"{ARCHIVING}::test_a_machine_that_lost_its_record_shows_nothing_again",
    ),
    Mutant(
        "an engine that lost the end of its order is noticed",
        "Replica.catch_up",
        (" and self._is_rewound():", " and False:"),
        tests=f"{RESTORING}::test_an_engine_that_lost_its_end",
    ),
    Mutant(
        "an engine that lost records in its middle is noticed",
        "Replica.look_closer",
        ("        if holes == known and not at_all:\n", "        if True:\n"),
        tests=f"{RESTORING}::test_an_engine_that_lost_records_in_its_middle",
    ),
    Mutant(
        "a mailbox that joined is in its space after a power failure",
        "space.save",
        ("    system.sync_directory(system.dirname(record.path(PLACE)))", "    pass"),
        tests="tests/simulation/test_machines.py::test_a_mailbox_that_joined_is_in_its_space_after_a_power_failure",
    ),
    Mutant(
        "a line that a dead process left is durable before a copy counts it",
        "Replica._save",
        ("            part.secure()\n", "            pass\n"),
        tests="tests/simulation/test_machines.py::test_a_line_that_a_dead_process_left_is_durable_before_it_counts",
    ),
    Mutant(
        "an event that is told again is archived once",
        "roster_compaction.retell_roster",
        ("if here.keys() >= {*events} and", "if not dropped and here.keys() >= {*events} and"),
        tests=f"{ARCHIVING}::test_a_machine_that_lost_its_record_retells_the_dead_once",
    ),
    Mutant(
        "the retold dead stay dead when the engine lost that",
        "lost_records.restore",
        ("in _retold(copy, bundled):", "in ():"),
        tests=f"{RESTORING}::test_the_retold_dead_stay_dead",
    ),
    Mutant(
        "a life that is here in part is judged whole",
        "roster_compaction._lives",
        ("    if here.keys() >= {*told.lines}:\n", "    if True:\n"),
        tests=f"{RESTORING}::test_the_retold_dead_stay_dead",
    ),
    Mutant(
        "the dead whose end is in a bundle alone are dead",
        "roster_compaction.retell_roster",
        ("_stays(line, before, told.since)", "_stays(line, Roster(parse_roster(lines, roster.view())), told.since)"),
        tests=f"{RESTORING}::test_a_newcomer_who_believes_the_others_has_the_retold_dead",
    ),
    Mutant(
        "a record of how far a machine is is like no other",
        "passed._line",
        (', "mark": system.urandom(8).hex()', ""),
        tests=f"{RESTORING}::test_an_engine_whose_new_end_says_the_same",
    ),
    Mutant(
        "lines that came back are no decision to retell",
        "lost_records.restore",
        ("bundle.lines if bundle.file not in KINDS else ()", "bundle.lines"),
        tests=f"{RESTORING}::test_the_retold_dead_stay_dead",
    ),
    Mutant(
        "what comes back is written once",
        "lost_records.take_back",
        (" if (key := digest(line)) not in live and not copy.filed.has(key)", " if (key := digest(line))"),
        tests=f"{RESTORING}::test_an_engine_that_lost_its_end",
    ),
    Mutant(
        "a line that stays here alone is nothing that was lost",
        "lost_records._lost",
        ('        ids.update(map(_id, copy.archive.mentioning({_id(line) or "" for line in lines})))\n', ""),
        tests=f"{RESTORING}::test_what_stays_here_alone_is_nothing_that_was_lost",
    ),
    Mutant(
        "who has a damaged record's line brings it back",
        "Replica._hear",
        ("            self.state.doubts = True\n", ""),
        tests=f"{RESTORING}::test_a_damaged_record_stops_nobody_and_comes_back",
    ),
    Mutant(
        "no decision waits for a record that is lost",
        "Replica.catch_up",
        (" and self._was_moved:", " and False:"),
        tests=f"{RESTORING}::test_a_decision_that_expects_a_lost_record_is_taken",
    ),
    Mutant(
        "a session's own machine gives back behind what it recorded before",
        "OpenMailbox.giving_back",
        (", is_own=any(map(self._lives_here, sessions))", ""),
        tests=f"{TESTS}::test_a_read_beside_its_release_means_the_same_on_all_machines",
    ),
    Mutant(
        "nobody of a machine decides between a release and its place in the order",
        "SharedLog._decided",
        (
            "with self._replica.held():\n            with self._log.held() as held:\n                done = act(held)",
            "with self._log.held() as held:\n            done = act(held)\n        with self._replica.held():",
        ),
        tests=f"{TESTS}::test_who_gives_back_waits_for_who_decides",
    ),
    Mutant(
        "a read that a decision took back stays out of the order",
        "publishing.waiting",
        ("                part.settle(position)\n                continue\n", "                pass\n"),
        tests=f"{TESTS}::test_a_read_that_another_machine_s_release_overtook_is_taken_back",
    ),
    Mutant(
        "a read that a release took back is nothing that was lost",
        "lost_records._lost",
        (" if at not in over]", "]"),
        tests=f"{TESTS}::test_a_read_that_another_machine_s_release_overtook_is_taken_back",
    ),
    Mutant(
        "a release of another machine wakes everybody however it is spelt",
        "line_forms.may_release",
        (' or b"\\\\" in line', ""),
        tests=f"{TESTS}::test_a_release_from_another_machine_wakes_everybody_however_it_is_spelt",
    ),
)
