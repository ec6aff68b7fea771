"""The judge of a tool call: the session's policy, its mode, its plan, and, if those say so, its lead, who is waited
for.

Belongs here: from the client's question to its answer. ``permissions.policy`` judges calls; ``control`` asks and
decides. A failing hook fails open (Claude Code 2.1.329, seen live). So a session that was ever bound gets "no" if
nothing better is known, and the client's own rules hold without us (``install.texts.FLOOR``).
"""

from __future__ import annotations

import gc
from itertools import chain
from os.path import realpath
from typing import TYPE_CHECKING, Any

from ...control.requests import WaitAbort
from ...control_plane import control_log
from ...control_plane.standing import binds, find_standing, is_over, policy_of
from ...core import codec, frame
from ...core.control import lasting, messages, transitions
from ...core.records import Record
from ...core.text import ascii_json, clipped, is_utf8, neutral, within_quotes
from ...known_clients.every_client import USUAL
from ...known_clients.known_client import PERMISSION
from ...permissions import policy, rules
from ...permissions.patterns import Where
from ...permissions.policy import ALLOW, ASK, DENY, NO_OPINION, Judgement
from ...store.files import system
from ...store.user_state import bindings
from .. import places, texts, transcript
from ..checks import changed_calls
from ..foreign_fields import read_object, rules_of
from . import gemini_tools, tool_files
from .cancelling import Cancelled, Cancelling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...control.requests import Requests
    from ...control_plane.standing import Standing
    from ...core.control.control_requests import ControlRequest
    from ...core.control.messages import Payload
    from ...core.roster import Agent
    from ...mailbox.open_mailbox import OpenMailbox
    from ..client_input import ClientInput

SHARE = 4
"""The fraction (1/4) of a message that a tool's input, its summary, or a plan may take up, as it is written."""
MAX_SAID = 500
UNTOLD = "a policy binds this session, or may, and it cannot be read"
ASKED, NAMED = "asked", "named"
PERSONS = ("AskUserQuestion",)
"""Tools by which the model asks the person beside it: no lead comes between those two."""
TRUST = "agent-mailbox doctor --trust, in a terminal of their own"
STRICTEST = (DENY, ASK, None, ALLOW)
ANSWERED = "the person at its terminal answered"


