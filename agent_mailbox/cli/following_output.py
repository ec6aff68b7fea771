"""Standard output of a command that goes on printing: whether its reader left.

Belongs here: looking at the pipe. The command waits for news and writes it.
"""

from __future__ import annotations

import os
import select
import stat
import sys


def list_pipes() -> list[int]:
    """Return standard output's descriptor if it is a pipe: waiting for it ends when its reader leaves."""
    return [fd for fd in (sys.stdout.fileno(),) if stat.S_ISFIFO(os.fstat(fd).st_mode)]


def is_left() -> bool:
    """Return whether the reader of the pipe is gone."""
    poll = select.poll()
    for fd in list_pipes():
        poll.register(fd, 0)
    return bool(poll.poll(0))
