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
from ..known_clients.every_client import USUAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..known_clients.known_client import KnownClient


def settings_files(project: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the usual client's settings for sessions in a project: the user's, the project's, the person's own there.
    Each overrules those before it."""
    own, shared = USUAL.settings
    directory = os.path.join(project, USUAL.directory)
    return (os.path.join(USUAL.find_home(environ), shared), *(os.path.join(directory, name) for name in (shared, own)))


def directories_above(path: str) -> Iterator[str]:
    """Yield the directories above a path, the nearest first."""
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        yield path


class Target(Record):
    """A place where a client looks: its settings, its memory, and the directory of its other files. ``project``: the
    directory whose sessions it is for; empty if it is for all of the user's."""

    client: KnownClient
    base: str
    settings: str
    memory: str
    project: str


def project_target(client: KnownClient, directory: str) -> Target:
    """Return a project's files. Raises ``NotFound`` if there is no such directory."""
    if not os.path.isdir(directory):
        raise NotFound(f"no directory {directory}", "--project names the directory the client is started in")
    project = os.path.realpath(directory)
    base = os.path.join(project, client.directory)
    return Target(client, base, os.path.join(base, client.settings[0]), os.path.join(project, client.memory), project)


def user_target(client: KnownClient, environ: Mapping[str, str]) -> Target:
    """Return the user's files, for every project."""
    base = os.path.abspath(client.find_home(environ))
    return Target(client, base, os.path.join(base, client.settings[1]), os.path.join(base, client.memory), "")
