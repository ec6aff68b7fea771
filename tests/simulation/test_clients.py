"""A client that is killed and comes back shows its model what its own file holds: the judge knows that, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_mailbox.clients.hooks.hook_events import Hook
from agent_mailbox.core.compose import Draft
from agent_mailbox.store.files import system
from tests.simulation import commands, upkeep
from tests.simulation.choices import Profile
from tests.simulation.clients import TRANSCRIPTS, Turn
from tests.simulation.judge import Judge
from tests.simulation.letters import BACK, LEFT, MAYBE, OFFERED, READ
from tests.simulation.stage import LASTING, Stage
from tests.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.letters import Session
    from tests.simulation.process import Process

ENDS, OTHER, SENDER = "agent-0", "agent-2", "agent-1"


class Story:
    """Two holders of a role on a quiet machine. One is shown mail of the role, and its client is killed."""

    def __init__(self, world: World) -> None:
        self.stage = Stage(world, Judge(world), 3, 3)
        self.judge = self.stage.judge
        self._do("home", lambda *_: system.mkdir(TRANSCRIPTS))
        self._do("found", lambda stage, process, _: upkeep.found(stage, process))
        for who in (ENDS, SENDER, OTHER):
            self.run("register", who)
        self.run("launch", ENDS)
        self._do("send", self._send, SENDER)
        (self.letter,) = self.judge.letters
        self.turn(Turn.prompt)
        self.turn(lambda turn: turn.hook("PostToolUse"))
        self.run("die", OTHER)

    def run(self, command: str, who: str) -> None:
        self._do(command, commands.named(command), who)

    def turn(self, work: Callable[[Turn], object]) -> None:
        """Have that client, which leaves nothing out, do a part of a turn."""
        self._do("turn", lambda stage, process, me: work(Turn(stage, process, me, careful=True)))

    def states(self) -> list[str | None]:
        """Return what became of the mail for each of the two holders."""
        found = (self.judge.given.get((who, self.letter)) for who in (ENDS, OTHER))
        return [state and state[0] for state in found]

    def told(self) -> list[str]:
        """Return the promises that are broken in the end."""
        self.judge.finish()
        return [breach.partition(" from ")[0] for breach in self.judge.breaches]

    def lose_words(self) -> None:
        """The file of that conversation loses what it holds."""
        self.stage.clients[ENDS].given.clear()
        flags = system.O_WRONLY | system.O_TRUNC
        self._do("lose", lambda *_: system.close(system.open(f"{TRANSCRIPTS}/{ENDS}.jsonl", flags)))

    def _do(self, name: str, work: Callable[[Stage, Process, Session], object], who: str = ENDS) -> None:
        process = self.stage.world.spawn(
            f"0 {name} {who}", lambda process: work(self.stage, process, self.judge.sessions[who])
        )
        while self.stage.world.living() and self.stage.world.turn():
            pass
        assert process.error is None, process.error
        self.judge.interrupted(process)
        self.stage.world.processes.clear()

    def _send(self, stage: Stage, process: Process, me: Session) -> None:
        to = self.judge.sessions[ENDS].role
        letter = stage.letter(me.id, to, process)
        stage.desk(me.id).send(Draft(sender=me.id, to=(to,), content=letter.content, id=letter.id, ttl_hours=LASTING))
        self.judge.sent(letter)


@pytest.fixture
def story() -> Iterator[Story]:
    """Its client is killed before its model spoke after the mail."""
    world = World(1, Profile())
    world.quiet = True
    with world:
        yield Story(world)


def test_a_client_that_comes_back_has_the_mail_in_its_own_file(story: Story) -> None:
    """No hook shows it again, and no other holder gets it. Its model speaks after it, so nothing is lost."""
    assert story.states() == [LEFT, None]
    story.run("launch", ENDS)
    story.run("check", OTHER)
    assert story.states() == [BACK, None]
    story.turn(Turn.speak)
    assert (story.states(), story.told()) == ([MAYBE, None], [])


@pytest.mark.parametrize("before", [(), ("run_steward",)])
@pytest.mark.parametrize("end", ["die", "retire"])
def test_one_that_comes_back_and_ends_leaves_it_to_the_role(story: Story, before: tuple[str, ...], end: str) -> None:
    """Another holder gets it then, also if the steward had given it back before the client came back."""
    for command in before:
        story.run(command, SENDER)
    story.run("launch", ENDS)
    assert story.states() == [BACK, None]
    story.run(end, ENDS)
    story.run("check", OTHER)
    assert (story.states()[1], story.told()) == (READ, [])


def test_one_whose_file_lost_it_is_shown_it_again(story: Story) -> None:
    """The client has nothing to show its model then."""
    story.lose_words()
    story.run("launch", ENDS)
    assert story.states() == [OFFERED, None]


def test_what_a_file_holds_and_no_model_spoke_after_is_not_taken_in(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client comes back, and says nothing; or a hook takes for shown what the file does not hold."""
    story.run("launch", ENDS)
    unseen = [f"{who} was never shown {story.letter}" for who in (ENDS, OTHER)]
    assert story.told() == unseen
    story.judge.breaches.clear()
    story.run("die", OTHER)
    story.lose_words()
    monkeypatch.setattr(Hook, "settle_offers", lambda *_, **__: True)
    story.run("launch", ENDS)
    assert story.told() == unseen
