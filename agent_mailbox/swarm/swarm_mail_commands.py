"""``swarm``: mail to and from other machines, and its delivery.

Belongs here: parsing and answering; see ``swarm_commands``. Also the words of each event at GitHub; nothing here speaks
to it. ``send --to swarm:SWARM/AGENT`` sends the same mail as ``swarm send``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ..cli import mail_output, render, values, verbs
from ..cli.context import FROM
from ..cli.group import CommandGroup
from ..cli.options import option_of_session
from ..core import frame
from ..core.address import is_remote
from ..core.compose import Draft
from ..core.records import PRIORITIES
from ..core.showing import message_frame
from ..core.text import clipped, neutral
from ..errors import Malformed, NotFound
from ..mailbox.mailbox_gateway import SERVING, serve_words
from ..store.files.small_files import note_time
from ..store.locks.lock import is_held
from .home import FLUSH
from .protocol.outgoing import SENT
from .protocol.refusal import Refusal
from .swarm_commands import swarm
from .swarm_context import SwarmCommand, SwarmContext, swarm_json

EVENTS = {
    "issue_created": ("github_issue", "mention", "New issue"),
    "issue_assigned": ("github_issue", "assigned", "Assigned"),
    "issue_claimed": ("github_issue", "claimed", "Claimed"),
    "issue_completed": ("github_issue", "completed", "Completed"),
    "issue_blocked": ("github_issue", "blocked", "Blocked"),
    "issue_unblocked": ("github_issue", "unblocked", "Unblocked"),
    "comment_added": ("github_issue", "mention", "New comment"),
    "pr_opened": ("github_pr", "mention", "New pull request"),
    "review_requested": ("github_pr", "review_requested", "Review requested"),
}
"""Event to (reference type, action, words): the founding table's five, and the actions on issues."""
_from = option_of_session("The sender (default: the client's session).", "--from")


def _swarm_address(to: str) -> str:
    """Return the address; ``swarm:`` may be left out (``demo/bob``, ``demo``)."""
    return to if to.startswith("swarm:") else f"swarm:{to}"


def _queue_draft(door: SwarmContext, draft: Draft) -> None:
    sent = door.app.mailbox.send(draft)
    carried = door.flush_outbox() and sent.message.id not in door.open_outbox().refresh_fold().open
    verbs.confirm_sent(door.app, door.app.mailbox, sent, is_carried=carried)
    if carried and not door.app.json:
        door.app.give_warning(
            "no gateway serves here: this command sent it; answers wait for"
            f" `agent-mailbox {serve_words(door.home.directory)}`"
        )


@swarm.command(cls=SwarmCommand)
@click.argument("to", metavar="SWARM[/AGENT]")
@_from
@click.option("--subject", metavar="S", help="One line that says what it is about.")
@click.option("--body", metavar="TEXT", help="The text; - reads standard input, @FILE a file.")
@click.option("--thread", metavar="ID", help="The message this answers.")
@click.option("--ttl-hours", metavar="N", type=click.IntRange(1, 168), help="Hours until it is given up.")
@click.option("--priority", type=click.Choice(PRIORITIES), default="normal", help="How urgent it is.")
def send(door: SwarmContext, to: str, body: str | None, thread: str | None, **given: Any) -> None:
    """Send to a remote agent, or to everyone in a swarm."""
    app = door.app
    draft = Draft(
        sender=app.acting_session(app.mailbox, FROM),
        to=(_swarm_address(to),),
        content=values.read_body(app, body),
        thread=app.mailbox.find(thread).message.id if thread else None,
        **given,
    )
    _queue_draft(door, draft)


@swarm.command(cls=SwarmCommand)
@click.argument("ids", metavar="[ID]…", nargs=-1)
@click.option(
    "--status",
    metavar="S",
    default="all",
    help="One of unread, read, archived, deleted, all. [default: all, without deleted]",
)
@click.option("--swarm", "which", metavar="SWARM", help="Show only this swarm's.")
@click.option("--mark", type=click.Choice(("read", "archive", "delete")), help="Mark the messages ID….")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1, 100), default=20, show_default=True, help="Most messages to show."
)
def inbox(door: SwarmContext, ids: Sequence[str], status: str, which: str | None, mark: str | None, limit: int) -> None:
    """List mail from swarms, newest first. It has the gateway's statuses; nothing is ever removed."""
    from . import decisions
    from .statuses import ACTIONS, STATUSES, Statuses

    app = door.app
    if bool(ids) != bool(mark):
        raise Malformed("--mark or ID missing", "write `agent-mailbox swarm inbox --mark archive ID`")
    if status not in (*STATUSES, "all"):
        raise Malformed(f"status unknown: {status!r}", f"choose one of {', '.join(STATUSES)}, all")
    if mark:
        found = [app.mailbox.find(one).message for one in ids]
        if local := [one for one in found if not is_remote(one.sender)]:
            raise NotFound(
                f"message came from no swarm: {frame.short(local[0].id)}",
                "`agent-mailbox swarm inbox` lists those that did; `agent-mailbox check` reads the others",
            )
        rows = Statuses(door.home, app.mailbox).set_status([one.id for one in found], ACTIONS[mark])
    else:
        swarm_id = decisions.find_swarm(door.ledger.identified_knowledge(), which).swarm_id if which else None
        rows = Statuses(door.home, app.mailbox).choose_rows(status, swarm_id, limit=limit)
    lines = [
        (frame.short(m.id), frame.when(m.timestamp), state, frame.word(m.sender), clipped(frame.title(m), 50))
        for m, state, _ in rows
    ]
    value = [
        {**mail_output.message_json(m, box=app.mailbox.directory), "status": state, "read_at": read_at}
        for m, state, read_at in rows
    ]
    app.print_answer(render.table_text(lines), {"messages": value, "count": len(rows)})


