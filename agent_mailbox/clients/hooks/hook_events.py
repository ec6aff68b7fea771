"""The hooks: one function per event, from the client's JSON to its answer.

Belongs here: which event does what, and the shapes of the answers (Claude Code hooks reference; observed with 2.1.329).
A hook never breaks a session: an error becomes a short ``systemMessage`` for the person, and mail that could not be
shown stays unread. Shown means written and flushed; only then is it recorded.
"""

from __future__ import annotations

from ...core import codec, inbox
from ...core.address import check_id
from ...core.records import IDLE, NOW, TURN, USER, Record
from ...core.text import ascii_json, clipped, neutral
from ...errors import Busy
from ...known_clients.every_client import INSTALLED, USUAL
from ...known_clients.known_client import AFTER_TOOL, AFTER_TOOLS, BEFORE_TOOL, FILES, PERMISSION, PERMIT, STOP_FAILURE
from ...mailbox.delivery import Offering, load_offers
from ...store.files import small_files, system
from ...store.files.board import WATCHED, Board
from ...store.files.paths import is_bound
from .. import budget
from ..client_input import ClientInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ...core.inbox import Item
    from ...mailbox.delivery import Delivery, Offer
    from ...mailbox.open_mailbox import OpenMailbox

    Answer = Callable[[str], dict[str, Any]]

FLUSH = (0.05, 0.1, 0.2)
"""Seconds between looks at a turn's end for the model's last words: the client writes them a moment late."""
MAX_CHAIN = 5
"""Times in a row that mail keeps a model from stopping; the client stops it after 8, and the rest can wait."""
_BEGINNINGS = ("SessionStart", "UserPromptSubmit")
"""Events as a turn begins."""
PERMITS = (PERMIT, PERMISSION)
"""Events that ask whether a session may use a tool: before each, and before the client would ask its person."""
MAX_TOLD = 5
"""Lines a session is told about its registration; the rest would crowd out mail."""


