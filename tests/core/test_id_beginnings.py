"""How a UUID is spelt, and which id the beginning of one means."""

from __future__ import annotations

from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core import frame
from agent_mailbox.core.address import SHORTEST, describe_unknown, only_match, uuid_of
from agent_mailbox.errors import Ambiguous


@given(st.binary(min_size=16, max_size=32), st.integers(1, 8))
def test_digits_become_the_uuid_that_the_standard_library_makes_of_them(digits: bytes, version: int) -> None:
    """Version and variant take their places, all other bits stay (RFC 9562)."""
    spelt = uuid_of(digits.hex(), str(version))
    whole = int.from_bytes(digits[:16], "big") & ~(0xF << 76 | 0x3 << 62) | version << 76 | 2 << 62
    assert spelt == str(UUID(int=whole))
    assert (UUID(spelt).version, UUID(spelt).variant) == (version, RFC_4122)
    assert uuid_of(digits.hex(), "8", variant="8")[19] == "8"


def test_several_matches_are_named_five_at_most() -> None:
    """None and one are answers; more are refused."""
    assert only_match("a", [], "agents") is None
    assert only_match("a", ["ab"], "agents") == "ab"
    with pytest.raises(Ambiguous) as refused:
        only_match("a", [f"a{n}" for n in range(6)], "agents")
    assert (refused.value.what, refused.value.hint) == (
        "'a' could be 6 agents",
        "write more of the id: a0, a1, a2, a3, a4, …",
    )


def test_a_beginning_that_is_long_enough_is_not_called_too_short() -> None:
    """Only a shorter one is told how long a beginning is."""
    assert describe_unknown("task", "x" * SHORTEST) == f"no task {'x' * SHORTEST!r}"
    assert describe_unknown("task", "x" * (SHORTEST - 1)).endswith(f": a beginning needs {SHORTEST} characters")


@pytest.mark.parametrize("session", ["user-1", "users", "user.agent"])
def test_a_session_whose_id_begins_as_the_person_s_is_not_shown_as_the_person(session: str) -> None:
    """Only the word itself is the person."""
    assert frame.short_session(session) == session
    assert frame.short_session("user") == "user"
