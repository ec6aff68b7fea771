"""Ask the person whether a mailbox's logs shall count, and show what that would allow.

Belongs here: trying it on a copy of the logs, and the question. ``upkeep.adoption`` has the rules.
"""

from __future__ import annotations

import os
import shutil
from tempfile import TemporaryDirectory

from ..cli import mail_output, widening
from ..errors import Refused
from ..mailbox.mailbox import Mailbox
from ..store.files import paths
from ..store.log.custody import Custody
from ..store.log.logs import Logs
from ..upkeep import adoption, withheld_rules
from ..upkeep.adoption import Trusted
from ..upkeep.doctor import proof_checks

MOST_SHOWN = 30
"""Messages that are shown before they count; their number tells the rest."""


def rules_of(trusted: Trusted) -> list[str]:
    """Return the rules that count then, a line each; if there are none, that."""
    return [*trusted.standing] or [proof_checks.NOBODY]


def ask_to_trust(seen: Trusted) -> None:
    """Ask at the terminal whether this shall count; raise ``Refused`` if the person does not say so."""
    more = len(seen.messages) - MOST_SHOWN
    lines = [f"{seen.why}; the logs would count as they are now"] if seen.why else []
    lines += [f"{mail_output.count_noun(seen.adopted, 'unsealed line')} would count"] if seen.adopted else []
    then = rules_of(seen)
    brief = "; ".join((*lines, f"then: {', '.join(then)}"))
    lines += [f"of these, {mail_output.count_noun(len(seen.messages), 'message')}:"] if seen.messages else []
    lines += [f"  {message}" for message in seen.messages[:MOST_SHOWN]] + ([f"  and {more} more"] if more > 0 else [])
    lines += ["then:", *(f"  {line}" for line in then)]
    widening.ask_person(lines, "Let this count?", brief)


def ask_again(seen: Trusted) -> bool:
    """Return whether the person lets the withheld rules allow again: a second question, whose answer may be no."""
    told = [f"  {one.said}" for one in seen.withheld if one.said]
    try:
        widening.ask_person(
            ["The logs are confirmed. They allow what may have been taken back since:", *told], "Let these allow again?"
        )
    except Refused as error:
        if error.code != widening.CODE:
            raise
        return False
    return True


def preview_trust(directory: str, *, adopt: bool = False) -> Trusted:
    """Return what ``trust_logs`` would give, by trying it on a copy of the logs; the mailbox stays as it is."""
    mailbox = Mailbox(directory, prove=None)
    record = adoption.record_of(mailbox)
    state = paths.state_directory(os.environ)
    with TemporaryDirectory(prefix="preview-", dir=state) as scratch:
        box, kept = os.path.join(scratch, "box"), os.path.join(scratch, "record")
        shutil.copytree(record.directory, kept)
        os.mkdir(box, 0o700)
        for name in (paths.MESSAGES, paths.READS, paths.ROSTER, paths.CONFIG):
            if os.path.exists(mailbox.logs.path(name)):
                shutil.copyfile(mailbox.logs.path(name), os.path.join(box, name))
        if os.path.exists(mailbox.logs.path(paths.ARCHIVE)):
            os.symlink(mailbox.logs.path(paths.ARCHIVE), os.path.join(box, paths.ARCHIVE))
        twin = Mailbox(box)
        twin.logs = Logs(box, mailbox.logs.wait, Custody(kept, record.id, state), state)
        twin.logs.shared = False
        seen = adoption.trust_logs(twin, adopt=adopt)
        return seen.replace(withheld=withheld_rules.compare_rules(twin, mailbox) if seen.why else ())