@swarm.command(cls=SwarmCommand)
@click.option(
    "--limit", metavar="N", type=click.IntRange(1, 1000), default=20, show_default=True, help="Most parcels to show."
)
def outbox(door: SwarmContext, limit: int) -> None:
    """List mail to swarms, newest last. Each is queued, delivered, failed with the reason, or it waits.

    Waiting mail was tried, and goes out again; the reason is that of the last try. With --json its status is `sent`: it
    may have arrived without an answer.
    """
    door.ledger.identified_knowledge()
    carried = door.open_outbox(limit)
    carried.queue_outgoing()
    _, found = carried.latest_rows(limit)
    rows = [
        (
            frame.short(row["id"]),
            row["at"][:16],
            row["type"],
            agent,
            "waits" if peer["status"] == SENT else peer["status"],
            neutral(peer.get("why") or ""),
        )
        for row in found
        for agent, peer in row["peers"].items()
    ]
    door.app.print_answer(render.table_text(rows), {"messages": found, "count": len(found)})


@swarm.command(cls=SwarmCommand)
def flush(door: SwarmContext) -> None:
    """Carry outgoing mail once, now. A serving gateway does so by itself, and tries every peer again now."""
    carried = door.flush_outbox()
    left = len(door.open_outbox().refresh_fold().open)
    text = f"{mail_output.count_noun(left, 'message')} left to carry"
    if not carried:
        note_time(door.home.path_of(FLUSH), door.ledger.now())
        text = f"a gateway is carrying it: {text}; it tries each peer again now"
    door.app.print_done(f"{text}\n", {"carried": carried, "open": left})


@swarm.command(cls=SwarmCommand)
def status(door: SwarmContext) -> None:
    """Show this gateway: its identity, its swarms, its waiting mail."""
    from . import gateway_identity
    from .protocol import signing
    from .statuses import Statuses

    known = door.ledger.identified_knowledge()
    public = signing.public_of(gateway_identity.key_of(door.ledger))
    serving = is_held(door.home.path_of(SERVING))
    carried = door.open_outbox()
    if not serving:  # a gateway would have queued what was sent
        carried.queue_outgoing()
    open_parcels, counts = carried.open_parcels(), Statuses(door.home, door.app.mailbox).count_statuses()
    not_serving = f"not serving: {door.app.complete_command(serve_words(door.home.directory))}"
    lines = [
        f"{known.agent_id} at {known.endpoint}, {'serving' if serving else not_serving}",
        f"key {public} = {gateway_identity.key_fingerprint(public)}",
        f"inbox: {counts['unread']} unread of {counts['total']}; outbox: {open_parcels} on their way",
    ]
    for one in known.seen:
        role = "master" if one.master == known.agent_id else f"master {one.master}"
        waits = f", {len(one.waiting)} waiting to join" if one.waiting else ""
        waits += ", muted" if one.swarm_id in known.muted_swarms else ""
        lines.append(
            f"swarm:{one.alias}  {one.state}, {mail_output.count_noun(len(one.members), 'member')}, {role}{waits}"
        )
    lines += [f"muted: {', '.join(known.muted_agents)}"] if known.muted_agents else []
    value = {
        "agent_id": known.agent_id,
        "endpoint": known.endpoint,
        "public_key": public,
        "fingerprint": gateway_identity.key_fingerprint(public),
        "serving": serving,
        "inbox": counts,
        "outbox": open_parcels,
        "swarms": [swarm_json(one, known.agent_id) for one in known.seen],
        "muted_agents": list(known.muted_agents),
        "muted_swarms": list(known.muted_swarms),
    }
    door.app.print_answer("\n".join(lines) + "\n", value)


