"""What may be sent as a control message: only what a reader would take for one.

Belongs here: that check. Who may send what is judged by readers, from the log (``state``): a sender's word is a claim.
"""

from __future__ import annotations

from ...errors import BadData
from . import wire
from .messages import SPECS, Unknown


def check(content: str) -> None:
    """Raise ``BadData`` unless the content is a message of the union."""
    read = wire.parse(content)
    if isinstance(read, Unknown):
        what = f"{read.type}: {read.reason}" if read.type in SPECS else read.reason
        raise BadData(
            f"no control message: {what}",
            "its body is JSON with a type, as docs/control has them; `agent-mailbox control` makes such messages",
        )