class Hook(Record):
    """A call in its surroundings. All output to the client goes through ``write``, which flushes; ``program`` is how an
    agent starts ours."""

    call: ClientInput
    delivery: Delivery
    environ: Mapping[str, str]
    program: str
    write: Callable[[str], None]

    @property
    def desk(self) -> OpenMailbox:
        """Return the mailbox."""
        return self.delivery.box

    def roster_state(self) -> str | None:
        """Return the session's state in the roster."""
        return self.desk.logs.read_roster().state(self.call.session_id)

    def enter_session(self, source: str) -> list[str]:
        """Enter the session (``session.begin_session``); returns the lines to tell it."""
        from . import session  # once or twice in a session's life

        told = session.begin_session(self.desk, self.call, source, self.environ, self.program)
        return [*map(_told_line, told[:MAX_TOLD])]

    def alarm_once(self) -> list[str]:
        """Return the line that tells of a log that was cut or replaced; none if the session was told of it."""
        logs = self.desk.logs
        why, told = logs.broken(), logs.cache("alarms", self.call.session_id)
        if why is None or small_files.load_derived(told) == why.encode():
            return []
        return [_told_line(budget.alarm(why))]

    def _alarm_was_shown(self) -> None:
        if (why := self.desk.logs.broken()) is not None:
            small_files.save_derived(self.desk.logs.cache("alarms", self.call.session_id), why.encode())

    def show_alarm(self) -> None:
        """Show that line alone, to the person: the session itself is not in the roster, perhaps for that reason."""
        if told := self.alarm_once():
            self.write(json_line({"systemMessage": told[0]}))
            self._alarm_was_shown()

    def tell_retired(self) -> None:
        """Tell a session that is dead in the roster, and its person, that it gets no mail: once for each end."""
        if self.alarm_once():
            self.show_alarm()
            return
        from . import ends  # where somebody ended a session whose client goes on

        def tell_both(text: str) -> None:
            self.write(json_line({"systemMessage": text, **_context_answer(self.call)(text)}))

        ends.tell_once(self.desk, self.call.session_id, self.program, self.call.command, tell_both)

    def open_offers(self) -> list[Offer]:
        """Return the deliveries whose fate the transcript will tell."""
        return load_offers(self.desk.logs, self.call.session_id) if self.call.conversation else []

    def settle_offers(self, pauses: Sequence[float] = (), *, returns: bool = False) -> bool:
        """Settle earlier deliveries, as far as the transcript tells; returns whether any is left open. While one is,
        look again after each of the ``pauses`` (seconds).

        ``returns``: the session was away. Its client may replay some of them, which are not shown again then."""
        begins = (returns or self.call.event == "SessionStart") and bool(self.call.conversation)
        if not begins and not self.open_offers():
            return False
        from . import receipt_rules  # after a delivery by a hook

        client = self.environ.get(USUAL.process_variable, "")
        return receipt_rules.settle_offers(self.delivery, self.call, client, pauses, begins=begins)

    def settle_turn(self, pauses: Sequence[float] = ()) -> bool:
        """Settle what can be within a turn: nothing, if the client may erase a turn that is not over."""
        if self.call.may_take_back and (self.call.event != "Stop" or self.has_mail(NOW, TURN)):
            return bool(self.open_offers())
        return self.settle_offers(pauses)

    def has_mail(self, *times: str) -> bool:
        """Return whether there is unread mail that is shown at one of these times."""
        return bool(inbox.due(self.delivery.look(self.call.session_id), *times))

    def _choose(self, items: list[Item], until: int | None = None) -> list[Item]:
        """Return the unread mail that this hook shows: as a turn begins all, between two tools what came for now."""
        if self.call.event in _BEGINNINGS:
            return [item for item in inbox.due(items) if until is None or item.message.timestamp <= until]
        if self.call.event != "Stop":
            return inbox.due(items, NOW)
        from .ends import TurnEnd  # mail at a turn's end

        return self.desk.part(TurnEnd).choose(self.call.session_id, items)

    def count_kept_turns(self) -> int:
        """Return how often in a row mail has kept the model from stopping."""
        return int(small_files.load_derived(self.desk.logs.cache("chains", self.call.session_id)) or 0)

    def count_turns(self, turns: int) -> None:
        """Keep that number."""
        path = self.desk.logs.cache("chains", self.call.session_id)
        if turns or system.exists(path):
            small_files.save_derived(path, b"%d" % turns)

    def deliver_mail(
        self, answer: Answer, parts: Sequence[str] = (), *, quiet: bool = True, until: int | None = None
    ) -> int:
        """Show the ``parts`` and unread mail; returns how much mail. ``answer`` makes the client's object of the text.
        The person is told whose mail it is, and the model does not see that.

        ``quiet``: if nothing is left, later hooks have nothing to do. ``until``: mail sent later (ms) is theirs.
        """
        kept = self.call.conversation
        nonce = system.urandom(3).hex() if kept else None
        length = system.size(kept) if kept else 0
        offering = Offering(nonce, length, self.environ.get(USUAL.process_variable, ""), {}, set(), quiet)

        def choose_items(items: list[Item]) -> Sequence[Item]:
            return self._render_told(self._choose(items, until), parts, nonce).items

        def show_items(items: list[Item]) -> Sequence[Item]:
            mail, held = self._choose(items, until) if items else items, list[str]()
            if not mail and not parts:
                return ()
            if mail and self.call.event in _BEGINNINGS and self.desk.logs.stamp_files.was_woken(self.call.session_id):
                from ...mailbox.session_brake import SessionBrake  # mail that perhaps did not wake it

                held = SessionBrake(self.desk, self.call.session_id).tell_held(mail)
            told = self._render_told(mail, (*parts, *held), nonce, self.delivery.left)
            offering.tokens.update(told.tokens)
            offering.titles.update(told.titles)
            if told.text:
                is_flat = self.call.client is not None and self.call.client.is_flat  # nobody saw that show it
                notice = "" if is_flat else budget.person_notice(told.items, parts, self.desk.logs.read_roster())
                self.write(json_line({**answer(told.text), **({"systemMessage": notice} if notice else {})}))
                if parts:
                    self._alarm_was_shown()
            return told.items

        try:
            return self.delivery.deliver(self.call.session_id, show_items, choose=choose_items, offering=offering)
        except Busy as error:
            if error.code != "busy":
                raise
            raise Busy(f"this session's mail waits: {error.what}", error.hint) from None

    def report_idle(self) -> None:
        """Tell the session's lead, if it has one, and those who watch it, that its turn ends."""
        agent = self.desk.logs.read_roster().get(self.call.session_id)
        is_led = agent is not None and agent.lead not in (None, USER)
        if agent is not None and (is_led or Board(self.desk.logs.stamp_files, WATCHED).has(agent.session_id)):
            from ...control import orders  # the turn of one that others wait for

            orders.report_idle(self.desk, agent.session_id)

    def tell_changed_calls(self, *, ran: bool = False) -> None:
        """Tell the lead of a bound session of calls that another tool's hook changed; ``ran``: of the one behind us."""
        if (ran or self.call.transcript) and is_bound(self.desk.logs.stamp_files.kept(), self.call.session_id):
            from ...control.requests import Requests  # a session that a lead or a policy binds
            from ..permission.permit import Permit

            permit = Permit(self.call, Requests(self.desk), self.environ, self.program, self.write)
            permit.compare_call() if ran else permit.tell_changes(FLUSH)

    def board_lines(self, *, begins: bool = False) -> list[str]:
        """Return what the session is told of tasks and notes. A mailbox without them costs a look for a file."""
        kept_here = self.desk.logs.stamp_files.kept_here
        if not any(system.exists(kept_here(name)) for name in (("tasks", "notes") if begins else ("tasks",))):
            return []
        from . import board_lines  # a mailbox that is a board, too

        return board_lines.tell_lines(self.desk, self.call.session_id, self.program, begins=begins)

    def settle_board(self) -> None:
        """Note that the session was told of its tasks."""
        if system.exists(self.desk.logs.stamp_files.kept_here("tasks")):
            from ...control import task_offers  # likewise

            task_offers.note_told(self.desk, self.call.session_id)

    def _render_told(self, items: list[Item], parts: Sequence[str], nonce: str | None, left: int = 0) -> budget.Told:
        before = "\n".join(parts)
        if not items:
            return budget.Told(before, (), {})
        around = budget.client_frame(self.call.event, self.call.tool) if nonce else 0  # other clients' is unknown
        desk, roster = self.desk, self.desk.logs.read_roster()
        page = budget.Sheet(roster, desk.now(), self.program, nonce or "", around, desk.directory, desk.look_up)
        room = desk.config.hook_tokens * budget.TOKEN - budget.count_units(before)
        told = budget.render_mail(items, page, room, left)
        return told.replace(text=f"{before}\n{told.text}") if before else told


