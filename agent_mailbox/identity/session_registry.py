"""The client's own notes about its sessions that run (Claude Code 2.1.329 and 2.1.332, seen live).

Belongs here: the registry, a file a process, rewritten at every change. The background service's note tells who asked
for a session, of which it is a copy, and what runs it. The client may change both any time, and what is missing there
is unknown, never guessed. Any program of the user can write them. So they may take from a session, and give none
anything alone.
"""

from __future__ import annotations

from ..core import codec
from ..core.records import BadLine, Record
from ..known_clients.every_client import USUAL
from ..store.files import system
from ..store.files.small_files import list_names, read_if_possible
from ..store.user_state import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_MOST = 1 << 16


def registry_directory(environ: Mapping[str, str]) -> str:
    """Return the directory of the registry, which holds ``PID.json``."""
    return system.join(USUAL.find_home(environ), "sessions")


def read_entry(path: str) -> tuple[str | None, str | None]:
    """Return the session that a file names, and its status, each None if unknown."""
    entry = codec.parse(read_if_possible(path, _MOST, through_links=True) or b"", _MOST, ours=False)
    if isinstance(entry, BadLine):  # none, or read during a write: another change follows
        return None, None
    session, status = entry.get("sessionId"), entry.get("status")
    return session if isinstance(session, str) else None, status if isinstance(status, str) else None


def find_unhooked(sessions: Collection[str]) -> dict[str, str]:
    """Return, for those of these sessions that run without our hooks, the word of the command line that does that."""
    directory, found = registry_directory(system.environment()), {}
    for name in list_names(directory):
        pid, _, kind = name.partition(".")
        if kind == "json" and pid.isascii() and pid.isdigit():
            session, _ = read_entry(system.join(directory, name))
            if session in sessions and (word := USUAL.skips_hooks(processes.words(int(pid)))):
                found[str(session)] = word
    return found


# -- its background service -------------------------------------------------------------------------------------------


MOVED = "slash"
"""The source of a session that its person moved there by ``/bg``."""
_MOST_JOBS = 1 << 22


class Job(Record):
    """A session in the background. ``source``: of the wish. ``before``: the session of which it is a copy, or empty.
    ``askers``: the sessions whose agents asked. ``pid`` and ``start``: the process that runs it. ``prompt`` and
    ``directory``: with which, and where, it began."""

    session_id: str

    source: str = ""
    before: str = ""
    askers: tuple[str, ...] = ()
    pid: int = 0
    start: str = ""
    prompt: str = ""
    directory: str = ""


def job_of(session_id: str, environ: Mapping[str, str]) -> Job | None:
    """Return the service's note of a session; None if there is none."""
    return next((job for job in list_jobs(environ) if job.session_id == session_id), None)


def list_jobs(environ: Mapping[str, str]) -> Iterator[Job]:
    """Yield the service's note of each session."""
    place = system.join(USUAL.find_home(environ), "daemon/roster.json")
    found = codec.parse(read_if_possible(place, _MOST_JOBS, through_links=True) or b"", _MOST_JOBS, ours=False)
    jobs = found.get("workers") if isinstance(found, dict) else None
    for job in jobs.values() if isinstance(jobs, dict) else ():
        if isinstance(job, dict) and isinstance(me := job.get("sessionId"), str):
            asked = _object(job.get("dispatch"))
            launch, given = _object(asked.get("launch")), _object(asked.get("env"))
            before = str(launch.get("sessionId") or "") if launch.get("fork") is True else ""
            askers = str(given.get(USUAL.askers_variable) or "").split(",")
            name = before.rpartition("/")[2].removesuffix(".jsonl")
            pid, words = job.get("pid"), launch.get("args")
            yield Job(
                me,
                str(asked.get("source") or ""),
                name,
                tuple(filter(None, askers)),
                pid if type(pid) is int and 0 < pid < 1 << 31 else 0,
                str(job.get("procStart") or ""),
                str(words[-1]) if isinstance(words, list) and words else "",
                str(asked.get("cwd") or ""),
            )


def is_served(session_id: str, environ: Mapping[str, str]) -> bool:
    """Return whether the service runs the session, though perhaps without our hooks."""
    job = job_of(session_id, environ)
    return job is not None and job.pid > 0 and bool(processes.lives(job.pid, job.start))


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
