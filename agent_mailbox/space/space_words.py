"""A space as people read it.

Belongs here: the words of `engine status` and `engine join`, and the command that joins. Then what is said of a mailbox
that was made again in its place, or moved. A moved one is out of its space, as the record of the earlier place says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.text import count_noun, neutral, typed
from ..store.files import paths, system
from ..store.files.small_files import OpenFile
from ..store.log import custody
from ..store.log import logs as log_files
from . import space as spaces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..store.log.custody import Custody
    from ..store.log.logs import Logs
    from .joining_space import SpaceStanding
    from .space import Space


def describe_standing(found: SpaceStanding, command: Callable[[str], str], keyed: str = "") -> str:
    """Return a machine's place in its space; ``command`` completes the next one. ``keyed``: see ``describe_trust``."""
    install = "" if found.troubles else f": {command('engine serve --install')}"  # a trouble names its own command
    lines = [
        f"space      {found.space} as {found.machine}, {neutral(found.url)}",
        f"engine     {neutral(found.trouble) or 'answers'}",
        "replicator " + ("runs" if found.serving else f"does not run{install}"),
        f"records    {_count_records(found)}",
        f"waiting    {count_noun(found.waiting, 'line')} of this machine, {count_noun(found.queued, 'send')}",
    ]
    lines += [f"look       {neutral(one)}" for one in found.troubles]
    if found.unsent:
        lines.append(f"unsent     {count_noun(found.unsent, 'message')} whose ids are other messages'")
    lines += [f"{one['machine']:<10} {_say_heard(one)}" for one in found.machines]
    return "".join(f"{line}\n" for line in (*lines, *describe_trust(found, command, keyed)))


def describe_return(directory: str, environ: Mapping[str, str], *, is_made: bool = False) -> str:
    """Return what is said of a mailbox that was just made or restored in a machine's place; empty for any other.

    ``is_made``: `init` just recorded it, so it may have been moved out of its space."""
    logs = log_files.of_mailbox(directory, 0, environ)
    space = spaces.space_of(logs)
    if space is None:
        moved = describe_move(logs, environ) if is_made else ""
        return moved and f"{moved}\n"
    return (
        f"it is machine {space.machine} of space {space.space}, as before, and takes in what is there:"
        " `agent-mailbox engine status`\n"
    )


def describe_move(logs: Logs, environ: Mapping[str, str]) -> str:
    """Return that the mailbox was moved out of its space, and what puts it back; empty if it was not."""
    if spaces.space_of(logs) is not None:
        return ""
    for place in custody.places(environ):
        record = None if paths.is_mailbox(place) else custody.find(place, paths.state_directory(environ))
        space = spaces.space_in(record) if record is not None and _is_of(record, logs) else None
        if space is not None:
            was = f"it was machine {space.machine} of space {space.space} at {typed(place)}, and is in no space here"
            forget = f"agent-mailbox engine forget {space.machine}"
            join = join_command(space, logs.directory)
            return f"{was}: move it back; or run on another machine {forget}, then here `{join}`"
    return ""


def _is_of(record: Custody, logs: Logs) -> bool:
    """Return whether one of the logs continues what the record says of its own, wherever that was."""
    for log in (logs.messages, logs.reads, logs.roster):
        entry = custody.Kept(record, log.path).entry()
        if entry.size and (found := log.open()) is not None:
            with OpenFile(found) as fd:
                if entry.replace(inode=system.fstat(fd).st_ino).continues(fd):  # a copy is another file
                    return True
    return False


def join_command(space: Space, directory: str | None = None) -> str:
    """Return the command with which a machine joins a space; the mailbox is that of the directory."""
    given = {
        "--space": space.space,
        "--machine": space.machine,
        "--credential": space.credential,
        "--authority": space.authority,
        "--dir": directory,
    }
    words = (f" {name} {typed(value)}" for name, value in given.items() if value is not None)
    return f"agent-mailbox engine join {typed(space.url)}{''.join(words)}"


