"""Addresses: what can be one, by which mode it reaches people, and which of them brings a message to a reader."""

from __future__ import annotations

from itertools import chain, combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core import address
from agent_mailbox.core.address import NAMESPACES, Reader, Route
from agent_mailbox.errors import Malformed

from .build import register, roster

GOOD_WORDS = ["a", "7", "bob", "Bob-1", "a.b_c@d+e-f", "3f2c9a10-0000-4000-8000-123456789abc", "x" * 128]
BAD_WORDS = ["", " ", "-a", ".a", "_a", "@a", "a b", "a:b", "role:x", "a\n", "a\tb", "a\u2028", "é", "Ω", "a\0", "<a>"]


# -- grammar ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [*GOOD_WORDS, "user", "all-hands"])
def test_ids_are_plain_ascii_words(word):
    """Letters, digits and ``. _ @ + -``, beginning with a letter or digit, up to 128 characters; ``user`` is one."""
    assert address.check_id(word) == word
    assert address.is_id(word)


@pytest.mark.parametrize("word", [*BAD_WORDS, "a/b", "a#b", "../x", "x" * 129, "all", "\ud800"], ids=ascii)
def test_what_is_no_id_is_malformed(word):
    """No ``:``, no white space, no path, nothing beyond 128 characters, and not the word for everybody."""
    with pytest.raises(Malformed) as refused:
        address.check_id(word, "name")
    assert not address.is_id(word)
    assert "name" in str(refused.value)
    with pytest.raises(Malformed, match=r"^(not a|the) name"):
        address.check_name(word)
    assert refused.value.hint
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("word", [*GOOD_WORDS, "web/ui", "c#", "naïve", "建築"])
def test_a_role_is_a_word_with_or_without_its_prefix(word):
    """Both spellings mean the one stored address ``role:x``."""
    assert address.check_role(word) == f"role:{word}"
    assert address.check_role(f"role:{word}") == f"role:{word}"
    assert address.check_tag(f"role:{word}", NAMESPACES) == f"role:{word}"


@pytest.mark.parametrize("word", ["", " ", "a b", "a:b", "role:", "role:a:b", "/a", "a\n", "a\u200b", "all", "user"])
def test_what_is_no_role_is_malformed(word):
    """A role equals neither ``all`` nor ``user``, and holds no second colon."""
    for spelt in {word, f"role:{word.removeprefix('role:')}"}:
        with pytest.raises(Malformed):
            address.check_role(spelt)
        with pytest.raises(Malformed):
            address.check_tag(spelt, NAMESPACES)


@pytest.mark.parametrize("tag", ["project:inscription", "concern:a/b", "domain:c#", "project:all", "domain:user"])
def test_a_tag_is_a_value_in_a_known_namespace(tag):
    """``namespace:value`` of a namespace that is configured is stored as written."""
    assert address.check_tag(tag, NAMESPACES) == tag


@pytest.mark.parametrize("tag", ["planet:mars", ":mars", "Project:x", "projectx:y", "all:x", " project:x"])
def test_an_unknown_namespace_is_refused_naming_the_known_ones(tag):
    """A slip of the finger is told what it could have been."""
    with pytest.raises(Malformed) as refused:
        address.check_tag(tag, (*NAMESPACES, "team"))
    for namespace in (*NAMESPACES, "team"):
        assert f"{namespace}:" in refused.value.hint


def test_a_namespace_more_is_known_where_configuration_says_so():
    """Namespaces are data: the same tag is right here and unknown there. One that begins as ``role`` is another."""
    for tag in ("crew:blue", "roles:blue"):
        assert address.check_tag(tag, (*NAMESPACES, "crew", "roles")) == tag
    with pytest.raises(Malformed):
        address.check_tag("crew:blue", NAMESPACES)


@pytest.mark.parametrize("tag", ["project:", "project: x", "project:a b", "project:a:b", "project:\n", "project"])
def test_a_tag_needs_a_value_without_spaces(tag):
    """An empty or spaced value would be an address nobody can carry."""
    with pytest.raises(Malformed):
        address.check_tag(tag, NAMESPACES)


@given(st.text(max_size=20))
def test_no_word_is_both_an_id_and_a_tag(word):
    """The colon keeps them apart, so a stored address has one meaning."""
    taken = []
    for check in (address.check_id, lambda text: address.check_tag(text, NAMESPACES)):
        try:
            taken.append(check(word))
        except Malformed:
            pass
    assert len(taken) <= 1


