"""Names inside a mailbox directory, how the directory is found, and the place of the user's own records.

Belongs here: where things are, and who owns them. A directory is a mailbox if it holds ``agent-mailbox.jsonl``; only
``creation.create`` makes one. The user's records are outside every project: the key, the list of mailboxes, the bound
sessions. They decide, so a false environment must not move them: the place follows from the password database. ``HOME``
counts only where that database lacks the user, as in some containers.
"""

from __future__ import annotations

from ...core.text import typed
from ...errors import NoMailbox, Refused, StorageFailed
from . import system
from .small_files import read_file, storage_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MESSAGES = "agent-mailbox.jsonl"
READS = "agent-mailbox-reads.jsonl"
ROSTER = "agent-roster.jsonl"
EVENTS = "agent-mailbox-events.jsonl"
EVENTS_BEFORE = "agent-mailbox-events.1.jsonl"
GATEWAY = "agent-swarm.jsonl"
"""The place of the mailbox's gateway (``mailbox.mailbox_gateway``)."""
HEARTBEATS, ARCHIVE, CACHE = system.HEARTBEATS, system.ARCHIVE, system.CACHE
CONFIG = "config.toml"
DOORBELL = "doorbell"
"""Below ``CACHE``: a lock for each session beside which a process waits for its mail."""
UNHOOKED = "unhooked"
"""Among the user's own records: the places out of which our hooks were taken."""
GITIGNORE = ".gitignore"
DATA = "data"
IN_GIT = "agent-mailbox"
"""Below a repository's own directory: no checkout and no cleaning reaches it."""
GONE = "mailbox_gone"
"""The code of the error for a mailbox of which nothing is left."""
SHIMS = "shims"
"""Among the user's own records: the installed shims, a path a line."""
BOUND = "bound"
"""Likewise: the sessions that a lead or a policy binds, a file each."""
CHANGED = "changed"
"""Likewise: how far the transcripts of such a session were looked through, and which hooks were told."""


def is_there(path: str) -> bool:
    """Return whether anything is at the path, even a broken link; raise ``StorageFailed`` where that cannot be told."""
    try:
        system.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        raise storage_failed("look into", system.dirname(path), error) from None
    return True


def is_mailbox(directory: str) -> bool:
    """Return whether the directory holds a messages log, of whatever file type."""
    return system.exists(system.join(directory, MESSAGES))


def find(start: str) -> str | None:
    """Return the nearest mailbox from ``start`` (absolute, without links) upwards.

    In each directory three places count, in this order: the repository's own directory, the directory itself, its
    ``data/``. No checkout can make the first. At the root of a linked git worktree the main worktree's root counts
    first: every worktree finds the same mailbox (git's ``gitrepository-layout``: ``gitdir`` and ``commondir``).

    Raise ``StorageFailed`` where a look fails, unless at another user's: mail would go to another mailbox, further up.
    """
    here = start
    while True:
        common = common_directory(here)
        if common is not None and _is_found(inside := system.join(common, IN_GIT)):
            return inside
        for root in dict.fromkeys([worktree_of(common) or here, here]):
            for candidate in (root, system.join(root, DATA)):
                if _is_found(candidate):
                    return candidate
        parent = system.dirname(here)
        if parent == here:
            return None
        here = parent


def _is_found(directory: str) -> bool:
    try:
        system.lstat(system.join(directory, MESSAGES))
    except OSError as error:
        _refuse_failed(error, directory)
        return False
    return True


def _refuse_failed(error: OSError, path: str) -> None:
    """Raise ``StorageFailed`` for a failed look, unless it tells that nothing of the user's can be there."""
    # ``.git`` is a directory, or the file of a worktree.
    if isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError, BlockingIOError)):
        return
    if isinstance(error, PermissionError):
        closed = _closed(path)
        if closed is None:  # another user's ``data/`` is no mailbox of ours
            return
        raise storage_failed("look into", closed, error) from None
    import errno  # only to name a failure

    if error.errno not in (errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO):
        raise storage_failed("look into", path, error) from None


def _closed(path: str) -> str | None:
    """Return what denies the look, the path itself or the nearest above it that can be seen; None if another's."""
    while True:
        try:
            return path if system.stat(path).st_uid == system.geteuid() else None
        except PermissionError:
            parent = system.dirname(path)
        except OSError:
            return None
        if parent == path:
            return None
        path = parent


def main_worktree(directory: str) -> str | None:
    """Return the root of the main worktree if ``directory`` is the root of a linked one; else None."""
    root = worktree_of(common_directory(directory))
    return None if root == directory else root


def worktree_of(common: str | None) -> str | None:
    """Return the root of the main worktree of a repository, by its own directory; None for a bare one."""
    return system.dirname(common) if common is not None and system.basename(common) == ".git" else None


