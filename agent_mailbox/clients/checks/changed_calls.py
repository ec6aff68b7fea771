"""Calls of a bound session that another tool's hook changed, after our rules had judged them.

Belongs here: finding them, and telling the lead and the person. Claude Code (2.1.329, seen live) keeps in its
transcript what each hook before a tool answered, with the hook's command. The hook behind a batch of tools is given the
inputs as the model wrote them. So this looks at the next question about a tool, and as a turn or the session ends. A
subagent has a file of its own, beside the session's. A hook on the client's own question (PermissionRequest) leaves no
words there: what it changed nobody sees.

Other clients show a hook behind a tool what ran. So the inputs that were let pass are kept until then, and compared.
Codex (0.169.0) and OpenCode (1.18.33) name the call by an id. Gemini CLI (0.61.0) and Copilot CLI (1.0.102) do not.
There an input that was not let pass took the place of the last one of its tool. All was seen live.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...control.steps import post_message
from ...core import codec
from ...core.control import authority, messages
from ...core.records import NOW, USER, Record
from ...core.text import ascii_json, clipped, neutral
from ...errors import MailboxError
from ...known_clients.known_client import BEFORE_TOOL, PERMIT
from ...permissions.policy import DENY
from ...store.files import paths, system
from ...store.files.small_files import list_names, read_if_possible, write_if_possible
from ...store.locks.lock import FileLock
from .. import transcript
from ..client_input import LOCK_WAIT
from ..transcript import event_of, fields_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...mailbox.open_mailbox import OpenMailbox
    from ...permissions.policy import Judgement
    from ..client_input import ClientInput

_MOST_TOLD = 100
"""Hooks, and calls that run, to remember of a session."""
_MAX_STATE = 1 << 20
_LONG = 300
"""Characters of an input or a hook's command that are told."""
_UNKNOWN = "of another tool, in no file that we know"
_MOST_NAMED = 3


class ChangedCall(Record):
    """A call that ran with another input than was asked about, by this hook."""

    use_id: str
    tool: str
    asked: Any
    ran: Mapping[str, Any]
    hook: str


def tell_changes(
    call: ClientInput, box: OpenMailbox, judge: Callable[[str, Mapping[str, Any]], Judgement], pauses: Sequence[float]
) -> None:
    """Tell the lead and the person of each hook that changed a call since the last look. They hear of a hook once, and
    once more when it made a call that the rules deny. ``judge`` asks those.

    The first look only notes where the transcripts end. The client writes late: while the end of a call is missing,
    look again after each of the ``pauses`` (seconds). If nobody can be told now, the next look tells."""
    if not call.transcript:
        return
    path = box.logs.stamp_files.kept(paths.CHANGED, call.session_id)
    try:
        system.make_directory(system.dirname(path))
        with FileLock(path, LOCK_WAIT):  # several calls at once are one look after the other
            for pause in (*pauses, 0):
                if not _look(path, call, box, judge) or not pause:
                    return
                system.sleep(pause)
    except (MailboxError, OSError):
        pass  # it changes no answer


def _look(
    path: str, call: ClientInput, box: OpenMailbox, judge: Callable[[str, Mapping[str, Any]], Judgement]
) -> list[str]:
    """Look once; return the calls of the session itself whose end is not there."""
    before = _load_state(path)
    ends, said = fields_of(before.get("ends")), _listed(before.get("told"))
    running = [*_listed(before.get("open")), *([call.use_id] if call.use_id and not call.agent_id else [])]
    after: dict[str, int] = {}
    for file in _transcripts(call.transcript):
        start = ends.get(file, 0 if ends else system.size(file))
        after[file], ended, found = find_changes(file, start if isinstance(start, int) else 0)
        running = [one for one in running if one not in ended]
        for changed in found:
            _tell_once(box, call.session_id, changed, judge(changed.tool, changed.ran), said)
    state = {"ends": after, "told": said[-_MOST_TOLD:], "open": running[-_MOST_TOLD:]}
    if state != before:
        write_if_possible(path, codec.dumps(state).encode())
    return running


