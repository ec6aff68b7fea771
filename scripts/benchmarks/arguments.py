"""The arguments of the benches that write one table: how often, and whether to write it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence


def given(words: Sequence[str], says: str, **numbers: int) -> Namespace:
    """Return the arguments: ``print``, and these numbers by name, each with its default. ``says`` is their help."""
    parser = ArgumentParser(description=says)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default: {default}")
    parser.add_argument("--print", action="store_true", help="print the table, and write it nowhere")
    return parser.parse_args(words)
