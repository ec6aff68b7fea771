"""The roster folded into a text that answers without being parsed: a line an agent, looked up by searching for it.

Belongs here: writing a ``Roster`` down, and asking the text the questions one asks a roster. A poll needs to know two
or three agents of a thousand; decoding all of them would cost more than everything else it does. Same questions, same
answers, which a test holds.
"""

from __future__ import annotations

from . import codec
from .records import USER
from .roster import ALIVE, Agent, Roster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def written(roster: Roster) -> bytes:
    """The roster as text: the roles ever held, then the agents in the order they registered."""
    agents = [{**agent.__dict__, "lineage": roster.lineage(agent.session_id)} for agent in roster.agents.values()]
    lines = [codec.dumps(sorted(roster.roles_ever)), *map(codec.dumps, agents)]
    return "\n".join(lines).encode() + b"\n"


class Rollbook(Roster):
    """A roster read from its text, agent by agent, as far as it is asked; it takes no further events."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._decoded: dict[str, tuple[Agent, tuple[str, ...]] | None] = {}
        self._agents: dict[str, Agent] | None = None

    @property
    def agents(self) -> dict[str, Agent]:  # type: ignore[override]
        """All of them, decoded."""
        if self._agents is None:
            first = self._text.index(b"\n") + 1
            found = [_decoded(line)[0] for line in self._text[first:].split(b"\n") if line]
            self._agents = {agent.session_id: agent for agent in found}
        return self._agents

    @property
    def roles_ever(self) -> set[str]:  # type: ignore[override]
        """Every role somebody ever held."""
        roles = self._text[: self._text.index(b"\n")]
        return set(_parsed(b'{"roles":' + roles + b"}")["roles"])

    def get(self, session_id: str) -> Agent | None:
        if session_id == USER:
            return super().get(session_id)
        found = self._look_up(session_id)
        return found[0] if found else None

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
        if session_id not in self._decoded:
            place = self._text.find(b'\n{"session_id":' + _needle(session_id) + b",")
            self._decoded[session_id] = _decoded(self._line_at(place + 1)) if place >= 0 else None
        return self._decoded[session_id]

    def _mentioning(self, word: str) -> list[tuple[Agent, tuple[str, ...]]]:
        """The agents in whose line the word stands as a text of its own."""
        found = []
        needle = _needle(word)
        place = self._text.find(needle, self._text.index(b"\n"))
        while place >= 0:
            line = self._line_at(self._text.rfind(b"\n", 0, place) + 1)
            found.append(_decoded(line))
            place = self._text.find(needle, self._text.index(b"\n", place))
        return found

    def _line_at(self, start: int) -> bytes:
        return self._text[start : self._text.index(b"\n", start)]


def _needle(word: str) -> bytes:
    return codec.dumps(word).encode("utf-8", "surrogatepass")


def _decoded(line: bytes) -> tuple[Agent, tuple[str, ...]]:
    """An agent and its lineage."""
    obj = _parsed(line)
    lineage = tuple(obj.pop("lineage"))
    obj["tags"], obj["continues"], obj["heir"] = tuple(obj["tags"]), tuple(obj["continues"]), tuple(obj["heir"])
    obj["frozen"] = tuple((since, until) for since, until in obj["frozen"])
    return Agent(**obj), lineage


def _parsed(line: bytes) -> dict[str, Any]:
    obj = codec.parse(line)
    if not isinstance(obj, dict):
        raise ValueError(f"not a rollbook: {obj.reason}")
    return obj
