"""Orders of a lead, modes and policies; and what an agent tells its lead at a turn's end.

Belongs here: the order of those steps. Tasks are ``control.tasking``, requests and their answers ``control.requests``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..control_plane import control_log, standing, watch_reports
from ..core.address import ALL
from ..core.control import authority, message_text, messages
from ..core.control.verdicts import UNPROVEN
from ..core.control.watches import IDLE
from ..core.records import NOW, TURN, USER
from ..core.roster import DEAD
from ..errors import Malformed, Refused
from ..store.files.board import TASKS, WATCHED, Board
from .steps import DECIDE, describe_vain, post_message, refuse_other, refuse_unapplied

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..control_plane.standing import Standing
    from ..core.control.messages import Payload
    from ..core.roster import Roster
    from ..mailbox.open_mailbox import OpenMailbox
    from ..mailbox.sending import Sent


class Orders:
    """Gives a lead's orders in an opened mailbox."""

    def __init__(self, box: OpenMailbox) -> None:
        self.box = box

    def set_mode(self, me: str, to: Sequence[str], mode: str) -> Sent:
        """Have agents work in a mode (``to``: ids, names, or ``all`` whom ``me`` leads). Raises ``Refused`` unless
        ``me`` leads them, ``Malformed`` for a mode that cannot be set."""
        try:
            mode = message_text.mode(mode)
        except ValueError as error:
            raise Malformed(str(error), f"choose one of {', '.join(messages.MODES)}") from None
        return self.command(me, to, messages.ModeSet(mode=mode))

    def set_policy(
        self,
        me: str,
        to: Sequence[str],
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        hosts: Sequence[str] = (),
        adds: bool = False,
        check: Callable[[], None] | None = None,
    ) -> Sent:
        """Put agents under rules and hosts, which replace earlier ones unless ``adds``; raises as ``set_mode``.
        ``check`` may refuse it under the log's lock."""
        return self.command(me, to, policy_update(allow, deny, hosts, adds=adds), check)

    def command(self, me: str, to: Sequence[str], payload: Payload, check: Callable[[], None] | None = None) -> Sent:
        """Give agents an order; raises as ``set_mode``."""
        stored = find_workers(self.box, to)
        for worker in stored:
            if worker != ALL:
                refuse_other(self.box, me, worker, payload.kind)
        sent = post_message(self.box, me, payload, stored, check=check)
        verdict = refuse_unapplied(self.box, sent)
        if verdict is not None and verdict.why.startswith(UNPROVEN):
            for worker in list_led(me, self.box.logs.read_roster()) if ALL in stored else stored:
                if not _is_in_force(payload, standing.find_standing(self.box, worker)):
                    raise Refused(describe_vain(verdict, worker), DECIDE, code="unverified")
        return sent


def policy_update(
    allow: Sequence[str], deny: Sequence[str], hosts: Sequence[str], *, adds: bool
) -> messages.PolicyUpdate:
    """Return the order that puts agents under rules; raise ``Malformed`` for a text that is no rule."""
    try:
        rules = [tuple(map(message_text.check_rule, given)) for given in (allow, deny)]
    except ValueError as error:
        raise Malformed(str(error), "write a rule as Tool or Tool(what), such as Bash(git:*)") from None
    return messages.PolicyUpdate(allow=rules[0], deny=rules[1], hosts=tuple(hosts), adds=adds)


def find_workers(box: OpenMailbox, to: Sequence[str]) -> list[str]:
    """Return the agents that these words mean, and ``all`` as it is; raise ``NotFound`` for a word that means none."""
    roster = box.logs.read_roster()
    return [word if word == ALL else roster.find(word).session_id for word in to]


def list_led(me: str, roster: Roster) -> list[str]:
    """Return the living and frozen agents that ``me`` decides for."""
    return [a for a, agent in roster.agents.items() if agent.state != DEAD and authority.lead_of(a, roster) == me]


def _is_in_force(payload: Payload, now: Standing) -> bool:
    """Return whether an order that nothing proves does what it says: it narrows, and loosens nothing."""
    if isinstance(payload, messages.PolicyUpdate):
        clears = not (payload.adds or payload.allow or payload.deny or payload.hosts)
        is_given = {*payload.allow} <= {*now.policy.allow} and {*payload.hosts} <= {*now.policy.hosts}
        return now.policy.is_empty if clears else is_given
    return not isinstance(payload, messages.ModeSet) or now.mode == payload.mode


def report_idle(box: OpenMailbox, me: str, reason: str = "available") -> Sent | None:
    """Tell the lead, and those who watch the agent, that its turn ended.

    The lead hears *now* if the agent holds a task or the lead watches it; else along with its next mail. A person who
    leads is not told: they have no turns to be woken in, and need no such mail."""
    roster = box.logs.read_roster()
    lead = authority.lead_of(me, roster)
    notes = Board(box.logs.stamp_files, WATCHED)
    is_watched_by_lead = me in notes.find_names(lead)
    if notes.has(me):
        watch_reports.of_event(box, me, me, IDLE)
    if lead == USER or authority.leads_itself(me, roster):
        return None
    when = NOW if is_watched_by_lead or _holds_task(box, me) else TURN
    return post_message(box, me, messages.IdleNotification(reason=reason), (lead,), when=when)


def _holds_task(box: OpenMailbox, me: str) -> bool:
    """Return whether the agent holds a task that it could work on."""
    if not Board(box.logs.stamp_files, TASKS).is_used():
        return False
    fold = control_log.of_tasks(box)
    mine = [task for task in fold.tasks.values() if not task.is_over and task.holder(fold.roster) == me]
    return any(not fold.tasks.waits_for(task) for task in mine)
