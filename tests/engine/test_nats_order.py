"""The order in a real NATS server conforms, keeps what it acknowledged, and says clearly what is wrong."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.errors import Refused, Unavailable
from agent_mailbox.nats.nats_order import open_order
from agent_mailbox.store.order import MESSAGES

from .conformance import Conformance, Pair, lines_of
from .nats_server import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_spaces = itertools.count()


class TestNatsOrder(Conformance):
    """The order in NATS does what every order must do."""

    @pytest.fixture
    def machines(self, server: str, credential: str) -> Iterator[Pair]:  # type: ignore[override]
        """Two machines' ways to one fresh space."""
        space = f"space-{next(_spaces)}"
        a, b = (open_order(server, space, machine, credential) for machine in "ab")
        assert a.make()
        assert not b.make()
        yield a, b
        a.close()
        b.close()


def test_a_wrong_credential_is_named(server: str, place: Path, credential: str) -> None:
    """A wrong token, a missing file, and a file that others may read are refused, each with its reason."""
    wrong = place / "wrong"
    wrong.touch(0o600)
    wrong.write_text("nonsense")
    with pytest.raises(Refused, match="engine refuses the credential"):
        open_order(server, "space", "a", str(wrong)).end()
    wrong.chmod(0o644)
    with pytest.raises(Refused, match="credential is open to others"):
        open_order(server, "space", "a", str(wrong)).end()
    with pytest.raises(Refused, match="credential cannot be read"):
        open_order(server, "space", "a", str(place / "none")).end()
    with pytest.raises(Refused, match="engine has no such space: elsewhere"):
        open_order(server, "elsewhere", "a", credential).end()


def test_a_killed_server_keeps_what_it_acknowledged(place: Path, credential: str) -> None:
    """A server that is killed is out of reach; started again, it has every acknowledged record, and none twice."""
    with serving(place / "mortal") as url:
        order = open_order(url, "space", "a", credential, wait=2)
        order.make()
        for n in range(20):
            order.append(MESSAGES, [b"%d" % n], ids=[f"m{n}"])
    with pytest.raises(Unavailable):
        order.append(MESSAGES, [b"20"], ids=["m20"])
    with serving(place / "mortal", int(url.rpartition(":")[2])):
        order.append(MESSAGES, [b"20"], ids=["m20"])
        assert lines_of(order, MESSAGES) == [b"%d" % n for n in range(21)]
    order.close()
