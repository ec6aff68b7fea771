"""Which kinds of worlds were made for which functions of the product. Belongs here: that list alone.

A kind that is not named was made for none alone. A directed world (``directed``) looks first where it was meant to.
"""

from __future__ import annotations

SUBJECTS: dict[str, tuple[str, ...]] = {
    "sweep records of mail to come": ("store/poll.py:Poll._reads_of",),
    "sweep second lines where a writer was killed": ("store/stamps.py:Trail.epoch",),
    "machines acks that are not shipped": ("store/rotation.py:_split",),
    "machines an engine that lost its end": (
        "mailbox/lost_records.py:take_back",
        "mailbox/replica.py:Replica.catch_up",
    ),
    "machines an engine that lost its middle": ("mailbox/replica.py:Replica.catch_up",),
    "machines clocks": ("mailbox/elsewhere.py:_understood",),
    "machines copies": (
        "mailbox/space.py:save",
        "store/proof_view.py:ProofView.proof",
    ),
    "machines copies of a process that died": ("mailbox/replica.py:Replica._save",),
    "machines damaged records": ("mailbox/replica.py:Replica._hear",),
    "machines keys that the person confirms later": ("store/resealing.py:reseal",),
    "machines liars": (
        "mailbox/replica.py:Replica._take_lines",
        "mailbox/space_judge.py:SpaceJudge._judged",
        "mailbox/space_judge.py:SpaceJudge.is_key_of",
        "mailbox/space_judge.py:SpaceJudge.is_true",
        "mailbox/space_judge.py:SpaceJudge.weighed",
        "mailbox/taken_records.py:disturbed",
        "store/bundles.py:unpacked",
    ),
    "machines mail that nobody answered for": (
        "mailbox/replica.py:Replica.look_closer",
        "mailbox/space_judge.py:SpaceJudge.weighed",
    ),
    "machines orders": ("mailbox/following.py:_follow_messages.<locals>.decide",),
    "machines purges": ("mailbox/publishing.py:_publish_lines",),
    "machines role mail": (
        "mailbox/publishing.py:send_queued",
        "mailbox/replica.py:Replica._judged",
        "mailbox/replica.py:Replica._take_lines",
        "mailbox/replica.py:Replica.publish",
    ),
    "machines the dead": (
        "mailbox/lost_records.py:restore",
        "mailbox/replica.py:Replica._compare_all",
        "store/rotation.py:_lives",
        "store/rotation.py:retell_roster",
    ),
    "machines who cannot verify": ("mailbox/space_judge.py:SpaceJudge._judged",),
    "sweep a claim that lapses": ("mailbox/delivery.py:Delivery._claim",),
    "sweep a client that comes back": ("mailbox/absence.py:note.<locals>.decide",),
    "sweep a delivery beside a return": ("store/leftovers.py:_remove",),
    "sweep a holder that is killed": ("mailbox/delivery.py:Delivery._settle",),
    "sweep a holder with little room": ("mailbox/delivery.py:Delivery._claimed",),
    "sweep a reader beside a steward": ("store/logs.py:OpenLogs.__enter__",),
    "sweep a lead that is asked": (
        "clients/permission/permit.py:Permit._ask",
        "clients/permission/permit.py:Permit._tell",
    ),
    "sweep a tool that is forbidden": (
        "clients/permission/permit.py:Permit._judged",
        "clients/permission/permit.py:Permit._unbind",
        "clients/permission/permit.py:Permit.answer",
    ),
    "sweep a turn's end that is watched": ("mailbox/delivery.py:Delivery._settle",),
    "sweep claims": ("store/poll.py:Poll._caught_up",),
    "sweep clients that are killed": (
        "mailbox/absence.py:_unseen_claims",
        "mailbox/absence.py:note",
        "store/processes.py:has_ended",
    ),
    "sweep dead letters that move": (
        "store/untaken.py:UntakenTable.__init__",
        "store/untaken.py:found",
    ),
    "sweep dead letters that two ask for": ("store/untaken.py:_answer",),
    "sweep debts": (
        "store/asking.py:AskTable.catch_up",
        "store/asking.py:_words",
        "store/asking.py:answer",
    ),
    "sweep debts beside a table": ("store/asking.py:AskTable.__init__",),
    "sweep everyone is quiet": ("store/stamps.py:_is_put_aside",),
    "sweep files beside a steward": ("store/attachment_files.py:sweep",),
    "sweep files that wait": ("mailbox/sending.py:Posting._decided",),
    "sweep guests": ("store/prefilter.py:may_be_read_by",),
    "sweep hooks of one start": ("clients/hooks/hook_events.py:_session_start",),
    "sweep leases and commands": ("store/edits.py:Edits.leased",),
    "sweep leases of who comes back": (
        "core/control/leases.py:Leases._has_stayed",
        "core/control/leases.py:Leases._is_over",
    ),
    "sweep leases whose notes are lost": ("store/edits.py:Edits.settle",),
    "sweep lines without an end": (
        "store/poll.py:Poll._advance",
        "store/scan.py:_add",
    ),
    "sweep mail that expires": (
        "store/untaken.py:UntakenTable._read_records",
        "store/untaken.py:_latest",
        "store/usual_lines.py:UsualLines.fields",
    ),
    "sweep mail that is given back": (
        "store/untaken.py:UntakenTable._read_records",
        "store/untaken.py:UntakenTable.catch_up",
    ),
    "sweep offers": ("mailbox/delivery.py:Delivery._show",),
    "sweep offers of one turn": (
        "mailbox/delivery.py:Delivery._offered",
        "store/offers.py:load",
    ),
    "sweep offers that are forgotten": ("mailbox/receipts.py:settle",),
    "sweep second lines": (
        "store/foreign_lines.py:are_new",
        "store/id_table.py:IdTable._may_have",
    ),
    "sweep second lines beside a table": ("store/id_table.py:IdTable.__init__",),
    "sweep the dead come back": ("store/leftovers.py:_remove",),
    "sweep two holders": (
        "mailbox/delivery.py:Delivery._claim",
        "mailbox/delivery.py:Delivery.deliver",
    ),
    "sweep two processes of a client": ("store/hosts.py:HostRecords._load",),
    "sweep two that write": ("store/edits.py:Edits.others",),
    "sweep who stays": ("store/poll.py:Poll.unread",),
}
