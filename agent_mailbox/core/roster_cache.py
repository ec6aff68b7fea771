"""The roster folded into a text that answers without being parsed: a line per agent, found by a table of words.

Belongs here: writing a ``Roster`` down, and asking the text a roster's questions. A poll needs two or three agents of a
thousand; decoding all would cost more than its other work. A test holds that the answers are the same.

The text holds the table's length, the roles ever held, the table, and the agents' lines in the order they registered,
defaults left out. The table has a number for every word (id, name, tag, id continued) of every agent. Its upper 32 bits
are the word's hash, the lower ones the start of the agent's line. They are sorted, in the machine's byte order.

    40                                   bytes of the table
    ["role:coder"]
    hash(bob)·0 hash(6f1d…)·0 …·58       five numbers, no newline; 58 is where the second line begins
    {"session_id":"6f1d…","name":"bob","tags":["role:coder"]}
    {"session_id":"9a20…","name":"amy"}
"""

from __future__ import annotations

from sys import byteorder

from . import codec
from .records import USER
from .roster import ALIVE, Agent, Roster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_PRIME = (1 << 31) - 1
_POSITION = (1 << 32) - 1


def written(roster: Roster) -> bytes:
    """Return the roster as text."""
    lines: list[bytes] = []
    entries: list[int] = []
    position = 0
    for agent in roster.agents.values():
        lineage = roster.lineage(agent.session_id)
        words = {agent.session_id, agent.name or agent.session_id, *agent.tags, *lineage}
        entries += [_hash(word) << 32 | position for word in words]
        lines.append(_line(agent, lineage))
        position += len(lines[-1])
    table = b"".join([entry.to_bytes(8, byteorder) for entry in sorted(entries)])
    roles = codec.dumps(sorted(roster.roles_ever)).encode()
    return b"".join([b"%d\n" % len(table), roles, b"\n", table, *lines])


class Rollbook(Roster):
    """A roster read from its text, agent by agent, as questions need them; it takes no further events.

    It begins at ``start`` in the text: a copy without the text before would cost more than the answers. Raises
    ``ValueError``, at once or at a question, for any other text.
    """

    def __init__(self, text: bytes, start: int = 0) -> None:
        roles = text.index(b"\n", start) + 1
        table = text.index(b"\n", roles) + 1
        self._text = text
        self._roles = text[roles : table - 1]
        self._roles_ever: set[str] | None = None
        self._lines = table + int(text[start : roles - 1])
        try:
            self._table = memoryview(text)[table : self._lines].cast("Q")
        except TypeError as error:
            raise ValueError(f"not a rollbook: {error}") from None
        self._decoded: dict[int, tuple[Agent, tuple[str, ...]]] = {}
        self._looked_up: dict[str, tuple[Agent, tuple[str, ...]] | None] = {}
        self._meant: dict[str, Agent | None] = {}
        self._agents: dict[str, Agent] | None = None

    @property
    def agents(self) -> dict[str, Agent]:  # type: ignore[override]
        """Return all agents, decoded."""
        if self._agents is None:
            found = [_decoded(line)[0] for line in self._text[self._lines :].split(b"\n") if line]
            self._agents = {agent.session_id: agent for agent in found}
        return self._agents

    @property
    def roles_ever(self) -> set[str]:  # type: ignore[override]
        """Return every role that was ever held."""
        if self._roles_ever is None:
            self._roles_ever = set(_parsed(b'{"roles":' + self._roles + b"}")["roles"])
        return self._roles_ever

    def get(self, session_id: str) -> Agent | None:
        if session_id == USER:
            return super().get(session_id)
        found = self._look_up(session_id)
        return found[0] if found else None

    def meant(self, word: str) -> Agent | None:
        if word not in self._meant:
            self._meant[word] = super().meant(word)
        return self._meant[word]

    def lineage(self, session_id: str) -> tuple[str, ...]:
        found = self._look_up(session_id)
        return found[1] if found else (session_id,)

    def line(self, session_id: str) -> list[Agent]:
        return [agent for agent, lineage in self._mentioning(session_id) if session_id in lineage]

    def carrying(self, tag: str, state: str | None = ALIVE) -> list[Agent]:
        found = [agent for agent, _ in self._mentioning(tag)]
        return [a for a in found if tag in a.tags and (state is None or a.state == state)]

    def _named(self, name: str) -> list[Agent]:
        return [agent for agent, _ in self._mentioning(name) if agent.name == name]

    def _look_up(self, session_id: str) -> tuple[Agent, tuple[str, ...]] | None:
        if session_id not in self._looked_up:
            found = (found for found in self._mentioning(session_id) if found[0].session_id == session_id)
            self._looked_up[session_id] = next(found, None)
        return self._looked_up[session_id]

    def _mentioning(self, word: str) -> Iterator[tuple[Agent, tuple[str, ...]]]:
        """Yield the agents with this word and their lineages; agents with the same hash by chance are among them."""
        wanted = _hash(word)
        table, low, high = self._table, 0, len(self._table)
        while low < high:
            middle = (low + high) // 2
            if table[middle] >> 32 < wanted:
                low = middle + 1
            else:
                high = middle
        while low < len(table) and table[low] >> 32 == wanted:
            yield self._at(table[low] & _POSITION)
            low += 1

    def _at(self, position: int) -> tuple[Agent, tuple[str, ...]]:
        if position not in self._decoded:
            start = self._lines + position
            self._decoded[position] = _decoded(self._text[start : self._text.index(b"\n", start)])
        return self._decoded[position]


def _hash(word: str) -> int:
    return int.from_bytes(word.encode("utf-8", "surrogatepass"), "little") % _PRIME


def _line(agent: Agent, lineage: tuple[str, ...]) -> bytes:
    told = {key: value for key, value in agent.__dict__.items() if value != getattr(Agent, key, agent.session_id)}
    if lineage != (agent.session_id,):
        told["lineage"] = lineage
    return codec.dumps({"session_id": agent.session_id, **told}).encode() + b"\n"


def _decoded(line: bytes) -> tuple[Agent, tuple[str, ...]]:
    """Return an agent and its lineage."""
    obj = _parsed(line)
    lineage = tuple(obj.pop("lineage", (obj["session_id"],)))
    for key in obj.keys() & {"tags", "continues", "heir", "inherits", "muted"}:
        obj[key] = tuple(obj[key])
    for key in obj.keys() & {"frozen", "leads", "proven_leads"}:
        obj[key] = tuple((since, then) for since, then in obj[key])
    return Agent(**obj), lineage


def _parsed(line: bytes) -> dict[str, Any]:
    obj = codec.parse(line)
    if not isinstance(obj, dict):
        raise ValueError(f"not a rollbook: {obj.reason}")
    return obj
