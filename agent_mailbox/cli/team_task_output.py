"""Tasks of a client's own team as text and as JSON. They are other people's text, and read only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import frame
from ..core.text import neutral
from ..known_clients.every_client import USUAL

if TYPE_CHECKING:
    from ..cli.mail_output import Style
    from ..clients.team_tasks import TeamTask


def team_task_json(one: TeamTask) -> dict[str, Any]:
    """Return a task of a client's own team as programs see it: with the keys of ours, and whose it is."""
    return {
        "id": one.id, "title": one.title, "to": one.tag, "state": one.state, "holder": one.owner or None,
        "phase": None, "after": list(one.waits_for), "waits_for": list(one.waits_for), "hands": [], "added_by": None,
        "added": None, "ack_by": None, "message_id": None, "proof": None, "client": USUAL.name, "body": one.body,
    }  # fmt: skip


def team_task_line(one: TeamTask, style: Style) -> str:
    """Return such a task in a line."""
    by = f" by {neutral(one.owner)}" if one.owner else ""
    state = f"blocked by {', '.join(map(neutral, one.waits_for))}" if one.waits_for else one.state + by
    return f'{style(neutral(one.id), "id")}  {state}, {USUAL.title}\'s own: "{frame.quoted(one.title)}"'
