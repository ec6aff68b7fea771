"""List what a person wants to know beside a request: the agent's work, leases of its file, earlier decisions.

Belongs here: the facts, each in a line. They are told and decide nothing.
"""

from __future__ import annotations

from ..control.leasing import Leasing
from ..control.past_requests import instant_of
from ..control.task_views import TaskViews
from ..control_plane import control_log
from ..core.control import lease_paths, transitions
from ..core.control.control_requests import ControlRequest
from ..core.control.leases import Lease
from ..core.records import USER, Record
from . import activity, call_words, presenters
from .desk import Looking

DECIDED = {transitions.APPROVED: "approved", transitions.DENIED: "denied"}


class Fact(Record):
    """A fact: its label, its words, and the page that says more."""

    label: str
    text: str
    href: str = ""
    more: str = ""


def list_facts(now: Looking, request: ControlRequest) -> list[Fact]:
    """Return what is known beside an open request."""
    return [*_tell_work(now, request.asker), *_tell_leases(now, request), *_tell_past(now, request)]


def _tell_work(now: Looking, asker: str) -> list[Fact]:
    held = [view.task.title for view in TaskViews(now.mailbox).tasks(asker) if view.holder == asker]
    found = [Fact("Task", presenters.one_line(" · ".join(held[:3])))] if held else []
    step = activity.present_step(now, asker)
    if step is not None:
        said = f"{step['said']}, {step['since']} ago" if step["said"] else "no step yet"
        found.append(Fact("Last step", said, presenters.page_link("/transcript", id=asker), "transcript"))
    return found


def _tell_leases(now: Looking, request: ControlRequest) -> list[Fact]:
    given = getattr(request.payload, "input", None)
    path = call_words.path_of_call(given) if isinstance(given, dict) else ""
    if not path:
        return []
    held = [one for one in Leasing(now.mailbox).leases() if _covers(one, path)]
    if not held:
        return [Fact("Leased by", "nobody")]
    roster, clock = now.roster, now.mailbox.now()
    told = [
        f"{presenters.party_name(one.owner, roster)}{'' if one.proven else ' (unverified)'} "
        f"until {presenters.local_moment(one.ends, clock)}"
        for one in held[:3]
    ]
    return [Fact("Leased by", ", ".join(told))]


def _covers(lease: Lease, path: str) -> bool:
    """Return whether a lease is for a file. A relative path counts in any project: rather one warning too many."""
    project = lease.project.rstrip("/") + "/"
    if path.startswith("/") and not path.startswith(project):
        return False
    inside = path.removeprefix(project).removeprefix("./")
    return any(lease_paths.covers(pattern, inside) for pattern in lease.paths)


def _tell_past(now: Looking, request: ControlRequest) -> list[Fact]:
    """Tell what the person decided of this agent's like calls: of the same file, or that begin with the same word."""
    mine, like = {*now.roster.lineage(request.asker)}, _likeness(request)
    found = [
        one
        for one in control_log.of(now.mailbox).requests.values()
        if one.by == USER
        and one.answer_proven
        and one.state in DECIDED
        and one.asker in mine
        and _likeness(one) == like
    ]
    if not found:
        return [Fact("Before", "you decided nothing like it")]
    last = max(found, key=instant_of)
    counts = [
        f"{words} {count}" for state, words in DECIDED.items() if (count := sum(one.state == state for one in found))
    ]
    ago = presenters.elapsed_time(instant_of(last), now.mailbox.now())
    name = presenters.party_name(request.asker, now.roster)
    return [
        Fact("Before", f"of its like you {' and '.join(counts)}; {DECIDED[last.state]} the last {ago} ago",
             presenters.page_link("/decided", agent=name, tool=getattr(request.payload, "tool", "")), "all"),
    ]  # fmt: skip


def _likeness(request: ControlRequest) -> tuple[str, str, str]:
    payload = request.payload
    given = getattr(payload, "input", None)
    fields = given if isinstance(given, dict) else {}
    command = fields.get("command")
    words = command.split()[:1] if isinstance(command, str) else []
    return request.flow, getattr(payload, "tool", ""), call_words.path_of_call(fields) or "".join(words)
