"""The check of control messages before they are sent: reject malformed known types.

Belongs here: that check. Readers judge from the log who may send what (``state``): a sender's word is a claim.
"""

from __future__ import annotations

from ...errors import BadData
from . import message_text
from .message_fields import SPECS
from .messages import Unknown


def check(content: str) -> tuple[str, ...]:
    """Return a warning for a body of unknown type: it is kept and shown, and changes nothing.

    Raise ``BadData`` for a body that names a known type without its shape: it was meant to change something.
    """
    read = message_text.parse(content)
    if not isinstance(read, Unknown):
        return ()
    if read.type in SPECS:
        raise BadData(
            f"no control message: {read.type}: {read.reason}",
            "use `agent-mailbox control`, which writes such messages",
        )
    return (f"no control message ({read.reason}): it is shown as it is, and changes nothing",)
