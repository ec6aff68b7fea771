"""``install --list``: the clients that we install into, what each can do, and where it calls us.

Belongs here: that answer. ``clients.checks.hook_sources`` finds where it calls us.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..cli.options import App
from ..clients.checks.hook_sources import installed_settings
from ..core.text import neutral
from ..known_clients.abilities import abilities_of
from ..known_clients.every_client import INSTALLED

if TYPE_CHECKING:
    from collections.abc import Iterable

    import click

    from ..known_clients.known_client import KnownClient


def list_clients(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the clients that ``install`` knows, and end the command."""
    if not wanted or ctx.resilient_parsing:
        return
    app = ctx.ensure_object(App)
    installed = [(client, installed_settings(client, os.getcwd(), app.environ)) for client in INSTALLED]
    value = [
        {
            "client": client.name,
            "seen_with": next(reversed(client.seen_with), None),
            "abilities": [*abilities_of(client)],
            "limits": {**client.limits},
            "installed": [*settings],
        }
        for client, settings in installed
    ]
    app.print_answer("".join(_describe_client(*one) for one in installed), value)
    ctx.exit()


def _describe_client(client: KnownClient, settings: Iterable[str]) -> str:
    where = ", ".join(map(neutral, settings)) or "not installed here"
    limits = "".join(f"  {name}: {limit}\n" for name, limit in client.limits.items())
    seen = next((f"seen with {version}" for version in reversed(client.seen_with)), "not run")
    return f"{client.name} ({seen}): {where}\n  {', '.join(abilities_of(client))}\n{limits}"
