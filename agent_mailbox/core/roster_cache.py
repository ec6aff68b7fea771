"""The roster folded into a text that answers without being parsed: a line per agent, found by a table of words.

Belongs here: writing a ``Roster`` down, asking the text a roster's questions, taking further events in. A poll needs
two or three agents of ten thousand, and a change concerns one: decoding all would cost more than its other work. A test
holds that the answers are the same.

The text holds the table's length and the count of agents, the roles ever held, the table, the places, the lines. An
agent's line leaves defaults out; they stand in the order in which the agents registered. The table has a number for
every word (``_words``) of every agent. Its upper 32 bits are the word's hash, the lower ones say which line that is.
They are sorted. A place is where a line begins. All numbers are in the machine's byte order.

    40 2                                 bytes of the table, count of agents
    ["role:coder"]
    hash(bob)·0 hash(6f1d…)·0 …·1        five numbers, no newline; 1 is the second line
    0 58                                 two numbers, no newline
    {"session_id":"6f1d…","name":"bob","tags":["role:coder"]}
    {"session_id":"9a20…","name":"amy"}
"""

from __future__ import annotations

from itertools import pairwise

from . import codec
from .address import shorten_id
from .frame import shown_words, whole_id
from .records import USER
from .roster import ALIVE, DEAD, Agent, Roster, led_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_PRIME = (1 << 31) - 1
_LINE = (1 << 32) - 1
_TUPLES = frozenset({"tags", "continues", "heir", "inherits", "muted"})
_NEEDED = frozenset({"session_id"})
_DEFAULTS = {name: getattr(Agent, name) for name in Agent._fields if name != "session_id"}


def written(roster: Roster) -> bytes:
    """Return the roster as text."""
    if isinstance(roster, RosterCache):
        return roster.rewritten()
    lines: list[bytes] = []
    entries: list[int] = []
    for place, agent in enumerate(roster.agents.values()):
        entries += _entries(agent, place)
        lines.append(_line(agent))
    return _joined(roster, _numbers(sorted(entries)), _numbers(_places(lines)), lines)