def answer_event(hook: Hook) -> None:
    """Do what the event asks for. A subagent's hooks do nothing: it must not consume its parent's mail."""
    if hook.call.client is not None and hook.call.client not in INSTALLED:
        return  # it runs another client's hooks, and may drop the mail that these show
    if hook.call.event == AFTER_TOOL and hook.call.only_denies:
        hook.tell_changed_calls(ran=True)  # a subagent's calls, too
    if hook.call.agent_id is None and hook.call.event not in SILENT:
        check_id(hook.call.session_id)
        EVENTS[hook.call.event](hook)


def json_line(value: dict[str, Any]) -> str:
    """Return an answer as the client reads it."""
    return ascii_json(codec.dumps(value)) + "\n"


def _told_line(line: str) -> str:
    return f"agent-mailbox: {clipped(neutral(line), 300)}"


def _context_answer(call: ClientInput) -> Answer:
    if call.client is not None and call.client.is_flat:
        return lambda text: {"additionalContext": text}
    return lambda text: {"hookSpecificOutput": {"hookEventName": call.event, "additionalContext": text}}


def _session_start(hook: Hook) -> None:
    """Show what waited for the session. Such mail begins no turn. So what came since the session is there is left to
    what does. So is all mail of a session that was there before (``SAME_PROCESS``)."""
    from .session import SAME_PROCESS  # once or twice in a session's life

    came = 0 if hook.call.source in SAME_PROCESS else hook.desk.now()
    if hook.call.source == "compact" and hook.roster_state() == "dead":
        hook.tell_retired()  # the client's own compacting does not bring it back
        return
    known = hook.roster_state() is not None
    told = hook.enter_session(hook.call.source)
    left = known and hook.settle_offers()
    if known or hook.call.source == "clear":
        from . import reminder  # at most a few times in a session's life

        told += reminder.reminder_lines(hook.desk, hook.call.session_id, hook.program, is_known=known)
    told += hook.board_lines(begins=True)
    if hook.call.client is None or hook.call.client.shows_start:
        hook.deliver_mail(_context_answer(hook.call), told, quiet=not left, until=came)
        hook.settle_board()
    elif told:  # resumed, it may have forgotten this hook's words; those beside the first prompt, right after, it keeps
        hook.write(json_line(_context_answer(hook.call)("\n".join(told))))


