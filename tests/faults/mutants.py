"""Each protection taken away in turn: is there a test that notices?

``python -m tests.faults.mutants [WORD…]`` patches a copy of the package, runs the tests that are expected to fail on
it, and writes which did to docs/internals/reliability.md. The same tests must pass on an unpatched copy, or they prove
nothing. With words only the mutants in whose description, place or file one of them occurs are tried; the others' rows
stay.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.faults import (
    mutants_addresses,
    mutants_attachments,
    mutants_claims,
    mutants_clocks,
    mutants_codex,
    mutants_console,
    mutants_control,
    mutants_dead,
    mutants_engine,
    mutants_leases,
    mutants_lost,
    mutants_machines,
    mutants_mcp,
    mutants_permissions,
    mutants_trust,
    mutants_unreadable,
    mutants_waking,
    mutants_watches,
)
from tests.faults.mutant import Mutant
from tests.faults.report import section, table, write_section
from tests.helpers import ROOT
from tests.swarm.mutants import TAKEN

PROCESSES = 2
KILLS, ERRORS, SHORT, TORN, MOMENTS = (
    f"tests/faults/test_{name}.py" for name in ("kills", "errors", "short_writes", "torn", "moments")
)
ASKING = "tests/store/test_asking.py"
FOREIGN = "tests/store/test_foreign_lines.py"
RECEIPTS = "tests/claude/test_receipts.py"
TEAM_KILLS, TEAM_BRIDGE, TEAM_IMPORT, TEAM_HOSTILE = (
    f"tests/teams/test_{name}.py" for name in ("kills", "bridge", "import", "hostile")
)
REPEATED = f"{ERRORS}::test_what_was_not_synced_is_synced_by_the_repetition"


MUTANTS = (
    Mutant(
        "a hint repeats the place of the mailbox",
        "suggested._taken",
        ("if DIR in given and names[0] not in _PLACED:", "if False:"),
        tests="tests/cli/test_hint_runs.py::test_each_command_that_an_answer_names_works_as_it_stands",
    ),
    Mutant(
        "a missing backup is named ahead of the place that is taken",
        "upkeep.restore",
        ("    backups.opened(file).close()", "    pass"),
        tests="tests/cli/test_first_errors.py::test_a_missing_file_is_what_the_error_names",
    ),
    Mutant(
        "a page's hint repeats the place of the mailbox",
        "error_pages.answered",
        ("visible(complete(error.hint))", "visible(error.hint)"),
        tests="tests/console/test_hints.py::test_the_commands_on_a_page_name_the_mailbox_that_the_console_was_given",
    ),
    Mutant(
        "an answer to the person's mail reaches the person",
        "inbound._recipients",
        ("if asker == USER:", "if False:"),
        tests="tests/swarm/test_pair.py::test_the_person_gets_the_answers_and_what_comes_while_no_agent_has_joined",
    ),
    Mutant(
        "a doorbell that is dead promises nothing",
        "arrivals._is_taken",
        ("return not _is_shared(fd, 1)", "return True"),
        tests="tests/cli/test_arrival.py::test_a_doorbell_that_was_killed_wakes_nobody",
    ),
    Mutant(
        "only a client that certainly runs is promised to see mail at its next turn",
        "HostRecords._lives",
        ("None if self.is_living(host) else False", "self.is_living(host)"),
        tests="tests/cli/test_arrival.py::test_a_client_that_may_live_elsewhere_promises_nothing",
    ),
    Mutant(
        "lines of a killed writer are written again before the log's end is noted behind them",
        "HeldLog._count",
        ("found or self._left_by_us(inode, size) is not None", "found"),
        tests="tests/simulation/test_simulation.py::test_a_world_that_broke_a_promise_breaks_none",
    ),
    Mutant(
        "mail is recorded as read only after it was shown",
        "check_verb.check",
        (
            "    desk.deliver(me, show, choose=page.choose, offering=page.offer)\n",
            "    later = []\n    real = app.hand_over\n"
            "    app.hand_over = lambda said: (later.append(said), (len(said), None))[1]\n"
            "    desk.deliver(me, show)\n    for said in later:\n        real(said)\n",
        ),
        tests=f"{KILLS}::test_killed_before_any_system_call[check]",
    ),
    Mutant(
        "what a reader left in the pipe is not read",
        "output.write_pieces",
        ("return max(number if is_begun else number - 1, 0), error", "return len(pieces), None"),
        tests="tests/cli/test_taken.py::test_a_reader_that_takes_no_byte_has_read_nothing",
    ),
    Mutant(
        "a message is read once its reader asked for what follows it",
        "output.write_pieces",
        ("(*pieces[:-1], pieces[-1][:-1], pieces[-1][-1:])", '("".join(pieces),)'),
        tests="tests/cli/test_taken.py::test_a_reader_that_stops_within_mail_leaves_the_rest_unread",
    ),
    Mutant(
        "a socket drops what its reader left, and that was not taken",
        "output_reader.question",
        ("if left == 0 and", "if left != 0 and"),
        tests="tests/cli/test_taken.py::test_a_client_that_closes_its_socket_was_shown_no_answer_of_a_hook",
    ),
    Mutant(
        "a hook's answer is shown once the client took it",
        "hook_command.answer",
        ("write_taken(text)", "write_out(text, PATIENCE)"),
        tests="tests/cli/test_taken.py::test_a_client_that_leaves_without_a_hook_s_answer_was_shown_nothing",
    ),
    Mutant(
        "no hook is of a reserved session",
        "client_input.parse",
        ("if is_shown(session_id):", "if False:"),
        tests="tests/claude/test_hooks.py::test_no_event_of_any_client_is_of_a_reserved_session[user]",
    ),
    Mutant(
        "a check counts as shown to a model that got all of it",
        "transcript.is_whole_check",
        ('count.startswith(f"{len(shown) + 1} characters")', "True"),
        tests=f"{RECEIPTS}::test_a_check_of_which_the_model_got_a_part_is_offered_again",
    ),
    Mutant(
        "a client is given no more mail than it passes on",
        "client_output.fitting",
        ("if room < 0 and number:", "if False:"),
        tests=f"{RECEIPTS}::test_below_a_client_a_check_shows_what_its_client_passes_on",
    ),
    Mutant(
        "the words of another session tell nothing",
        "transcript._states",
        (' or event.get("sessionId") != session_id', ""),
        tests=f"{RECEIPTS}::test_lines_of_another_session_tell_nothing",
    ),
    Mutant(
        "a torn tail is isolated",
        "HeldLog.append",
        (
            '                first = b"\\n" if size and system.pread(self.fd, 1, size - 1) != b"\\n" else b""\n',
            '                first = b""\n',
        ),
        tests=f"{TORN}::test_a_torn_tail_before_each_command[send]",
    ),
    Mutant(
        "the list of a killed hook's offers is looked up in the log",
        "offers.load",
        ("        return recalled(logs, session_id)\n", "        return []\n"),
        tests="tests/claude/test_receipts.py::test_a_killed_hook_s_list_is_looked_up_in_the_log",
    ),
    Mutant(
        "a repair keeps what it cuts",
        "doctor._keep",
        ("for one in torn if", "for one in () if"),
        tests="tests/cli/test_upkeep.py::test_a_repair_mends_only_modes_and_torn_lines_and_keeps_what_it_cut",
    ),
    Mutant(
        "nobody can give many ids one number in the index",
        "index_keys.number_of",
        ('    return int.from_bytes(_digest(data), "big") >> 1\n', "    return len(data)\n"),
        tests="tests/store/test_bounds.py::test_search_and_history_cost_as_much_as_they_find",
    ),
    Mutant(
        "a control character in a line leaves it to the codec",
        "ExactLines.fields",
        ("if len(line.translate(None, _CONTROL)) < len(line):", "if not line:"),
        tests="tests/core/test_exact_lines.py::test_what_is_taken_apart_is_what_the_codec_reads",
    ),
    Mutant(
        "the console's pages do not wait for the index",
        "Desk.prepare",
        ("        self._looking.library.newest_alone = True\n", ""),
        tests="tests/console/test_first_start.py::test_pages_cover_the_newest_mail_until_the_index_is_there",
    ),
    Mutant(
        "a failed sync is a failed command",
        "HeldLog._unlock_then_sync",
        (
            "        except OSError as error:\n            raise StorageFailed(",
            "        except OSError as error:\n            return\n            raise StorageFailed(",
        ),
        tests=f"{ERRORS}::test_refused_a_system_call[send]",
    ),
    Mutant(
        "a failed sync is not tried again until it succeeds",
        "HeldLog._unlock_then_sync",
        (
            "            system.fdatasync(self.fd)\n",
            "            try:\n                system.fdatasync(self.fd)\n"
            "            except OSError:\n                system.fdatasync(self.fd)\n",
        ),
        tests=f"{ERRORS}::test_refused_a_system_call[ack]",
    ),
    Mutant(
        "what is acknowledged is synced",
        "HeldLog._unlock_then_sync",
        ("            system.fdatasync(self.fd)\n", "            pass\n"),
        tests=f"{ERRORS}::test_nothing_is_acknowledged_that_a_power_failure_could_take[send]",
    ),
    Mutant(
        "the archive is synced before the live log is replaced",
        "rotation.add_missing",
        (
            "        held.sync((there[line], line) for line in lines if line in there)\n",
            "        held._dirty = False\n",
        ),
        tests=f"{ERRORS}::test_nothing_is_acknowledged_that_a_power_failure_could_take[steward run]",
    ),
    Mutant(
        "lines that an interrupted run left in the archive are synced, too",
        "rotation.add_missing",
        ("        held.sync((there[line], line) for line in lines if line in there)\n", ""),
        tests=f"{REPEATED}[killed before it-steward run]",
    ),
    Mutant(
        "what moves is in the archive before the live log is replaced",
        "rotation.rotate",
        ("        for month, lines in moved.items():\n            add_missing(archive.log(month), lines, filed)\n", ""),
        (
            "        replaced += ",
            "        for month, lines in moved.items():\n            add_missing(archive.log(month), lines, filed)\n"
            "        replaced += ",
        ),
        tests=f"{KILLS}::test_killed_before_any_system_call[steward run]",
    ),
    Mutant(
        "the messages are replaced before the reads",
        "rotation.rotate",
        ("        replaced = [put_back(messages, kept, messages_size)] if moved else []\n", ""),
        (
            "        replaced += [put_back(reads, kept_reads, reads_size)] if moved_reads else []\n",
            "        replaced = [put_back(reads, kept_reads, reads_size)] if moved_reads else []\n"
            "        replaced += [put_back(messages, kept, messages_size)] if moved else []\n",
        ),
        tests=f"{KILLS}::test_killed_before_any_system_call[steward run]",
    ),
    Mutant(
        "a run that was killed half way is taken up, not done again",
        "rotation.add_missing",
        ("for line in lines if line not in there)", "for line in lines)"),
        tests=f"{KILLS}::test_killed_before_any_system_call[steward run]",
    ),
    Mutant(
        "pending mail is never moved",
        "retention._part_done",
        (
            "        return claims.holder(message, state.reads, state.roster, address) is not None\n",
            "        return True\n",
        ),
        tests=f"{KILLS}::test_killed_before_any_system_call[steward run]",
    ),
    Mutant(
        "the new log is synced before it takes the old one's place",
        "replacement.replace",
        ("            system.fsync(fd)\n", ""),
        tests=f"{ERRORS}::test_nothing_is_acknowledged_that_a_power_failure_could_take[steward run]",
    ),
    Mutant(
        "a log's new name is synced by whoever writes next, if the steward could not",
        "HeldLog.append",
        ("size == 0 or (left is None and self.trail is not None)", "size == 0"),
        tests="tests/store/test_log.py::test_the_name_of_a_log_that_another_made_is_durable_before_our_lines",
    ),
    Mutant(
        "the name of a new file is synced",
        "HeldLog.append",
        ("size == 0 or (left is None and self.trail is not None)", "left is None and self.trail is not None"),
        tests=f"{ERRORS}::test_nothing_is_acknowledged_that_a_power_failure_could_take[steward run]",
    ),
    Mutant(
        "what foreign programs append beside the steward follows into the new log",
        "replacement._fetch",
        ("    if late:\n", "    if late and False:\n"),
        tests=f"{MOMENTS}::test_what_foreign_programs_write_beside_the_steward_stays",
    ),
    Mutant(
        "a write of which a part arrived is taken back",
        "HeldLog._write",
        ("                system.ftruncate(self.fd, size)\n", "                pass\n"),
        tests=f"{SHORT}::test_a_part_is_written_and_then_no_more[refuse-send] and "
        f"{SHORT}::test_the_file_system_is_full[send]",
    ),
    Mutant(
        "a write of which a part arrived is completed",
        "HeldLog._write",
        (
            "            while written < len(data):\n                written += ",
            "            if written < len(data):\n                written += ",
        ),
        tests=f"{SHORT}::test_every_write_takes_only_a_part[send]",
    ),
    Mutant(
        "a derived file of which a part was written is not believed",
        "cache.save",
        ("            if system.write(fd, data) == len(data):", "            if system.write(fd, data):"),
        tests="tests/store/test_cache.py::test_a_file_of_which_a_part_was_written_is_not_taken",
    ),
    Mutant(
        "a quiet stamp goes before its reader's mail comes",
        "HeldLog._announce",
        ("            self.trail.disturb(EVERYONE if epoch is None else disturbs)\n", "            pass\n"),
        tests=f"{KILLS}::test_killed_before_any_system_call[send]",
    ),
    Mutant(
        "an id that stands twice, in a foreign line, has every session begin again",
        "foreign_lines.are_new",
        ("return is_new and not are_read(", "return bool(wanted) or is_new and not are_read("),
        tests=f"{FOREIGN}::test_an_id_that_stands_twice_is_shown_once",
    ),
    Mutant(
        "the table of ids tells of every line before the foreign ones",
        "IdTable._may_have",
        ("= (*self._files, self._fresh)", "= (self._fresh,)"),
        tests=f"{FOREIGN}::test_an_id_that_stands_twice_and_that_nobody_read_has_all_begin_again",
    ),
    Mutant(
        "a small file of ids beside another large one counts for nothing",
        "IdTable.__init__",
        (" or beside != self._large", ""),
        tests=f"{FOREIGN}::test_a_small_file_beside_another_large_one_counts_for_nothing",
    ),
    Mutant(
        "the table of ids takes the small file's entries along",
        "IdTable.save",
        ("(one for file in small for one in file.entries())", "()"),
        tests=f"{FOREIGN}::test_a_table_that_grew_bit_by_bit_holds_every_id",
    ),
    Mutant(
        "no more lines of one hash are decoded than chance brings",
        "IdTable._may_have",
        ("turn == TWINS or ", ""),
        tests=f"{FOREIGN}::test_ids_that_share_a_hash_are_not_all_decoded",
    ),
    Mutant(
        "nobody waits while records are taken in",
        "foreign_lines.are_new",
        ("are_read(logs, wanted, LAG)", "are_read(logs, wanted)"),
        tests=f"{FOREIGN}::test_nobody_waits_while_records_are_taken_in",
    ),
    Mutant(
        "a record that only shares a hash has nobody begin again",
        "AskTable._has_record",
        (" and known[0] == word", ""),
        tests=f"{FOREIGN}::test_a_record_that_only_shares_a_hash_has_nobody_begin_again",
    ),
    Mutant(
        "no more records of one hash are decoded than chance brings",
        "AskTable._has_record",
        ("turn == TWINS or ", ""),
        tests=f"{FOREIGN}::test_a_record_that_only_shares_a_hash_has_nobody_begin_again",
    ),
    Mutant(
        "a line where a killed writer was about to write is another program's",
        "StampFiles.epoch",
        ("end <= start or end == size", "end <= size"),
        tests=f"{FOREIGN}::test_a_second_line_where_a_killed_writer_was_about_to_write_is_shown_once[scan-shorter]",
    ),
    Mutant(
        "a release under another word frees what a cursor dropped",
        "Poll._reads_of",
        ('record.event == "release":', 'record.event == "release" and record.via in (None, "role:dev"):'),
        tests=f"{FOREIGN}::test_another_program_s_release_frees_a_claim_under_any_word[project:sun]",
    ),
    Mutant(
        "what another program appended stays foreign until a poll looks",
        "HeldLog._announce",
        ("        if epoch is None and self.trail.grown(self.path, inode, size):\n            return\n", ""),
        tests=f"{FOREIGN}::test_new_ids_leave_every_session_where_it_stood",
    ),
    Mutant(
        "the table of asks takes the small file's entries along",
        "AskTable.save",
        ("(one for file in small for one in file.entries())", "()"),
        tests=f"{ASKING}::test_what_came_bit_by_bit_is_all_there",
    ),
    Mutant(
        "the table of asks holds a read that precedes its message",
        "AskTable.catch_up",
        ("self._early(asks)", "[]"),
        tests=f"{ASKING}::test_what_came_bit_by_bit_is_all_there",
    ),
    Mutant(
        "the table of asks holds a read of a message that was taken in earlier",
        "AskTable.catch_up",
        (" or self._is_ask(word)", ""),
        tests=f"{ASKING}::test_what_came_bit_by_bit_is_all_there",
    ),
    Mutant(
        "a small file beside another large one counts for nothing",
        "AskTable.__init__",
        ("and found[1] == self._large ", ""),
        tests=f"{ASKING}::test_a_small_file_beside_another_large_one_counts_for_nothing",
    ),
    Mutant(
        "an answer given while another process writes the table counts for nothing",
        "asking.answer_soon",
        ("if not table.is_sound():", "if False:"),
        tests=f"{ASKING}::test_an_answer_given_while_another_process_writes_the_table_counts_for_nothing",
    ),
    Mutant(
        "the reads of a last line without its newline are kept in mind",
        "Poll._advance",
        ("if r.message_id in asked_again and", "if r.message_id in unread and"),
        tests=f"{MOMENTS}::test_a_message_that_lacks_its_newline_is_shown_once",
    ),
    Mutant(
        "what was written while mail was shown is looked at before a stamp is made",
        "Poll.without",
        (" or self._logs.ends() != (messages, (inode, end + size), roster):", ":"),
        tests="tests/store/test_delivery.py::test_what_happens_while_mail_is_shown_is_not_taken_for_read",
    ),
    Mutant(
        "what moves is sealed in the manifest before the live log is replaced",
        "rotation.rotate",
        ("        manifest.seal()\n        replaced = [", "        replaced = ["),
        tests="tests/store/test_manifest.py::test_a_steward_killed_at_any_step_is_no_damage_and_the_next_run_seals_it_all",
    ),
    Mutant(
        "a seal that an interrupted run left is synced, too",
        "Manifest.seal",
        ("            held.sync(held.lines())\n", ""),
        tests=f"{REPEATED}[killed before it-steward run]",
    ),
    Mutant(
        "an id is looked up in the archive, too",
        "Posting._known",
        ("[*found, *((None, line) for line in self.archive.mentioning(ids))]", "[*found]"),
        tests=f"{MOMENTS}::test_a_message_repeated_after_it_was_archived_is_the_same_message",
    ),
    Mutant(
        "an id that is found is synced before it is acknowledged again",
        "Posting._append",
        ("        if known:\n            log.sync(found)\n", ""),
        tests=f"{REPEATED}[killed before it-send]",
    ),
    Mutant(
        "an ack that is found is synced before it is acknowledged again",
        "Mailbox._ack",
        ("                log.sync(_about(log, found))\n", "                pass\n"),
        tests=f"{REPEATED}[refused it-ack]",
    ),
    Mutant(
        "the places of records count for the log they were found in",
        "facade._about",
        ("now[0] != inode or now[1] < end or not all(may_be_about(line, about) for _, line in known)", "not known"),
        tests="tests/store/test_acts_at_scale.py::test_the_records_of_a_message_are_found_where_they_are",
    ),
    Mutant(
        "a failed send names the id to repeat it with",
        "Posting.send_all",
        (
            "            raise (retryable(error, ids) if by_id else error) from None\n",
            "            raise\n",
        ),
        tests=f"{ERRORS}::test_refused_a_system_call[send (no --id)]",
    ),
    Mutant(
        "an error is no second document behind an answer",
        "commands.hook_command.answer",
        (" and not answers)", ")"),
        tests=f"{ERRORS}::test_refused_a_system_call[hook UserPromptSubmit]",
    ),
    Mutant(
        "only what the client keeps of a hook's answer shows that mail was taken in",
        "transcript._tells",
        (
            """    if not isinstance(attachment, dict) or attachment.get("type") != "hook_additional_context":
        return False
