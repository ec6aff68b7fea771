"""The server: requests in, one call at a time, answers out.

Belongs here: all that knows the SDK. A call runs in a thread of its own, which goes on when its answer has left: only
then is mail recorded as read. Nothing stays when the client is gone.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, cast

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from ..errors import Busy, MailboxError
from . import standard_streams
from .tool_schemas import INSTRUCTIONS, TOOLS, ToolAnswer

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from mcp.server.context import ServerRequestContext

    Write = Callable[[ToolAnswer], None]
    Answering = Callable[[str, dict[str, Any], Write], None]

MANY = 16
"""Calls at work or waiting; more are refused."""
PATIENCE = standard_streams.TAKEN
"""Seconds in which the client must take the mail that a call shows; behind them nothing is recorded."""
LONG = 60.0
"""Seconds after which a call is given up."""
_LATE = "it may yet take effect; search for it before you try again"


class ToolServer:
    """The tools on standard input and output; ``answering`` answers a call through the function it is given."""

    def __init__(self, version: str, answering: Answering) -> None:
        self._version = version
        self._answering = answering
        self._one = threading.Lock()
        self._calls: set[_Call] = set()

    def serve_client(self) -> None:
        """Serve until the client is gone."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the reading thread would hold up an orderly end
        ends = standard_streams.claim_streams(self._note_taken)
        try:
            anyio.run(self._serve_streams, *ends)
        except BaseExceptionGroup as group:
            raise _first_error(group) from None
        if self._one.acquire(timeout=PATIENCE):  # a record of mail that the client has
            self._one.release()

    async def _serve_streams(self, lines: standard_streams.InputStream, answers: standard_streams.OutputStream) -> None:
        server: Server[Any] = Server(
            "agent-mailbox",
            version=self._version,
            instructions=INSTRUCTIONS,
            on_list_tools=_list_tools,
            on_call_tool=self._call_tool,
        )
        async with stdio_server(anyio.wrap_file(cast("IO[str]", lines)), anyio.wrap_file(cast("IO[str]", answers))) as (
            incoming,
            outgoing,
        ):
            await server.run(incoming, outgoing, server.create_initialization_options())

    def _note_taken(self, request: object) -> None:
        for call in [*self._calls]:
            if call.request == request and call.taken is not None:
                call.taken.set()

    async def _call_tool(
        self, context: ServerRequestContext[Any], request: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if len(self._calls) >= MANY:
            return _refusal_result(f"too many calls at once: {MANY}", "wait for their answers, then call again")
        call = _Call(asyncio.get_running_loop(), context.request_id)
        self._calls.add(call)
        work = threading.Thread(
            target=self._work_in_thread, args=(call, request.name, request.arguments or {}), daemon=True
        )
        work.start()
        try:
            with anyio.fail_after(LONG):
                return _tool_result(await call.answer)
        except TimeoutError:
            return _refusal_result(f"{request.name} took over {LONG:.0f} seconds", _LATE)

    def _work_in_thread(self, call: _Call, tool: str, given: dict[str, Any]) -> None:
        try:
            with self._one:
                if not call.answer.cancelled():  # it waited, and the client took it back
                    self._answering(tool, given, call.hand_over)
        except MailboxError as error:  # the client has an answer, or takes none
            sys.stderr.write(f"error: {error}\n")
        finally:
            self._calls.discard(call)


class _Call:
    """One call on its way: the answer for the loop, and whether the client has taken it, once it was handed over."""

    def __init__(self, loop: asyncio.AbstractEventLoop, request: object) -> None:
        self.answer: asyncio.Future[ToolAnswer] = loop.create_future()
        self.request = request
        self.taken: threading.Event | None = None
        self._loop = loop

    def hand_over(self, answer: ToolAnswer) -> None:
        """Hand the answer over; return once the client has it. Raises ``Busy`` if it does not take it."""
        if self.taken is not None:
            raise Busy(f"it has an answer already; {answer.text.strip()}", "")
        self.taken = taken = threading.Event()
        try:
            self._loop.call_soon_threadsafe(self._settle_answer, answer, taken)
        except RuntimeError:
            raise Busy("the client is gone; nothing was marked as read", "", code="output_blocked") from None
        if not taken.wait(PATIENCE) or self.answer.cancelled():
            raise Busy("the client did not take the answer; nothing was marked as read", "", code="output_blocked")

    def _settle_answer(self, answer: ToolAnswer, taken: threading.Event) -> None:
        if self.answer.done():  # the client took its request back
            taken.set()
        else:
            self.answer.set_result(answer)


def _first_error(error: BaseException) -> BaseException:
    """Return the first error of a group; it ended the others."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _refusal_result(what: str, hint: str) -> types.CallToolResult:
    data = {"error": {"code": "busy", "message": what, "hint": hint}}
    return _tool_result(ToolAnswer(f"error: {what}\nhint: {hint}\n", data, failed=True))


def _tool_result(answer: ToolAnswer) -> types.CallToolResult:
    """Return an answer in the protocol's form."""
    text = types.TextContent(type="text", text=answer.text)
    return types.CallToolResult(content=[text], structured_content=answer.data, is_error=answer.failed)


async def _list_tools(_: ServerRequestContext[Any], __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[types.Tool(name=n, description=t.description, input_schema=t.schema) for n, t in TOOLS.items()]
    )
