"""The clients we install into, side by side: what each can do, and where they call us already.

Belongs here: reading that off the clients' modules and the settings. It writes nothing and judges no hook; the doctor
does.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...core.records import Record
from ...known_clients import abilities
from ...known_clients.every_client import INSTALLED
from ...store.files.small_files import read_if_possible
from .. import places
from ..install import opencode_plugin
from ..install.hook_entries import calls_us
from . import hook_sources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...known_clients.known_client import KnownClient


class ClientOverview(Record):
    """A client: what its sessions can have, and the settings files that call us."""

    client: KnownClient
    abilities: tuple[str, ...]
    installed: tuple[str, ...]


def overview_clients(here: str, environ: Mapping[str, str]) -> list[ClientOverview]:
    """Return every client, with its settings of the directory ``here`` and of the user."""
    return [
        ClientOverview(client, abilities.abilities_of(client), installed_settings(client, here, environ))
        for client in INSTALLED
    ]


def installed_settings(client: KnownClient, here: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return a client's settings of the directory ``here`` and of the user that call us."""
    settings = (places.project_target(client, here).settings, places.user_target(client, environ).settings)
    files = dict.fromkeys(map(os.path.realpath, settings))
    return tuple(path for path in files if (_is_ours(path) if client.is_plugin else _calls_us(path, client)))


def _is_ours(path: str) -> bool:
    return opencode_plugin.hook_of(read_if_possible(path, through_links=True) or b"") is not None


def _calls_us(path: str, client: KnownClient) -> bool:
    source = hook_sources.read_source(path, "", comments=client.has_comments)
    return source is not None and any(calls_us(hook) for _, _, hook in source.each_hook())
