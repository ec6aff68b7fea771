"""The input of a hook: a client's JSON, the session that it names, that one's mailbox, the proof of who calls.

Belongs here: which fields of which client mean what (Claude Code hooks reference; observed with 2.1.329). The answers
are ``hook_events``'.
"""

from __future__ import annotations

import sys

from ..core import codec, instant
from ..core.address import is_shown
from ..core.records import BadLine, Record
from ..core.text import neutral, typed
from ..errors import BadData, NoMailbox, StorageFailed
from ..identity import hook_calls
from ..identity.client_variables import SERVICES
from ..known_clients.every_client import CLIENTS, MCP_CLIENT, SESSION_KEYS, USUAL
from ..mailbox.open_mailbox import locate_mailbox
from ..store.files import paths, standard_input, system
from ..store.user_state import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..core.records import Proof
    from ..known_clients.known_client import KnownClient

PATHS = ("cwd", "transcript_path")
"""The client's names for paths: what the system cannot have as one is none."""
LOCK_WAIT = 1.0
"""Seconds a hook waits for any lock: SessionEnd hooks share 1.5 s."""
READER_WAIT = 8.0
"""Seconds a hook waits for its client to take the answer. A busy client takes it late, and shows it all the same. They
are fewer than ``known_client.TIMEOUT``, at which the client ends the hook and shows nothing."""
MAX_INPUT = 64 << 20
"""Bytes of a client's JSON: it may carry a whole prompt or a tool's answer."""
TELLING = ("SessionStart", "UserPromptSubmit", "Stop")
"""Events that tell the person of a mailbox whose log was removed; a tool's would repeat it each time."""
PATIENCE = 2.0
"""Seconds without a byte behind which the client's JSON counts as ended: some clients never close the pipe."""
REST = "AGENT_MAILBOX_HOOK_REST"
"""Names the seconds to wait for the rest of the client's JSON, which is at ``_REST``: the shim did not see its end."""
_REST = 3


class ClientInput(Record):
    """The client's input to a hook, as far as we use it. ``transcript`` is empty if it tells nothing. ``cwd`` is the
    project's directory, ``here`` the one it works in. ``told``: the JSON itself names the session.
    ``last_words``: the model's, or the client's in their place. ``conversation``: the file in which the client keeps
    it, or empty: see ``KnownClient.conversation``. ``client``: None if it is none we know. ``prompt``: the words with
    which the turn begins. ``is_dropped``: the client drops what we would say. ``called``: when
    it called, by its own word (ms; 0: untold)."""

    event: str
    session_id: str
    cwd: str
    source: str = ""
    reason: str = ""
    transcript: str = ""
    agent_id: str | None = None
    stop_hook_active: bool = False
    command: str = ""
    here: str = "/"
    tool: str = ""
    given: dict[str, Any] | None = None
    use_id: str = ""
    suggestions: tuple[Any, ...] = ()
    prompt_id: str = ""
    told: bool = False
    conversation: str = ""
    client: KnownClient | None = None
    prompt: str = ""
    last_words: str = ""
    is_dropped: bool = False
    called: int = 0

    @property
    def only_denies(self) -> bool:
        """Return whether the client takes a refusal before a tool, and goes on at any other answer."""
        return self.client is not None and self.client.only_denies

    @property
    def changes(self) -> bool:
        """Return whether the client takes another input for this tool from our answer before it."""
        return not self.only_denies or self.tool == "Bash"

    def was_elsewhere(self, environ: Mapping[str, str]) -> bool:
        """Return whether the session was in another client before: nothing of its talk is in this one."""
        before = processes.find_whereabouts(self.session_id, paths.state_directory(environ))
        return before is not None and before.client != self.word

    @property
    def may_take_back(self) -> bool:
        """Return whether the client may erase a turn from the session's conversation until the turn is over."""
        return bool(self.conversation) and self.client is not None and self.client.erases_turns

    @property
    def word(self) -> str:
        """Return the client's name; empty if it is none we know."""
        return self.client.word if self.client else ""


