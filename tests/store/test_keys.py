"""The user's key."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_mailbox.store.log import keys

if TYPE_CHECKING:
    from pathlib import Path


def test_what_a_failed_init_left_blocks_no_later_one_with_its_process_number(tmp_path: Path) -> None:
    """A file that a failed ``init`` left blocks no later ``init`` with the same process number. Each ``init`` in a
    container may have the same number."""
    (tmp_path / f"{keys.FILE}.{os.getpid()}").write_bytes(b"half a k")
    keys.make(str(tmp_path))
    assert (tmp_path / keys.FILE).read_bytes().endswith(b"\n")
