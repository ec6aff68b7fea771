"""Connections that bring no whole request in time are closed: 256 of them would keep everyone else out.

Belongs here: the time limit of a request, which uvicorn does not have. It ends waiting only between a connection's
first byte and a request's last; a stream or a slow answer is none of its business.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class TimelyConnection(H11Protocol):
    """A connection whose every request must be there within ``seconds``."""

    seconds = 10.0

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._set_timer(True)

    def data_received(self, data: bytes) -> None:
        """Take bytes; wait on if they end amid a request."""
        super().data_received(data)
        state = self.conn.their_state
        self._set_timer(state is h11.SEND_BODY or (state is h11.IDLE and bool(self.conn.trailing_data[0])))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._set_timer(False)
        super().connection_lost(exc)

    def _set_timer(self, is_amid: bool) -> None:
        if self._due is not None and not is_amid:
            self._due.cancel()
            self._due = None
        elif self._due is None and is_amid:
            self._due = self.loop.call_later(self.seconds, self.transport.close)
