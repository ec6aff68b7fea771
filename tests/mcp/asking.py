"""A client of the MCP server in plain JSON-RPC, which loads no SDK: as a module, and as a program below others.

As a program it takes calls as JSON (``[[tool, arguments], …]``), starts the server, and prints the results.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SERVER = (sys.executable, str(ROOT / "tests/door/agent_mailbox/__main__.py"), "mcp")
VERSION = "2025-06-18"


def line(method: str, number: int | None = None, **params: Any) -> bytes:
    """One message of the protocol."""
    numbered = {} if number is None else {"id": number}
    return json.dumps({"jsonrpc": "2.0", "method": method, **numbered, "params": params}).encode() + b"\n"


def begin(process: subprocess.Popen[bytes]) -> None:
    """Introduce a client to a server."""
    told = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    assert process.stdin is not None
    process.stdin.write(line("initialize", 0, **told))
    process.stdin.flush()
    answer(process)
    process.stdin.write(line("notifications/initialized"))
    process.stdin.flush()


def ask(process: subprocess.Popen[bytes], number: int, tool: str, **arguments: Any) -> None:
    """Call a tool; ``answer`` has what it says."""
    assert process.stdin is not None
    process.stdin.write(line("tools/call", number, name=tool, arguments=arguments))
    process.stdin.flush()


def answer(process: subprocess.Popen[bytes]) -> Any:
    """The next answer."""
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def main(calls: list[tuple[str, dict[str, Any]]]) -> None:
    """Make the calls in turn, and print their results as one document."""
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        begin(process)
        results = []
        for number, (tool, arguments) in enumerate(calls, 1):
            ask(process, number, tool, **arguments)
            results.append(answer(process)["result"])
        assert process.stdin is not None
        process.stdin.close()
    print(json.dumps(results))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
