"""A connection to a NATS server: the client's side of its protocol, as far as the order needs it.

Belongs here: connecting, publishing with headers, requests and their answers, time limits, and under which subjects the
server takes JetStream's calls. Must not know what they say. Everything that the server says is bounded. Any trouble
closes the connection and is ``Unavailable``; the next request connects again.

**Why there is no library.** A command that has no replicator imports, connects and publishes once. Beyond an empty
Python that costs 8 ms of the processor here, without TLS, and 180 ms with nats-py.
"""

from __future__ import annotations

import _socket as socket  # as in ``first_server``
import os
import time
from itertools import islice, takewhile

from ...core import codec
from ...core.records import Record
from ...errors import MailboxError, Malformed, Refused, Unavailable
from ..order import order as orders
from ..servers.first_server import connect_first, read_credential, split_address
from .server_words import ServerBytes, parse_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ..servers.first_server import Place

PAYLOAD = 8 << 20
"""Bytes of the largest message that a server may send."""
NEWS, MOST_NEWS = "mbxlive.", 64
"""The subjects of which the last message is kept, and how many of them."""
API, OPEN_API = "mbxapi.", "$JS.API."
"""The beginning of the subjects of JetStream's calls: as each machine's account has them, and on a server without such
accounts. Callers use the first, and a connection sends the second where nobody answers to that."""
PORT = 4222
LEAST = (2, 12)
"""The first version of the server with everything that is used here."""
IDLE = 1.0
"""Seconds from which on a connection that nobody used may have ended."""
CONNECTING = 2.0
"""Seconds that pass without a sign of any server before they are given up."""
_VERSION = b"NATS/1.0"
_OUTDATED = (
    "servers run by files of an earlier version, with which a machine may write as another and remove mail:"
    " write them again, by `agent-mailbox engine config --into DIR`"
)
_UNTRUSTED = (
    "`engine join … --authority FILE` names the CA certificate that signed the server's;"
    " if that has ended, `engine config --into DIR` renews it"
)
_STRANGER = "no NATS server answers there"


class ServerAnswer(Record):
    """One message from the server. ``head`` are its headers as they came; ``status`` is the code in them, or empty."""

    subject: str
    data: bytes
    head: bytes
    status: str


class Publication(Record):
    """One message to the server."""

    subject: str
    data: bytes
    headers: Mapping[str, str] | None = None


