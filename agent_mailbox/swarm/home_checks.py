"""Checks of a gateway's directory, as far as this machine can tell by itself.

Belongs here: modes and owners, the key, the logs, a clock that contradicts them. The mailbox's own doctor runs them
too, offline and without the extra. Each finding is (place, problem, whether it is only a note).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..core import codec, instant
from ..core.findings import Problem
from ..core.records import BadLine
from ..core.text import typed
from ..errors import MailboxError
from ..mailbox import mailbox_gateway
from ..store.files.small_files import list_names
from ..store.locks.lock import is_held
from ..store.log.log import Log
from ..upkeep import extras
from . import EXTRA
from . import home as names
from .home import Home

SKEW = 60_000
"""Milliseconds two clocks may differ before a finding; messages are refused at fifteen minutes."""
LOGS = (names.LEDGER, names.OUTBOX, names.STATUSES, mailbox_gateway.IN_HOME)
Finding = tuple[str, str, bool]


def check_files(home: Home, now: int) -> list[Finding]:
    """Return everything wrong with the directory at ``now`` (ms)."""
    paths = (*map(home.path_of, list_names(home.directory)), home.directory)
    found = [(path, problem, False) for path in paths if (problem := names.mode_problem(path))]
    try:
        if extras.find_missing(EXTRA):
            found.append(
                (home.directory, f"extra missing, it cannot serve: run `{extras.command_to_add('swarm')}`", True)
            )
        else:
            from .gateway_identity import key_of
            from .ledger import Ledger

            key_of(Ledger(home))
    except MailboxError as error:
        found.append((home.path_of(names.KEY), error.what, False))
    for name in LOGS:
        try:
            found += _check_log(home.path_of(name), now)
        except MailboxError as error:  # a directory, say: the other logs are still checked
            found.append((home.path_of(name), error.what, False))
    return found


def _check_log(path: str, now: int) -> Iterator[Finding]:
    latest = ""
    is_judged = os.path.basename(path) != mailbox_gateway.IN_HOME and not extras.find_missing(EXTRA)
    if is_judged:
        from .protocol.gateway_events import event_problem
    for number, (_, text) in enumerate(Log(path).lines(), 1):
        parsed = codec.parse(text, codec.MAX_LINE)
        why = parsed.reason if isinstance(parsed, BadLine) else event_problem(parsed) if is_judged else ""
        if why:
            what = f"the gateway passes this line by ({why}); correct it, or delete it"
            yield f"{path}:{number}", what, False
        elif not isinstance(parsed, BadLine):
            latest = max(latest, str(parsed.get("at") or ""))
    try:
        ahead = instant.parse(latest) - now
    except ValueError:
        return
    if ahead > SKEW:
        what = f"a line is dated {latest}, {ahead // 1000} s ahead: this machine's clock was wrong then, or is now"
        yield path, what, True


def examine_gateway(mailbox: str, now: int) -> Iterator[Problem]:
    """Yield the findings about a mailbox's gateway, if it has one, as ``doctor`` reports them."""
    bound = mailbox_gateway.gateway_of(mailbox)
    if bound is None:
        return
    directory, mutual = bound
    home = Home(directory)
    if not os.path.lexists(home.path_of(names.KEY)):
        if os.path.lexists(home.path_of(names.LEDGER)):
            what = "gateway key missing; restore it with `agent-mailbox swarm restore FILE`"
            yield Problem(home.path_of(names.KEY), None, what)
            return
        what = f"gateway missing, mail to swarms waits: {directory}; make one with `agent-mailbox swarm init`"
        yield Problem(os.path.join(mailbox, mailbox_gateway.IN_MAILBOX), None, what, note=True)
        return
    if not mutual:
        what = f"gateway does not name this mailbox: {directory}; pair them by any `agent-mailbox swarm` command here"
        yield Problem(os.path.join(mailbox, mailbox_gateway.IN_MAILBOX), None, what, note=True)
        return
    for place, what, note in check_files(home, now):
        path, _, line = place.rpartition(":")
        number = int(line) if path and line.isdigit() else None
        yield Problem(path if number else place, number, what, note=note)
    if mailbox_gateway.swarms_at(directory, mailbox) and not is_held(home.path_of(mailbox_gateway.SERVING)):
        serve = f"{mailbox_gateway.serve_words(directory)} --home {typed(directory)}"
        what = f"its gateway does not serve: mail of swarms neither leaves nor comes; run `agent-mailbox {serve}`"
        yield Problem(mailbox, None, what, note=True)
