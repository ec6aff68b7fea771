"""``control request``: what a worker asks of its lead, and a lead of its workers."""

from __future__ import annotations

from typing import Any

import click

from ..cli import values
from ..cli.group import CommandGroup
from ..cli.options import App, Seconds, complete_session, pass_app, session_option
from ..control.requests import Requests
from ..control.tasking import Tasking
from ..core.control import messages
from ..core.control.control_requests import ControlRequest
from ..errors import Malformed
from ..store.locks.lock import Patience
from . import control_output

reason_option = click.option("--reason", metavar="TEXT", default="", help="The reason, in a sentence.")
_request_id = click.option("--request-id", metavar="ID", default="", help="The request's id (default: a new one).")
_expires = click.option(
    "--timeout", type=Seconds(min=0), metavar="S", help="Seconds until the request expires without an answer."
)
_NETWORK = "network"
LONG = 600
"""Seconds to wait for the answer to a request that does not expire."""
_agent = click.argument("agent", metavar="AGENT", shell_complete=complete_session)


@click.group(cls=CommandGroup)
def request() -> None:
    """Ask your lead for something, or an agent to do something. A lead is asked for a permission, a plan's approval or
    hosts; an agent for a shutdown or a task."""


def _ask(app: App, /, payload: messages.Payload, timeout: float | None = None, *, to: str | None = None) -> None:
    box = app.mailbox
    me = app.deciding_session(box, "the request")
    if timeout is not None:
        payload = payload.replace(expires=box.now() + round(timeout * 1000))
    with Patience(timeout):  # behind that time nobody could answer it
        if isinstance(payload, messages.TaskAssignment):
            asked: ControlRequest = Tasking(box).add_task(me, (to or "",), payload).task
        else:
            asked = Requests(box).request(me, payload, to=to)
    text = control_output.asked_text(app, asked, box, LONG if timeout is None else timeout)
    app.print_done(text, control_output.asked_json(asked, box))


input_option = click.option(
    "--input", "tool_input", metavar="JSON", help="The tool's input; - reads standard input, @FILE a file."
)


@request.command()
@session_option
@click.option("--tool", metavar="NAME", required=True, help="The tool, such as Bash.")
@input_option
@reason_option
@_expires
@_request_id
@pass_app
def permission(app: App, /, tool_input: str | None, timeout: float | None, **given: Any) -> None:
    """Ask your lead to let you use a tool.

    \b
    Example: agent-mailbox control request permission --tool Bash --input -
    """
    _ask(app, messages.PermissionRequest(input=values.json_object(app, tool_input), **given), timeout)


@request.command()
@session_option
@click.option("--body", metavar="TEXT", help="The plan; - reads standard input, @FILE a file.")
@click.option("--file", metavar="PATH", default="", help="The file that holds the plan.")
@click.option("--goal", metavar="TEXT", default="", help="The plan's goal, in a sentence.")
@click.option("--step", "steps", multiple=True, metavar="TEXT", help="A step; repeat the option in order.")
@click.option("--risk", "risks", multiple=True, metavar="TEXT", help="A risk; repeat the option for several.")
@click.option("--tooling", multiple=True, metavar="NAME", help="A tool that the plan needs; repeat it for several.")
@_expires
@_request_id
@pass_app
def plan(app: App, /, body: str | None, timeout: float | None, **given: Any) -> None:
    """Ask your lead to approve a plan: a text, or its goal and steps.

    \b
    Example: agent-mailbox control request plan --goal "Move to v2"
    """
    content = "" if body is None and (given["goal"] or given["steps"]) else values.read_body(app, body)
    _ask(app, messages.PlanRequest(content=content, **given), timeout)


@request.command()
@session_option
@click.option("--host", "hosts", multiple=True, metavar="HOST", help="A host; repeat the option for several.")
@click.option("--capability", metavar="NAME", default=_NETWORK, help="What the sandbox denies (default: network).")
@reason_option
@_expires
@_request_id
@pass_app
def sandbox(app: App, /, hosts: tuple[str, ...], capability: str, timeout: float | None, **given: Any) -> None:
    """Ask your lead for hosts, or another capability. The sandbox denies them otherwise.

    An approval sets hosts only. For another capability it is your lead's word, and the sandbox stays as it is.
    """
    if (capability == _NETWORK) != bool(hosts):
        problem = f"--host does not go with the capability {capability}" if hosts else "--host is missing"
        raise Malformed(problem, "name hosts for the network, and none for another capability")
    _ask(app, messages.SandboxRequest(capability=capability, hosts=hosts, **given), timeout)


@request.command()
@_agent
@session_option
@reason_option
@_expires
@_request_id
@pass_app
def shutdown(app: App, /, agent: str, timeout: float | None, **given: Any) -> None:
    """Ask an agent you lead to end its work; it may refuse."""
    app.caller.refuse_deciding("a shutdown")
    _ask(app, messages.ShutdownRequest(**given), timeout, to=agent)


@request.command()
@_agent
@session_option
@click.option("--title", metavar="TEXT", required=True, help="A short name for the task.")
@click.option("--body", metavar="TEXT", help="The instructions; - reads standard input, @FILE a file.")
@click.option("--context", metavar="TEXT", default="", help="Facts that help: files, decisions, earlier tries.")
@click.option("--plan-required", is_flag=True, help="Allow nothing irreversible before a plan is approved.")
@_request_id
@pass_app
def task(app: App, /, agent: str, body: str | None, **given: Any) -> None:
    """Give an agent a task. It is another name for `task add`."""
    text = "" if body is None else values.read_body(app, body)
    _ask(app, messages.TaskAssignment(instructions=text, **given), to=agent)