def describe_trust(found: SpaceStanding, command: Callable[[str], str], keyed: str = "") -> Iterator[str]:
    """Yield the keys, and whose word counts here; ``command`` completes the next one.

    ``keyed``: the command that gives a machine without a key one."""
    none = f"none: mail flows, and no decision of this machine counts elsewhere; `{keyed}` mends it"
    yield f"key        {found.fingerprint or none}"
    for one in found.trusted:
        speaks: Any = one["speaks"]
        yield f"{one['machine']:<10} speaks for {', '.join(map(neutral, speaks)) or 'nobody'}; key {one['fingerprint']}"
    trusted = {one["machine"]: one["fingerprint"] for one in found.trusted}
    for one in found.machines:
        if one["key"] not in (None, trusted.get(one["machine"])):
            said = "has another mailbox now: say for whom it speaks, if its own `engine status` has this key"
            yield f"{one['machine']:<10} {said}: {_confirming(one['machine'], one['key'], command)}"
    yield from (f"refused    {text}" for text in describe_wrong_seals(found))
    yield from (f"waits      {text}" for text in describe_unheard(found, command))


def describe_wrong_seals(found: SpaceStanding) -> Iterator[str]:
    """Yield the troubles with other machines' seals: another key than the person confirmed, and what was refused."""
    keys = {one["machine"]: one["fingerprint"] for one in found.trusted}
    for one in found.unheard:
        if keys.get(one["machine"], one["fingerprint"]) != one["fingerprint"] and not _is_outdated(found, one):
            yield f"{_count_lines(one)} by another key than you confirmed: {one['fingerprint']}"
    for machine, count in found.refused.items():
        yield f"{_count_lines({'machine': machine, 'lines': count})} whose seal is wrong, was used before, or came late"


def describe_unheard(found: SpaceStanding, command: Callable[[str], str]) -> Iterator[str]:
    """Yield what waits for the person's word on its machine, or on its writers, with the command that says it."""
    keys = {one["machine"]: one["fingerprint"] for one in found.trusted}
    for one in found.unheard:
        if _is_outdated(found, one):
            yield f"{_count_lines(one)} by its key before another mailbox took its name over: they count for nothing"
        elif one["machine"] not in keys:
            confirm = _confirming(one["machine"], one["fingerprint"], command)
            until = "allow nothing until you say for whom it speaks"
            yield f"{_count_lines(one)} {until}; if its own `engine status` has this key: {confirm}"
        elif keys[one["machine"]] == one["fingerprint"]:
            more = command(f"engine join --speaks {neutral(str(one['machine']))}=WHO,…")
            yield f"{_count_lines(one)} by writers for whom it may not speak yet: {more}"


def _is_outdated(found: SpaceStanding, lines: Mapping[str, object]) -> bool:
    """Return whether the lines are by a key that a machine had before another mailbox took its name over."""
    keys = {one["machine"]: one["key"] for one in found.machines}
    return keys.get(lines["machine"]) not in (None, lines["fingerprint"])


def _confirming(machine: object, fingerprint: object, command: Callable[[str], str]) -> str:
    name = neutral(str(machine))
    return command(f"engine join --key {name}={fingerprint} --speaks {name}=user,all")


def _count_records(found: SpaceStanding) -> str:
    """Return how much of the order is here; an engine that lost its end has less than this machine."""
    if found.trouble:
        return f"{found.applied} are here"  # how many there are, the engine alone knows
    if found.applied <= found.records:
        return f"{found.applied} of {found.records} are here"
    return f"{found.applied} are here, and the engine has {found.records}: what it lost comes back from the machines"


def _say_heard(one: Mapping[str, Any]) -> str:
    gone = "left, or was given up; " if one["given_up"] else ""
    if one["heard"] is None:
        return f"{gone}not heard of yet"
    behind = one["behind"]
    lacked = "nothing" if behind == 0 else behind and count_noun(behind, "record")
    return f"{gone}last heard of at {one['heard']}" + (f"; it lacked {lacked} then" if lacked else "")


def _count_lines(one: Mapping[str, object]) -> str:
    lines: Any = one["lines"]
    return f"{count_noun(lines, 'line')} of {neutral(str(one['machine']))}"