class NatsConnection:
    """A way to one server at a time, of those that ``url`` names (separated by commas).

    ``credential`` is a file with a token, or with a user's name and password. ``authority`` is one with the CA
    certificate that signed the server's. Any trouble in a ``with`` block closes it: it may have an answer under way."""

    def __init__(self, url: str, credential: str | None, authority: str | None, patience: float = 5.0) -> None:
        self.urls = [one.strip() for one in url.split(",")]
        self.patience = patience
        self._credential = credential
        self._authority = authority
        self._incoming: ServerBytes | None = None
        self._inbox = ""
        self._api = API
        self._asked = 0
        self._used = 0.0
        self._told = False
        self._subjects: set[str] = set()
        self.news: dict[str, bytes] = {}
        self.info: dict[str, Any] = {}

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            self.close()
        if isinstance(error, OSError):
            raise unavailable_error(self.urls, error) from None

    def refuse_old(self) -> None:
        """Raise ``Refused`` if the server that answered last is too old."""
        if is_old(said := str(self.info.get("version", ""))):
            raise Refused(f"engine is too old: nats-server {said or '?'}", "run nats-server 2.12 or later")

    def is_open(self) -> bool:
        """Return whether the server has no accounts such as ``engine config`` writes; connects."""
        self.publish_unanswered([])
        return self._api == OPEN_API

    def ask_each(self, publications: Sequence[Publication]) -> list[ServerAnswer]:
        """Publish the messages, and return the answer to each, in order; raise ``Unavailable`` if one stays away."""
        found: dict[str, ServerAnswer] = {}
        with self:
            wanted = self._ask(publications)
            answers = self._answers_to(wanted)
            while len(found) < len(wanted):
                answer = next(answers)
                if answer.status == "503":
                    raise unavailable_error(self.urls, "nobody answers there; is JetStream enabled?")
                found[answer.subject] = answer
        orders.note_answer()
        return [found[subject] for subject in wanted]

    def ask_one(self, subject: str, data: bytes = b"", headers: Mapping[str, str] | None = None) -> ServerAnswer:
        return self.ask_each([Publication(subject, data, headers)])[0]

    def ask_for_several(self, asked: Publication) -> list[ServerAnswer]:
        """Publish a message that is answered by several; return each but the last, which has a status."""
        with self:
            found = [*takewhile(lambda one: one.head and not one.status, self._answers_to(self._ask([asked])))]
        orders.note_answer()
        return found

    def gather_answers(self, one: Publication, most: int) -> list[ServerAnswer]:
        """Publish a message, and return the answers of all who answer in time, at most ``most``."""
        found: list[ServerAnswer] = []
        with self:
            try:
                found.extend(islice(self._answers_to(self._ask([one])), most))
            except TimeoutError:
                pass  # these are all
        return found

    def publish_unanswered(self, publications: Sequence[Publication]) -> None:
        with self:
            self._ensure_connected()
            self._send_bytes(b"".join(map(self._publication_bytes, publications)))

    def listen_on(self, subject: str) -> None:
        """Hear of messages on a subject from now on, until the connection closes; see ``has_heard``."""
        with self:
            self._ensure_connected()
            self._told = False
            if subject not in self._subjects:
                self._subjects.add(subject)
                self._asked += 1
                self._send_bytes(f"SUB {subject} {self._asked}\r\n".encode())

    def has_heard(self, seconds: float) -> bool:
        """Return whether a message came since ``listen_on``, within that time at most."""
        deadline = time.monotonic() + seconds
        with self:
            try:
                while not self._told:
                    self._receive_message(deadline)
            except TimeoutError:
                pass
        return self._told

    def _answers_to(self, asked: Mapping[str, Publication]) -> Iterator[ServerAnswer]:
        deadline = orders.deadline(self.patience)
        while True:
            answer = self._receive_message(deadline)
            if answer is not None and answer.subject in asked:
                yield answer

    def _ask(self, publications: Sequence[Publication]) -> dict[str, Publication]:
        """Publish the messages, each with a subject of its own for the answer; return them by it, in order."""
        self._ensure_connected()
        asked = {f"{self._inbox}.{self._asked + n}": one for n, one in enumerate(publications)}
        self._asked += len(publications)
        self._send_bytes(b"".join(self._publication_bytes(one, subject) for subject, one in asked.items()))
        return asked

    def _publication_bytes(self, one: Publication, to: str = "") -> bytes:
        reply = f"{to} ".encode() if to else b""
        is_call = one.subject.startswith(API)
        subject = (self._api + one.subject[len(API) :] if is_call else one.subject).encode()
        if not one.headers:
            return b"PUB %s %s%d\r\n%s\r\n" % (subject, reply, len(one.data), one.data)
        lines = "".join(f"{key}: {value}\r\n" for key, value in one.headers.items()).encode()
        head = b"%s\r\n%s\r\n" % (_VERSION, lines)
        size = len(head), len(head) + len(one.data)
        return b"HPUB %s %s%d %d\r\n%s%s\r\n" % (subject, reply, *size, head, one.data)

    def _receive_message(self, deadline: float) -> ServerAnswer | None:
        """Return the next message, or None for anything else that the server says."""
        return self._handle_line(self._incoming_bytes().read_line(deadline).split(), deadline)

    def _handle_line(self, words: list[bytes], deadline: float) -> ServerAnswer | None:
        verb = words[0].upper() if words else b""
        if verb == b"PING":
            self._send_bytes(b"PONG\r\n")
        elif verb == b"-ERR":
            raise self._complaint_error(b" ".join(words[1:]))
        elif verb == b"INFO":
            pass  # a server that leaves, or others that came
        elif verb in (b"MSG", b"HMSG"):
            return self._read_message(words, deadline)
        elif verb not in (b"PONG", b"+OK"):
            raise unavailable_error(self.urls, ConnectionRefusedError(_STRANGER))
        return None

    def _read_message(self, words: list[bytes], deadline: float) -> ServerAnswer:
        sizes = words[-2:] if words[0].upper() == b"HMSG" else [b"0", words[-1]]
        if len(words) < 4 or not (sizes[0] + sizes[1]).isdigit() or max(map(len, sizes)) > 8:
            raise unavailable_error(self.urls, "the server says what no NATS server says")
        size, whole = int(sizes[0]), int(sizes[1])
        if not size <= whole <= PAYLOAD:
            raise unavailable_error(self.urls, f"the server sends {whole} bytes at once")
        data = self._incoming_bytes().read_bytes(whole + 2, deadline)
        head, data = data[:size], data[size:whole]
        status = head[len(_VERSION) :].partition(b"\r\n")[0].decode("ascii", "replace").strip()[:3]
        subject = words[1].decode("utf-8", "replace")
        if subject.startswith(NEWS):
            if subject in self.news or len(self.news) < MOST_NEWS:
                self.news[subject] = data
        elif not subject.startswith(self._inbox):
            self._told = True
        return ServerAnswer(subject, data, head, status)

    def _incoming_bytes(self) -> ServerBytes:
        if self._incoming is None:
            raise OSError("not connected")
        return self._incoming

    def _send_bytes(self, data: bytes) -> None:
        to = self._incoming_bytes().source
        to.settimeout(self.patience)
        to.sendall(data)

    def _ask_word(self) -> None:
        self._send_bytes(b"PING\r\n")

    def _ensure_connected(self) -> None:
        since, self._used = self._used, time.monotonic()
        # Who listens hears of the end, and looks for losses.
        is_heard = bool(self._subjects) or self._used - since < IDLE
        if self._incoming is not None and (is_heard or self._is_still_there()):
            return
        places = {_place_in(url): url for url in self.urls}
        silent = min(self.patience, orders.SILENT if orders.is_hurried() else CONNECTING)
        while self._incoming is None:
            try:
                place, found = connect_first([*places], silent)
                self._incoming = ServerBytes(found, self._ask_word)
                self._begin_talking(places.pop(place), place[0], orders.deadline(self.patience))
            except (OSError, Unavailable):
                if self._incoming is None or not places:
                    raise
                self.close()

    def _is_still_there(self) -> bool:
        """Hear what the server said while nobody asked; return whether it is there. It leaves who answers no PING."""
        try:
            while self._incoming_bytes().has_more():
                self._receive_message(time.monotonic() + orders.SILENT)
        except (OSError, MailboxError):
            self.close()
        return self._incoming is not None

    def _begin_talking(self, url: str, host: str, deadline: float) -> None:
        incoming = self._incoming_bytes()
        incoming.source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        word, _, text = incoming.read_line(deadline).partition(b" ")
        if word.upper() != b"INFO":
            raise unavailable_error([url], ConnectionRefusedError(_STRANGER))
        self.info = parse_object(text)
        wants_tls = split_address(url)[0] == "tls"
        if wants_tls and not self.info.get("tls_required") and not self.info.get("tls_available"):
            raise unavailable_error([url], ConnectionRefusedError("the server has no TLS: write nats://HOST:PORT"))
        if wants_tls or self.info.get("tls_required") is True:
            self._incoming = ServerBytes(self._encrypted(incoming.source, url, host), self._ask_word)
        hello: dict[str, object] = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True}
        hello |= {"protocol": 1, "lang": "python", "version": "1", "name": "agent-mailbox", **self._login_fields()}
        user = str(hello.get("user", ""))
        own = f"{user}." if user.replace("-", "").replace("_", "").isalnum() else ""
        self._inbox = f"_INBOX.{own}{os.urandom(11).hex()}"  # below its own name it may listen, where others may not
        self._api = API
        asked = self._publication_bytes(Publication(f"{API}INFO", b""), f"{self._inbox}.{self._asked}")
        words = codec.dumps(hello).encode(), self._inbox.encode(), asked
        self._send_bytes(b"CONNECT %s\r\nSUB %s.* 0\r\n%sPING\r\n" % words)
        self._asked += 1
        while (said := self._incoming_bytes().read_line(deadline).split())[:1] != [b"PONG"]:
            answer = self._handle_line(said, deadline)
            if answer is not None and answer.status == "503":  # told before the PONG
                self._api = OPEN_API

    def _encrypted(self, source: socket.socket, url: str, host: str) -> socket.socket:
        """Return the connection with TLS, to a server that proved to be the host."""
        import ssl  # who finds no server is spared OpenSSL
        from socket import socket as whole_socket

        try:
            context = ssl.create_default_context(cafile=self._authority)
        except OSError as error:
            said = f"authority's certificate cannot be read: {self._authority}: {error}"
            raise orders.NoServer(said, "`engine join … --authority FILE` names another") from None  # mail waits for it
        plain = whole_socket(fileno=source.detach())
        plain.settimeout(orders.SILENT if orders.is_hurried() else self.patience)
        try:
            return context.wrap_socket(plain, server_hostname=host)
        except ssl.SSLError as error:
            raise orders.NoServer(f"engine is out of reach: {url}: {error}", _UNTRUSTED) from None

    def _login_fields(self) -> dict[str, str]:
        if self._credential is None:
            return {}
        words = read_credential(self._credential).removeprefix("\ufeff").split()
        if len(words) not in (1, 2):
            what = f"credential has no known form: {self._credential}"
            raise Refused(what, "write a token, or a user and a password")
        return {"auth_token": words[0]} if len(words) == 1 else {"user": words[0], "pass": words[1]}

    def _complaint_error(self, said: bytes) -> Exception:
        text = said.decode("utf-8", "replace").strip("' ")[:200]
        if f'"{API}INFO"' in text:
            return Unavailable(_OUTDATED, "copy them to the servers, and restart these one by one", code="outdated")
        if "authori" in text.lower() or "permissions" in text.lower():
            return Refused(f"engine refuses the credential: {text}", "`--credential FILE` of `engine join` names one")
        return unavailable_error(self.urls, text)

    def close(self) -> None:
        self._subjects.clear()
        if self._incoming is not None:
            self._incoming.source.close()
            self._incoming = None


def _place_in(url: str) -> Place:
    scheme, _, where, _ = split_address(url)
    host, _, port = where.rpartition(":") if ":" in where and not where.endswith("]") else (where, "", "")
    if is_bracketed := host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    port = port or str(PORT)
    is_port = port.isascii() and port.isdecimal() and len(port) < 6 and 0 < int(port) < 1 << 16
    if scheme in ("nats", "tls") and host and is_port and (":" in host) == is_bracketed:
        return host, int(port)
    hint = "write nats://HOST:PORT (IPv6 in brackets, a port up to 65535), or postgresql://USER@HOST/DATABASE"
    raise Malformed(f"engine's address is no nats:// or tls:// URL: {url}", hint)


def unavailable_error(urls: Sequence[str], why: object) -> Unavailable:
    is_known = isinstance(why, (ConnectionRefusedError, socket.gaierror))
    return (orders.NoServer if is_known else Unavailable)(
        f"engine is out of reach: {', '.join(urls)}: {why}", orders.START
    )


def is_old(version: str) -> bool:
    return tuple(int(word[:9]) for word in version.split("-")[0].split(".") if word.isdecimal()) < LEAST
