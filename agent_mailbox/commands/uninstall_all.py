"""``uninstall --all``: out of every client, and what stays behind.

Belongs here: carrying the plans out one by one, and telling. ``clients.install.everywhere`` knows the places.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

from ..clients.checks import settings
from ..clients.install import everywhere
from ..clients.install import installation as installer
from ..core.text import neutral, neutral_lines, typed
from ..errors import MailboxError
from ..space import space as mailbox_space
from ..store.files import paths
from ..store.files.small_files import Storing, read_if_possible
from ..store.locks.lock import WAIT
from ..store.log.logs import of_mailbox
from ..store.user_state import own_files
from ..upkeep import crontab, replicator_service
from .hook_command import program_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..cli.options import App
    from ..clients.places import Target

RECORDS = (
    "your own records: key, seals, bound sessions, places in spaces; `agent-mailbox uninstall --all --state` deletes"
    " them, and then nothing in a mailbox is proven any more"
)
UNKNOWN = "not known to us: hooks that somebody copied by hand, and other machines"
NAMED = "it names agent-mailbox in words that we did not write: hooks, rules or a server; take them out by hand"


def uninstall_all(app: App, *, state: bool, dry_run: bool, diff: bool = True, mailbox: str = "") -> int:
    """Undo every installation that is known; with ``state`` delete the user's own records, too. Tell what stays.

    ``diff``: a dry run shows it. ``mailbox``: one that went, or would go, which is told here.

    Return the exit code: that of the last place which could not be changed. It is told, and stops no other place.
    """
    word = program_call(app.environ.get("PATH", ""))
    shown, codes = "", dict[str, int]()
    targets = everywhere.every_target(os.getcwd(), app.environ)
    changed: list[str] = []
    gone: set[str] = set()
    left: list[tuple[str, str]] = []
    for where, make in _removal_plans(app, targets, word, changed):
        try:
            plan = make()
            if not dry_run:
                installer.carry_out(plan, app.environ)
        except MailboxError as error:
            why = f"{error.what}; {error.hint}".removesuffix("; ")
            left, codes[where] = [*left, (where, why)], error.exit_code
            continue
        plan = plan.replace(changes=tuple(change for change in plan.changes if change.path not in changed))
        shown += "".join(f"{line}\n" for line in neutral_lines(installer.plan_diff(plan)))
        left += plan.left
        changed += [change.path for change in plan.changes if change.after != change.before]
        gone |= {change.path for change in plan.changes if change.after is None}
    left = [(path, why) for path, why in left if path not in changed]  # else the last plan, of the records, did it
    code = next((codes[path] for path, _ in reversed(left) if path in codes), 0)
    for path, why in left:
        app.give_warning(f"left unchanged: {path}: {why}")
    shim = installer.forget_shim(app.environ) if not dry_run else [] if left else installer.written_shim(app.environ)
    changed, gone = changed + shim, gone.union(shim)
    boxes = [box for box in everywhere.own_mailboxes(app.environ) if box != mailbox]
    own = paths.state_directory(app.environ)
    records = [own] if state and not code and os.path.isdir(own) else []
    spaces_left = dict(_joined_spaces(boxes, app.environ)) if records else {}
    if records and not dry_run:
        with Storing("delete", own):
            shutil.rmtree(own)
    deleted = [*([mailbox] if mailbox else []), *records]
    known = {*(path for path, _ in left), *(changed if dry_run else ())}
    stays = [(path, NAMED) for path in _settings_naming_us(targets) if path not in known]
    stays += _what_stays(app, boxes, deleted)
    deeds = ("would change", "would remove") if dry_run else ("changed", "removed")
    lines = [f"{deeds[path in gone]} {neutral(path)}" for path in changed]
    deletes = "would delete" if dry_run else "deleted"
    lines += [f"{deletes} {'the mailbox at ' if path == mailbox else ''}{neutral(path)}" for path in deleted]
    leaves = "would leave" if dry_run else "left"
    lines += [
        f"{leaves} {what}: {neutral(box)} and other machines share no mail then" for box, what in spaces_left.items()
    ]
    lines += [f"stays: {neutral(where)}: {why}" for where, why in stays]
    value: dict[str, Any] = {
        "changed": changed,
        "left": [{"path": path, "why": why} for path, why in left],
        "deleted": deleted,
        "spaces": [{"path": box, "what": what} for box, what in spaces_left.items()],
        "stays": [{"path": where, "what": why} for where, why in stays],
        "dry_run": dry_run,
        "diff": shown,
    }
    app.print_done((shown if dry_run and diff else "") + "".join(f"{line}\n" for line in [*lines, UNKNOWN]), value)
    return code


def _removal_plans(
    app: App, targets: Iterable[Target], word: str, done: list[str]
) -> Iterator[tuple[str, Callable[[], installer.InstallPlan]]]:
    """Yield each place, and what makes its plan: that is to be made after the one before was carried out."""

    def plan_removal(target: Target) -> installer.InstallPlan:
        found = paths.find(os.path.dirname(target.base))
        return installer.plan_removal(target, app.environ, word, os.path.realpath(found) if found else "")

    for target in targets:
        yield target.settings, partial(plan_removal, target)
    yield "the records of installations", partial(everywhere.leftover_plan, app.environ, done)


def _joined_spaces(mailboxes: Iterable[str], environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the mailboxes whose place in a space the user's records hold, each with its space."""
    for mailbox in mailboxes:
        logs = of_mailbox(mailbox, WAIT, environ)
        try:
            space = mailbox_space.space_of(logs)
            is_serving = space is not None and mailbox_space.is_serving(logs)
        except MailboxError:
            continue
        if space is not None:
            still = " (its `engine serve` still runs: end it)" if is_serving else ""
            yield mailbox, f"space {neutral(space.space)} as {neutral(space.machine)}{still}"


def _settings_naming_us(targets: Iterable[Target]) -> list[str]:
    """Return the settings of clients that name us, such as those that a project brought."""
    found: dict[str, None] = {}
    for target in targets:
        found |= dict.fromkeys(os.path.join(target.base, name) for name in (*target.client.settings, "settings.json"))
        found[os.path.join(os.path.dirname(target.base), ".mcp.json")] = None
    return [path for path in found if b"agent-mailbox" in (read_if_possible(path, through_links=True) or b"")]


def _what_stays(app: App, mailboxes: list[str], deleted: list[str]) -> Iterator[tuple[str, str]]:
    """Yield what stays, and how to remove it."""
    state, configuration = paths.state_directory(app.environ), paths.configuration_directory(app.environ)
    for plugin in settings.own_plugins(app.environ):
        yield plugin.path, f"a plugin; {settings.way_out(plugin)} removes it"
    if crontab.has_lines():
        yield "your crontab", f"lines that end in{crontab.TAG}; `crontab -e` removes them"
    for mailbox in mailboxes:
        service = replicator_service.service_of(mailbox, app.environ).path
        if os.path.lexists(service):
            remove = f"agent-mailbox engine serve --remove --dir {typed(mailbox)}"
            yield service, f"the service that runs its replicator; `{remove}` removes it"
        ours = own_files.sure_paths(mailbox) if own_files.is_shared(mailbox) else [mailbox]
        yield mailbox, f"a mailbox, with what it holds; `rm -r {' '.join(map(typed, ours))}` deletes it"
    if os.path.isdir(configuration) and configuration != state:
        yield configuration, f"your configuration; `rm -r {typed(configuration)}` deletes it"
    if state not in deleted and os.path.isdir(state):
        yield state, RECORDS