def common_directory(directory: str) -> str | None:
    """Return the own directory of the repository whose worktree has its root here; all its worktrees share it.

    A bare repository is its own. None elsewhere, and in a submodule: it is part of the repository above. Raise
    ``StorageFailed`` where a look fails: a worktree would take another mailbox than its repository's.
    """
    path = system.join(directory, ".git")
    if not system.exists(path):
        is_bare = system.exists(system.join(directory, "HEAD")) and system.is_directory(
            system.join(directory, "objects")
        )
        return directory if is_bare else None
    gitdir = _one_line(path)
    if gitdir is None:
        return path if system.is_directory(path) else None
    if not gitdir.startswith("gitdir:"):
        return None
    gitdir = system.join(directory, gitdir.removeprefix("gitdir:").strip())
    common = _one_line(system.join(gitdir, "commondir"))
    if common is None:
        return None
    common = system.real_directory(system.join(gitdir, common))
    return common if _is_worktree(path, system.real_directory(gitdir), common) else None


def _is_worktree(path: str, gitdir: str, common: str) -> bool:
    """Return whether the repository knows the worktree whose ``.git`` is at the path. Such a file may come with any
    directory, and name any repository (git's ``gitrepository-layout``: ``worktrees/NAME/gitdir``)."""
    back = _one_line(system.join(gitdir, "gitdir"))
    if back is None or system.dirname(gitdir) != system.join(common, "worktrees"):
        return False
    try:
        there, here = system.stat(system.join(gitdir, back)), system.stat(path)
    except ValueError:
        return False
    except OSError as error:
        _refuse_failed(error, path)
        return False
    return system.is_same(there, here)


def _one_line(path: str) -> str | None:
    """Return a file's first line. Anybody's directory may hold a FIFO in its place: nobody waits for one."""
    try:
        fd = system.open(path, system.O_RDONLY | system.O_NONBLOCK | system.O_CLOEXEC)
        try:
            return system.read(fd, 4096).partition(b"\n")[0].decode("utf-8").strip()
        finally:
            system.close(fd)
    except ValueError:
        return None
    except OSError as error:
        _refuse_failed(error, path)
        return None


def check(directory: str) -> str:
    """Return the directory, absolute, if it is a mailbox that may be used.

    Raise ``NoMailbox``, ``Refused`` if another user owns it or its messages log, ``StorageFailed`` if it cannot be
    looked at.
    """
    try:
        owners = {system.lstat(f"{directory}/{MESSAGES}").st_uid, system.stat(directory).st_uid}
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise _missing(directory) from None
    except OSError as error:
        raise storage_failed("look into", directory, error) from None
    if others := owners - {system.geteuid()}:
        raise Refused(
            f"the mailbox {directory} belongs to another user (uid {min(others)})",
            f"run it as that user, without sudo; {_own()}",
        )
    whole = directory if directory.startswith("/") else system.join(system.getcwd(), directory)
    return whole.rstrip("/") or "/"


def refuse_absence(directory: str) -> None:
    """Raise ``NoMailbox`` if a mailbox's directory is not there: whoever moved it away cut no log of it."""
    if not system.is_directory(directory):
        check(directory)


def _missing(directory: str) -> NoMailbox | StorageFailed:
    """Return the error for a directory without a messages log."""
    if is_remnant(directory):
        return lost(directory)
    if system.exists(directory) and not system.is_directory(directory):
        return NoMailbox(f"no directory: {directory}", "name the mailbox's directory")
    return NoMailbox(f"no mailbox at {directory}", f"run `agent-mailbox init {typed(directory)}` to make one")


def is_remnant(directory: str) -> bool:
    """Return whether a directory without a messages log holds what else a mailbox has: somebody removed the log."""
    return not system.exists(system.join(directory, MESSAGES)) and any(
        system.exists(system.join(directory, name)) for name in (READS, ROSTER, system.join(ARCHIVE, "MANIFEST.jsonl"))
    )


def project_of(directory: str) -> str:
    """Return the highest directory from which commands find a mailbox at that path."""
    above = system.dirname(directory)
    if directory.endswith(f"/.git/{IN_GIT}"):
        return system.dirname(above)
    return above if system.basename(directory) == DATA else directory


def nearer_gone(start: str, found: str | None, known: Iterable[str]) -> str | None:
    """Return the user's own mailbox that commands in ``start`` used before ``found``, if its messages log is gone."""
    gone = ""
    for box in known:
        project = project_of(box)
        if project == box and is_remnant(box):  # nobody tells any more which directory had it
            project = system.dirname(box)
        covers = f"{start}/".startswith(f"{project}/") and not f"{found}/".startswith(f"{project}/")
        if covers and len(box) > len(gone) and not is_mailbox(box):
            gone = box
    return gone or None


