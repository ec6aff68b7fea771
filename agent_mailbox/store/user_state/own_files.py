"""The mailbox's own files in its directory, which may hold those of a project, too.

Belongs here: their names, which of them are surely its own, and what git is to pass by.
"""

from __future__ import annotations

from ...core import attachments
from ...core.text import typed
from ..files import system
from ..files.paths import ARCHIVE, CACHE, CONFIG, GATEWAY, GITIGNORE, HEARTBEATS, MESSAGES, READS, ROSTER
from ..files.small_files import list_names, make_file, read_if_possible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NAMES = (CACHE, CONFIG, attachments.DIRECTORY)
_BEGINNINGS = (MESSAGES, READS, ROSTER, "agent-mailbox-events.", GATEWAY, ARCHIVE, HEARTBEATS)
_DERIVED = (
    *("alarms", "attachments", "chains", "cursors", "doorbell", "edits", "ends", "leases-told", "lines", "offers"),
    *("projection.", "quiet", "retired", "roster", "steward", "teams"),
)
"""The beginnings of its names in ``.cache``, which other programs have, too."""
_HIDING = (b"agent-mailbox", b"/agent-mailbox", b"agent-*", b"/agent-*")
_RULES = "".join(f"/{name}\n" for name in (*(f"{name}*" for name in _BEGINNINGS), *_NAMES, GITIGNORE)).encode()
_BEFORE = b"*\n"
"""The rules of mailboxes made before: they hid all else, too."""

SEEN_BY_GIT = "git does not pass by it, since the .gitignore there is your own"


def is_derived(name: str) -> bool:
    """Return whether a name in ``.cache`` is of the mailbox."""
    return name.startswith(_DERIVED)


def is_shared(directory: str) -> bool:
    """Return whether the mailbox's directory holds anything that is not of the mailbox."""
    below = {system.basename(path) for path, _ in _below(directory)}
    own = (CONFIG, GITIGNORE, *below)
    return (
        any(name not in own and not name.startswith(_BEGINNINGS) for name in list_names(directory))
        or any(not is_ours(name) for below, is_ours in _below(directory) for name in list_names(below))
        or not (_has_our_rules(directory) or not system.exists(system.join(directory, GITIGNORE)))
    )


def sure_paths(directory: str) -> list[str]:
    """Return the paths that are surely the mailbox's, in a directory that may be shared; those of mail come first."""
    found = [system.join(directory, name) for name in list_names(directory) if name.startswith(_BEGINNINGS)]
    found.sort(key=lambda path: path != system.join(directory, MESSAGES))
    for below, is_ours in _below(directory):
        names = list_names(below)
        ours = [system.join(below, name) for name in names if is_ours(name)]
        found += [below] if ours and len(ours) == len(names) else ours
    return [*found, *([system.join(directory, GITIGNORE)] if _has_our_rules(directory) else [])]


def _below(directory: str) -> Iterator[tuple[str, Callable[[str], bool]]]:
    """Yield the directories that a project may have under the same name, and how the mailbox's names in them are
    known. A link is none."""
    for name, is_ours in ((CACHE, is_derived), (attachments.DIRECTORY, attachments.is_kept)):
        if system.is_own_directory(path := system.join(directory, name)):
            yield path, is_ours


def _has_our_rules(directory: str) -> bool:
    return read_if_possible(system.join(directory, GITIGNORE)) in (_RULES, _BEFORE)


def is_hidden_from_git(directory: str) -> bool:
    """Return whether git passes by the mailbox that is here, or would be: a ``.gitignore`` of the project's may lack
    the rules."""
    path = system.join(directory, GITIGNORE)
    rules = (read_if_possible(path) or b"").split(b"\n")
    return not system.exists(path) or any(rule.startswith(_HIDING) or rule.strip() == b"*" for rule in rules)


def hiding_command(directory: str) -> str:
    """Return the command that adds the rules to a project's ``.gitignore``."""
    names = " ".join([*_BEGINNINGS, CACHE])
    return f"printf '\\n/%s*' {names} >> {typed(system.join(directory, GITIGNORE))}"


def hide_from_git(directory: str) -> None:
    """Have git pass by a new mailbox's own files: those of a project may come beside them. A ``.gitignore`` that is
    there stays as it is."""
    make_file(system.join(directory, GITIGNORE), _RULES)
