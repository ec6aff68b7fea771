"""The places where a client looks: its settings, its memory, its other files, in a project or for all sessions.

Belongs here: joining what a client's module names. No file is touched here. A project's hooks name a program by its
path on this machine. Claude Code has a settings file for the person alone; the others have only the one that a team may
share.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core.records import Record
from ..errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..known_clients.known_client import KnownClient


class Target(Record):
    """A place where a client looks: its settings, its memory, and the directory of its other files."""

    client: KnownClient
    base: str
    settings: str
    memory: str
    user: bool


def project_target(client: KnownClient, directory: str) -> Target:
    """Return a project's files. Raises ``NotFound`` if there is no such directory."""
    if not os.path.isdir(directory):
        raise NotFound(f"no directory {directory}", "--project names the directory the client is started in")
    directory = os.path.realpath(directory)
    base = os.path.join(directory, client.directory)
    return Target(client, base, os.path.join(base, client.settings[0]), os.path.join(directory, client.memory), False)


def user_target(client: KnownClient, environ: Mapping[str, str]) -> Target:
    """Return the user's files, for every project."""
    base = os.path.abspath(user_directory(client, environ))
    return Target(client, base, os.path.join(base, client.settings[1]), os.path.join(base, client.memory), True)


def user_directory(client: KnownClient, environ: Mapping[str, str]) -> str:
    """Return the client's directory of the user."""
    if client.below_config:
        above = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or "/", ".config")
        return os.path.join(above, client.below_config)
    named = environ.get(client.home_variable) if client.home_variable else None
    above = environ.get(client.above_home) or environ.get("HOME") or "/"
    return named or os.path.join(above, client.home_directory or client.directory)
