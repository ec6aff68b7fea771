"""Links to servers that a test may cut: TCP proxies on loopback, one for each server and machine.

Belongs here: passing bytes on, and not passing them on. A cut link refuses at once; a stalled one says nothing, as
does a server that is stopped for a while.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tests.helpers import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


OPEN, CUT, STALLED = "open", "cut", "stalled"


class Links:
    """The links of one machine to the servers on these ports of loopback; ``ports`` are where it connects.

    ``delay``: the seconds that bytes take in each direction."""

    def __init__(self, servers: Sequence[int], delay: float = 0) -> None:
        self.ports: list[int] = []
        self.delay = delay
        self._servers = servers
        self._state = OPEN
        self._open = asyncio.Event()
        self._ways: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        until(lambda: len(self.ports) == len(servers))

    def become(self, state: str) -> None:
        """Open, cut or stall all of them."""
        self._loop.call_soon_threadsafe(self._become, state)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _become(self, state: str) -> None:
        self._state = state
        (self._open.clear if state == STALLED else self._open.set)()
        if state == CUT:
            for way in [*self._ways]:
                way.transport.abort()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._open.set()
        for server in self._servers:
            found = self._loop.run_until_complete(asyncio.start_server(self._serve(server), "127.0.0.1", 0))
            self.ports.append(found.sockets[0].getsockname()[1])
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    def _serve(self, server: int):  # type: ignore[no-untyped-def]
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._state == CUT:
                writer.transport.abort()
                return
            try:
                there, here = await asyncio.open_connection("127.0.0.1", server)
            except OSError:
                writer.transport.abort()
                return
            self._ways |= {writer, here}
            try:
                await asyncio.gather(self._pass(reader, here), self._pass(there, writer))
            except asyncio.CancelledError:
                pass  # the run is over
            self._ways -= {writer, here}

        return serve

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                await self._open.wait()
                if self.delay:
                    self._loop.call_later(self.delay, writer.write, data)
                else:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        finally:
            self._loop.call_later(self.delay, writer.close)


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """These processes are stopped within."""
    try:
        _signal_all(pids, signal.SIGSTOP)
        yield
    finally:
        _signal_all(pids, signal.SIGCONT)


def _signal_all(pids: Iterable[int], what: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # a database's server may end one that it started
            os.kill(pid, what)
