"""``install --list``: the clients that we install into, what each can do, and where it calls us.

Belongs here: that answer. ``clients.checks.overview`` finds it out.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..cli.options import App
from ..clients.checks.overview import overview_clients
from ..core.text import neutral

if TYPE_CHECKING:
    import click

    from ..clients.checks.overview import ClientOverview


def list_clients(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the clients that ``install`` knows, and end the command."""
    if not wanted or ctx.resilient_parsing:
        return
    app = ctx.ensure_object(App)
    clients_here = overview_clients(os.getcwd(), app.environ)
    value = [
        {
            "client": one.client.name,
            "seen_with": next(reversed(one.client.seen_with), None),
            "abilities": [*one.abilities],
            "limits": {**one.client.limits},
            "installed": [*one.installed],
        }
        for one in clients_here
    ]
    app.print_answer("".join(map(_describe_client, clients_here)), value)
    ctx.exit()


def _describe_client(one: ClientOverview) -> str:
    where = ", ".join(map(neutral, one.installed)) or "not installed here"
    limits = "".join(f"  {name}: {limit}\n" for name, limit in one.client.limits.items())
    seen = next((f"seen with {version}" for version in reversed(one.client.seen_with)), "not run")
    about = f"{one.client.name} ({seen})"
    return f"{about}: {where}\n  {', '.join(one.abilities)}\n{limits}"
