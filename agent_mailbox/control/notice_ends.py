"""Ending a standing notice: finding it by its id, who may, and the message that ends it.

Belongs here: those steps, which leases and watches share. The rules are ``core.control.standing_notices``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import address, frame
from ..errors import NotFound, Refused
from .steps import note_read, post_message, refuse_unapplied

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.control.standing_notices import N, StandingNotices
    from ..mailbox.open_mailbox import OpenMailbox


def end_notice(
    box: OpenMailbox,
    me: str,
    word: str,
    fold: StandingNotices[N],
    older: Callable[[], StandingNotices[N]],
    live: Sequence[N],
    payload: Callable[..., Any],
    hint: Callable[[], str] = str,
) -> tuple[N, bool]:
    """End a notice, by its id or a unique beginning; return whether it was over before, too. ``older``: the fold of
    an archived one. ``hint``: what else may be meant.

    Raises ``NotFound``, and ``Refused`` unless ``me`` owns it or commands its owner."""
    notice = fold.get(word) or older().get(word)
    if notice is None:
        known = {one.id: one for one in live}
        found = address.only_match(word, address.begun_ids(word, known), fold.plural)
        if found is None:
            raise NotFound(
                address.describe_unknown(fold.KIND, word), hint() or f"`agent-mailbox {fold.KIND} list` lists them"
            )
        notice = known[found]
    if notice.over:
        return notice, True
    if notice.proven and not fold.may_end(me, notice, box.now()):
        raise Refused(
            f"{notice.id} is {frame.name_of(notice.owner, box.logs.read_roster())}'s {fold.KIND}",
            f"its {fold.OWNER}, that one's lead or the person ends it; it also ends by itself",
            code="not_yours",
        )
    own = fold.is_owner(me, notice, box.now())
    sent = post_message(box, me, payload(request_id=notice.id), (me if own else notice.owner,))
    if own:
        note_read(box, me, {sent.message.id: me})
    refuse_unapplied(box, sent)
    return notice.replace(over=True), False