""",
            """    if not isinstance(attachment, dict):
        return True
""",
        ),
        tests=f"{RECEIPTS}::test_quoting_is_not_seeing",
    ),
    Mutant(
        "only a whole first line of ours shows that mail was taken in",
        "transcript._tells",
        ("line in heads for text", "line.endswith(heads) for text"),
        tests=f"{RECEIPTS}::test_quoting_is_not_seeing[behind a bar]",
    ),
    Mutant(
        "a subject is behind its bar on one line",
        "message_frame.brief",
        ("[frame.BAR + clipped(neutral(m.subject), frame.SUBJECT)]", "[m.subject]"),
        tests="tests/claude/test_budget.py::test_no_field_of_a_message_makes_a_line_of_the_frame[subject]",
    ),
    Mutant(
        "the first line says whose mail it is by the proof, not by the sender",
        "budget._head",
        ("proofs.speaker(m.proof, USER) == USER == m.sender", "m.sender == USER"),
        tests="tests/claude/test_budget.py::test_the_person_s_mail_is_told_from_agents_by_its_proof",
    ),
    Mutant(
        "the cost of mail includes the client's frame",
        "Hook._told",
        ("budget.client_frame(self.call.event, self.call.tool) if nonce else 0", "0"),
        tests=f"{RECEIPTS}::test_status_tells_what_hooks_spent",
    ),
    Mutant(
        "a senseless figure in the telemetry is no cost",
        "events.wakes",
        (
            'type(tokens := told.get("tokens")) is int and 0 <= tokens < LIMIT',
            'type(tokens := told.get("tokens")) is int',
        ),
        tests="tests/claude/test_doorbell.py::test_status_counts_the_wakes_of_a_session",
    ),
    Mutant(
        "a sleeping session hears lines of other programs",
        "Doorbell._places",
        ("None if calm else", "None if quiet else"),
        tests="tests/claude/test_doorbell.py::test_other_programs_mail_for_others_leaves_it_asleep_and_quiet",
    ),
    Mutant(
        "a new stamp says nothing of the session's state",
        "Doorbell._due",
        ("stamp == self._alive_under and", "self._was_alive and"),
        tests="tests/claude/test_doorbell.py::test_it_ends_with_its_session_although_that_is_quiet_again",
    ),
    Mutant(
        "a look without news leaves the session quiet",
        "Delivery.look",
        ("quiet=done", "quiet=False"),
        tests="tests/claude/test_doorbell.py::test_other_programs_mail_for_others_leaves_it_asleep_and_quiet",
    ),
    Mutant(
        "the rest of the answer during which mail was shown is no answer to it",
        "transcript._states",
        (" and answer != during[offer.nonce]", ""),
        tests=f"{RECEIPTS}::test_the_answer_in_which_it_was_shown_is_not_one_to_it",
    ),
    Mutant(
        "an error that the client writes in the model's place is no word of the model",
        "transcript._states",
        (' or message.get("model") == _CLIENT', ""),
        tests=f"{RECEIPTS}::test_an_error_of_the_api_is_no_word_of_the_model",
    ),
    Mutant(
        "a prompt that was taken back takes nothing along",
        "transcript._states",
        ("if _INTERRUPTED in line else prompted", "if True else prompted"),
        tests=f"{RECEIPTS}::test_a_prompt_that_was_taken_back_took_its_mail_along",
    ),
    Mutant(
        "two hooks of one start show mail once",
        "judge.verdict",
        ('if event == "SessionStart" and client:', "if False:"),
        tests=f"{RECEIPTS}::test_two_hooks_of_one_start_show_mail_once",
    ),
    Mutant(
        "what was acked meanwhile is not offered again",
        "receipts.settle",
        ("        if verdict.lost and not recall:", "        if False:"),
        tests=f"{RECEIPTS}::test_what_was_acked_meanwhile_is_not_given_back",
    ),
    Mutant(
        "what a start recalled is known to the next hook, though it could not be settled",
        "receipts.settle",
        ("            offers.save(desk.logs, session_id, open_offers)\n", "            pass\n"),
        tests=f"{RECEIPTS}::test_a_start_that_finds_the_log_locked_leaves_what_it_recalled_to_the_next_hook",
    ),
    Mutant(
        "open offers are known without the derived files",
        "receipts.settle",
        ("(offers.recalled if recall else offers.load)", "offers.load"),
        tests=f"{RECEIPTS}::test_what_was_not_answered_is_offered_again_when_the_session_comes_back",
    ),
    Mutant(
        "after a delivery the guard says nothing before the transcript has told",
        "Delivery._show",
        ("(offering.nonce is None or not records)", "True"),
        tests=f"{RECEIPTS}::test_an_unconfirmed_delivery_keeps_the_guard_from_saying_nothing_and_a_confirmed_one_does_not",
    ),
    Mutant(
        "the reply to mail that was only offered stays with it",
        "retention._without_settling_replies",
        ("(stays.ack or _may_go_back(stays, state))", "stays.ack"),
        tests="tests/core/test_retention.py::test_the_reply_to_mail_that_was_only_offered_stays_while_that_mail_stays",
    ),
    Mutant(
        "mail that its reader was not seen to take in is not archived",
        "retention.is_finished",
        (
            "for read in state.reads.unseen(message.id)",
            "for read in ()",
        ),
        tests="tests/core/test_receipts.py::test_unseen_mail_is_not_finished_until_its_session_is_dead_or_it_expired",
    ),
    Mutant(
        "a model is kept from stopping so many times in a row",
        "hook_events._stop",
        ("    if turns >= MAX_CHAIN:\n", "    if False:\n"),
        tests="tests/claude/test_hooks.py::test_stop_keeps_the_model_going_while_there_is_news_and_not_for_ever",
    ),
    Mutant(
        "a teammate's command in another's name is refused",
        "own_commands.refusal",
        ("    judged = [_call(call, member) for call in found.calls]\n", "    judged = [None for _ in found.calls]\n"),
        tests="tests/claude/test_commands.py::test_a_refused_call_is_refused_in_every_wrapping",
    ),
    *mutants_control.MUTANTS,
    *mutants_console.MUTANTS,
    *mutants_attachments.MUTANTS,
    *mutants_addresses.MUTANTS,
    *mutants_dead.MUTANTS,
    *mutants_engine.MUTANTS,
    *mutants_mcp.MUTANTS,
    *mutants_leases.MUTANTS,
    *mutants_lost.MUTANTS,
    *mutants_machines.MUTANTS,
    *mutants_permissions.MUTANTS,
    *mutants_trust.MUTANTS,
    *mutants_unreadable.MUTANTS,
    *mutants_waking.MUTANTS,
    *mutants_watches.MUTANTS,
    *mutants_claims.MUTANTS,
    *mutants_clocks.MUTANTS,
    *mutants_codex.MUTANTS,
    Mutant(
        "an offer to a team is recorded before its inbox is touched",
        "Outward._offer",
        (
            "                self._mailbox.logs.reads.append(map(codec.read_line, records))\n            except",
            "                pass\n            except",
        ),
        (
            "            aside.append([self._entry(i, me, nonce, again=i.message.id in doubtful) for i in items])\n",
            "            aside.append([self._entry(i, me, nonce, again=i.message.id in doubtful) for i in items])\n"
            "            self._mailbox.logs.reads.append(map(codec.read_line, records))\n",
        ),
        tests=f"{TEAM_KILLS}::test_killed_before_any_system_call_everything_arrives_once",
    ),
    Mutant(
        "the file beside an inbox tells that it was not replaced",
        "Outward._settle",
        ("        if aside.exists():\n", "        if False:\n"),
        tests=f"{TEAM_KILLS}::test_killed_before_any_system_call_everything_arrives_once",
    ),
    Mutant(
        "what nobody can tell to have arrived says so when it comes again",
        "Outward._entry",
        ("', possibly repeated' if", "'' if"),
        tests=f"{TEAM_BRIDGE}::test_where_nobody_can_tell_it_comes_again_and_says_so",
    ),
    Mutant(
        "other entries of an inbox keep every byte",
        "writing.joined",
        (
            "    head = there.rstrip()[:-1].rstrip()\n",
            "    head = json.dumps(json.loads(there)).encode()[:-1].rstrip()\n",
        ),
        tests=f"{TEAM_BRIDGE}::test_mail_goes_into_the_inbox_behind_what_is_there",
    ),
    Mutant(
        "a file that is no whole array says nothing about what was fetched",
        "Mirror._settle",
        ("if i in there else found.whole)]", "if i in there else True)]"),
        tests=f"{TEAM_IMPORT}::test_what_is_consumed_is_read",
    ),
    Mutant(
        "the id of a mirrored message is made of its entry",
        "Mirror._id",
        (
            "        wanted = naming.message_id(self.name, inbox, entry.key)\n        if",
            "        wanted = naming.message_id(self.name, inbox, entry.key + os.urandom(4).hex())\n        if",
        ),
        tests=f"{TEAM_IMPORT}::test_the_captured_teams_come_in_whole_and_once",
    ),
    Mutant(
        "a lock that a killed bridge left is stale before its client gives up",
        "writing.LEASE",
        ("LEASE = 0.5\n", "LEASE = STALE\n"),
        tests=f"{TEAM_KILLS}::test_killed_before_any_system_call_everything_arrives_once",
    ),
    Mutant(
        "a lock is never there before it is nearly stale",
        "Lock._take",
        ("            rename_new(self._beside, self.path)\n", "            os.mkdir(self.path)\n"),
        tests=f"{TEAM_HOSTILE}::test_our_lock_is_stale_before_anyone_gives_up_and_others_count_by_their_time",
    ),
    Mutant(
        "what is cleared away is this mailbox's",
        "writing.sweep",
        ('if f"{_SIGN}{mark}." in name]', "if _SIGN in name]"),
        tests=f"{TEAM_HOSTILE}::test_two_mailboxes_bridge_one_team_and_echo_nothing",
    ),
    Mutant(
        "a reply goes to no agent whose id begins with its sender's",
        "compose.resolve",
        (
            "if word == answering and roster.meant(word) is None:",
            "if word == answering and _agent(word, roster) is None:",
        ),
        tests="tests/core/test_compose.py::test_a_reply_goes_to_no_agent_whose_id_begins_with_the_sender_s",
    ),
    Mutant(
        "a protocol message is one, in the inbox and in its reader's transcript",
        "format._entry",
        ("key=plain if said is None else _known_by(sender, said, text)", "key=plain"),
        tests=f"{TEAM_IMPORT}::test_protocol_that_was_fetched_before_we_looked_comes_from_its_readers_transcript",
    ),
    Mutant(
        "mail of ours is not taken for the team's",
        "format._entry",
        ('maybe(value, OURS) or ("?" if written else None)', "maybe(value, OURS)"),
        tests=f"{TEAM_HOSTILE}::test_a_client_that_drops_our_key_gets_nothing_echoed",
    ),
    Mutant(
        "a teammate does not speak in its lead's name",
        "own_commands_hook.denial",
        ("None if member is None else own_commands.refusal(command, member)", "None"),
        tests="tests/claude/test_teammate.py::test_another_teammates_name_is_another",
    ),
)
MUTANTS += tuple(Mutant(without, at, *patches, tests=str(test)) for without, at, *patches, test in TAKEN)


def try_out(mutant: Mutant, place: Path) -> str | None:
    """The tests that noticed; None if none did. Raises ``SystemExit`` where a patch no longer fits."""
    tree = _copy(place)
    try:
        mutant.apply(tree)
    except LookupError as error:
        raise SystemExit(error.args[0]) from None
    done = _pytest(tree, mutant.tests)
    failed = re.findall(r"^FAILED (\S+::.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode not in (0, 1):
        raise SystemExit(
            f"without {mutant.without!r} the tests do not even run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return ", ".join(f"`{name.rpartition('/')[2]}`" for name in failed) or None


def _copy(place: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("agent_mailbox", "tests", "hooks"):
        shutil.copytree(ROOT / name, place / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "scripts"):
        (place / name).symlink_to(ROOT / name)  # read, never changed: no mutant is in them
    return place


def _pytest(tree: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rf", "--tb=no", *dict.fromkeys(tests)]
    env = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "400"}
    return subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True, check=False)


def main(words: list[str]) -> int:
    """Try all, or those that a word chooses; the exit code is 1 if one was not noticed, or a test fails without a
    mutant."""
    chosen = [m for m in MUTANTS if not words or any(word in f"{m.without} {m.at} {m.file}" for word in words)]
    if not chosen:
        print(f"no mutant is named so: {' '.join(words)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch, "whole")
        whole.mkdir()
        done = _pytest(_copy(whole), [test for mutant in chosen for test in mutant.tests])
        if done.returncode != 0 or " skipped" in done.stdout:
            print(done.stdout, "The tests fail, or are skipped, without any mutant.", sep="\n")
            return 1
        places = [Path(scratch, str(n)) for n in range(len(chosen))]
        for place in places:
            place.mkdir()
        with ThreadPoolExecutor(PROCESSES) as pool:
            caught = list(pool.map(try_out, chosen, places))
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in section("mutants").splitlines()}
    for mutant, by in zip(chosen, caught, strict=True):
        print(f"{'caught' if by else 'NOT CAUGHT'}: {mutant.without}: {by or ''}")
        rows[mutant.without] = f"| {mutant.without} | `{mutant.file}` | {by or '**not caught**'} |"
    known = [rows[mutant.without] for mutant in MUTANTS if mutant.without in rows]
    write_section("mutants", table(("taken away: that …", "in", "noticed by"), ()) + "\n".join([*known, ""]))
    print(f"{sum(map(bool, caught))} of {len(chosen)} caught")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
