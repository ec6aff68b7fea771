"""agent-mailbox: durable mail between coding-agent sessions on one machine.

``Mailbox`` is the facade, ``Draft`` what is sent, ``Request`` what a session registers with; the errors are one family.
"""

from .core.compose import Draft
from .core.enrol import Request
from .core.inbox import Item
from .core.records import Message
from .core.roster import Agent
from .errors import (
    Ambiguous,
    BadData,
    Busy,
    MailboxError,
    Malformed,
    NoMailbox,
    NotFound,
    Refused,
    StorageFailed,
)
from .mailbox import Mailbox, Sent

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
    "Request",
    "Sent",
    "StorageFailed",
]
