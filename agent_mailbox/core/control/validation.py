"""What may be sent as a control message: not what claims to be one of ours and is none.

Belongs here: that check. Who may send what is judged by readers, from the log (``state``): a sender's word is a claim.
"""

from __future__ import annotations

from ...errors import BadData
from . import message_text
from .messages import SPECS, Unknown


def check(content: str) -> tuple[str, ...]:
    """What the sender should know: a body of no type that we know is kept and shown, and moves nothing.

    Raises ``BadData`` for one that names a type and does not have its shape: it was meant to move something.
    """
    read = message_text.parse(content)
    if not isinstance(read, Unknown):
        return ()
    if read.type in SPECS:
        raise BadData(
            f"no control message: {read.type}: {read.reason}",
            "docs/control has the shapes; `agent-mailbox control` makes such messages",
        )
    return (f"no control message ({read.reason}): it is shown as it is, and changes nothing",)
