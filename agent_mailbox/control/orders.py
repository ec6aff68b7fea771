"""Orders of a lead (modes, policies), and the steps that all of the control plane shares.

Belongs here: looking into the fold, sending one control message, finding a request, refusing who has no right; orders.
Tasks are ``control.tasking``. Requests and their answers are ``control.requests``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..control_plane import control_log, standing, watch_reports
from ..control_plane.control_log import ControlStep, note
from ..core import address, codec
from ..core.address import ALL
from ..core.compose import Draft
from ..core.control import authority, message_fields, message_text, messages, transitions
from ..core.control.control_requests import ControlRequest
from ..core.control.state import ControlState
from ..core.control.verdicts import REFUSED, UNPROVEN
from ..core.control.watches import IDLE
from ..core.records import MAX_TTL_HOURS, NOW, TURN, USER, Read
from ..core.roster import DEAD
from ..errors import BadData, Malformed, NotFound, Refused
from ..mailbox.sending import Sending
from ..store.files.board import TASKS, Board
from ..store.files.watched import Watched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..control_plane.standing import Standing
    from ..core.control.messages import Payload
    from ..core.control.verdicts import Verdict
    from ..core.records import Message
    from ..mailbox.opened import OpenMailbox
    from ..mailbox.sending import Sent

MIN_PREFIX = 4
"""Characters to which a request's id may be shortened, as a message's."""

_DECIDE = "decide in the session itself, or as the person at a terminal; a program may not"

TEAM = "team:"
"""The tag that names an agent's team, in a mailbox that takes such tags; an agent of two teams names none."""


def written(payload: Payload) -> str:
    """Return the message's text; raises ``BadData`` if it cannot be written as JSON."""
    try:
        return message_text.written(payload)
    except ValueError as error:
        raise BadData(
            f"{message_fields.name(payload)}: {error}", "a tool's input must be plain JSON, not nested deeply"
        ) from None