class Permit(Record):
    """A question of the client in its surroundings; ``program`` is how an agent starts ours. The first text given to
    ``write`` is the answer. ``is_one_of_several``: other mailboxes judge the same call."""

    call: ClientInput
    requests: Requests
    environ: Mapping[str, str]
    program: str
    write: Callable[[str], None]
    is_one_of_several: bool = False

    @property
    def box(self) -> OpenMailbox:
        """Return the mailbox that may bind the session."""
        return self.requests.box

    @property
    def given(self) -> Mapping[str, Any]:
        """Return the tool's input."""
        return self.call.given or {}

    @property
    def asks_the_person(self) -> bool:
        """Return whether the client would ask its person now."""
        return self.call.event == PERMISSION

    def answer_question(self) -> bool:
        """Answer the client; say nothing if the session is not bound, or may go on as without us. Return whether this
        mailbox binds it."""
        me = self.call.session_id
        standing = find_standing(self.box, me)
        agent = self.box.logs.read_roster().get(me)
        if (why := self.box.logs.broken()) is not None:
            reads = policy.is_reading(self.call.tool, self.given, self._where_called())
            if bindings.is_bound(self.box.logs.stamp_files, me) and not reads:
                self.write(closed_answer(self.call.event, f"{why}; only the person can mend that: {TRUST}"))
                return True
        elif not binds(standing, agent):
            if self.box.logs.custody is not None:
                self._spare_hooks()
            return False
        if not binds(standing, agent):
            return False
        bindings.bind(self.box.logs.stamp_files, me)
        if not self.asks_the_person:
            self.tell_changes()
        named = False
        if not self.asks_the_person and bindings.has_grants(self.box.logs.stamp_files):
            self._take_grant()  # drop a grant that an earlier, equal call left unused
            named = self._take_grant(NAMED)
        try:
            self._decide_call(standing, agent, named=named)
        except Exception as error:  # the session is bound, whatever its stamp says by now
            self.write(closed_answer(self.call.event, getattr(error, "what", "") or type(error).__name__))
            raise
        return True

    def _decide_call(self, standing: Standing, agent: Agent | None, *, named: bool) -> None:
        """Answer by the policy, else by the lead. ``named``: the lead approved exactly this call, in another's
        place."""
        verdict = self._judge_call(standing, agent)
        led = agent is not None and agent.lead is not None
        if verdict.decision in (ALLOW, DENY):
            self._say_decision(verdict.decision, verdict.reason)
        elif named:
            self._keep_grant(self.given)  # the client still asks
            self._say_decision(ALLOW, "this is the call that was approved")
        elif verdict.decision == ASK and self.call.only_denies:
            # it cannot ask the person beside it: the lead decides, or they
            self._ask_lead(standing, self._approval_request(verdict))
        elif led and self.call.tool == policy.EXIT_PLAN:
            self._ask_lead(standing, self._plan_request())
        elif verdict.decision == ASK and not led:
            self._say_decision(ASK, verdict.reason)
        elif led and (verdict.decision == ASK or self._is_for_the_lead()):
            self._ask_lead(standing, self._approval_request(verdict))

    # -- what the policy says -----------------------------------------------------------------------------------------

    def _judge_call(self, standing: Standing, agent: Agent | None) -> Judgement:
        call, given = self.call, self.given
        free, where = self._free_rules(), self._where_called()
        if is_over(standing, agent) and not policy.is_reading(call.tool, given, where):
            return Judgement(DENY, "this session agreed to shut down: end your turn; its work will not resume")
        verdict = self._by_policy(standing, call.tool, given, where, free)
        if verdict.decision in (ALLOW, DENY) or not self.asks_the_person:
            return verdict
        if self._take_grant():
            return Judgement(ALLOW)
        if verdict == NO_OPINION and self._is_freed_by(free):
            return Judgement(ALLOW)  # only our own floor makes the client ask
        return verdict

    def tell_changes(self, pauses: Sequence[float] = ()) -> None:
        """Tell the lead of calls that another tool's hook changed. ``pauses``: what the client may be late with."""
        changed_calls.tell_changes(self.call, self.box, self.judge_input, pauses)

    def compare_call(self) -> None:
        """Tell the lead if the call behind us ran with another input than was let pass."""
        call = gemini_tools.named_as_ours(self.call)
        changed_calls.compare_input(call, self.box, self.replace(call=call).judge_input, self.environ)

    def judge_input(self, tool: str, given: Mapping[str, Any]) -> Judgement:
        """Return what the session's policy says of another input."""
        return self._by_policy(find_standing(self.box, self.call.session_id), tool, given, self._where_called())

    def _by_policy(
        self, standing: Standing, tool: str, given: Mapping[str, Any], where: Where, free: Sequence[str] = ()
    ) -> Judgement:
        """Return the policy's judgement. A patch is an edit of each of its files: the strictest judgement counts."""
        calls: list[tuple[str, Mapping[str, Any]]] = [(tool, given)]
        if tool_files.is_patch(tool, given) and (named := tool_files.written_by_tool(tool, given)):
            calls = [("Edit", {"file_path": path}) for path in named]
        found = [policy.judge_call(policy_of(standing), name, one, where, free) for name, one in calls]
        return min(found, key=lambda verdict: STRICTEST.index(verdict.decision))

    def _free_rules(self) -> list[str]:
        """Return our own rules: of plain mail, and of the requests that its lead asked it to answer: of its own end."""
        asked = control_log.of_agents(self.box, [self.call.session_id]).open_requests()
        mine = [one.id for one in asked if one.flow == transitions.SHUTDOWN and one.answerer == self.call.session_id]
        plain = [name for name in mine if name.replace("-", "").isalnum()]
        answers = (texts.answering_rules(self.program, name) for name in plain)
        return [*texts.allow_rules(self.program), *chain.from_iterable(answers)]

    def _is_freed_by(self, free: Sequence[str]) -> bool:
        parsed = [rules.parse_rule(text) for text in free]
        return rules.allowing_rule(parsed, self.call.tool, self.given, self._where_called()) is not None

    def _is_for_the_lead(self) -> bool:
        """Return whether the lead is asked: beside the client's question to its person, and the first answer counts. If
        the client is unattended and sure to ask, the lead is asked before: see ``_is_floored``."""
        if self.call.tool in PERSONS:
            return False
        return self.asks_the_person or (not USUAL.is_attended(self.environ) and self._is_floored())

    def _is_floored(self) -> bool:
        """Return whether a rule of the client's own is sure to ask about the tool. With such a rule, an answer to the
        client's question cannot change the input; an answer before the question can (2.1.329, seen live)."""
        if self.call.only_denies or self._is_freed_by(self._free_rules()):
            return False  # those rules are Claude Code's
        tool = self.call.tool
        wanted = (tool, "mcp__*") if tool.startswith("mcp__") else ("Bash",) if tool == "Monitor" else (tool,)
        files = places.settings_files(self.call.cwd, self.environ)
        return any(rule in rules_of(read_object(path), "ask") for path in files for rule in wanted)

    def _where_called(self) -> Where:
        def resolve_name(name: str) -> str:
            try:
                return realpath(name)
            except ValueError:  # no file can have this name
                return name

        return Where(self.call.here, self.call.cwd, self.environ.get("HOME") or "/", resolve_name)

    def _spare_hooks(self) -> None:
        """Spare the hooks that follow the question; sound as the quiet stamps are (``store.user_state.bindings``)."""
        logs, me = self.box.logs, self.call.session_id
        with logs.messages.held(), logs.reads.held(), logs.roster.held():
            logs.stamp_files.vouch(self.box.config.stamp)
            now = self.box.now()
            if not binds(find_standing(self.box, me), self.box.logs.read_roster().get(me)):
                bindings.unbind(logs.stamp_files, me, now)

    # -- asking the lead ----------------------------------------------------------------------------------------------

    def _plan_request(self) -> Payload:
        plan, file = self.given.get("plan"), self.given.get("planFilePath")
        return messages.PlanRequest(
            content=self._shorten_text(_carriable_text(plan) if isinstance(plan, str) else ""),
            file=_carriable_text(file) if isinstance(file, str) else "",
        )

    def _approval_request(self, verdict: Judgement) -> Payload:
        if verdict.host is not None:
            return messages.SandboxRequest(capability="network", hosts=(verdict.host,), reason=verdict.reason)
        written, plain = _spell_value(dict(self.given))
        most = self.box.config.max_content // SHARE
        command, why = self.given.get("command"), self.given.get("description")
        said = clipped(_carriable_text(why), MAX_SAID) if isinstance(why, str) else verdict.reason
        elsewhere = f"in {within_quotes(self.call.here, MAX_SAID)}: " if self.call.here != self.call.cwd else ""
        request = messages.PermissionRequest(
            tool=self.call.tool,
            use_id=self.call.use_id,
            arguments=self._shorten_text(command if isinstance(command, str) and plain else written),
            input=dict(self.given) if plain and _size_of(written) <= most else None,
            reason=clipped(f"{elsewhere}{said}", MAX_SAID),
        )
        suggested = lasting.offered(request.replace(suggestions=self.call.suggestions))
        return request.replace(suggestions=lasting.updates(suggested))

    def _shorten_text(self, text: str) -> str:
        """Return the text, or its beginning with a note: in any spelling a request must fit into a message."""
        most = self.box.config.max_content // SHARE
        if _size_of(text) <= most:
            return text
        length = most
        while _size_of(text[:length]) > most:
            length //= 2
        return f"{text[:length]}\n… ({length} of {len(text)} characters; the rest was left out)"

    def _ask_lead(self, standing: Standing, payload: Payload) -> None:
        """Ask the lead, wait, answer. If the client cancels (SIGTERM), or the person answered its dialog, give the
        request up: a later approval counts for nothing."""
        requests, me = self.requests, self.call.session_id
        seconds = self.box.config.control_timeout
        beside = self._watch_dialog()
        gc.enable()  # the start switched it off for a hook that is over at once; this one waits for minutes
        with Cancelling() as cancelling:
            request = requests.request(me, payload.replace(expires=self.box.now() + int(seconds * 1000)))
            try:
                decided = cancelling.run_until_cancelled(lambda: requests.wait(me, request.id, seconds, beside))
            except Cancelled:
                requests.give_up(me, request)
                return
        if beside is not None and decided.state == transitions.TIMED_OUT and beside.why():
            return  # the client no longer waits for this answer
        self._tell_outcome(decided, frame.name_of(standing.lead, self.box.logs.read_roster()), seconds)
        requests.consume(me, decided)

    def _watch_dialog(self) -> WaitAbort | None:
        """Return the client's dialog beside the question. The client does not tell the hook that it was answered, but
        its transcript says how the call ended. Claude Code writes that behind time: a first call may ask before there
        is one."""
        call, path = self.call, self.call.transcript
        if not self.asks_the_person or not path:
            return None
        length, now = system.size(path), self.box.now()
        place = path if system.exists(path) else system.dirname(path)

        def why_over() -> str:
            return ANSWERED if transcript.has_ended(path, length, now, call.tool, self.given) else ""

        return WaitAbort((place,), why_over)

    def _tell_outcome(self, request: ControlRequest, lead: str, seconds: float) -> None:
        answer = request.answer
        notes = answer.notes if isinstance(answer, messages.Answer) else ""
        notes = f": {within_quotes(notes, MAX_SAID)}" if notes else ""
        if request.state == transitions.APPROVED:
            self._tell_approved(request, lead, notes)
        elif request.state == transitions.TIMED_OUT:
            why = f"{lead} did not answer {request.id} within {seconds:g} s; a later answer counts for nothing"
            self._say_decision(self.box.own.control_default, why)
        else:
            self._say_decision(DENY, f"{lead}{request.doubt} denied {request.id}{notes}")

    def _tell_approved(self, request: ControlRequest, lead: str, notes: str) -> None:
        answer = request.answer
        changed = answer.updated_input if isinstance(answer, messages.PermissionResponse) else None
        said = f"{lead} approved {request.id}{', with another input' if changed is not None else ''}"
        if (why := self._why_forbidden(answer, self.given if changed is None else changed)) is not None:
            self._say_decision(DENY, f"{said}, and that is not allowed: {why}")
            return
        again = changed is not None and self.is_one_of_several  # the others judge that input as a call of its own
        if request.flow == transitions.PLAN:
            changed = dict(self.given)  # without an input the client still asks its person
        asked = self.asks_the_person and (self.call.only_denies or self._is_floored())  # too late for another input
        if changed is not None and (again or asked or not self.call.changes):
            self._keep_grant(changed, NAMED)
            self._say_decision(
                DENY, f"{said}; call {self.call.tool} again, with exactly {_spell_value(dict(changed))[0]}"
            )
            return
        if not self.asks_the_person:
            self._keep_grant(self.given if changed is None else changed)
        self._say_decision(ALLOW, f"{said}{notes}", changed)

    def _why_forbidden(self, answer: Payload | None, given: Mapping[str, Any]) -> str | None:
        """Return why the session may not make an approved call: its rules may have changed since it asked. A mode that
        the approval sets is for later calls."""
        standing = find_standing(self.box, self.call.session_id)
        if getattr(answer, "mode", ""):
            standing = standing.replace(mode="default")
        judged = self._by_policy(standing, self.call.tool, given, self._where_called())
        return judged.reason if judged.decision == DENY else None

    # -- answering ----------------------------------------------------------------------------------------------------

    def _say_decision(self, decision: str, reason: str, changed: Mapping[str, Any] | None = None) -> None:
        if self.call.only_denies and decision == ASK:
            decision = DENY
        if self.call.only_denies and decision == ALLOW and changed is None and not self.asks_the_person:
            return  # the call goes on, by the client's own rules
        if text := decision_answer(self.call.event, decision, reason, changed):
            self.write(text)

    def _keep_grant(self, given: Mapping[str, Any], kind: str = ASKED) -> None:
        """Have this decision answer the next question too. ``ASKED``: the client's question about this call, if a rule
        makes it ask. ``NAMED``: the call that the model was told to make."""
        bindings.grant(self.box.logs.stamp_files, self._call_id(given, kind))

    def _take_grant(self, kind: str = ASKED) -> bool:
        return bindings.take(self.box.logs.stamp_files, self._call_id(self.given, kind), self.box.now())

    def _call_id(self, given: Mapping[str, Any], kind: str) -> str:
        named = dict(given)
        if self.call.only_denies:
            named.pop("description", None)  # only its question has that
        words = [kind, self.call.session_id, self.call.agent_id, self.call.prompt_id, self.call.tool, named]
        return changed_calls.checksum_of(_spell_value(words)[0])


