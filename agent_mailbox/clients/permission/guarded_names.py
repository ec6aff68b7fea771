"""The files that no file tool writes because of what they are called: they decide what else runs.

Belongs here: which names. A client's *settings* have our hooks, and may take them away: no session writes them. The
*person's terminal* runs or reads git's hooks and the start files of shells, and their system starts services: no bound
session writes those (``identity.terminals``). Nor does it write skills and commands: a client runs what they hold past
our hooks. A name counts in any case, and so does a link to such a file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...known_clients.every_client import CLIENTS
from ...store.files import programs, system
from .. import places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ...known_clients.known_client import KnownClient

    Names = Sequence[str]

STARTS = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login"),
    *(".envrc", ".direnvrc", ".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment", ".tmux.conf"),
    *(".screenrc", ".gitconfig", ".vimrc", ".exrc", ".emacs"),
)
"""Files that shells, multiplexers, editors and git read, of the person's home or a directory they work in."""
PLACES = (
    *(".git", ".husky", ".githooks", ".oh-my-zsh", ".config/git", ".config/fish", ".config/zsh", ".config/direnv"),
    *(".config/environment.d", ".config/tmux", ".ssh", ".config/nvim", ".vim", ".emacs.d", ".local/bin"),
    *(".config/systemd", ".local/share/systemd", ".config/autostart", "library/launchagents"),
)
"""Directories of such files, of programs by name, and of what a system starts by itself. ``.git`` may be a file, too,
that names another repository."""
SYSTEM = (
    *("/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/bashrc", "/etc/zsh", "/etc/fish", "/etc/environment"),
    *("/etc/systemd", "/etc/crontab", "/etc/cron.d", "/var/spool/cron"),
)
COMMANDS = ("/bin/agent-mailbox", "/bin/agent-mailbox-python")
"""Ends of the paths of our own commands, in whatever environment they are."""
GIT = "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin:/opt/local/bin"
"""The places of git. The PATH of an environment may name another program."""
PATIENCE = 5.0


class GuardedNames:
    """The names as they count for one call. ``bases``: the directories that it may be in."""

    def __init__(self, bases: Sequence[str], environ: Mapping[str, str]) -> None:
        self._bases = bases
        self._settings = _client_places(bases, environ, lambda client: client.guarded)
        self._running = _client_places(bases, environ, lambda client: client.running)
        homes = {os.path.expanduser("~"), system.home() or "/"}
        self._starts = [os.path.join(home, start) for home in homes for start in STARTS]
        self._hooks: dict[str, list[str]] = {}

    def is_settings(self, real: str) -> bool:
        """Return whether a file, by its real place, is a client's settings."""
        beside = [name for client in CLIENTS for name in client.beside]
        return _is_named(real, beside, self._settings, lambda client: client.guarded)

    def runs_unasked(self, real: str) -> bool:
        """Return whether a file holds commands that a client runs past our hooks."""
        return _is_named(real, (), self._running, lambda client: client.running)

    def runs_for_the_person(self, name: str, real: str) -> bool:
        """Return whether the person's terminal would run or read the file; ``name`` is its path before links."""
        for path in (real, os.path.normpath(name)):
            low = path.casefold()
            if os.path.basename(low) in STARTS or any(f"/{place}/" in f"{low}/" for place in PLACES):
                return True
            if any(_is_within(low, place) for place in SYSTEM):
                return True
        if any(_is_same(real, start) for start in self._starts):
            return True
        above = [*places.directories_above(real)]
        if any(map(_is_repository, above)):
            return True
        for directory in (next(filter(os.path.isdir, above), "/"), *self._bases):
            if directory not in self._hooks:
                self._hooks[directory] = _hooks_of(directory)
        return any(_is_within(real, place) for found in self._hooks.values() for place in found)


def _is_named(real: str, more: Iterable[str], known: Mapping[str, str], of: Callable[[KnownClient], Names]) -> bool:
    """Return whether a file has one of these names of clients, or is at one of the known places."""
    low = real.casefold()
    homes = ((one, {one.directory, one.home_directory, one.below_config} - {""}) for one in CLIENTS)
    below = (f"{home}/{name}" for client, directories in homes for home in directories for name in of(client))
    if any(_ends_in(low, name) for names in (more, below) for name in names):
        return True
    return any(_is_within(low, place) or _is_same(real, path) for path, place in known.items())


def _client_places(
    bases: Sequence[str], environ: Mapping[str, str], of: Callable[[KnownClient], Names]
) -> dict[str, str]:
    """Return where clients look now, and the real places: variables may name another directory, and a file may be a
    link."""
    found: dict[str, str] = {}
    for client in CLIENTS:
        if client.directory:
            here = [client.find_home(environ), *(os.path.join(base, client.directory) for base in bases)]
            for path in (os.path.join(base, name.rstrip("/")) for base in here for name in of(client)):
                found[path] = os.path.realpath(path).casefold()
    return found


def _is_repository(directory: str) -> bool:
    """Return whether git would take the directory for a repository's own, as that of a submodule or a bare one."""
    return os.path.exists(os.path.join(directory, "HEAD")) and os.path.isdir(os.path.join(directory, "objects"))


def _hooks_of(directory: str) -> list[str]:
    """Return the real places from which git runs the hooks of a repository; none outside one. Raise ``NoAnswer`` if
    git hangs."""
    known = {"PATH": GIT, "HOME": system.home() or "/", "GIT_OPTIONAL_LOCKS": "0"}
    words = ["git", "-C", directory, "rev-parse", "--show-toplevel", "--git-path", "hooks"]
    try:
        said = programs.ask(words, PATIENCE, environ=known)
    except programs.NoAnswer:
        raise
    except OSError:
        return []
    top, _, hooks = os.fsdecode(said.out).rstrip("\n").partition("\n")
    if said.code or not hooks:
        return []
    found = [os.path.realpath(os.path.join(base, hooks)) for base in (top, directory)]
    return [*found, *(os.path.dirname(one) for one in found if os.path.basename(one) == "_")]  # husky's are beside it


def _ends_in(low: str, name: str) -> bool:
    """Return whether a path ends in the name. One that ends in a slash is a directory's, somewhere in the path."""
    return f"/{name}" in low if name.endswith("/") else low.endswith(f"/{name}")


def _is_within(path: str, place: str) -> bool:
    return f"{path}/".startswith(f"{place}/")


def _is_same(real: str, path: str) -> bool:
    """Return whether both are one file, by whatever links."""
    try:
        return os.path.samefile(real, path)
    except (OSError, ValueError):
        return os.path.realpath(path) == real
