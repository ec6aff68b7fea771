"""agent-mailbox: durable mail between coding-agent sessions on one machine.

``Mailbox`` is the facade. It sends a ``Draft`` and registers a session with a ``Registration``; the errors are one
family. A name is imported when it is asked for (PEP 562): a hook that needs a third of the package imports a third.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core.compose import Draft
    from .core.inbox import Item
    from .core.records import Message
    from .core.roster import Agent
    from .core.roster_changes import Registration
    from .errors import Ambiguous, BadData, Busy, MailboxError, Malformed, NoMailbox, NotFound, Refused, StorageFailed
    from .mailbox.mailbox import Mailbox
    from .mailbox.sending import Sent

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Ambiguous",
    "BadData",
    "Busy",
    "Draft",
    "Item",
    "Mailbox",
    "MailboxError",
    "Malformed",
    "Message",
    "NoMailbox",
    "NotFound",
    "Refused",
    "Registration",
    "Sent",
    "StorageFailed",
]

_HOMES = {
    "Agent": "core.roster",
    "Draft": "core.compose",
    "Item": "core.inbox",
    "Mailbox": "mailbox.mailbox",
    "Message": "core.records",
    "Registration": "core.roster_changes",
    "Sent": "mailbox.sending",
}


_FORMER = {"Request": "Registration"}
"""Names that programs written for an older version import."""


def __getattr__(name: str) -> object:
    name = _FORMER.get(name, name)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
