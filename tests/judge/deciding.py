"""Who may decide: requests, their answers, and tasks, by what is proven of each line's writer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from tests.judge.lines import USER, Line, mode_of, read_time
from tests.judge.people import DEAD, Person


@dataclass(frozen=True)
class Word:
    """One control message: who claims to speak, what is proven of that, and what is said."""

    sender: str
    to: str
    at: datetime
    said: Line = field(compare=False)
    proof: str | None = None

    @property
    def writer(self) -> str | None:
        """Return who certainly wrote it, if anybody."""
        if self.proof in {"user@terminal", "user@console"}:
            return USER
        return self.proof.removeprefix("session:") if self.proof and self.proof.startswith("session:") else None


def may_command(word: Word, worker: str, people: dict[str, Person], *, proven: bool) -> bool:
    """Return whether the writer is the person or the worker's lead at that time; else whether it claims to be."""
    who = word.writer if proven else word.sender
    lead = people[worker].lead_at(word.at) if worker in people else USER
    return who == USER or (who == lead and who != worker)


def decide(request: Word, answers: Iterable[Word], people: dict[str, Person]) -> tuple[bool, str] | None:
    """Return the first decision that counts, and whose it is: in the order of the log."""
    worker = request.sender
    for word in answers:
        if word.said.get("requestId") != request.said["requestId"] or word.to != worker:
            continue
        approved = bool(word.said.get("approved"))
        late = word.said.get("cause") == "timeout" and worker in (word.writer, word.sender)
        if late and not approved:
            return False, worker
        if approved and request.writer == worker and may_command(word, worker, people, proven=True):
            return True, str(word.writer)
        if not approved and may_command(word, worker, people, proven=word.proof is not None):
            return False, word.writer or word.sender
    return None


@dataclass
class Task:
    """One task, as the log has it so far."""

    id: str
    to: str
    adder: str
    after: tuple[str, ...] = ()
    holder: str | None = None
    state: str = "open"
    """open, held, done or cancelled; *blocked* follows from what it waits for."""


def fold_tasks(words: Iterable[Word], people: dict[str, Person]) -> dict[str, Task]:
    """Return all tasks after these words, in the order of the log."""
    tasks: dict[str, Task] = {}
    for word in words:
        kind, name = word.said["type"], word.said["requestId"]
        if kind == "task_assignment" and name not in tasks:
            after = tuple(word.said["task"].get("after", ()))
            tasks[name] = Task(name, word.to, word.sender, after)
            if mode_of(word.to) == "direct":
                tasks[name].holder, tasks[name].state = word.to, "held"
        elif name in tasks:
            _apply(tasks, tasks[name], word, people)
    for task in tasks.values():
        if task.holder is not None and task.state == "held" and mode_of(task.to) != "direct":
            person = people.get(task.holder)
            if person is None or person.state == DEAD:
                task.holder, task.state = None, "open"
    return tasks


def is_blocked(task: Task, tasks: dict[str, Task]) -> bool:
    """Return whether another must be done first."""
    return any(name in tasks and tasks[name].state != "done" for name in task.after)


def _apply(tasks: dict[str, Task], task: Task, word: Word, people: dict[str, Person]) -> None:
    who, kind = word.writer, word.said["type"]
    if who is None or task.state in {"done", "cancelled"}:
        return
    if kind == "task_claim":
        person = people.get(who)
        free = task.holder is None or people.get(task.holder, Person("", DEAD)).state == DEAD
        if free and person is not None and task.to in person.tags and not is_blocked(task, tasks):
            task.holder, task.state = who, "held"
    elif kind == "task_completed" and who == task.holder:
        task.state = "done"
    elif kind == "task_dropped" and task.holder is not None and _may_take_back(task, word, people):
        task.holder, task.state = None, "open"
    elif kind == "task_cancelled" and _may_take_back(task, word, people) and who != task.holder:
        task.state = "cancelled"


def _may_take_back(task: Task, word: Word, people: dict[str, Person]) -> bool:
    """Return whether its holder says so, its adder, its holder's lead or the person."""
    if word.writer in (task.holder, task.adder, USER):
        return True
    return task.holder is not None and may_command(word, task.holder, people, proven=True)


def current_notes(lines: Iterable[Line]) -> list[str]:
    """Return the ids of the notes that nobody replaced, oldest first."""
    notes = sorted(
        (line for line in lines if line.get("type") == "note"), key=lambda line: read_time(line["timestamp"])
    )
    replaced = {line.get("replaces") for line in notes}
    return [line["id"] for line in notes if line["id"] not in replaced]
