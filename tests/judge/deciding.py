"""Who may decide: requests, their answers, orders, and tasks, by what is proven of each line's writer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from tests.judge.lines import USER, Facts, Line, mode_of, read_time
from tests.judge.people import DEAD, Person, fold_roster, selves

STRICTER = ("acceptEdits", "default", "safe", "plan", "locked-down")
"""Each lets through less than the one before."""
People = dict[str, Person]


@dataclass(frozen=True)
class Word:
    """One control message: whom it names as its sender, who is proven to be that, and what is said to whom."""

    id: str
    at: datetime
    named: str
    by: str | None
    to: str
    said: Line = field(compare=False)

    @property
    def speaker(self) -> str:
        """Return who speaks, as far as is known."""
        return self.by or self.named


@dataclass(frozen=True)
class Order:
    """What an agent, or all whom the speaker led at that time, are told: a mode, rules, a plan to be made or made."""

    word: Word
    to: str
    what: str
    value: object
    place: int
    loosens: bool
    people: People = field(compare=False)
    asked: int = 0


@dataclass
class Task:
    """One task, as the log has it so far. ``claim`` is the line by which its holder has it."""

    word: Word
    holder: str | None
    claim: str | None
    moved: datetime
    begun: bool = False
    state: str = "open"
    """open (held, if it has a holder), done or cancelled; *blocked* follows from what it waits for."""

    @property
    def after(self) -> tuple[str, ...]:
        """Return what must be done before."""
        return tuple(self.word.said["task"].get("blockedBy", ()))


def may_command(people: People, who: str, worker: str, *, proven: bool = True) -> bool:
    """Return whether this is the person or the worker's lead, never itself; unproven: one that may forbid."""
    if worker == USER or who in selves(people, worker) or worker in selves(people, who):
        return False
    person = people.get(worker, Person(worker))
    leads = {person.lead} if proven else {person.lead, person.bound}
    return who == USER or bool(leads & selves(people, who, by_place=proven))