class Coordination:
    """Gives orders in an opened mailbox; ``Control`` is built on it."""

    def __init__(self, box: OpenMailbox) -> None:
        self.box = box

    def plane(self) -> ControlState:
        """Return the fold of all control messages, up to this moment."""
        return control_log.of(self.box)

    def standing(self, session_id: str) -> Standing:
        """Return the agent's standing at this moment."""
        return standing.of(self.part_about(session_id), session_id)

    def part_about(self, session_id: str) -> ControlState:
        """Return the part of the fold that may bind or end an agent, up to this moment."""
        return control_log.of_agents(self.box, [session_id])

    def post(
        self,
        me: str,
        payload: Payload,
        to: Sequence[str],
        *,
        thread: str | None = None,
        lasts: bool = False,
        when: str | None = None,
    ) -> Sent:
        """Send one control message; one that ``lasts`` never expires, and goes to nobody by mistake. Raises as ``send``
        does."""
        roster = self.box.logs.read_roster()
        agent = roster.get(me)
        teams = [tag.removeprefix(TEAM) for tag in agent.tags if tag.startswith(TEAM)] if agent is not None else []
        payload = payload.replace(
            timestamp=self.box.now(),
            team=teams[0] if len(teams) == 1 else "",
            agent_id=me,
            agent_name=(agent.name or "") if agent is not None else "",
        )
        content = written(payload)
        hours = MAX_TTL_HOURS if lasts else None
        draft = Draft(
            sender=me, to=tuple(to), content=content, type="control", when=when, thread=thread, ttl_hours=hours
        )
        # An answer goes to the asker, even if the roster has it dead by now.
        answering = to[0] if len(to) == 1 and not lasts else None
        return Sending(self.box).send_all([draft], strict=lasts, answering=answering, by_id=False)[0]

    def read_own(self, me: str, sent: Sent) -> None:
        """Record a message of ``me`` to itself as read: it waits for nobody."""
        read = Read(message_id=sent.message.id, session_id=me, timestamp=self.box.now(), via=me)
        self.box.logs.reads.append([codec.spell_read(read)], (), [self.box.prove(me)])

    def find(self, word: str) -> ControlRequest:
        """Return the request of an id, of its message's id, or of a unique prefix of either, live or archived; raises
        ``NotFound`` or ``Ambiguous``."""
        whole = None if len(word) == address.ID_SHOWN else _meant(word, control_log.of_request(self.box, word))
        found = whole or _meant(word, control_log.of_beginning(self.box, word))
        if found is None and len(word) >= MIN_PREFIX:
            found = _meant(
                word, control_log.archived(self.box.logs, self.box.archive, word)[0]
            )  # live before archive: the steward moves it that way
            found = found and _meant(found.id, control_log.archived(self.box.logs, self.box.archive, found.id)[0])
            if found is not None and found.state in transitions.UNFINISHED:
                raise NotFound(
                    f"{found.id} was archived undecided: {found.worker} is gone", "send a new request to its successor"
                )
        if found is None:
            raise NotFound(f"no request {word!r}", "`agent-mailbox control pending` lists the open ones")
        return found

    def refuse_other(self, me: str, worker: str, what: str) -> None:
        """Raise ``Refused`` unless ``me`` may command the worker."""
        roster = self.box.logs.read_roster()
        if authority.commands(me, worker, self.box.now(), roster):
            return
        lead = authority.lead_of(worker, roster)
        who = USER if lead == USER else f"{lead} or {USER}"
        why = "no agent commands itself" if me == worker else f"{me} is not the lead of {worker}"
        note(self.box, ControlStep(me, what, REFUSED, worker, cause=why))
        raise Refused(f"{what}: {why}", f"ask {who} to do it", code="not_lead")

    def _tell_watchers(self, me: str, event: str, task: str = "") -> None:
        if Watched(self.box.logs.trail).is_watched(me):
            watch_reports.of_event(self.box, me, me, event, task=task)

    def led(self, me: str) -> list[str]:
        """Return the living and frozen agents that ``me`` decides for."""
        roster = self.box.logs.read_roster()
        return [a for a, agent in roster.agents.items() if agent.state != DEAD and authority.lead_of(a, roster) == me]

    def log(self, request_id: str | None = None) -> list[tuple[Message, Verdict]]:
        """Return the live control messages in log order, each with its outcome; ``request_id``: those about that
        request, live or archived."""
        live = control_log.history(self.box, request_id)
        if request_id is None:
            return live
        now = control_log.of_request(self.box, request_id)
        if request_id not in now.requests and request_id not in now.tasks:
            fold, messages = control_log.archived(self.box.logs, self.box.archive, request_id)
            live = [*control_log.told(fold, messages), *live]
        return [entry for entry in live if entry[1].request_id == request_id]

    def set_mode(self, me: str, to: Sequence[str], mode: str) -> Sent:
        """Have agents work in a mode (``to``: ids, names, or ``all`` whom ``me`` leads). Raises ``Refused`` unless
        ``me`` leads them, ``Malformed`` for a mode that cannot be set."""
        try:
            mode = message_text.mode(mode)
        except ValueError as error:
            raise Malformed(str(error), f"choose one of {', '.join(messages.MODES)}") from None
        return self._command(me, to, messages.ModeSet(mode=mode))

    def set_policy(
        self,
        me: str,
        to: Sequence[str],
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        hosts: Sequence[str] = (),
        adds: bool = False,
    ) -> Sent:
        """Put agents under rules and hosts, which replace earlier ones unless ``adds``; raises as ``set_mode``."""
        try:
            rules = [tuple(map(message_text.check_rule, given)) for given in (allow, deny)]
        except ValueError as error:
            raise Malformed(str(error), "write a rule as Tool or Tool(what), such as Bash(git:*)") from None
        return self._command(
            me, to, messages.PolicyUpdate(allow=rules[0], deny=rules[1], hosts=tuple(hosts), adds=adds)
        )

    def _command(self, me: str, to: Sequence[str], payload: Payload) -> Sent:
        roster = self.box.logs.read_roster()
        stored = [word if word == ALL else roster.find(word).session_id for word in to]
        for worker in stored:
            if worker != ALL:
                self.refuse_other(me, worker, message_fields.name(payload))
        sent = self.post(me, payload, stored)
        verdict = self.refuse_unapplied(sent)
        if verdict is not None and verdict.why.startswith(UNPROVEN):
            for worker in self.led(me) if ALL in stored else stored:
                if not _is_in_force(payload, self.standing(worker)):
                    raise Refused(
                        f"{verdict.kind} has no effect on {worker}: {verdict.why}", _DECIDE, code="unverified"
                    )
        return sent

    def refuse_unapplied(self, sent: Sent, hint: str = _DECIDE) -> Verdict | None:
        """Return the fate of a message that was sent; raise ``Refused`` if the fold refused it.

        Nothing proved its writer then, or the writer lost the right."""
        verdict = control_log.of_sent(self.box, sent.message.id).verdicts.get(sent.message.id)
        if verdict is not None and verdict.outcome == REFUSED:
            raise Refused(f"{verdict.kind}: {verdict.why}", hint, code="unverified")
        return verdict

    def report_idle(self, me: str, reason: str = "available") -> Sent | None:
        """Tell the lead, and those who watch the agent, that its turn ended.

        The lead hears *now* if the agent holds a task or the lead watches it; else along with its next mail. A person
        who leads is not told: they have no turns to be woken in, and need no such mail."""
        roster = self.box.logs.read_roster()
        lead = authority.lead_of(me, roster)
        watched = me in Watched(self.box.logs.trail).by(lead)
        self._tell_watchers(me, IDLE)
        if lead == USER or authority.leads_itself(me, roster):
            return None
        when = NOW if watched or self._holds_task(me) else TURN
        return self.post(me, messages.IdleNotification(reason=reason), (lead,), when=when)

    def _holds_task(self, me: str) -> bool:
        """Return whether the agent holds a task that it could work on."""
        if not Board(self.box.logs.trail, TASKS).is_used():
            return False
        tasks = control_log.of_tasks(self.box).tasks
        mine = [task for task in tasks.values() if not task.is_over and tasks.holder(task) == me]
        return any(not tasks.waits_for(task) for task in mine)


def _is_in_force(payload: Payload, now: Standing) -> bool:
    """Return whether an order that nothing proves does what it says: it narrows, and loosens nothing."""
    if isinstance(payload, messages.PolicyUpdate):
        clears = not (payload.adds or payload.allow or payload.deny or payload.hosts)
        is_given = {*payload.allow} <= {*now.policy.allow} and {*payload.hosts} <= {*now.policy.hosts}
        return now.policy.is_empty if clears else is_given
    return not isinstance(payload, messages.ModeSet) or now.mode == payload.mode


def _meant(word: str, fold: ControlState) -> ControlRequest | None:
    everything = {**fold.tasks, **fold.requests}
    named = {name: request.id for request in everything.values() for name in (request.message_id, request.id)}
    begin = [name for name in named if name == word or (len(word) >= MIN_PREFIX and name.startswith(word))]
    found = address.only_match(
        word, list(dict.fromkeys(named[name] for name in address.meant_ids(word, begin))), "requests"
    )
    return None if found is None else everything[found]
