"""The caller of a tool: the session of the client above the server, asked again for each call.

Belongs here: what a tool call may say of itself. That is less than a command may say: a model fills in the arguments,
and mail may have talked it into them. An argument chooses among the client's own sessions. No call has the person's
rights. The environment chooses none of several sessions: it is that of the server's start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..cli.context import Context, meant_agent
from ..core import frame
from ..core.address import check_id
from ..core.records import USER
from ..core.text import clipped, neutral
from ..errors import NOT_YOU, Malformed, Refused
from ..identity import callers, client_variables
from ..identity.callers import Caller
from .tool_schemas import ToolAnswer

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..cli import mail_output
    from ..mailbox.open_mailbox import OpenMailbox

    Write = Callable[[ToolAnswer], None]

SAID, WARNINGS = 500, 10
"""Characters of an error or a warning, which may repeat what a call said; warnings of one call."""
WHY = "a client's model calls, not the person"


class CallContext(Context):
    """One tool call: the session it acts as, its mailbox, its warnings, and ``write``, which takes its answer."""

    def __init__(self, directory: str | None, write: Write) -> None:
        super().__init__(directory)
        self.warnings: list[str] = []
        self._write = write

    def tell(self, text: str, data: dict[str, Any], *, failed: bool = False) -> None:
        """Answer, with the warnings of the call before the text, and in the data. Return once the client has it."""
        warnings = [clipped(line, SAID) for line in self.warnings[:WARNINGS]]
        warned = "".join(f"warning: {line}\n" for line in warnings)
        self._write(ToolAnswer(warned + text, data | ({"warnings": warnings} if warnings else {}), failed))

    @property
    def caller(self) -> Caller:
        """Return the caller; the person's terminal above a client that we do not know is that client's."""
        if self._caller is None:
            environ = {name: value for name, value in self.environ.items() if name not in client_variables.SESSIONS}
            found = callers.caller_of(environ, self.hosts, latest=True)
            self._caller = Caller(callers.PROGRAM, why=WHY) if found.is_person else found
        return self._caller

    def acting_session(self, desk: OpenMailbox, option: str = "session") -> str:  # noqa: ARG002 - a tool has one
        """Return the session that the call acts as: one of the client's own. Raises ``Refused`` for any other."""
        own = self._own_sessions(desk)
        who = own[0] if self.named is None else self.named
        if who not in own:
            mine = ", ".join(own[:4])
            raise Refused(
                f"this client runs session {mine}, and {who!r:.140} is another", "leave session out", code=NOT_YOU
            )
        if self.caller.kind == callers.PROGRAM:
            self.act_as(who, desk)
        return who

    def _own_sessions(self, desk: OpenMailbox) -> tuple[str, ...]:
        """Return the client's sessions: those that its hooks recorded, else the one that its configuration names.

        It may name the agent by its name. No mail leaves under an id that is another agent's name.
        """
        caller = self.caller
        if caller.kind == callers.SESSION:
            return caller.sessions
        own = self.environ.get(client_variables.OURS, "")
        if not own:
            raise Malformed(
                f"cannot tell who is calling: no hook recorded a session, and {client_variables.OURS} is not set",
                f'write "env": {{"{client_variables.OURS}": "ID"}} into the server\'s entry in the client\'s'
                " configuration",
                code="no_session",
            )
        if own == USER:
            raise Refused(f"only the person is {USER!r}: {WHY}", "name an id of the client's own", code=NOT_YOU)
        check_id(own)
        return (meant_agent(own, desk.logs.read_roster()),)

    @property
    def painter(self) -> mail_output.Style:
        """Return no colours."""
        return frame.plain

    def give_warning(self, text: str) -> None:
        """Keep a line for the answer."""
        self.warnings.append(neutral(self.complete_hint(text)))