# -- modes ------------------------------------------------------------------------------------------------------------


def test_the_mode_of_a_stored_address_follows_from_its_form():
    """``all`` → broadcast, ``role:x`` → role, ``ns:value`` → tag, a known agent → direct, another word → role."""
    known = roster(register("bob-1"))
    assert known.mode("all") == "broadcast"
    assert known.mode("role:bob-1") == "role"
    assert known.mode("project:bob-1") == "tag"
    assert known.mode("team:blue") == "tag"
    assert known.mode("bob-1") == "direct"
    assert known.mode("user") == "direct"
    assert known.mode("architect") == "role"


def test_a_bare_word_and_its_prefixed_form_are_the_same_role():
    """The seed writes roles without prefix."""
    assert address.role_of("architect") == address.role_of("role:architect") == "role:architect"


# -- routes -----------------------------------------------------------------------------------------------------------

BOB = Reader(
    session_id="bob-2",
    lineage=("bob-2", "bob-1"),
    name="bob",
    tags=frozenset({"role:x", "role:y", "project:p", "concern:c"}),
)
DIRECTLY = {"bob-2", "bob-1", "bob"}
BY_ROLE = {"role:x": "role:x", "y": "role:y"}
BY_TAG = {"project:p", "concern:c"}
FOREIGN = {"ann-1", "role:z", "z", "project:q", "user"}
UNIVERSE = [*sorted(DIRECTLY), *BY_ROLE, *sorted(BY_TAG), "all", *sorted(FOREIGN)]


def subsets():
    """Every choice of addresses that a message could carry, in the order of the universe and against it."""
    for chosen in chain.from_iterable(combinations(UNIVERSE, size) for size in range(1, len(UNIVERSE) + 1)):
        yield chosen
        yield chosen[::-1]


def test_the_most_specific_mode_is_reported_and_only_what_a_role_alone_brings_is_claimed():
    """Over every set of addresses: direct before role before tag before broadcast; a claim needs the role alone."""
    for recipients in subsets():
        found = address.route(recipients, BOB)
        direct, roles = DIRECTLY & {*recipients}, {BY_ROLE[word] for word in recipients if word in BY_ROLE}
        tags, broadcast = BY_TAG & {*recipients}, "all" in recipients
        if not (direct or roles or tags or broadcast):
            assert found is None
            continue
        mode = "direct" if direct else "role" if roles else "tag" if tags else "broadcast"
        alone = bool(roles) and not (direct or tags or broadcast)
        assert found is not None
        assert (found.mode, found.claims) == (mode, alone), recipients
        assert found.via in (roles if alone else direct or tags or {"all"}), recipients


def test_what_a_read_records_tells_a_claim_from_a_reading_for_oneself():
    """``as: role:x`` is the claim, so the address of any other reading is none of a role."""
    for recipients in subsets():
        found = address.route(recipients, BOB)
        assert found is None or found.via.startswith("role:") == found.claims


def test_the_order_of_addresses_does_not_decide_the_mode():
    """A union has no order."""
    for recipients in permutations(["all", "project:p", "role:x", "bob-1"]):
        assert address.route(recipients, BOB) == Route(mode="direct", via="bob-1", claims=False)
    for recipients in permutations(["all", "project:p", "role:x"]):
        assert address.route(recipients, BOB) == Route(mode="role", via="project:p", claims=False)


def test_a_reader_without_name_or_tags_gets_direct_and_broadcast_mail_alone():
    """No name is not a name that an address could equal."""
    stranger = Reader(session_id="eve-1", lineage=("eve-1",))
    assert address.route(("None", "bob", "role:x", "project:p", "x"), stranger) is None
    assert address.route(("eve-1",), stranger) == Route(mode="direct", via="eve-1", claims=False)
    assert address.route(("role:x", "all"), stranger) == Route(mode="broadcast", via="all", claims=False)


def test_nobody_becomes_everybody_by_a_tag():
    """An agent with the tag ``role:all`` gets mail to all as a broadcast. A role's tag never counts as a plain tag."""
    odd = Reader(session_id="odd-1", lineage=("odd-1",), tags=frozenset({"role:all", "role:x"}))
    assert address.route(("all",), odd) == Route(mode="broadcast", via="all", claims=False)
    assert address.own_route(("role:x",), odd) is None
    assert address.role_route(("role:x",), odd) == "role:x"
    assert address.role_route(("all",), odd) is None
