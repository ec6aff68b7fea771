"""Every way to read a file's lines, held to what splitting its bytes says, at the borders of what is read at once."""

from __future__ import annotations

import os
from itertools import product
from typing import TYPE_CHECKING

from agent_mailbox.core.codec import MAX_LINE
from agent_mailbox.store.files import lines as reading

if TYPE_CHECKING:
    from pathlib import Path

BORDERS = (512, 4096, 512 + 512 * 8, 65536, reading.CHUNK // 2, MAX_LINE, 2 * MAX_LINE + 2)


def split(data: bytes, start: int = 0) -> list[tuple[int, bytes]]:
    """The lines that are not empty, each with its position."""
    found = []
    for piece in data.split(b"\n"):
        found += [(start, piece)] if piece else []
        start += len(piece) + 1
    return found


def test_all_readers_find_the_lines_that_splitting_finds(tmp_path: Path) -> None:
    """A line that ends at, before or behind a border is found whole, and so are its neighbours."""
    path = tmp_path / "log"
    for border, beside, before, after in product(BORDERS, (-1, 0, 1), (b"", b"\na\n"), (b"", b"\n", b"\nb")):
        data = before + b"." * (border + beside) + after
        path.write_bytes(data)
        lines = split(data)
        fd = os.open(path, os.O_RDONLY)
        told = [*reading.lines_of(fd)]
        assert told == [(at, line[: MAX_LINE + 1]) for at, line in lines]
        assert [reading.line_at(fd, at) for at, _ in told] == [line for _, line in told]
        for end in {0, 1, len(before), len(data) - 1, len(data)}:
            assert reading.boundary(fd, end) == data.rfind(b"\n", 0, end) + 1
        chunks = [*reading.line_chunks(fd, len(data))]
        read = [one for start, chunk in chunks for one in split(chunk, start)]
        assert [one for one in read if len(one[1]) <= MAX_LINE] == [one for one in lines if len(one[1]) <= MAX_LINE]
        os.close(fd)
