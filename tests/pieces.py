"""A process whose standard input comes in pieces, by a pipe that somebody made non-blocking, or that never ends."""

from __future__ import annotations

import fcntl
import os
import subprocess
import termios
from typing import TYPE_CHECKING

from tests.helpers import PATIENCE, Child, Result, until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def is_drained(fd: int) -> bool:
    """Whether nothing is left in the pipe."""
    return fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0") == b"\0\0\0\0"


def run_in_pieces(
    words: Sequence[str],
    *pieces: bytes,
    env: Mapping[str, str],
    cwd: Path,
    ends: bool = True,
    blocks: bool = False,
) -> Result:
    """Run a command; write each piece once it took the one before. Without ``ends`` the pipe stays open until it is
    done."""
    ours, theirs = os.pipe()
    os.set_blocking(ours, blocks)
    with Child(words, stdin=ours, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=cwd) as child:
        try:
            for number, piece in enumerate(pieces):
                if number:
                    until(lambda: is_drained(ours) or child.poll() is not None)
                os.write(theirs, piece)
            if ends:
                os.close(theirs)
                theirs = -1
            out, err = child.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            raise
        finally:
            os.close(ours)
            if theirs >= 0:
                os.close(theirs)
    return Result(child.returncode, out, err)
