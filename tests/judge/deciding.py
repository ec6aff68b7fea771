"""Who may decide: requests, their answers, orders, and tasks, by what is proven of each line's writer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from tests.judge.lines import USER, Facts, Line, mode_of, read_time
from tests.judge.people import DEAD, Person, fold_roster, selves

STRICTER = ("acceptEdits", "default", "safe", "plan", "locked-down")
"""Each lets through less than the one before."""
MAY = {
    "task_progress": {"holder"},
    "task_completed": {"holder"},
    "task_dropped": {"holder", "adder", "lead"},
    "task_cancelled": {"adder", "unproven adder", "lead", "adder's lead"},
}
"""Who takes a step of a task. A lead is the person's, too, or that of its last holder."""
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
    """What an agent, or all whom the speaker leads at that time, are told: a mode, rules, a plan to be made or made."""

    address: str
    to: set[str]
    loosens: set[str]
    """Whom it reaches, and whom of them it may allow more. What the person says to all is for who comes later, too."""
    what: str
    said: Line
    place: int
    asked: int = 0
    """Of an approved plan: where it was asked for."""

    def ends(self, old: Order) -> bool:
        """Return whether it ends an order before.

        What a lead says ends what was said of the same before, unless it adds. An approved plan ends an order to plan
        that is older than its request; another's order only if it may loosen.
        """
        if self.what == "made":
            is_plan = "plan" in (old.what, old.said.get("mode"))
            return is_plan and old.place <= self.asked and (bool(self.loosens) or old.address == self.address)
        return bool(self.loosens) and self.what == old.what != "plan" and not self.said.get("adds")


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
    def after(self) -> list[str]:
        """Return what must be done before."""
        return list(self.word.said["task"].get("blockedBy", ()))


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
        kind, said = word.said["type"], word.said
        if kind == "task_assignment":
            self._add(word)
        elif kind.startswith("task_"):
            self._step(word, kind)
        elif kind == "mode_set_request":
            self._order(word, word.to, "mode", said)
        elif kind == "team_permission_update":
            self._order(word, word.to, "rules", said["rules"])
        elif kind.endswith("_request"):
            self._ask(word, kind)
        elif said["requestId"] in self.asked.keys() - self.decided.keys():
            self._answer(word, kind, *self.asked[said["requestId"]])

    def _ask(self, word: Word, kind: str) -> None:
        is_end = kind == "shutdown_request"
        if is_end and not (word.by and may_command(self.people, word.by, word.to)):
            return
        if word.said["requestId"] not in self.tasks and (is_end or word.named != USER):
            self.asked.setdefault(word.said["requestId"], (word, self.place))

    def _answer(self, word: Word, kind: str, ask: Word, place: int) -> None:
        own = selves(self.people, word.speaker, by_place=True)
        is_end, is_late = kind.startswith("shutdown"), word.said.get("cause") == "timeout"
        approved = kind == "shutdown_approved" or bool(word.said.get("approved"))
        worker = ask.to if is_end else ask.speaker
        if is_late:
            counts = ask.speaker in own
        else:
            counts = worker in own if is_end else may_command(self.people, word.speaker, worker, proven=approved)
        is_same = kind.split("_")[0] == ask.said["type"].split("_")[0]
        if not (is_same and counts) or (approved and not (word.by and ask.by)):
            return
        state = "timed_out" if is_late else "approved" if approved else "denied"
        self.decided[ask.said["requestId"]] = state, word.speaker
        if approved and kind.startswith("plan"):
            self._order(word, worker, "made", {}, place)
        if word.said.get("permissionMode") and not is_late:
            self._order(word, worker, "mode", {"mode": word.said["permissionMode"]})

    # orders

    def _order(self, word: Word, address: str, what: str, said: Line, asked: int = 0) -> None:
        ones = self.people if address == "all" and word.speaker != USER else (address,)
        to = {one for one in ones if may_command(self.people, word.speaker, one, proven=False)}
        loosens = {one for one in to if word.by is not None and may_command(self.people, word.by, one)}
        self.orders.append(Order(address, to, loosens, what, said, self.place, asked))

    def _orders_of(self, who: str) -> list[Order]:
        """Return what an agent is under, and those that it continues. Only whose place it has loosens anything."""
        every, own = ({"all"} | selves(self.people, who, by_place=by_place) for by_place in (False, True))
        found = list[Order]()
        for order in self.orders:
            if order.to & every:
                here = replace(order, loosens=order.loosens & own)
                found = [*(old for old in found if not here.ends(old)), here]
        return found

    def mode(self, who: str) -> str:
        """Return the mode that it works in: the last that its lead set, or a stricter one that others asked since."""
        orders = [order for order in self._orders_of(who) if order.what == "mode"]
        modes = [str(order.said["mode"]) for order in orders]
        modes += [] if any(order.loosens for order in orders) else ["default"]
        return max(modes, key=STRICTER.index)

    def rules(self, who: str) -> tuple[set[str], set[str]]:
        """Return what it is allowed and forbidden by rule."""
        orders = [order for order in self._orders_of(who) if order.what == "rules"]
        allow = {rule for order in orders if order.loosens for rule in order.said.get("allowedTools", ())}
        return allow, {rule for order in orders for rule in order.said.get("disallowedTools", ())}

    def waits_for_plan(self, who: str) -> bool:
        """Return whether it must make a plan, and none that it asked for since was approved."""
        return any(order.what == "plan" for order in self._orders_of(who))

    # tasks

    def _add(self, word: Word) -> None:
        name, after = word.said["requestId"], word.said["task"].get("blockedBy", ())
        if name in self.tasks or name in self.asked or self._leads_to(name, after):
            return
        own = mode_of(word.to) == "direct"
        self.tasks[name] = Task(word, word.to if own else None, word.id if own else None, word.at)
        self._require_plan(self.tasks[name])

    def _leads_to(self, name: str, after: Iterable[str]) -> bool:
        return any(one == name or (one in self.tasks and self._leads_to(name, self.tasks[one].after)) for one in after)

    def _require_plan(self, task: Task) -> None:
        if task.holder and task.word.said["task"].get("planModeRequired"):
            self._order(task.word, task.holder, "plan", {})

    def holder(self, task: Task) -> str | None:
        """Return who holds it: who claimed it, or has that one's place; nobody if that one ended, or died since."""
        who, people = task.holder, self.people
        if who not in people or task.state != "open":
            return who
        ones = [p for p in people.values() if p.state != DEAD and who in selves(people, p.id, by_place=True)]
        return ones[-1].id if ones and not ones[-1].ended and people[who].back <= task.moved else None

    def is_blocked(self, task: Task) -> bool:
        """Return whether another must be done first."""
        return any(name in self.tasks and self.tasks[name].state != "done" for name in task.after)

    def _parts(self, word: Word, task: Task) -> set[str]:
        """Return what a speaker is to a task."""
        who, last = word.by, task.holder
        if who is None:
            own = selves(self.people, word.speaker, by_place=True)
            return {"unproven adder"} if task.word.by is None and task.word.speaker in own else set()
        parts = {
            "holder": last in selves(self.people, who, by_place=True),
            "adder": task.word.speaker in selves(self.people, who, by_place=True),
            "lead": who == USER or (last is not None and may_command(self.people, who, last)),
            "adder's lead": may_command(self.people, who, task.word.speaker),
        }
        return {part for part, is_it in parts.items() if is_it}

    def _step(self, word: Word, kind: str) -> None:
        task = self.tasks.get(word.said["requestId"])
        if task is None or task.state != "open":
            return
        if kind == "task_claim":
            self._claim(word, task)
        elif MAY[kind].isdisjoint(self._parts(word, task)):
            return
        elif kind == "task_cancelled":
            task.state = "cancelled"
        elif kind == "task_dropped":
            task.holder, task.claim, task.begun = None, None, False
        elif not self.is_blocked(task):
            task.moved, task.begun = word.at, True
            task.state = "done" if kind == "task_completed" else "open"

    def _claim(self, word: Word, task: Task) -> None:
        """Give it to the first that claims it, and to a later one that names the claim before."""
        taker, who = word.said.get("holder") or word.speaker, word.by
        is_giver = who in (taker, USER) or not {"holder", "adder"}.isdisjoint(self._parts(word, task))
        if who is None or not (is_giver or may_command(self.people, who, taker)):
            return
        takes_over = task.claim is not None and word.said.get("takesOver") == task.claim
        has_place = task.holder in selves(self.people, taker, by_place=True)
        is_own = has_place and self.people.get(taker, Person(taker)).back <= task.moved  # who came back claims again
        is_free = (task.holder is None or is_own) and not self.is_blocked(task)
        if (takes_over or is_free) and not (is_own and task.begun):
            task.holder, task.claim, task.moved, task.begun = taker, word.id, word.at, True
            self._require_plan(task)
