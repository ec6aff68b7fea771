"""The protections around attachments, each taken away."""

from __future__ import annotations

from tests.faults.mutant import Mutant

TESTS = "tests/cli/test_attachments.py"
BESIDE = "tests/console/test_beside.py"
PEER = "tests/swarm/test_peer_files.py"
NOT_KEPT = f"{PEER}::test_what_is_not_kept_is_a_name_with_the_reason"
ROOM = f"{PEER}::test_peers_leave_room_for_those_here"

MUTANTS = (
    Mutant(
        "a line names no other file than its digest says",
        "attachments._file",
        (' if entry.get("path") == f"{DIRECTORY}/{file.stored}" else None\n', "\n"),
        tests=f"{TESTS}::test_a_line_names_no_other_file",
    ),
    Mutant(
        "a sender says no whole path",
        "attachments._located",
        (
            "{key: value for key in _SAID if isinstance(value := entry.get(key), str)}",
            "{key: value for key, value in entry.items() if isinstance(value, str)}",
        ),
        tests=f"{TESTS}::test_programs_get_the_whole_path_as_well",
    ),
    Mutant(
        "a message names files that the mailbox has",
        "Posting._append",
        ("                attachment_files.check(self.directory, made.message)\n", "                pass\n"),
        tests=f"{TESTS}::test_a_message_names_what_the_mailbox_has",
    ),
    Mutant(
        "an agent attaches no file from outside its project",
        "values._kept",
        ("        if app.is_session:\n", "        if False:\n"),
        tests=f"{TESTS}::test_an_agent_attaches_files_of_its_project_alone",
    ),
    Mutant(
        "a client asks about a file that is attached",
        "own_questions._files",
        ('(option == "--attach" and value) or (option', "(option"),
        tests=f"{TESTS}::test_an_agent_attaches_files_of_its_project_alone",
    ),
    Mutant(
        "a file that archived mail names stays",
        "attachment_files.sweep",
        ("    kept = set(_named(archive.lines()))\n", "    kept: set[str] = set()\n"),
        tests=f"{TESTS}::test_the_steward_removes_what_no_message_names",
    ),
    Mutant(
        "a file whose message is on its way stays",
        "attachment_files.sweep",
        (" < now - GRACE\n", " < now\n"),
        tests=f"{TESTS}::test_the_steward_removes_what_no_message_names",
    ),
    Mutant(
        "no secret leaves in a file",
        "leaving.secret_in",
        ('    beside += [(data or b"").decode("utf-8", "replace") for _, data in _files(message, directory)]\n', ""),
        tests=f"{TESTS}::test_to_another_machine_goes_what_is_small_and_no_secret",
    ),
    Mutant(
        "a peer's bytes are those of its digest",
        "inbound_files._kept",
        ('    if entry.get("sha256") not in (None, sha256(data).hexdigest()):\n', "    if False:\n"),
        tests=NOT_KEPT,
    ),
    Mutant(
        "a peer's files leave room for those here",
        "inbound_files.kept",
        ("attachment_files.MOST_FOREIGN", "attachment_files.MOST_TOTAL"),
        tests=ROOM,
    ),
    Mutant(
        "a peer's small files do not become too many",
        "inbound_files.kept",
        ('max(entry.get("size", 0), attachment_files.LEAST_COUNTED)', 'entry.get("size", 0)'),
        tests=ROOM,
    ),
    Mutant(
        "small files do not become too many",
        "attachment_files._total",
        (
            "max(system.lstat(system.join(home, name)).st_size, LEAST_COUNTED)",
            "system.lstat(system.join(home, name)).st_size",
        ),
        tests=ROOM,
    ),
    Mutant(
        "a peer's message brings so many files and no more",
        "inbound_files.kept",
        (" if files <= attachments.MOST else _not_kept(entry, MANY)", ""),
        tests=f"{PEER}::test_a_message_brings_so_many_files_and_no_more",
    ),
    Mutant(
        "a name of a file is the last part of a path",
        "attachments.plain_name",
        ('    last = path.replace("\\\\", "/").rpartition("/")[2]\n', "    last = path\n"),
        tests=f"{PEER}::test_no_name_leads_out_or_breaks_a_line",
    ),
    Mutant(
        "a peer's name for a file may have any shape",
        "envelope._end",
        (" if isinstance(value, str) else None", ""),
        tests=f"{PEER}::test_no_name_leads_out_or_breaks_a_line",
    ),
    Mutant(
        "a reference leads to the web or nowhere",
        "beside.address",
        (' and url.startswith(("https://", "http://"))', ""),
        tests=f"{BESIDE}::test_a_reference_leads_to_the_web_or_nowhere",
    ),
    Mutant(
        "the path of a reference stays within its site",
        "beside.address",
        ("_REPO.fullmatch(repo) is None", "not repo"),
        tests=f"{BESIDE}::test_a_reference_leads_to_the_web_or_nowhere",
    ),
    Mutant(
        "a file is served with its digest alone",
        "attachment_files.content",
        ("digest(data) == name[:64]", "data"),
        tests=f"{BESIDE}::test_files_are_shown_as_what_they_are",
    ),
    Mutant(
        "of several requests each is decided as it would be alone",
        "decided_requests._one",
        ("now.control.answer(USER, request.id", "now.control.answer(request.asker, request.id"),
        tests="tests/console/test_decisions.py::test_the_chosen_are_decided_and_each_is_told",
    ),
)
