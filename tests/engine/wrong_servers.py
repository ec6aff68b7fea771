"""A server that speaks NATS, and answers each call of JetStream with what a test says: real bytes on a real socket.

Belongs here: as much of the server's side of the protocol as a client needs to ask.
"""

from __future__ import annotations

import socketserver
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

INFO = b'INFO {"version":"2.99.0","headers":true}\r\n'


class WrongServer(socketserver.ThreadingTCPServer):
    """``answer`` is the data of each answer, and ``head`` its headers, if it has any.

    ``to_record``: that of the answer to a record, if it is another one."""

    daemon_threads = True
    allow_reuse_address = True
    answer, head, to_record = b"{}", b"", b""


class _Talk(socketserver.StreamRequestHandler):
    server: WrongServer
    disable_nagle_algorithm = True  # a second answer would wait for the first one's receipt

    def handle(self) -> None:
        """Speak first, then answer each publication."""
        self.wfile.write(INFO)
        for line in self.rfile:
            verb, *words = line.split()
            if verb == b"PING":
                self.wfile.write(b"PONG\r\n")
            elif verb in (b"PUB", b"HPUB"):
                self.rfile.read(int(words[-1]) + 2)
                if len(words) == (3 if verb == b"PUB" else 4):
                    self._reply(words[1], is_record=words[0].startswith(b"mbx."))

    def _reply(self, to: bytes, *, is_record: bool) -> None:
        head, data = self.server.head, (is_record and self.server.to_record) or self.server.answer
        if not head:
            self.wfile.write(b"MSG %s 0 %d\r\n%s\r\n" % (to, len(data), data))
            return
        for one, said in ((head, data), (b"NATS/1.0 204 EOB\r\n\r\n", b"")):  # and the end of several
            sizes = len(one), len(one) + len(said)
            self.wfile.write(b"HMSG %s 0 %d %d\r\n%s%s\r\n" % (to, *sizes, one, said))


@contextmanager
def answering() -> Iterator[tuple[WrongServer, str]]:
    """The server within, and its URL."""
    with WrongServer(("127.0.0.1", 0), _Talk) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server, f"nats://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