def lost(directory: str) -> StorageFailed:
    """Return the error for a mailbox whose messages log was removed."""
    return StorageFailed(
        f"{system.join(directory, MESSAGES)} is gone, and all live mail with it",
        f"restore a backup elsewhere with `agent-mailbox restore FILE DIR`, or begin again: agent-mailbox init"
        f" {typed(directory)}",
        code="log_gone",
    )


def vanished(gone: str, found: str | None) -> NoMailbox:
    """Return the error for a mailbox of the user's of which nothing is left: ``git clean -fdx`` may have been.
    ``found``: the one that is the next."""
    return NoMailbox(
        f"the mailbox that you made at {gone} is gone{f'; the next one above is {found}' if found else ''}",
        f"make it again: `agent-mailbox init {typed(gone)}`, or"
        f" {'use the next one' if found else 'do without'}: `agent-mailbox init --forget {typed(gone)}`",
        code=GONE,
    )


def _own() -> str:
    """Return what makes a mailbox of the user's own, which no command finds by itself."""
    place = system.join(system.home() or system.getcwd(), "agent-mailbox")
    return f"a mailbox of your own: `agent-mailbox init {typed(place)}`, and then --dir {typed(place)}"


def trusted_file(environ: Mapping[str, str]) -> str:
    """Return the file that lists the user's own mailboxes, a real path a line."""
    return system.join(state_directory(environ), "mailboxes")


def recorded(directory: str, environ: Mapping[str, str]) -> bool:
    """Return whether this user's ``init`` recorded the mailbox.

    A cloned repository may ship a directory that looks like one; hooks read only recorded or explicitly named
    mailboxes.
    """
    known = trusted(environ)
    return bool(known) and system.real_directory(directory) in known


def strays(found: str, known: Iterable[str]) -> str | None:
    """Return where a found mailbox really is, if a link on its path leads there and ``init`` recorded no such path.

    A clone may hold a link to any mailbox of the user's."""
    real = system.real_directory(found)
    return None if real == found or found in known else real


def inner_link(directory: str) -> str | None:
    """Return a link among what a mailbox holds; None for none. Its archive may be another mailbox's."""
    try:
        names = sorted(system.listdir(directory))
        paths = (system.join(directory, name) for name in names)
        return next((path for path in paths if system.lstat(path).st_mode & system.S_IFMT == system.S_IFLNK), None)
    except OSError as error:
        raise storage_failed("look through", directory, error) from None


def trusted(environ: Mapping[str, str]) -> list[str]:
    """Return the user's own mailboxes, by their real paths.

    Raise ``StorageFailed`` where the list cannot be read: hooks would pass by the user's mailbox.
    """
    known = read_file(trusted_file(environ)) or b""
    return [line.decode("utf-8", "surrogateescape") for line in known.split(b"\n") if line]


def pointed(session_id: str, environ: Mapping[str, str]) -> str | None:
    """Return the mailbox that a session's start found, if it is still there and the user's own.

    Raise ``StorageFailed`` where a look fails: the session would join another mailbox.
    """
    said = noted(session_id, environ)
    return said if said and is_there(system.join(said, MESSAGES)) and recorded(said, environ) else None


def noted(session_id: str, environ: Mapping[str, str]) -> str | None:
    """Return the mailbox that a session's start found, wherever it is now."""
    return None if "/" in session_id else _one_line(system.join(state_directory(environ), "sessions", session_id))


# -- the user's own records ----------------------------------------------------------------------------------------


def state_directory(environ: Mapping[str, str]) -> str:
    """Return the directory of the user's records; it need not exist."""
    return _place(environ, ".local", "state")


def configuration_directory(environ: Mapping[str, str]) -> str:
    """Return the directory of the person's own configuration; it need not exist."""
    return _place(environ, ".config")


def _place(environ: Mapping[str, str], *below: str) -> str:
    home = system.home() or environ.get("HOME") or "/"
    return system.join(home, *below, "agent-mailbox")


def bound_sessions(state: str) -> list[str]:
    """Return the sessions of this user that are bound in any mailbox; one of no name if nobody can tell."""
    try:
        return sorted(system.listdir(system.join(state, BOUND)))
    except FileNotFoundError:
        return []
    except OSError:
        return [""]  # what binds holds


def is_bound(state: str, session_id: str) -> bool:
    """Return whether that session is bound, as far as anybody can tell."""
    bound = system.join(state, BOUND)
    try:
        system.lstat(system.join(bound, session_id))
    except (FileNotFoundError, ValueError):
        # A link to nowhere in the place of a directory tells of nobody that it is free.
        return any(system.exists(path) and not system.is_directory(path) for path in (bound, state))
    except OSError:
        pass  # what binds holds
    return True