def find_changes(path: str, start: int) -> tuple[int, set[str], list[ChangedCall]]:
    """Return where the next look begins, the calls that ended, and those that ran changed. A call that has not ended is
    looked at again.

    ``start``: the position of a line, up to which all was told."""
    length = system.size(path)
    found = transcript.read_if_possible(path, start, lambda lines: _found_in(lines, start, length))
    return found or (start, set(), [])


def _found_in(lines: Iterator[bytes], start: int, length: int) -> tuple[int, set[str], list[ChangedCall]]:
    start = start if start <= length else 0  # the file was replaced
    at = max(start - transcript.MARGIN, 0)
    asked: dict[str, tuple[str, Any]] = {}
    changed: dict[str, tuple[int, str, Mapping[str, Any] | None]] = {}
    ended, found = set[str](), list[ChangedCall]()
    for line in lines:
        begins, at = at, at + len(line) + 1
        if not (b'"tool_use"' in line or (begins >= start and (b"updatedInput" in line or b'"tool_result"' in line))):
            continue
        event = event_of(line)
        said = fields_of(event.get("attachment"))
        if (given := _updated_input(said)) is not None:
            changed[str(said.get("toolUseID"))] = begins, str(said.get("command")), given
        for block in transcript.blocks_of(event):
            use = str(block.get("tool_use_id") or block.get("id"))
            if block.get("type") == "tool_use":
                asked[use] = str(block.get("name")), block.get("input")
            elif block.get("type") == "tool_result":
                ended.add(use)
                _, hook, given = changed.pop(use, (0, "", None))
                tool, before = asked.get(use, ("", None))
                is_denied = fields_of(event.get("permissionDecision")).get("decision") == "reject"
                if given is not None and given != before and not is_denied:
                    found.append(ChangedCall(use_id=use, tool=tool, asked=before, ran=given, hook=hook))
    return min((begins for begins, *_ in changed.values()), default=min(at, length)), ended, found