def parse_call(event: str, obj: Mapping[str, Any] | BadLine, environ: Mapping[str, str], here: str) -> ClientInput:
    """Return the client's JSON as a ``ClientInput``; raises ``BadData`` if it is not what the client sends.

    No session of a client has a reserved id: by one a program would read and consume the person's mail."""
    if isinstance(obj, BadLine):
        raise BadData(f"hook input: {obj.reason}", "run `agent-mailbox check` instead: only a client calls hooks")

    def text_of(key: str, default: str | None = "") -> Any:
        value = obj.get(key)
        if key in PATHS and isinstance(value, str):
            try:
                value = None if b"\0" in value.encode("utf-8", "surrogateescape") else value
            except UnicodeEncodeError:  # half of a character, which JSON can spell
                value = None
        return value if isinstance(value, str) and value else default

    suggested = obj.get("permission_suggestions")
    session_id = next(filter(None, map(text_of, SESSION_KEYS)), environ.get(USUAL.session_variable))
    if not session_id:
        raise BadData("hook input: no session_id", "run `agent-mailbox check` instead: only a client calls hooks")
    client = next((one for one in CLIENTS if one.calls(session_id, obj, environ)), None)
    known = client or MCP_CLIENT
    if known.parent_key and (parent := text_of(known.parent_key)):
        session_id = hook_calls.root_session(parent, environ)  # it is bound as its session is
    if is_shown(session_id):
        raise BadData(
            f"hook input: the session id {session_id!r} is reserved",
            "run `agent-mailbox check` instead: no client has such a session",
        )
    tool = obj.get("tool_input")
    if known.path_key and isinstance(tool, dict) and known.path_key in tool:
        tool = {**tool, "file_path": tool[known.path_key]}  # as rules know it
    command = tool.get("command") if isinstance(tool, dict) else None
    if isinstance(calls := obj.get("tool_calls"), list):  # behind all that were called at once
        inputs = [one.get("tool_input") for one in calls if isinstance(one, dict)]
        command = "\n".join([str(one.get("command", "")) for one in inputs if isinstance(one, dict)])
    path = known.find_conversation(session_id, environ) if known.find_conversation else text_of("transcript_path")
    response, is_own = obj.get("tool_response"), known.is_own_file
    return ClientInput(
        event=event,
        session_id=session_id,
        cwd=environ.get(USUAL.project_variable) or text_of("cwd", here),
        source=text_of("source"),
        reason=text_of("reason") or text_of("error"),
        transcript=path if known.conversation == "transcript" else "",
        agent_id=text_of("agent_id", None),
        stop_hook_active=obj.get("stop_hook_active") is True,
        command=command if isinstance(command, str) else "",
        here=text_of("cwd", here),
        tool=text_of("tool_name"),
        given=tool if isinstance(tool, dict) else None,
        use_id=text_of("tool_use_id"),
        suggestions=tuple(suggested) if isinstance(suggested, list) else (),
        prompt_id=text_of("prompt_id"),
        told=session_id == text_of("session_id"),
        client=client,
        prompt=text_of("prompt"),
        last_words=text_of("last_assistant_message"),
        conversation=path if known.conversation and (is_own is None or is_own(path, session_id)) else "",
        called=instant.told(obj.get("timestamp")) if known.tells_time else 0,
        is_dropped=known.drops_errors and isinstance(response, dict) and bool(response.get("error")),
    )


def read_input(environ: Mapping[str, str], patience: float = PATIENCE) -> dict[str, Any] | BadLine:
    """Return the client's JSON as soon as it is whole; why it is none if it ended before, or no byte came for
    ``patience`` seconds."""
    found: dict[str, Any] | BadLine = BadLine("empty")
    if sys.stdin is None:
        return found
    seconds = {"1": 1.0, "2": PATIENCE}.get(environ.get(REST, ""))
    then = None if seconds is None else _REST
    for data in standard_input.possible_objects(MAX_INPUT, seconds or patience, then):
        found = codec.parse(data, MAX_INPUT, ours=False) if data.strip() else BadLine("empty")
        if not isinstance(found, BadLine):
            break
    return found


def mailbox_of(call: ClientInput, directory: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the mailbox of a client's session; None if there is none, or only one that the user's ``init`` did not
    make."""
    named = directory or (environ.get("AGENT_MAILBOX_DIR") if environ.keys().isdisjoint(SERVICES) else None)
    if not named and call.event != "SessionStart" and (known := paths.pointed(call.session_id, environ)):
        return known  # a mailbox created later, nearer to it, changes nothing
    try:
        found, is_vouched = locate_mailbox(directory, environ, call.cwd)
    except NoMailbox as error:
        _check_moved(call, environ, "DIR, its new place")
        if error.code == paths.GONE and call.event == "SessionStart":
            raise StorageFailed(error.what, error.hint, code=error.code) from None  # which the person is told
        return None
    except StorageFailed as error:
        if error.code == "log_gone" and call.event not in TELLING:
            return None
        raise
    if not is_vouched:
        said = f"{neutral(found)} is not one your `agent-mailbox init` made; ignored"
        if call.event == "SessionStart" and not paths.trusted(environ):  # lost, perhaps, with what binds the session
            raise StorageFailed(f"{said}. If it is yours: agent-mailbox init {typed(found)}", "", code="unknown")
        _check_moved(call, environ, typed(found))
        print_error(f"agent-mailbox: {said}")
        return None
    return found


def _check_moved(call: ClientInput, environ: Mapping[str, str], place: str) -> None:
    """Raise ``StorageFailed`` if the mailbox of the session is not where it was: nothing else tells why no mail comes.
    ``place``: where it may be now."""
    if call.event in TELLING[:2] and (known := paths.noted(call.session_id, environ)) and not system.exists(known):
        what = f"this session's mailbox is no longer at {neutral(known)}, so no mail comes. If you moved it, run"
        raise StorageFailed(f"{what} agent-mailbox init {place}", "", code="moved")


def make_prover(call: ClientInput, environ: Mapping[str, str]) -> Callable[[str], Proof | None]:
    """Return a function from a session's id to the proof for records in its name. It proves the session whose client
    called the hook, and that client's earlier ones. Raises ``Refused`` if a command called it."""
    me = call.session_id
    calls_at_prompt = call.client is not None and call.client.begins_at_prompt  # first of all
    begins = call.event == "SessionStart" or (calls_at_prompt and call.event == "UserPromptSubmit")
    proof = hook_calls.prove_call(me, environ, begins=begins, told=call.told, is_fork=call.source == "fork")

    def prove_session(session_id: str) -> Proof | None:
        if proof is None or session_id == me:
            return proof if session_id == me else None
        return hook_calls.prove_shared(session_id, me, environ)

    return prove_session


def print_error(text: str) -> None:
    """Write a line to standard error, if anybody can read it."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(text + "\n")
    except OSError:
        pass
