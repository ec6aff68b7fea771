"""``python -m agent_mailbox`` and the console script."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    from .cli.main import main as run

    return run(argv)


if __name__ == "__main__":
    sys.exit(main())
