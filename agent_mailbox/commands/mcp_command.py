"""``mcp``: the MCP server, for clients without hooks. See ``agent_mailbox.mcp``."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..cli.group import cli
from ..cli.loading_ahead import load_rooms
from ..cli.options import App, pass_app
from ..errors import Malformed
from ..mcp.tool_commands import answer_call
from ..upkeep import extras

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..mcp.tool_schemas import ToolAnswer

NEEDED = ("mcp", "mcp_types", "anyio")


@cli.command(prints_json=False)
@pass_app
def mcp(app: App, /) -> None:
    """Serve the mailbox to a client by MCP. The tools are check, send, reply, task, note, search and who. Clients start
    this; it speaks on standard input and output.

    It is for clients without hooks: where `install` works, mail comes by itself and costs less. The server acts as its
    client's session, else as AGENT_MAILBOX_SESSION, and never as the person. In a client's own configuration:

    \b
    {"mcpServers": {"mail": {"command": "agent-mailbox", "args": ["mcp"],
      "env": {"AGENT_MAILBOX_SESSION": "ID", "AGENT_MAILBOX_DIR": "DIR"}}}}
    """
    extras.refuse_missing("mcp", "the MCP server", NEEDED)
    if sys.stdin is not None and sys.stdin.isatty():
        raise Malformed("standard input is a terminal: no MCP client", "name this command in a client's configuration")
    from ..mcp.tool_server import ToolServer

    load_rooms("mcp")
    place = _directory()

    def answer(tool: str, given: dict[str, Any], write: Callable[[ToolAnswer], None]) -> None:
        if _directory() is None and place is not None:  # removed and made again, as by a restored backup
            with suppress(OSError):
                os.chdir(place)
        answer_call(app.directory, tool, given, write)

    ToolServer(__version__, answer).serve_client()


def _directory() -> str | None:
    """Return the working directory; None if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None
