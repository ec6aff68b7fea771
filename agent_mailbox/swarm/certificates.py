"""The certificate that connections are served with: read again when its files change.

Belongs here: one look at two files for each new connection, and a new context once both belong together. A renewal that
is half written, or wrong, leaves the old certificate in use.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable

from ..errors import BadData
from .gateway_log import log_event

Seen = tuple[tuple[int, int, int], ...]
MAKE_HINT = "pass PEM files that belong together"


class Certificates:
    """A chain and its key. ``make`` builds the context of the pair; it raises ``OSError`` or ``ssl.SSLError``."""

    def __init__(self, cert: str, key: str, make: Callable[[], ssl.SSLContext]) -> None:
        self.cert, self.key = cert, key
        self._make = make
        self._seen = self._stat_files()
        self.renewals = 0
        try:
            self._context = make()
        except (OSError, ssl.SSLError) as error:
            raise BadData(f"certificate or key unusable: {error}", MAKE_HINT) from None

    def _stat_files(self) -> Seen | None:
        try:
            found = [os.stat(path) for path in (self.cert, self.key)]
        except OSError:
            return None
        return tuple((one.st_ino, one.st_size, one.st_mtime_ns) for one in found)

    def current_context(self) -> ssl.SSLContext:
        """Return the context for a new connection."""
        seen = self._stat_files()
        if seen is not None and seen != self._seen:
            self.reload_files()
        return self._context

    def reload_files(self) -> bool:
        """Read the files now; return whether they are in use. Without them the old ones stay."""
        self._seen = self._stat_files()
        try:
            self._context = self._make()
        except (OSError, ssl.SSLError) as error:
            log_event(logging.WARNING, "certificate_unusable", error=type(error).__name__, certificate=self.cert)
            return False
        self.renewals += 1
        log_event(logging.INFO, "certificate_renewed", certificate=self.cert)
        return True