def _joined(roster: Roster, table: bytes, places: bytes, lines: Sequence[bytes]) -> bytes:
    roles = codec.dumps(sorted(roster.roles_ever)).encode()
    return b"".join([b"%d %d\n" % (len(table), len(places) // 8), roles, b"\n", table, places, *lines])


class RosterCache(Roster):
    """A roster read from its text, agent by agent, as questions need them, and what was told since.

    It begins at ``start`` in the text: a copy without the text before would cost more than the answers. Raises
    ``ValueError``, at once or at a question, for any other text.
    """

    def __init__(self, text: bytes, start: int = 0) -> None:
        roles = text.index(b"\n", start) + 1
        table = text.index(b"\n", roles) + 1
        size, count = map(int, text[start : roles - 1].split())
        self._text = text
        self._roles = text[roles : table - 1]
        self._roles_ever: set[str] | None = None
        self._lines = table + size + 8 * count
        try:
            self._table = memoryview(text)[table : table + size].cast("Q")
            self._places = memoryview(text)[table + size : self._lines].cast("Q")
        except TypeError as error:
            raise ValueError(f"not a rollbook: {error}") from None
        if len(self._places) != count:
            raise ValueError("not a rollbook: it is shorter than it says")
        self._decoded: dict[int, Agent] = {}
        self._changed: dict[int, Agent] = {}
        """The agents that events changed or added since, by their lines; an added one's is behind those there are."""
        self._line_of: dict[str, int] = {}
        """The lines of the agents that were decoded or changed."""
        self._changed_with: dict[str, dict[int, None]] = {}
        """The changed agents' lines by each word that they have, or had since the text was written."""
        self._lines_of: dict[str, list[Agent]] = {}
        """Answers that were given since the last change."""
        self._got, self._lineages = {}, {}
        self._agents: dict[str, Agent] | None = None

    @property
    def agents(self) -> dict[str, Agent]:  # type: ignore[override]
        """Return all agents, decoded."""
        if self._agents is None:
            lines = self._text[self._lines : -1].replace(b"\n", b",")
            self._decoded = dict(enumerate(map(_agent, _value_of(b"[" + lines + b"]"))))
            self._line_of |= {agent.session_id: place for place, agent in self._decoded.items()}
            self._agents = {agent.session_id: agent for agent in (self._decoded | self._changed).values()}
        return self._agents

    @property
    def roles_ever(self) -> set[str]:  # type: ignore[override]
        """Return every role that was ever held."""
        if self._roles_ever is None:
            self._roles_ever = set(_value_of(self._roles))
        return self._roles_ever

    def is_shown_of_another(self, word: str, agent: Agent | None = None) -> bool:
        mine = None if agent is None else agent.session_id
        others = (a for a in self.mentioning(whole_id(word).casefold()) if a.session_id != mine and a.state != DEAD)
        return any(shorten_id(a.session_id) == word != a.session_id for a in others)

    def heirs(self, session_id: str) -> list[str]:
        return [USER] if session_id == USER else [a.session_id for a in self.line(session_id) if a.state != DEAD]

    def line(self, session_id: str) -> list[Agent]:
        if session_id not in self._lines_of:
            found: dict[int, Agent] = {}
            queue = [session_id]
            for one in queue:
                for agent in self.mentioning(one):
                    is_next = agent.session_id == one or one in agent.continues
                    if is_next and self._line_of[agent.session_id] not in found:
                        found[self._line_of[agent.session_id]] = agent
                        queue += [agent.session_id] if agent.session_id != one else []
            self._lines_of[session_id] = [found[place] for place in sorted(found)]
        return self._lines_of[session_id]

    def some_carrying(self, tag: str, most: int) -> list[Agent]:
        kept = (self._at(place) for place in self._with(tag) if place not in self._changed)
        changed = (self._changed[place] for place in self._changed_with.get(tag, ()))
        found = (a for agents in (kept, changed) for a in agents if tag in a.tags and a.state == ALIVE)
        return [agent for _, agent in zip(range(most), found, strict=False)]

    def crowd(self, tag: str) -> int:
        return len(self._with(tag)) + len(self._changed_with.get(tag, ()))

    def mentioning(self, word: str, /) -> list[Agent]:
        kept = [place for place in self._with(word) if place not in self._changed]
        places = sorted([*kept, *self._changed_with.get(word, ())])
        return [self._changed[place] if place in self._changed else self._at(place) for place in places]

    def _named(self, name: str) -> list[Agent]:
        return [agent for agent in self.mentioning(name) if agent.name == name]

    def _known(self, session_id: str) -> Agent | None:
        if session_id not in self._line_of:
            for place in self._with(session_id):
                self._at(place)
        place = self._line_of.get(session_id, -1)
        return self._changed[place] if place in self._changed else self._decoded.get(place)

    def _put(self, agent: Agent) -> None:
        if self._known(agent.session_id) is None:
            added = sum(place >= len(self._places) for place in self._changed)
            self._line_of[agent.session_id] = len(self._places) + added
        place = self._line_of[agent.session_id]
        self._changed[place] = agent
        for word in _words(agent):
            self._changed_with.setdefault(word, {})[place] = None
        self._got.clear()
        self._lines_of.clear()
        self._agents = None

    def _with(self, word: str) -> list[int]:
        """Return the lines whose agents have a word with this word's hash."""
        wanted = _hash(word)
        begin, end = _position(self._table, wanted << 32), _position(self._table, wanted + 1 << 32)
        return [entry & _LINE for entry in self._table[begin:end]]

    def _at(self, place: int) -> Agent:
        if place not in self._decoded:
            start = self._lines + self._places[place]
            line = self._text[start : self._text.index(b"\n", start)]
            agent = self._decoded[place] = _agent(_value_of(line))
            self._line_of[agent.session_id] = place
        return self._decoded[place]

    # -- writing it again -------------------------------------------------------------------------------------------

    def rewritten(self) -> bytes:
        """Return the roster as text: the same bytes as of the whole fold. Only the changed lines are made again."""
        begins = [*self._places, len(self._text) - self._lines]
        lines = [self._text[self._lines + begin : self._lines + end] for begin, end in pairwise(begins)]
        for place in sorted(self._changed):
            lines[place : place + 1] = [_line(self._changed[place])]
        return _joined(self, self._new_table(), _numbers(_places(lines)), lines)

    def _new_table(self) -> bytes:
        gone: set[int] = set()
        come: set[int] = set()
        for place in self._changed:
            gone.update(_entries(self._at(place), place) if place < len(self._places) else ())
            come.update(_entries(self._changed[place], place))
        pieces, done = [], 0
        for entry in sorted(gone ^ come):
            at = _position(self._table, entry)
            pieces.append(self._table[done:at].tobytes())
            done = at + (entry in gone)
            if entry in come:
                pieces.append(_numbers([entry]))
        return b"".join([*pieces, self._table[done:].tobytes()])


def _position(table: memoryview, wanted: int) -> int:
    """Return where the first number that is not below the wanted one is."""
    low, high = 0, len(table)
    while low < high:
        middle = (low + high) // 2
        if table[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def _hash(word: str) -> int:
    return int.from_bytes(word.encode("utf-8", "surrogatepass"), "little") % _PRIME


def _words(agent: Agent) -> set[str]:
    """Return the words that find an agent: its id, its name, both as one reads them, tags, the agents it continues, its
    lead.

    The tags of the dead find nobody: who asks for a role's holders passes by those of the past."""
    tags = () if agent.state == DEAD else agent.tags
    words = {agent.session_id, agent.name or agent.session_id, *tags, *agent.continues}
    words.update([led_word(agent.lead)] if agent.lead else ())
    return words.union([word.casefold() for word in shown_words(agent)])


def _entries(agent: Agent, place: int) -> list[int]:
    return [_hash(word) << 32 | place for word in _words(agent)]


def _places(lines: Sequence[bytes]) -> list[int]:
    """Return where each of the lines begins."""
    places, at = [], 0
    for line in lines:
        places.append(at)
        at += len(line)
    return places


def _numbers(numbers: Sequence[int]) -> bytes:
    data = bytearray(8 * len(numbers))
    cells = memoryview(data).cast("Q")
    for place, number in enumerate(numbers):
        cells[place] = number
    return bytes(data)


def _line(agent: Agent) -> bytes:
    told = {name: agent.__dict__[name] for name in Agent._fields}
    told = {name: value for name, value in told.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}
    return codec.dumps(told).encode() + b"\n"


def _agent(obj: Any) -> Agent:
    if type(obj) is not dict or not _NEEDED <= obj.keys() <= Agent._names:
        raise ValueError("not a rollbook: another line than an agent's")
    told = {**_DEFAULTS, **obj}
    for key, value in obj.items():
        if type(value) is list:
            told[key] = tuple(value) if key in _TUPLES else tuple((since, then) for since, then in value)
    agent = Agent.__new__(Agent)  # all fields are there: to check it again would take as long as the rest
    agent.__dict__.update(told)
    return agent


def _value_of(text: bytes) -> Any:
    """Return the JSON value of a part of the text; raise ``ValueError`` for what we cannot have written."""
    try:
        words = text.decode("utf-8")
        value, end = codec.scan(words, 0)
    except (ValueError, StopIteration, RecursionError, SystemError):
        raise ValueError("not JSON") from None
    if end != len(words):
        raise ValueError("something follows the JSON value")
    return value