@swarm.command(cls=SwarmCommand)
@click.argument("which", metavar="SWARM")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1, 100), default=20, show_default=True, help="Most messages to show."
)
def context(door: SwarmContext, which: str, limit: int) -> None:
    """Show a woken agent what it needs. That is recent and pending messages, membership, mute lists."""
    from . import decisions
    from .statuses import UNREAD, Statuses

    known = door.ledger.identified_knowledge()
    found = decisions.find_swarm(known, which)
    view = Statuses(door.home, door.app.mailbox)
    recent = list(reversed(view.choose_rows("all", found.swarm_id, limit=limit)))
    pending = view.list_ids(UNREAD, found.swarm_id)
    roster, box = door.app.mailbox.logs.read_roster(), door.app.mailbox.directory
    lines = [f"swarm:{found.alias}, master {found.master}: {', '.join(found.members)}"]
    lines += [f"muted: {', '.join((*known.muted_agents, *known.muted_swarms))}"] if known.muted_agents else []
    lines += [f"{mail_output.count_noun(len(pending), 'message')} unread", ""]
    for message, state, _ in recent:
        lines += [
            f"{frame.short(message.id)}  {frame.sender_of(message, roster)}, {frame.when(message.timestamp)}, {state}"
        ]
        lines += [*message_frame.body(message, box=box), ""]
    value = {
        "swarm": swarm_json(found, known.agent_id),
        "messages": [{**mail_output.message_json(m, box=box), "status": state} for m, state, _ in recent],
        "muted_agents": list(known.muted_agents),
        "muted_swarms": list(known.muted_swarms),
        "pending": pending,
    }
    door.app.print_answer("\n".join(lines), value)


def make_notification(
    event: str, repo: str, number: int, text: str | None
) -> tuple[str, list[dict[str, Any]], dict[str, Any]]:
    """Return (content, references, metadata) of a notification; raise ``Malformed``."""
    kind, action, said = EVENTS[event]
    references = [make_reference(kind, repo, number, action)]
    place = "pull" if kind == "github_pr" else "issues"
    metadata = {"github_url": f"https://github.com/{repo}/{place}/{number}", "action": event}
    return f"{said}: {repo}#{number}" + (f"\n{text}" if text else ""), references, metadata


def make_reference(kind: str, repo: str, number: int, action: str) -> dict[str, Any]:
    """Return a checked reference; raise ``Malformed``."""
    from .protocol.envelope import ACTIONS, EnvelopeReference, read_model  # the help needs no extra

    value = {"type": kind, "repo": repo, "number": number, "action": action}
    try:
        found = read_model(EnvelopeReference, value, "the reference")
    except Refusal as refusal:
        raise Malformed(
            f"reference invalid: {refusal.message}", f"write OWNER/REPO, a number, and one of {', '.join(ACTIONS)}"
        ) from None
    return found.model_dump(exclude_none=True)


def parse_reference(text: str) -> dict[str, Any]:
    """Return a further reference, written ``ACTION:OWNER/REPO#N``: ``unblocked:owner/repo#5``."""
    action, colon, rest = text.partition(":")
    repo, mark, number = rest.partition("#")
    if not colon or not mark or not (number.isascii() and number.isdigit() and len(number) < 12):
        raise Malformed(
            f"reference invalid: {text!r}", "write ACTION:OWNER/REPO#NUMBER, such as unblocked:owner/repo#5"
        )
    return make_reference("github_issue", repo, int(number), action)


@swarm.group(cls=CommandGroup)
def notify() -> None:
    """Tell a swarm of an event elsewhere."""


@notify.command(cls=SwarmCommand)
@click.argument("event", type=click.Choice(list(EVENTS)))
@click.argument("to", metavar="SWARM[/AGENT]")
@click.argument("issue", metavar="OWNER/REPO#N")
@_from
@click.option("--body", metavar="TEXT", help="A line or two with it.")
@click.option("--also", multiple=True, metavar="REF", help="Another ACTION:OWNER/REPO#N; repeat for several.")
def github(door: SwarmContext, event: str, to: str, issue: str, body: str | None, also: Any) -> None:
    """Notify a swarm of an issue or pull request. `gh` makes the issue itself."""
    repo, mark, number = issue.partition("#")
    if not mark or not (number.isascii() and number.isdigit() and len(number) < 12):
        raise Malformed(f"issue invalid: {issue!r}", "write OWNER/REPO#NUMBER")
    content, references, metadata = make_notification(event, repo, int(number), body)
    references += [parse_reference(one) for one in also]
    draft = Draft(
        sender=door.app.acting_session(door.app.mailbox, FROM),
        to=(_swarm_address(to),),
        content=content,
        type="notification",
        references=references,
        metadata=metadata,
    )
    _queue_draft(door, draft)


@swarm.command(cls=SwarmCommand)
def doctor(door: SwarmContext) -> int | None:
    """Check the gateway, and whether it can be reached. It looks at files, key, clock, certificate and peers."""
    from . import checkup
    from .home_checks import check_files

    found = check_files(door.home, door.ledger.now())
    found += door.ask_peers(lambda peers: checkup.check_network(door.ledger, peers, door.settings))
    found = [(place, door.app.complete_hint(what), note) for place, what, note in found]
    problems = [{"place": place, "what": what} for place, what, note in found if not note]
    notes = [{"place": place, "what": what} for place, what, note in found if note]
    lines = [f"{neutral(place)}: {'note: ' if note else ''}{neutral(what)}\n" for place, what, note in found]
    value = {"ok": not problems, "problems": problems, "notes": notes}
    door.app.print_answer("".join(lines) or "all is well\n", value)
    return 3 if problems else None
