"""The certificate that connections are served with: read again when its files change.

Belongs here: one look at two files for each new connection, and a new context once both belong together. A renewal that
is half written, or wrong, leaves the old certificate in use.
"""

from __future__ import annotations

import logging
import os
import ssl

from hypercorn.config import Config

from ..errors import BadData
from .gateway_log import log_event

Seen = tuple[tuple[int, int, int], ...]


class Certificates:
    """The chain and the key that a server's configuration names."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.cert, self.key = str(config.certfile), str(config.keyfile)
        self._seen = self._stat_files()
        self.renewals = 0
        try:
            self._context = self._make_context()
        except OSError as error:  # ssl.SSLError is one
            raise BadData(f"certificate or key unusable: {error}", "pass PEM files that belong together") from None

    def _make_context(self) -> ssl.SSLContext:
        made = self._config.create_ssl_context()
        assert made is not None  # both files are named
        return made

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

    def reload_files(self) -> None:
        """Read the files now. If they are unusable, the old ones stay."""
        self._seen = self._stat_files()
        try:
            self._context = self._make_context()
        except OSError as error:
            log_event(logging.WARNING, "certificate_unusable", error=type(error).__name__, certificate=self.cert)
            return
        self.renewals += 1
        log_event(logging.INFO, "certificate_renewed", certificate=self.cert)
