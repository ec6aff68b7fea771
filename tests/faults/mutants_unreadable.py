"""Mutants that take what cannot be looked at for what is not there."""

from __future__ import annotations

from tests.faults.mutant import Mutant

TESTS = "tests/store/test_unreadable.py"

MUTANTS = (
    Mutant(
        "an archive that cannot be listed is not empty",
        "Archive._names",
        ("        except FileNotFoundError:", "        except OSError:"),
        tests=f"{TESTS}::test_archived_mail_is_not_unknown_where_the_archive_cannot_be_listed",
    ),
    Mutant(
        "a claimer whose heartbeat cannot be looked at may be alive",
        "Logs.sign",
        (
            "shown the same mail\n            return system.time_ns() // 1_000_000",
            "shown the same mail\n            return 0",
        ),
        tests=f"{TESTS}::test_a_claimer_whose_heartbeat_cannot_be_looked_at_may_be_alive",
    ),
    Mutant(
        "nobody is silent because the heartbeats cannot be looked at",
        "Logs.last_seen",
        (
            '            raise paths.storage_failed("look through", directory, error) from None\n',
            "            return {}\n",
        ),
        tests=f"{TESTS}::test_nobody_is_silent_because_the_heartbeats_cannot_be_looked_at",
    ),
    Mutant(
        "one without a heartbeat hides nobody else's",
        "Logs.last_seen",
        ("                except (FileNotFoundError, Malformed):", "                except Malformed:"),
        tests=f"{TESTS}::test_nobody_is_silent_because_the_heartbeats_cannot_be_looked_at",
    ),
    Mutant(
        "where the bound cannot be listed somebody is bound",
        "user_state.bound_sessions",
        ('        return [""]  # what', "        return []  # what"),
        tests=f"{TESTS}::test_where_the_bound_cannot_be_listed_somebody_is_bound",
    ),
    Mutant(
        "who cannot be looked at is bound",
        "user_state.is_bound",
        ("        pass  # what binds holds\n", "        return False\n"),
        tests=f"{TESTS}::test_who_cannot_be_looked_at_is_bound",
    ),
    Mutant(
        "a stamp that binds and cannot be read may bind here",
        "bindings.is_bound",
        (
            "    return user_state.is_bound(trail.kept(), session_id) and not trail.is_of_another("
            "trail.kept(BOUND, session_id))\n",
            "    return _is_said(trail, trail.kept(BOUND, session_id))\n",
        ),
        tests=f"{TESTS}::test_who_cannot_be_looked_at_is_bound",
    ),
    Mutant(
        "a mailbox that cannot be compared may be this one",
        "StampFiles.is_here",
        ("            return unsure\n", "            return False\n"),
        tests=f"{TESTS}::test_who_cannot_be_looked_at_is_bound",
    ),
    Mutant(
        "who may be bound is noted all the same",
        "bindings.bind",
        ("    return _is_said(trail, path) or", "    return is_bound(trail, session_id) or"),
        tests=f"{TESTS}::test_who_cannot_be_looked_at_is_bound",
    ),
    Mutant(
        "an unreadable input frees nobody whose mailbox is not found",
        "hook_command._answer",
        (
            "            _close(asked, error, environ, write)\n",
            "            if mailbox_of(asked, directory, environ):\n"
            "                _close(asked, error, environ, write)\n",
        ),
        tests="tests/claude/test_permit.py::test_what_cannot_be_read_frees_nobody_whose_mailbox_is_not_found",
    ),
    Mutant(
        "a stamp that cannot be read goes when all go",
        "StampFiles.is_of_another",
        ("        return bool(said) and not any", "        return not any"),
        tests=f"{TESTS}::test_a_stamp_that_cannot_be_read_goes_when_all_go",
    ),
    Mutant(
        "files that cannot be looked at are not missing",
        "attachment_files._is_kept",
        ("    except FileNotFoundError:", "    except OSError:"),
        tests=f"{TESTS}::test_files_that_cannot_be_looked_at_are_not_missing",
    ),
    Mutant(
        "a path that cannot be followed is not taken for nothing",
        "paths.is_there",
        ("    except (FileNotFoundError, NotADirectoryError, ValueError):", "    except (OSError, ValueError):"),
        tests=f"{TESTS}::test_a_path_that_cannot_be_followed_is_not_taken_for_no_mailbox"
        f" and {TESTS}::test_a_mailbox_is_no_machine_s_own_because_its_record_cannot_be_looked_at",
    ),
    Mutant(
        "a mailbox that cannot be looked at sends nobody to the next one",
        "paths._refuse_failed",
        ('        raise storage_failed("look into", path, error) from None\n', "        return\n"),
        tests=f"{TESTS}::test_a_mailbox_that_cannot_be_looked_at_sends_nobody_to_the_next_one",
    ),
    Mutant(
        "a list of mailboxes that cannot be read is not empty",
        "paths.trusted",
        (
            '    known = content(trusted_file(environ)) or b""\n',
            '    try:\n        known = content(trusted_file(environ)) or b""\n'
            '    except StorageFailed:\n        known = b""\n',
        ),
        tests=f"{TESTS}::test_a_list_of_mailboxes_that_cannot_be_read_is_not_empty",
    ),
    Mutant(
        "a worktree whose repository cannot be looked at takes no other mailbox",
        "paths._one_line",
        ("        _refuse_failed(error, path)\n", ""),
        tests=f"{TESTS}::test_a_worktree_whose_repository_cannot_be_looked_at_takes_no_other_mailbox",
    ),
    Mutant(
        "a mailbox that cannot be looked at frees nobody",
        "hook_command._permit",
        ("    told: list[str] = []\n", "    mailbox_of(call, directory, environ)\n    told: list[str] = []\n"),
        tests="tests/claude/test_permit.py::test_a_mailbox_that_cannot_be_looked_at_frees_nobody",
    ),
    Mutant(
        "a session joins no other mailbox because its own cannot be looked at",
        "paths.pointed",
        ("is_there(system.join(said, MESSAGES))", "is_mailbox(said)"),
        tests=f"{TESTS}::test_a_session_joins_no_other_mailbox_because_its_own_cannot_be_looked_at",
    ),
    Mutant(
        "a mailbox that cannot be looked at ends no doorbell",
        "Doorbell._look",
        ("paths.is_there(system.join(self._directory, paths.MESSAGES))", "paths.is_mailbox(self._directory)"),
        tests="tests/claude/test_doorbell.py::test_a_mailbox_that_cannot_be_looked_at_does_not_end_it",
    ),
    Mutant(
        "a closed directory of the user's own ends the search for a mailbox",
        "_closed",
        (" if system.stat(path).st_uid == system.geteuid() else None", " if system.stat(path).st_uid < 0 else None"),
        tests=f"{TESTS}::test_a_mailbox_that_cannot_be_looked_at_sends_nobody_to_the_next_one",
    ),
)