def _updated_input(said: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the input that another tool's hook gave before a tool; None for any other event."""
    if said.get("hookEvent") != BEFORE_TOOL:
        return None
    from ..install.hook_entries import calls_us  # where a hook answered

    if calls_us(said):
        return None
    answer = event_of(str(said.get("stdout")).encode("utf-8", "surrogatepass"))
    given = fields_of(answer.get("hookSpecificOutput")).get("updatedInput")
    return given if isinstance(given, dict) else None


def _transcripts(path: str) -> list[str]:
    """Return the session's file and those of its subagents."""
    directory = system.join(path.removesuffix(".jsonl"), "subagents")
    return [path, *(system.join(directory, name) for name in list_names(directory) if name.endswith(".jsonl"))]


def _tell_once(box: OpenMailbox, me: str, call: ChangedCall, verdict: Judgement, said: list[Any]) -> None:
    """Tell the lead and the person of a changed call, unless its hook with this verdict was ``said``; add that."""
    is_denied = verdict.decision == DENY
    if [call.hook, is_denied] in said:
        return
    lead = authority.lead_of(me, box.logs.read_roster())
    payload = messages.CallChanged(
        tool=call.tool, use_id=call.use_id, arguments=_show_input(call.asked), ran=_show_input(call.ran),
        hook=clipped(neutral(call.hook), _LONG), reason=clipped(verdict.reason if is_denied else "", _LONG),
    )  # fmt: skip
    post_message(box, me, payload, tuple(dict.fromkeys((lead, USER))), when=NOW)
    said.append([call.hook, is_denied])


def _show_input(given: Any) -> str:
    """Return an input as it is told: its command, else all of it, clipped."""
    command = given.get("command") if isinstance(given, dict) else None
    text = command if isinstance(command, str) else "" if given is None else codec.dumps(given, -codec.MAX_DEPTH)
    return clipped(neutral(text), _LONG)


def _load_state(path: str) -> dict[str, Any]:
    """Return what was kept of a session's calls; empty if that cannot be read."""
    return event_of(read_if_possible(path, _MAX_STATE) or b"")


def _listed(value: Any) -> list[Any]:
    """Return a list of a file, or an empty one."""
    return list(value) if isinstance(value, list) else []


def keep_input(call: ClientInput, answer: str, environ: Mapping[str, str]) -> None:
    """Keep the input with which the call may go on by our answer, if the session may be bound."""
    state = paths.state_directory(environ)
    if call.event != PERMIT or not call.only_denies or not paths.is_bound(state, call.session_id):
        return
    if (given := _let_pass(call, answer)) is None:
        return
    path = system.join(state, paths.CHANGED, call.session_id)
    try:
        system.make_directory(system.dirname(path))
        with FileLock(path, LOCK_WAIT):
            known = _load_state(path)
            kept = [*_listed(known.get("kept")), [call.use_id, call.tool, _digest(given), _show_input(given)]]
            write_if_possible(path, codec.dumps({**known, "kept": kept[-_MOST_TOLD:]}).encode())
    except (MailboxError, OSError):
        pass  # it changes no answer


def compare_input(
    call: ClientInput,
    box: OpenMailbox,
    judge: Callable[[str, Mapping[str, Any]], Judgement],
    environ: Mapping[str, str],
) -> None:
    """Tell the lead and the person if the call behind us ran with another input than was let pass. They hear of a hook
    once, and once more when it made a call that the rules deny. ``judge`` asks those."""
    path = box.logs.stamp_files.kept(paths.CHANGED, call.session_id)
    if call.given is None or not system.exists(path):
        return
    try:
        with FileLock(path, LOCK_WAIT):
            known = _load_state(path)
            kept, said = _listed(known.get("kept")), _listed(known.get("told"))
            found = _find_kept(kept, call)
            if found is None:
                return
            kept.remove(found)
            if found[2] != _digest(call.given):
                asked, hook = {"command": found[3]}, _name_hooks(call, environ)
                changed = ChangedCall(use_id=call.use_id, tool=call.tool, asked=asked, ran=call.given, hook=hook)
                _tell_once(box, call.session_id, changed, judge(call.tool, call.given), said)
            write_if_possible(path, codec.dumps({**known, "kept": kept, "told": said[-_MOST_TOLD:]}).encode())
    except (MailboxError, OSError):
        pass  # it changes no answer


def _find_kept(kept: list[Any], call: ClientInput) -> Any:
    """Return what was let pass as this call, by its id. Without ids it is an equal one, or else the last of its
    tool."""
    whole = [one for one in kept if isinstance(one, list) and len(one) == 4 and one[1] == call.tool]
    if call.use_id:
        return next((one for one in whole if one[0] == call.use_id), None)
    wanted = _digest(call.given or {})
    return next((one for one in whole if one[2] == wanted), whole[-1] if whole else None)


def _let_pass(call: ClientInput, answer: str) -> Mapping[str, Any] | None:
    """Return the input that our answer lets pass; None if it denies the call."""
    said = fields_of(event_of(answer.encode("utf-8", "surrogatepass")).get("hookSpecificOutput"))
    given, changed = call.given or {}, said.get("updatedInput")
    if said.get("permissionDecision") == DENY:
        return None
    if not isinstance(changed, dict):
        return given
    return {**given, "command": changed["command"]} if "command" in changed else changed


def _digest(given: Mapping[str, Any]) -> str:
    """Return what tells an input from another one; its description runs nothing."""
    plain = {key: value for key, value in given.items() if key != "description"}
    return checksum_of(ascii_json(codec.dumps(plain, -codec.MAX_DEPTH)))


def checksum_of(text: str) -> str:
    """Return what tells a call's text from another one."""
    from hashlib import sha256  # where calls were granted, and in some clients

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _name_hooks(call: ClientInput, environ: Mapping[str, str]) -> str:
    """Return the hooks of other tools that may have changed it, as far as the client's files show them."""
    from . import hook_sources  # where an input was changed

    found = hook_sources.find_changing(call.client, call.cwd, environ) if call.client else ()
    names = dict.fromkeys(command for _, command in found)
    return " or ".join(list(names)[:_MOST_NAMED]) or _UNKNOWN
