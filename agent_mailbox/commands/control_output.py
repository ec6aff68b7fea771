"""The control plane as text and as JSON.

Belongs here: how requests, standings and the log are shown. ``core.control.summary`` shows the contents of a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..cli import mail_output, output
from ..clients.checks import enforcing
from ..control.orders import list_led
from ..control_plane import control_log
from ..control_plane.standing import find_standing
from ..core import codec, frame, instant, reach
from ..core.control import lasting, message_text, summary, transitions
from ..core.control.verdicts import REFUSED
from ..core.records import USER, Message
from ..core.roster import DEAD
from ..core.text import clipped, neutral, typed
from ..mailbox import arrivals
from ..store.files import watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..cli.mail_output import Style
    from ..cli.options import App
    from ..control_plane.standing import Standing
    from ..core.control.control_requests import ControlRequest
    from ..core.control.verdicts import Verdict
    from ..core.reach import Arrival
    from ..core.roster import Roster
    from ..mailbox.open_mailbox import OpenMailbox


def _plain_body(payload: Any) -> Any:
    """Return a message's own body in its canonical form, with every digit of its numbers."""
    return codec.parse(message_text.written(payload).encode(), ours=False)


def request_json(request: ControlRequest, roster: Roster) -> dict[str, Any]:
    """Return a request as programs see it; the messages' own bodies in their canonical form."""
    return {
        "id": request.id,
        "flow": request.flow,
        "state": request.state,
        "asker": request.asker,
        "deciders": request.list_deciders(roster),
        "asked": instant.text(request.asked),
        "message_id": request.message_id,
        "always": list(_for_good(request)),
        "payload": _plain_body(request.payload),
        "answer": None if request.answer is None else _plain_body(request.answer),
        "by": request.by or None,
        "proof": request.proof if request.proven else None,
        "answer_proof": request.answer_proof if request.answer_proven else None,
        "decided": None if request.decided is None else instant.text(request.decided),
    }


def _join_names(roster: Roster, ids: Sequence[str]) -> str:
    return " or ".join(frame.name_of(i, roster) for i in ids)


def asked_json(request: ControlRequest, box: OpenMailbox) -> dict[str, Any]:
    """Return the same for programs."""
    told = request_json(request, box.logs.read_roster())
    return {"request": told, "delivery": mail_output.arrival_json(_arrival_of(request, box))}


def _arrival_of(request: ControlRequest, box: OpenMailbox) -> Arrival:
    """Return when those who decide a request will see it."""
    roster = box.logs.read_roster()
    to = tuple(request.list_deciders(roster))
    mail = Message(request.message_id, request.asker, to, request.asked, "", type="control")
    return arrivals.find_arrival(box, mail, arrivals.judge_reach(box, mail, roster), roster)


def asked_text(app: App, request: ControlRequest, box: OpenMailbox, timeout: float) -> str:
    """Return the answer to an agent that asked, with the command that waits for ``timeout``."""
    roster = box.logs.read_roster()
    lines = [f"asked {_join_names(roster, request.list_deciders(roster))}: {app.painter(neutral(request.id), 'id')}"]
    if request.is_open:
        asker = roster.get(request.asker)
        lead = asker.lead if asker is not None and not request.answerer else None
        if lead not in (None, USER) and request.list_deciders(roster) == [USER]:
            why = "it is dead" if roster.state(lead) == DEAD else "nothing proves that it is the lead"
            lines.append(f"  not {frame.name_of(lead, roster)}: {why}")
        seen = reach.list_arrival(_arrival_of(request, box), roster)
        lines += [f"  {label}: {names}" for label, names in seen]
        lines.append(f"  {app.complete_command(f'control wait {typed(request.id)} --timeout {timeout:g}')}")
    return "\n".join(lines) + "\n"


def pending_text(app: App, requests: Sequence[ControlRequest], box: OpenMailbox) -> str:
    """Return the queue, oldest first: the asker, its waiting time, the request, the command that decides it."""
    if not requests:
        return "nothing waits for you\n"
    now, roster, style, options = box.now(), box.logs.read_roster(), app.painter, app.options_of("approve")
    lines = [style(mail_output.count_noun(len(requests), "request") + " to decide", "dim")]
    for request in requests:
        waited = max(now - request.asked, 0) // 1000
        expires, shown = getattr(request.payload, "expires", None), frame.short_typed(request.message_id)
        left = f", gives up in {max(expires - now, 0) // 1000} s" if expires is not None else ""
        asker = style(_join_names(roster, [request.asker]) + ("" if request.proven else " (unverified)"), "sender")
        lines += [
            "",
            f"{style(neutral(request.id), 'id')}  {asker}, waiting {waited} s{left}",
            frame.BAR + summary.line(request.payload),
            *(f"  {told}" for told in summary.unshown(request.payload, app.complete_command(f"show {shown}"))),
            *([] if request.proven else ["  nothing proves who asks, so it can only be denied"]),
            f"  {summary.question(request.payload, options=options, proven=request.proven)}",
            *(f"  --always allows it from now on: {neutral(rule)}" for rule in _for_good(request)),
        ]
    return "\n".join(lines) + "\n"