def _answer_prompt(hook: Hook) -> None:
    alarm, state = hook.alarm_once(), hook.roster_state()  # in this order: the roster is not looked at again
    if state != "dead":
        returns = state == "frozen"  # a client without a hook at its start
        offered = hook.open_offers()
        length = system.size(hook.call.conversation) if offered else 0
        grown = any(length > offer.length for offer in offered)  # else the model said nothing since
        begins = not budget.is_delivery(hook.call.prompt)  # else a client made it, of mail at a turn's end
        erases = hook.call.may_take_back
        pauses = FLUSH if offered and begins and erases else ()
        left = hook.settle_offers(pauses, returns=returns) if grown or returns or erases else bool(offered)
        enters = state is None or (returns and hook.call.was_elsewhere(hook.environ))
        told = hook.enter_session("") if enters else alarm
        if is_board_due := hook.desk.logs.stamp_files.is_board_due(hook.call.session_id, hook.desk.now):
            told += hook.board_lines()
        hook.deliver_mail(_context_answer(hook.call), told, quiet=not left)
        if is_board_due:
            hook.settle_board()
        if begins:
            hook.count_turns(0)  # a turn begun by the doorbell has ``stop_hook_active`` from the start
    else:
        hook.tell_retired()


def _tool_used(hook: Hook) -> None:
    if hook.call.is_dropped:
        return  # what waits comes behind the next tool, or as the turn ends
    alarm, state = hook.alarm_once(), hook.roster_state()
    if state == "alive":
        left = hook.settle_turn()
        hook.deliver_mail(_context_answer(hook.call), alarm, quiet=not left)
    elif state == "dead":
        hook.tell_retired()
    else:
        hook.show_alarm()


def _answer_stop(hook: Hook) -> None:
    client = hook.call.client
    if hook.roster_state() != "alive":
        hook.show_alarm()
        return
    if client is not None and not client.stop:  # for mail that waits, a doorbell begins another turn
        rings = hook.desk.config.doorbell
        if not rings or not hook.has_mail(NOW, IDLE):
            hook.report_idle()
        return
    hook.tell_changed_calls()
    hook.desk.weigh_mail()  # the brake asks who wrote it
    left = hook.settle_turn(FLUSH)
    turns = hook.count_kept_turns() if hook.call.stop_hook_active else 0
    if turns >= MAX_CHAIN:
        hook.report_idle()
        return
    # Some show context to the model once, a block's reason twice; others know only blocks.
    as_context = client is not None and client.stop == "context"
    answer: Answer = _context_answer(hook.call) if as_context else lambda text: {"decision": "block", "reason": text}
    try:
        shown = hook.deliver_mail(answer, hook.alarm_once(), quiet=not left)
    except Busy:
        hook.report_idle()  # its turn ends all the same
        raise
    if shown:
        hook.count_turns(turns + 1)
    else:
        hook.report_idle()


def _session_end(hook: Hook) -> None:
    if hook.roster_state() == "alive":
        from . import ends, session  # once in a session's life

        hook.tell_changed_calls()
        ends.give_back_at_end(hook.desk, hook.call)
        session.end_session(hook.desk, hook.call, hook.environ)
        hook.settle_offers(FLUSH if hook.call.called else ())


def _turn_failed(hook: Hook) -> None:
    from . import ends  # seldom in a session's life

    ends.give_back_at_end(hook.desk, hook.call)


EVENTS: dict[str, Callable[[Hook], object]] = {
    "SessionStart": _session_start,
    "UserPromptSubmit": _answer_prompt,
    AFTER_TOOL: _tool_used,
    AFTER_TOOLS: _tool_used,
    "Stop": _answer_stop,
    STOP_FAILURE: _turn_failed,
    "PreCompact": Hook.settle_offers,
    "SessionEnd": _session_end,
}
SILENT = ("SubagentStop", "TeammateIdle")
"""Events that need no answer and are no error: subagents and idle teammates have no mail of their own."""
HOOKS = (*EVENTS, BEFORE_TOOL, PERMISSION)
"""Every event that calls us."""
SPELLINGS = {name.lower(): name for name in (*HOOKS, *PERMITS, FILES, *SILENT)}
"""The client's spelling of each event that we answer, by its letters."""
