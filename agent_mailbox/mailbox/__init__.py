"""The mailbox itself: opening it, sending, delivering, changing the roster, receipts, queries, and one facade for all.

``Mailbox`` is looked up when it is asked for (PEP 562): a hook needs a third of this room.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .mailbox import Mailbox as Mailbox


def __getattr__(name: str) -> object:
    if name == "Mailbox":
        from .mailbox import Mailbox

        return Mailbox
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