def _for_good(request: ControlRequest) -> tuple[str, ...]:
    """Return the rules that ``--always`` would add: none for a request that nobody can approve."""
    return tuple(lasting.offered(request.payload)) if request.proven else ()


def unanswerable_text(requests: Sequence[ControlRequest], roster: Roster, style: Style) -> str:
    """Return the requests that their deciders cannot answer, and what the person can do."""
    lines: list[str] = []
    for request in requests:
        who = _join_names(roster, request.list_deciders(roster))
        why = f"waits for {who}, who cannot answer: no client proves who that is"
        what, only = summary.question(request.payload, proven=request.proven), "" if request.proven else " only"
        if request.flow == transitions.SHUTDOWN:
            what, only = f"agent-mailbox roster retire {typed(request.answerer)}", ""
        asker = _join_names(roster, [request.asker]) + ("" if request.proven else " (unverified)")
        told = f"{style(neutral(request.id), 'id')}  {asker}, {why}; you can{only}"
        lines += [told, frame.BAR + summary.line(request.payload), f"  {what}"]
    return "\n".join([*lines, ""]) if lines else ""


def standing_json(found: Standing) -> dict[str, Any]:
    """Return an agent's standing as programs see it."""
    return {
        "session": found.session_id,
        "lead": found.lead,
        "mode": found.mode,
        "allow": list(found.policy.allow),
        "deny": list(found.policy.deny),
        "hosts": list(found.policy.hosts),
        "waits_for_plan": found.waits_for_plan,
        "shut_down": found.is_shut_down,
    }


def show_standing(app: App, box: OpenMailbox, me: str, agents: Sequence[str], *, changed: bool) -> None:
    """Show the standing of agents; ``all``: of those that ``me`` decides for; none: of ``me``."""
    roster = box.logs.read_roster()
    ids: list[str] = []
    for word in agents or [me]:
        ids += list_led(me, roster) if word == "all" else [roster.find(word).session_id if agents else word]
    found = [find_standing(box, session_id) for session_id in dict.fromkeys(ids)]
    warned = enforcing.warnings(box, [one.session_id for one in found], app.environ) if changed else []
    for line in warned:
        app.give_warning(line)
    lines = [line for one in found for line in _standing_lines(one, roster, app.painter)] or ["you lead nobody"]
    answer = app.print_done if changed else app.print_answer
    value = {"agents": [standing_json(one) for one in found]}
    answer("\n".join(lines) + "\n", {**value, "warnings": warned} if warned else value)


def _standing_lines(found: Standing, roster: Roster, style: Style) -> list[str]:
    said = [f"mode {found.mode}", f"{_join_names(roster, [found.lead])} decides for it"]
    said += ["waits for a plan's approval"] if found.waits_for_plan else []
    said += ["agreed to shut down"] if found.is_shut_down else []
    lines = [f"{style(_join_names(roster, [found.session_id]), 'sender')}: {', '.join(said)}"]
    for what, rules in (("allow", found.policy.allow), ("deny", found.policy.deny), ("hosts", found.policy.hosts)):
        lines += [f"  {what} {neutral(rule)}" for rule in rules]
    return lines


def show_log(app: App, box: OpenMailbox, request_id: str | None, *, follow: bool) -> None:
    """Print the control messages, each with its outcome; ``follow``: new ones too, until interrupted, or until the
    reader of the pipe leaves."""
    shown: set[str] = set()

    def entry_text(message: Message, verdict: Verdict) -> str:
        return _entry_text(message, verdict, box.logs.read_roster(), app.painter)

    def new_messages() -> list[tuple[Message, Verdict]]:
        found = [(m, v) for m, v in control_log.history(box, request_id) if m.id not in shown]
        shown.update(m.id for m, _ in found)
        return found

    if not follow:
        found = new_messages()
        value = {"messages": [_entry_json(*entry) for entry in found]}
        text = "".join(f"{entry_text(*entry)}\n" for entry in found) or "no control messages\n"
        app.print_answer(app.fold_framed(text), value)
        return
    with watch.Watch([box.directory]) as changes:
        while not output.is_left():
            for entry in new_messages():
                text = app.fold_framed(f"{entry_text(*entry)}\n")
                app.write_answer(mail_output.json_document(_entry_json(*entry)) if app.json else text)
            changes.wait(None, *output.list_pipes())


def _entry_json(message: Message, verdict: Verdict) -> dict[str, Any]:
    return {
        "message": mail_output.message_json(message),
        "outcome": verdict.outcome,
        "why": verdict.why,
        "type": verdict.kind,
        "request": verdict.request_id or None,
        "from": verdict.before,
        "to": verdict.after,
        "about": verdict.about,
    }


def _entry_text(message: Message, verdict: Verdict, roster: Roster, style: Style) -> str:
    outcome = style(verdict.outcome, "dead" if verdict.outcome == REFUSED else "dim")
    why = f" ({clipped(neutral(verdict.why), 200)})" if verdict.why else ""
    who = style(frame.named(message, roster), "sender")
    told = summary.line(message_text.parse(message.content))
    return f"{instant.text(message.timestamp)[:19]}Z  {who}  {outcome}{why} {frame.BAR}{clipped(told, 300)}"