def decision_answer(event: str, decision: str, reason: str, changed: Mapping[str, Any] | None = None) -> str:
    """Return an answer in the client's own format; empty to say nothing (it asks its person already)."""
    reason = f"agent-mailbox: {reason}" if reason else ""
    body: dict[str, Any]
    if event == PERMISSION:
        if decision == ASK:
            return ""
        more = {"message": reason} if decision == DENY else {"updatedInput": dict(changed)} if changed else {}
        body = {"hookEventName": event, "decision": {"behavior": decision, **more}}
    else:
        body = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason}
        if changed is not None:
            body["updatedInput"] = dict(changed)
    return ascii_json(codec.dumps({"hookSpecificOutput": body})) + "\n"


def closed_answer(event: str, why: str) -> str:
    """Return the refusal for a bound session whose policy is unreadable."""
    return decision_answer(event, DENY, f"{UNTOLD}: {clipped(neutral(why), MAX_SAID)}")


def _spell_value(value: Any) -> tuple[str, bool]:
    """Return the value as JSON, and whether a message can hold it; if nested too deeply, its ``repr``."""
    try:
        codec.dumps({"tool": {"input": value}})
    except ValueError:
        return repr(value), False
    text = codec.dumps(value)
    return (text, True) if is_utf8(text) else (ascii_json(text), False)


def _size_of(text: str) -> int:
    """Return the bytes of the text within a message."""
    return len(codec.dumps(text).encode("utf-8", "surrogatepass"))


def _carriable_text(text: str) -> str:
    """Return the text if a message can carry it; else as JSON, which can spell half a surrogate pair."""
    return text if is_utf8(text) else ascii_json(codec.dumps(text))