class Decisions:
    """All that follows from the control messages, in the order of their log."""

    def __init__(self, facts: Facts, words: Iterable[Word]) -> None:
        """Ask of each word who was who when it was written."""
        self.asked: dict[str, tuple[Word, int]] = {}
        self.decided: dict[str, tuple[str, str]] = {}
        """Each decided request: approved, denied or timed out, and by whom."""
        self.tasks: dict[str, Task] = {}
        self.orders: list[Order] = []
        self.people, known = People(), -1
        times = [read_time(line["timestamp"]) for line in facts.roster]
        for self.place, word in enumerate(words):
            if known != (known := sum(at <= word.at for at in times)):
                self.people = fold_roster(facts, word.at)
            self._take(word)
        self.people = fold_roster(facts)

    def _take(self, word: Word) -> None:
        kind = word.said["type"]
        if kind == "task_assignment":
            self._add(word)
        elif kind.startswith("task_"):
            self._step(word, kind)
        elif kind in {"mode_set_request", "team_permission_update"}:
            if word.to == "all" or may_command(self.people, word.speaker, word.to, proven=False):
                what = "mode" if kind == "mode_set_request" else "rules"
                self._order(word, word.to, what, word.said["mode"] if what == "mode" else word.said["rules"])
        elif kind.endswith("_request"):
            self._ask(word, kind)
        elif word.said["requestId"] in self.asked.keys() - self.decided.keys():
            self._answer(word, kind, *self.asked[word.said["requestId"]])

    def _ask(self, word: Word, kind: str) -> None:
        is_end = kind == "shutdown_request"
        if is_end and not (word.by and may_command(self.people, word.by, word.to)):
            return
        if word.said["requestId"] not in self.tasks and (is_end or word.named != USER):
            self.asked.setdefault(word.said["requestId"], (word, self.place))

    def _answer(self, word: Word, kind: str, ask: Word, place: int) -> None:
        if kind.split("_")[0] != ask.said["type"].split("_")[0]:
            return
        worker, is_end = (ask.to, True) if kind.startswith("shutdown") else (ask.speaker, False)
        approved = kind == "shutdown_approved" or bool(word.said.get("approved"))
        own = worker in selves(self.people, word.speaker, by_place=True)
        is_late = word.said.get("cause") == "timeout"
        if is_late:
            counts = ask.speaker in selves(self.people, word.speaker, by_place=True)
        else:
            counts = own if is_end else may_command(self.people, word.speaker, worker, proven=approved)
        if not counts or (approved and not (word.by and ask.by)):
            return
        state = "timed_out" if is_late else "approved" if approved else "denied"
        self.decided[ask.said["requestId"]] = state, word.speaker
        if approved and kind.startswith("plan"):
            self._order(word, worker, "made", word.said.get("permissionMode"), place)
        if word.said.get("permissionMode") and not is_late:
            self._order(word, worker, "mode", word.said["permissionMode"])

    # orders

    def _order(self, word: Word, to: str, what: str, value: object, asked: int = 0) -> None:
        loosens = word.by is not None and (to == "all" or may_command(self.people, word.by, to))
        self.orders.append(Order(word, to, what, value, self.place, loosens, self.people, asked))

    def _orders_of(self, who: str) -> Iterator[Order]:
        """Yield what an agent is under, and those that it continues. Only whose place it has loosens anything."""
        every, own = selves(self.people, who), selves(self.people, who, by_place=True)
        for order in self.orders:
            if order.to in every:
                yield replace(order, loosens=order.loosens and order.to in own)
            elif order.to == "all" and _leads(order, every, proven=False):
                yield replace(order, loosens=order.loosens and _leads(order, own, proven=True))

    def mode(self, who: str) -> str:
        """Return the mode that it works in: the last that its lead set, or a stricter one that others asked since."""
        mode, since, others = "default", -1, list[Order]()
        for order in self._orders_of(who):
            if order.what == "mode" and order.loosens:
                mode, since, others = str(order.value), order.place, []
            elif order.what == "mode":
                others.append(order)
            elif order.what == "made":
                if order.loosens and mode == "plan" and order.asked > since:
                    mode = str(order.value or "default")
                others = [one for one in others if one.value != "plan" or not _ends(order, one)]
        return max((mode, *(str(one.value) for one in others)), key=STRICTER.index)

    def rules(self, who: str) -> tuple[set[str], set[str]]:
        """Return what it is allowed and forbidden by rule."""
        allow, deny = set[str](), set[str]()
        for order in self._orders_of(who):
            if order.what == "rules":
                said: Line = dict(order.value)  # type: ignore[call-overload]
                if order.loosens and not said.get("adds"):
                    allow, deny = set(), set()
                allow |= set(said.get("allowedTools", ())) if order.loosens else set()
                deny |= set(said.get("disallowedTools", ()))
        return allow, deny

    def waits_for_plan(self, who: str) -> bool:
        """Return whether it must make a plan, and none that it asked for since was approved."""
        held = list[Order]()
        for order in self._orders_of(who):
            held += [order] if order.what == "plan" else []
            held = [one for one in held if not _ends(order, one)]
        return bool(held)

    # tasks

    def _add(self, word: Word) -> None:
        name, after = word.said["requestId"], word.said["task"].get("blockedBy", ())
        if name in self.tasks or name in self.asked or self._leads_to(name, after):
            return
        own = mode_of(word.to) == "direct"
        self.tasks[name] = Task(word, word.to if own else None, word.id if own else None, word.at)
        self._require_plan(word, self.tasks[name])

    def _leads_to(self, name: str, after: Iterable[str]) -> bool:
        return any(one == name or (one in self.tasks and self._leads_to(name, self.tasks[one].after)) for one in after)

    def _require_plan(self, word: Word, task: Task) -> None:
        adder = task.word
        who = task.holder if adder.said["task"].get("planModeRequired") else None
        if who is not None and may_command(self.people, adder.speaker, who, proven=False):
            self._order(replace(adder, at=word.at), who, "plan", None)

    def holder(self, task: Task) -> str | None:
        """Return who holds it: who claimed it, or has that one's place; nobody if that one ended, or died since."""
        who, people = task.holder, self.people
        if who not in people or task.state != "open":
            return who
        heirs = [p for p in people.values() if p.state != DEAD and who in selves(people, p.id, by_place=True)]
        return heirs[-1].id if heirs and not heirs[-1].ended and people[who].back <= task.moved else None

    def is_blocked(self, task: Task) -> bool:
        """Return whether another must be done first."""
        return any(name in self.tasks and self.tasks[name].state != "done" for name in task.after)

    def _step(self, word: Word, kind: str) -> None:
        task, who = self.tasks.get(word.said["requestId"]), word.by
        if task is None or task.state != "open":
            return
        holder = self.holder(task)
        own = selves(self.people, word.speaker, by_place=True)
        adds = task.word.speaker in own and (who is not None or task.word.by is None)
        last = task.holder  # or who held it last
        takes_back = who is not None and (adds or who == USER or (last and may_command(self.people, who, last)))
        if kind == "task_claim":
            self._claim(word, task, holder)
        elif kind in {"task_completed", "task_progress"}:
            if who is not None and who == holder and not self.is_blocked(task):
                task.moved, task.begun = word.at, True
                task.state = "done" if kind == "task_completed" else "open"
        elif kind == "task_dropped" and last and (takes_back or who == holder):
            task.holder, task.claim, task.begun = None, None, False
        elif kind == "task_cancelled" and (
            adds or takes_back or (who and may_command(self.people, who, task.word.speaker))
        ):
            task.state = "cancelled"

    def _claim(self, word: Word, task: Task, holder: str | None) -> None:
        """Give it to the first that claims it, and to a later one that names the claim before."""
        taker, who, names = word.said.get("holder") or word.speaker, word.by, word.said.get("takesOver")
        gives = who in (USER, task.word.speaker, holder) or (who is not None and may_command(self.people, who, taker))
        is_named = names is not None and names == task.claim
        if who is None or not (taker == who or gives) or (self.is_blocked(task) and not is_named):
            return
        if (task.holder is None or is_named or taker == task.holder) and not (taker == holder and task.begun):
            task.holder, task.claim, task.moved, task.begun = taker, word.id, word.at, True
            self._require_plan(word, task)


def _ends(made: Order, held: Order) -> bool:
    """Return whether an approved plan ends an order: it was asked for since, by the same one unless it may loosen."""
    return made.what == "made" and held.place <= made.asked and (made.loosens or held.to == made.to)


def _leads(order: Order, ones: Iterable[str], *, proven: bool) -> bool:
    return any(may_command(order.people, order.word.speaker, one, proven=proven) for one in ones)
