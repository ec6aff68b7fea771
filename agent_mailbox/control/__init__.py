"""The control plane on a mailbox: requests and orders, the log of both, and their effects.

``Control`` is looked up when it is asked for (PEP 562).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .requests import Control as Control


def __getattr__(name: str) -> object:
    if name == "Control":
        from .requests import Control

        return Control
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
