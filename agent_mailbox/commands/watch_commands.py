"""``watch``: hear once when another agent is idle, has ended, or has finished a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..cli import values
from ..cli.group import DefaultCommands, cli
from ..cli.options import App, complete_session, pass_app, session_option
from ..control.watching import Watching
from ..core import frame, instant
from ..core.control.watches import DEAD, IDLE, TASK
from ..core.text import neutral
from ..errors import Malformed

if TYPE_CHECKING:
    from ..core.control.watches import AgentWatch

_UNITS = {"m": 1 / 60, "h": 1, "d": 24}


@cli.group(cls=DefaultCommands, default="set")
def watch() -> None:
    """Hear once when an agent is idle, ends or finishes a task.

    `agent-mailbox watch AGENT` is short for `watch set AGENT`. One message comes when it happens; the watch is over
    then. It costs nobody anything until then, and gives no right over anybody.
    """


@watch.command("set")
@click.argument("agent", metavar="AGENT", shell_complete=complete_session)
@click.option("--idle", is_flag=True, help="When its turn ends, and no mail waits for it.")
@click.option("--dead", is_flag=True, help="When it ends: frozen, retired, or its client gone.")
@click.option("--task", metavar="ID", default="", help="When it reports this task done.")
@click.option("--for", "span", metavar="TIME", default="24h", help="How long: 30m, 24h (default), 7d at most.")
@session_option
@pass_app
def set_watch(app: App, /, agent: str, idle: bool, dead: bool, task: str, span: str) -> None:
    """Watch an agent, by its id or name. A watch for anything hears of the agent's end, too.

    \b
    Example: agent-mailbox watch Kenji --idle
    """
    wanted = ((IDLE, idle), (DEAD, dead), (TASK, bool(task)))
    until = [event for event, is_wanted in wanted if is_wanted]
    if not until:
        raise Malformed("--idle, --dead or --task is missing", "say for what: `agent-mailbox watch AGENT --idle`")
    desk = Watching(app.mailbox)
    made = desk.watch(
        app.deciding_session(desk.box, "the watch"),
        agent,
        until,
        task,
        values.parse_span(span, _UNITS, "h", "write it as 30m, 24h or 7d"),
    )
    app.print_done(
        f"watching until {frame.when(made.ends)}: {_watch_line(desk, made)}\n", {"watches": [_watch_object(made)]}
    )


@watch.command("list")
@session_option
@pass_app
def list_watches(app: App, /) -> None:
    """List the session's watches."""
    desk = Watching(app.mailbox)
    found = desk.watches(app.acting_session(desk.box))
    lines = [f"{_watch_line(desk, one)} until {frame.when(one.ends)}" for one in found]
    app.print_answer("\n".join(lines or ["no watches"]) + "\n", {"watches": [_watch_object(one) for one in found]})


@watch.command()
@click.argument("watch_id", metavar="ID")
@session_option
@pass_app
def cancel(app: App, /, watch_id: str) -> None:
    """End a watch: yours, or as its watcher's lead or the person. You may repeat it."""
    desk = Watching(app.mailbox)
    ended, again = desk.cancel(app.deciding_session(desk.box, "the end of a watch"), watch_id)
    told = "was over already: " if again else "cancelled "
    app.print_done(f"{told}{_watch_line(desk, ended)}\n", {"watches": [_watch_object(ended)], "already": again})


def _watch_line(desk: Watching, one: AgentWatch) -> str:
    name = frame.name_of(one.agent, desk.box.logs.read_roster())
    return f"{neutral(one.id)}  {name}: {', '.join(one.until)} {neutral(one.task)}".rstrip()


def _watch_object(one: AgentWatch) -> dict[str, Any]:
    return {
        "id": one.id,
        "watcher": one.owner,
        "agent": one.agent,
        "until": list(one.until),
        "task": one.task,
        "from": instant.text(one.begins),
        "expires": instant.text(one.ends),
        "proven": one.proven,
        "over": one.over,
        "message_id": one.message_id,
    }
