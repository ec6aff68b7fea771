"""``control``: a worker's requests, its lead's answers and orders, and the log of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import click

from ..cli import values, widening
from ..cli.group import cli
from ..cli.options import App, Seconds, complete_request, complete_session, pass_app, session_option, several_options
from ..control.orders import Orders, policy_update
from ..control.requests import Requests, always_updates, carry_out_shutdown
from ..control.steps import find_request
from ..control.tasking import Tasking
from ..control_plane import control_log
from ..core.address import ALL
from ..core.control import messages, summary, transitions
from ..core.records import USER
from ..errors import Malformed
from . import control_output, request_commands, widened_output
from . import note_commands as note_commands
from . import task_commands as task_commands
from .request_commands import input_option, reason_option

_which = click.argument("request", metavar="REQUEST", shell_complete=complete_request)


@cli.group()
def control() -> None:
    """Coordinate agents: requests, decisions, modes and policies.

    A worker asks its lead, or the person if it has none, and waits. Only the lead or the person may answer, and the
    first decision counts. REQUEST is the id of a request, or a unique beginning of it.
    """


control.add_command(request_commands.request)


def _deciding_session(app: App, /, what: str) -> str:
    """Return the session that decides; raises ``Refused`` for a program, which may not decide."""
    app.caller.refuse_deciding(what)
    return app.deciding_session(app.mailbox, what)


@control.command()
@_which
@session_option
@click.option("--phase", type=click.Choice(messages.PHASES), required=True, help="The state of the task; done ends it.")
@click.option("--body", metavar="TEXT", help="The report; - reads standard input, @FILE a file.")
@click.option(
    "--artifact", "artifacts", multiple=True, metavar="TEXT", help="With done: a file or link that it made; repeatable."
)
@click.option("--error", "errors", multiple=True, metavar="TEXT", help="With done: what went wrong; repeatable.")
@pass_app
def report(app: App, /, request: str, phase: str, body: str | None, **made: Sequence[str]) -> None:
    """Report on a task of yours. It is another name for `task progress` and `task done`; REQUEST is the task.

    \b
    Example: agent-mailbox control report task-1f --phase done --body "it builds"
    """
    me = app.deciding_session(app.mailbox, "the report")
    text = "" if body is None else values.read_body(app, body)
    reported = Tasking(app.mailbox).report(me, request, phase, text, **made)
    roster = app.mailbox.logs.read_roster()
    value = {"request": control_output.request_json(reported.task, roster), "already": reported.already}
    app.print_done(summary.describe_request(reported.task, roster, app.painter, already=reported.already), value)


class Answered(TypedDict, total=False):
    """The options of an answer, as the command line has them."""

    reason: str
    tool_input: str | None
    mode: str | None
    scope: str | None
    hosts: Sequence[str]
    always: bool


_approval_options = several_options(
    _which,
    session_option,
    reason_option,
    input_option,
    click.option("--mode", type=click.Choice(messages.MODES), help="The mode that the agent works in from now on."),
    click.option(
        "--scope", type=click.Choice(messages.SCOPES), help="session: a rule allows the hosts; one-shot: only told."
    ),
    click.option("--host", "hosts", multiple=True, metavar="HOST", help="Allow only these of the requested hosts."),
)


def _is_own_end(app: App, request: str) -> bool:
    """Return whether a request asks the calling session itself to end: that decides for nobody else."""
    asked = find_request(app.mailbox, request)
    return asked.flow == transitions.SHUTDOWN and asked.answerer in app.caller.sessions


def _decide_request(app: App, /, request: str, approved: bool, **given: Unpack[Answered]) -> None:
    caller = app.caller
    if not (caller.is_served and _is_own_end(app, request)):
        caller.refuse_deciding("an answer")
    box = app.mailbox
    me = app.deciding_session(box, "an answer")
    pane = app.environ.get("TMUX_PANE", "")
    said: dict[str, Any] = {
        "notes": given["reason"],
        "mode": given.get("mode"),
        "scope": given.get("scope"),
        "hosts": tuple(given.get("hosts", ())),
    }
    if (tool_input := given.get("tool_input")) is not None:
        said["updated_input"] = values.json_object(app, tool_input)
    asked = find_request(box, request)
    if given.get("always"):
        said["updates"] = always_updates(asked)
    if approved and asked.flow == transitions.SHUTDOWN:
        said["pane"] = pane
    if caller.is_person:  # spares an agent's answer, a common trip, one module
        widening.check_widening(app, lambda: widened_output.of_answer(asked, approved, said, box.now()))
    decided = Requests(box).answer(me, asked, approved, **said)
    again, roster = decided is asked, box.logs.read_roster()
    if app.json:
        app.print_done("", {"request": control_output.request_json(decided, roster), "already": again})
    else:
        app.confirm_change(summary.describe_request(decided, roster, app.painter, already=again))
    agreed = decided.flow == transitions.SHUTDOWN and decided.state == transitions.APPROVED
    # A repeated answer ends no new life.
    if agreed and (asked.is_open or control_log.of_agents(box, [me]).is_shut_down(me)):
        carry_out_shutdown(box, me, app.acting_party(me), pane=pane, vouched=app.vouched)


@control.command()
@_approval_options
@click.option("--always", is_flag=True, help="Also add the rules that `pending` shows, for this agent.")
@pass_app
def approve(app: App, /, request: str, **given: Unpack[Answered]) -> None:
    """Approve a request. You may give another input, fewer hosts, or a mode.

    With `--always` the agent's client asks about such calls no more. `control policy AGENT` lists the rules, and
    `--clear` removes them.

    \b
    Example: agent-mailbox approve perm-b70d --reason "staging only"
    """
    _decide_request(app, request, True, **given)


@control.command()
@_which
@session_option
@reason_option
@pass_app
def deny(app: App, /, request: str, reason: str) -> None:
    """Deny a request."""
    _decide_request(app, request, False, reason=reason)


@control.command()
@_approval_options
@click.argument("decision", type=click.Choice(["approve", "deny"]))
@pass_app
def answer(app: App, /, request: str, decision: str, **given: Unpack[Answered]) -> None:
    """Approve or deny a request; a worker answers a shutdown with this.

    An agent that approves its shutdown is retired: its lead is told, and the command of `[control] cleanup` runs.
    """
    _decide_request(app, request, decision == "approve", **given)


@control.command()
@session_option
@click.option("--all", "everyones", is_flag=True, help="Show all open requests, not only yours to decide.")
@pass_app
def pending(app: App, /, everyones: bool) -> None:
    """Show the requests that wait for your decision, oldest first."""
    me = app.looking_session() if everyones else app.acting_session(app.mailbox)
    requests = Requests(app.mailbox)
    found, roster = requests.pending(me, everyones=everyones), app.mailbox.logs.read_roster()
    value: dict[str, Any] = {"session": me or None, "requests": [control_output.request_json(r, roster) for r in found]}
    text = control_output.pending_text(app, found, app.mailbox)
    text = text if found or not everyones else "no open requests\n"
    if app.caller.is_person and me == USER and not everyones:
        left = requests.unanswerable()
        value["unanswerable"] = [control_output.request_json(r, roster) for r in left]
        text = ("" if left and not found else text) + control_output.unanswerable_text(left, roster, app.painter)
    app.print_answer(app.fold_framed(text), value)


@control.command()
@click.argument("agent", metavar="[AGENT]", required=False, shell_complete=complete_session)
@click.argument("mode", metavar="[MODE]", required=False, type=click.Choice(messages.MODES))
@session_option
@pass_app
def mode(app: App, /, agent: str | None, mode: str | None) -> None:
    """Set the MODE of AGENT, or of `all` you lead. Without MODE it shows its mode and rules, or yours."""
    if mode is not None:
        me = _deciding_session(app, "a mode")
    else:
        me = app.acting_session(app.mailbox) if agent in (None, ALL) else app.looking_session()
    if agent is not None and mode is not None:
        widening.check_widening(app, lambda: widened_output.of_order(app, messages.ModeSet(mode=mode), [agent]))
        Orders(app.mailbox).set_mode(me, [agent], mode)
    control_output.show_standing(app, app.mailbox, me, [agent] if agent else [], changed=mode is not None)


@control.command()
@click.argument("agents", metavar="[AGENT]…", nargs=-1, shell_complete=complete_session)
@click.option(
    "--allow", multiple=True, metavar="RULE", help="A rule such as Bash(git:*); repeat the option for several."
)
@click.option("--deny", multiple=True, metavar="RULE", help="A rule that denies; it goes before any --allow.")
@click.option("--host", "hosts", multiple=True, metavar="HOST", help="A host that tools may reach.")
@click.option("--add", is_flag=True, help="Add to the rules in force; do not replace them.")
@click.option("--clear", is_flag=True, help="Remove all rules and hosts.")
@session_option
@pass_app
def policy(app: App, /, agents: Sequence[str], add: bool, clear: bool, **rules: Sequence[str]) -> None:
    """Set the rules of agents, or show them. `all` are those that you lead. Without rules it shows theirs, or yours.

    \b
    Example: agent-mailbox control policy worker-1 --deny "Bash(git push:*)"
    """
    said = any(rules.values())
    if said or clear:
        me = _deciding_session(app, "a policy")
    else:
        me = app.acting_session(app.mailbox) if not agents or ALL in agents else app.looking_session()
    if ((said or clear) and not agents) or (add and not said):
        raise Malformed(
            "AGENT is missing" if not agents else "--add has no effect without --allow, --deny or --host",
            "`agent-mailbox control policy --help` shows the arguments",
        )
    if said or clear:
        order = policy_update(rules["allow"], rules["deny"], rules["hosts"], adds=add)
        widening.check_widening(app, lambda: widened_output.of_order(app, order, agents))
        Orders(app.mailbox).command(me, agents, order)
    control_output.show_standing(app, app.mailbox, me, agents, changed=said or clear)


@control.command()
@_which
@session_option
@click.option("--timeout", type=Seconds(min=0), metavar="S", help="Give up after S seconds (default: wait for ever).")
@pass_app
def wait(app: App, /, request: str, timeout: float | None) -> int:
    """Block until REQUEST is decided. Exits with 0 if it is approved (a task: done), else with 1.

    If the request is your own, the time-out decides it: a later answer changes nothing.
    """
    me = app.acting_session(app.mailbox) if timeout is None else app.deciding_session(app.mailbox, "a time-out")
    found = Requests(app.mailbox).wait(me, request, timeout)
    roster = app.mailbox.logs.read_roster()
    text = app.fold_framed(summary.describe_request(found, roster, app.painter))
    app.print_answer(text, {"request": control_output.request_json(found, roster)})
    return 0 if found.state in (transitions.APPROVED, transitions.DONE) else 1


@control.command()
@click.option("--request", metavar="REQUEST", help="Show only messages about this request.")
@click.option("--follow", is_flag=True, help="Go on with new messages, a line each (with --json: a document each).")
@session_option
@pass_app
def log(app: App, /, request: str | None, follow: bool) -> None:
    """Show every control message with its outcome. They stand in order, refused ones too."""
    box = app.mailbox
    if app.named is not None:
        app.acting_session(app.mailbox)
    control_output.show_log(app, box, None if request is None else find_request(box, request).id, follow=follow)


for _first in (approve, deny, pending):  # what a person types most needs one word less
    cli.add_command(_first)
