"""From what someone wants to send to the record that is stored, or the reason why not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core import codec, compose, conversations, naming
from agent_mailbox.core.address import NAMESPACES
from agent_mailbox.core.compose import Draft, Resolved
from agent_mailbox.core.records import MAX_TTL_HOURS, Message
from agent_mailbox.errors import Ambiguous, BadData, MailboxError, Malformed, NotFound, Refused

from .build import at, event, message, register, roster

LIMIT = 64 * 1024
PEOPLE = [
    register("abcdef-1", "role:architect", name="ann"),
    register("abcxyz-2", "project:p", name="bob"),
    register("abcxyz-3"),
    register("gone12-4", "role:steward", "role:abcxyz", name="ghost"),
    event("retire", "gone12-4"),
]


def resolved(*written: str, events: tuple = (), **how: object) -> Resolved:
    """What these written addresses mean."""
    return compose.resolve(written, roster(*PEOPLE, *events), NAMESPACES, **how)


def draft(**changes: object) -> Draft:
    """A small good draft, changed."""
    return Draft(**{"sender": "ann-1", "to": ("bob-1",), "content": "hello", **changes})


# -- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "stored"),
    [
        ("all", "all"),
        ("user", "user"),
        ("project:p", "project:p"),
        ("role:architect", "role:architect"),
        ("architect", "role:architect"),
        ("steward", "role:steward"),
        ("abcdef-1", "abcdef-1"),
        ("ann", "abcdef-1"),
        ("abcdef", "abcdef-1"),
        ("abcxyz", "role:abcxyz"),
    ],
)
def test_a_written_address_is_stored_as_what_it_means(word, stored):
    """Ids, names and prefixes as the session id, roles with their prefix; a role once held beats an id's beginning."""
    assert resolved(word).recipients == (stored,)
    assert resolved(word).warnings == ()
    assert resolved(word).dead == ()


def test_several_words_for_one_address_are_one_recipient():
    """An array is a union, in the order written."""
    assert resolved("all", "ann", "abcdef-1", "architect", "role:architect", "all").recipients == (
        "all",
        "abcdef-1",
        "role:architect",
    )


def test_an_ambiguous_prefix_is_refused_with_the_candidates():
    """Mail is not sent to a guess."""
    with pytest.raises(Ambiguous) as refused:
        resolved("abcxyz-")
    assert "abcxyz-2" in refused.value.hint
    assert "abcxyz-3" in refused.value.hint


@pytest.mark.parametrize("word", ["planet:mars", "role:", "project:a b", "a b", "é b", "role:all"])
def test_what_can_be_no_address_is_malformed(word):
    """An unknown namespace, an empty value, a word that could be no role."""
    with pytest.raises(Malformed):
        resolved(word)


def test_a_word_nobody_answers_to_waits_as_a_role_with_a_loud_warning():
    """It is kept as a bare word, so that who takes it as a name gets the mail; under ``--strict`` it is refused."""
    sent = resolved("zzz", "role:yyy")
    assert (sent.recipients, sent.bare) == (("role:zzz", "role:yyy"), ("zzz",))
    (warning,) = sent.warnings
    assert "zzz" in warning
    with pytest.raises(NotFound) as refused:
        resolved("zzz", strict=True)
    assert refused.value.hint
    assert resolved("ann", "architect", "role:never-held", "all", strict=True).warnings == ()


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("architct", "architect"),
        ("ARCHITECT", "architect"),
        ("Ann", "ann"),
        ("ann.", "ann"),
        ("@ann", "ann"),
        ("\u0430nn", "ann"),
        ("bobb", "bob"),
        ("ABCXYZ-2", "abcxyz-2"),
        ("p", "project:p"),
        ("an", "ann"),
        ("a", "ann"),
        ("abcx", "abcxyz-"),
        ("All", "all"),
        ("users", "user"),
    ],
)
def test_a_word_that_nearly_is_one_is_refused_with_the_one_that_was_meant(word, meant):
    """Case, signs around it, a look-alike letter or a slip of a key; a list with one such word is refused whole."""
    for written in ((word,), ("ann", word)):
        with pytest.raises(NotFound) as refused:
            resolved(*written)
        assert refused.value.code == "unknown_recipient"
        assert meant in refused.value.hint
        assert "agent-mailbox roster list" in refused.value.hint


@pytest.mark.parametrize(("word", "meant"), [("yy", "y"), ("Gone12-4", "gone12-4"), ("GHOST", "ghost"), ("b11", "Bea")])
def test_a_doubled_letter_the_dead_in_another_case_and_a_short_id_are_slips_too(word, meant):
    """However short the word is. Mail would wait for nobody, or reach whoever takes the wrong word."""
    more = (register("y"), register("b1134fc7-1111-4111-8111-111111111111", name="Bea"))
    with pytest.raises(NotFound) as refused:
        resolved(word, events=more)
    assert meant in refused.value.hint or "b1134fc7" in refused.value.hint


@pytest.mark.parametrize("word", ["w1", "dev", "worker-2", "worker-b", "dan", "zed", "architecture-board"])
def test_another_name_is_no_misspelt_one(word):
    """Numbers, letters behind a sign and short words that differ in a letter are names of their own."""
    more = (
        register("worker-1"),
        register("worker-a"),
        register("zea"),
        register("den"),
        register("w10"),
        register("dev-1"),
    )
    assert resolved(word, events=more).bare == (word,)


def test_a_misspelt_tag_is_warned_of():
    """A tag may be new, so mail to it is sent."""
    (warning,) = resolved("project:inscriptin", events=(register("x", "project:inscription"),)).warnings
    assert "project:inscription?" in warning


def test_a_misspelt_teammate_is_told_who_was_meant():
    """Mail to an unknown member of a team waits; the warning names a member whose name is nearly that one."""
    (warning,) = resolved("team:alpha/Bob", events=(register("bob@alpha"),)).warnings
    assert "did you mean bob@alpha?" in warning
    (warning,) = resolved("team:alpha/zoe", events=(register("bob@alpha"),)).warnings
    assert "mean" not in warning


def test_an_agent_elsewhere_is_no_misspelt_tag():
    """Mail to ``swarm:demo/b`` warns of nothing, though the tag ``swarm:demo`` is spelt nearly so."""
    assert resolved("swarm:demo/b", events=(register("x", "swarm:demo"),)).warnings == ()


def test_a_misspelt_role_with_its_prefix_is_warned_of_too():
    """``send`` warns of a role that nobody ever held if its name is close to a known one. A new role gets no
    warning."""
    (warning,) = resolved("role:architct").warnings
    assert "role:architct" in warning
    assert "architect" in warning
    assert resolved("role:zzz").warnings == ()


@pytest.mark.parametrize("word", ["gone12-4", "ghost", "gone12"])
def test_a_dead_agent_addressed_directly_is_refused_naming_the_roles_it_held(word):
    """The sender learns where else to write; nothing is stored for one who will never read it."""
    with pytest.raises(Refused) as refused:
        compose.refuse_dead(resolved("all", word))
    assert refused.value.code == "dead_recipient"
    assert "role:steward" in refused.value.hint
    assert "ghost" in str(refused.value)
    with pytest.raises(Refused) as refused:
        compose.refuse_dead(resolved("abcxyz-3", events=(event("retire", "abcxyz-3"),)))
    assert refused.value.hint


@pytest.mark.parametrize("end", [None, "freeze"])
def test_mail_to_the_dead_goes_to_who_continues_it(end):
    """Mail to the id or name of a dead agent goes to its successor."""
    succession = (register("heir12-5", continues="gone12-4"), *([event(end, "heir12-5")] if end else []))
    for word in ("gone12-4", "ghost", "gone12"):
        sent = resolved(word, events=succession)
        assert sent.recipients == ("heir12-5",)
        compose.refuse_dead(sent)


def test_mail_to_the_frozen_is_sent_to_them():
    """It waits until the session is resumed."""
    sent = resolved("bob", events=(event("freeze", "abcxyz-2"),))
    assert (sent.recipients, sent.dead) == (("abcxyz-2",), ())


def test_a_role_that_has_the_name_of_a_dead_agent_is_the_role():
    """A name is free again once its bearer is dead; then the word means who has it."""
    holder = register("new123-6", "role:ghost")
    assert resolved("ghost", events=(holder,)).recipients == ("role:ghost",)
    compose.refuse_dead(resolved("ghost", events=(holder,)))


def test_a_reply_reaches_a_sender_the_roster_never_heard_of():
    """A reply reaches a sender that is not in the roster by its session id. Any other unknown word stays a role."""
    sent = resolved("stranger-9", answering="stranger-9", strict=True)
    assert (sent.recipients, sent.warnings) == (("stranger-9",), ())
    assert resolved("ann", answering="ann").recipients == ("abcdef-1",)
    for other in ("stranger-8", "stranger-99"):
        assert resolved(other, answering="stranger-9").recipients == (f"role:{other}",)


def test_a_reply_goes_to_no_agent_whose_id_begins_with_the_sender_s():
    """A sender's id is whole, whether anyone registered it or not."""
    longer = register("worker10")
    assert resolved("worker1", events=(longer,), answering="worker1").recipients == ("worker1",)
    assert resolved("worker1", events=(longer,)).recipients == ("worker10",)


@given(st.lists(st.text(max_size=12), max_size=3))
def test_any_words_are_addresses_or_one_of_our_errors(words):
    """Nothing a person types ends in a crash, and what is stored is a canonical address."""
    try:
        sent = resolved(*words)
    except MailboxError:
        return
    known = {a.session_id for a in roster(*PEOPLE).agents.values()} | {"all", "user"}
    assert all(stored in known or ":" in stored for stored in sent.recipients)


# -- fields -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "good",
    [
        {},
        {"sender": "user"},
        {"subject": "x" * 1000, "ack": True, "priority": "high", "type": "control"},
        {"content": "x" * LIMIT},
        {"content": "é" * (LIMIT // 2)},
        {"ttl_hours": 1},
        {"ttl_hours": MAX_TTL_HOURS},
        {"expires_at": at(1)},
        {"content": "\n two\tlines \u2028 \x1b[0m"},
    ],
    ids=lambda good: ",".join(good) or "plain",
)
def test_what_is_within_the_limits_is_taken(good):
    """Exactly the limit is within it, in UTF-8 bytes for the body; any text but NUL is text."""
    compose.checked(draft(**good), LIMIT)
    built = compose.message(draft(**good), ("bob-1",), "m1", at(0))
    assert codec.message(codec.spell_message(built)) == built


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"sender": ""}, Malformed),
        ({"sender": "a b"}, Malformed),
        ({"sender": "all"}, Malformed),
        ({"to": ()}, Malformed),
        ({"to": ("", "")}, Malformed),
        ({"content": ""}, Malformed),
        ({"content": " \n\t"}, Malformed),
        ({"content": "a\0b"}, BadData),
        ({"subject": "a\0b"}, BadData),
        ({"thread": "a\0b"}, BadData),
        ({"content": "\udcff"}, BadData),
        ({"subject": "\ud800"}, BadData),
        ({"thread": "\ud800"}, BadData),
        ({"content": "x" * (LIMIT + 1)}, BadData),
        ({"content": "é" * (LIMIT // 2) + "x"}, BadData),
        ({"subject": "x" * 1001}, BadData),
        ({"ttl_hours": 0}, Malformed),
        ({"ttl_hours": -1}, Malformed),
        ({"ttl_hours": 1.5}, Malformed),
        ({"ttl_hours": True}, Malformed),
        ({"ttl_hours": MAX_TTL_HOURS + 1}, Malformed),
        ({"ttl_hours": 5, "expires_at": at(1)}, Malformed),
        ({"priority": "urgent"}, Malformed),
        ({"type": "bomb"}, Malformed),
    ],
)
def test_what_can_never_be_sent_is_refused_saying_why(bad, error):
    """Malformed arguments and bad data are told apart; each says what and what to do."""
    with pytest.raises(error) as refused:
        compose.checked(draft(**bad), LIMIT)
    assert str(refused.value)


def test_a_body_over_the_limit_is_told_to_attach_a_path():
    """The refusal names the way out and a stable word for programs."""
    with pytest.raises(BadData) as refused:
        compose.checked(draft(content="x" * (LIMIT + 1)), LIMIT)
    assert refused.value.code == "too_large"
    assert "path" in refused.value.hint


def test_a_long_message_is_sent_with_a_warning():
    """Over 500 words exactly."""

    def warnings(words: int) -> tuple[str, ...]:
        return compose.compose_message(
            draft(content="word " * words, to=("abcxyz-3",)),
            roster(*PEOPLE),
            lambda: "m1",
            at(0),
            namespaces=NAMESPACES,
            max_content=LIMIT,
            long_words=500,
            is_ours=False,
            strict=False,
            answering=None,
        ).warnings

    assert warnings(500) == ()
    (warning,) = warnings(501)
    assert "501" in warning


def test_what_no_reader_could_take_back_is_not_stored():
    """Metadata that nests too deep, or a line beyond half of what a reader takes, is refused before it is written."""
    nested: object = 1
    for _ in range(codec.MAX_DEPTH):
        nested = [nested]
    for bad in ({"metadata": nested}, {"references": [float("nan")]}, {"attachments": ["\ud800"]}):
        with pytest.raises(BadData):
            compose.stored_line(compose.message(draft(**bad), ("bob-1",), "m1", at(0)))
    with pytest.raises(BadData) as refused:
        compose.stored_line(compose.message(draft(metadata="x" * compose.MAX_RECORD), ("bob-1",), "m1", at(0)))
    assert refused.value.code == "too_large"
    compose.stored_line(compose.message(draft(metadata=nested[0]), ("bob-1",), "m1", at(0)))


def test_the_largest_body_makes_a_record_that_can_be_stored():
    """64 KiB of content, every byte of it escaped, stays under the limit of a record."""
    compose.stored_line(compose.message(draft(content="\x01" * LIMIT), ("bob-1",), "m1", at(0)))


@pytest.mark.parametrize("spelt", ["3F2C9A10-0000-4000-8000-123456789ABC", " 3f2c9a10-0000-4000-8000-123456789abc\n"])
def test_an_id_is_a_uuid_in_lower_case(spelt):
    """However it was typed, a retry finds the message it repeats."""
    assert compose.check_id_form(spelt) == "3f2c9a10-0000-4000-8000-123456789abc"


@pytest.mark.parametrize(
    "spelt",
    ["", "m1", "3f2c9a1000004000800123456789abc", "3f2c9a10-0000-4000-8000-123456789abg", "3f2c9a10-0000-4000-8000"],
)
def test_only_a_whole_uuid_is_a_message_id(spelt):
    """Only a whole UUID can be a message's id."""
    with pytest.raises(Malformed):
        compose.check_id_form(spelt)


@pytest.mark.parametrize(("what", "given"), [("priority", None), ("priority", "urgent"), ("type", None), ("when", "x")])
def test_a_word_of_a_closed_list_is_one_of_it(what, given):
    """A draft of another program has a priority and a type of ours, and None is neither."""
    draft = compose.Draft(sender="ann", to=("bob",), content="x")
    compose.checked(draft, 1000)
    with pytest.raises(Malformed, match="unknown"):
        compose.checked(draft.replace(**{what: given}), 1000)


# -- batches ----------------------------------------------------------------------------------------------------------


def test_a_batch_line_is_a_draft_in_canonical_or_older_keys():
    """All that a sender may say is taken; what is the mailbox's to say is passed over; unknown keys are kept."""
    assert compose.draft_from(
        {
            "id": "x",
            "sender": "ann-1",
            "recipient": ["bob", "all"],
            "timestamp": "yesterday",
            "content": "hello",
            "thread": "t",
            "ttl_hours": 5,
            "read_by": ["eve-1"],
            "subject": "s",
            "ack": True,
            "priority": "high",
            "type": "control",
            "metadata": {"a": 1},
            "mood": "good",
        }
    ) == Draft(
        sender="ann-1",
        to=("bob", "all"),
        content="hello",
        subject="s",
        thread="t",
        ttl_hours=5,
        ack=True,
        priority="high",
        type="control",
        id="x",
        metadata={"a": 1},
        extra={"mood": "good"},
    )
    assert compose.draft_from({"from": "ann-1", "to": "bob", "body": "hello"}) == draft(to=("bob",))
    assert compose.draft_from({"recipient": "bob", "content": "hello"}) == draft(sender="", to=("bob",))


@pytest.mark.parametrize(
    "bad",
    [
        None,
        [],
        "hello",
        {},
        {"recipient": "bob"},
        {"content": "hello"},
        {"recipient": 5, "content": "hello"},
        {"recipient": ["bob", 5], "content": "hello"},
        {"recipient": "bob", "content": ["hello"]},
        {"recipient": "bob", "content": "hello", "ttl_hours": "5"},
        {"recipient": "bob", "content": "hello", "ttl_hours": 0},
        {"recipient": "bob", "content": "hello", "ttl_hours": 2.5},
        {"recipient": "bob", "content": "hello", "expires_at": 5},
        {"recipient": "bob", "content": "hello", "expires_at": "soon"},
        {"recipient": "bob", "content": "hello", "ack": "yes"},
        {"recipient": "bob", "content": "hello", "sender": 5},
        {"to": "bob", "body": "hello", "from": 5},
        {"to": "bob", "body": "hello", "from": ["ann-1"]},
        {"recipient": "bob", "content": "hello", "subject": {}},
        {"recipient": "bob", "content": "hello", "priority": 1},
        {"recipient": "bob", "content": "hello", "id": 7},
    ],
    ids=repr,
)
def test_a_bad_batch_line_is_refused(bad):
    """A batch is all or none, so a key of the wrong kind is not passed over as in a foreign line. Its sender is told
    what to write."""
    with pytest.raises((BadData, Malformed)) as refused:
        compose.draft_from(bad)
    assert refused.value.hint


# -- retries ----------------------------------------------------------------------------------------------------------

SENT = message("m1", to="bob-1", subject="s", metadata={"a": 1})


def is_same(retry: Message, known: Message = SENT, ever: tuple[str, ...] = ("bob-1",)) -> bool:
    """Is it the same mail, where the written words may have meant these addresses?"""
    return compose.same_mail(retry, known, ever)


def test_a_retry_is_the_same_mail_whenever_it_comes():
    """Its time of writing does not count, nor who has read the first one."""
    assert is_same(SENT.replace(timestamp=at(99)))
    assert is_same(SENT, SENT.replace(read_by=("bob-1",)))


@pytest.mark.parametrize(
    "change",
    [
        {"content": "other"},
        {"subject": None},
        {"sender": "eve-1"},
        {"ack": True},
        {"ttl_hours": 5},
        {"expires_at": at(1)},
        {"thread": "t"},
        {"priority": "high"},
        {"type": "control"},
        {"metadata": None},
        {"extra": {"mood": 1}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_mail_under_the_same_id_is_another_message(change):
    """Any field that the sender says makes the difference."""
    assert not is_same(SENT.replace(**change))


def test_a_retry_counts_as_the_same_when_a_name_has_come_to_mean_another_since():
    """The recipient died between the tries and has a successor now; a recipient never meant is another message."""
    assert is_same(SENT.replace(recipients=("bob-2",)), ever=("bob-2", "bob-1"))
    assert not is_same(SENT.replace(recipients=("bob-2",)), ever=("bob-2",))
    assert not is_same(SENT.replace(recipients=("bob-1", "all")), ever=("bob-1", "all"))


def test_a_word_s_meanings_are_those_that_it_ever_had():
    """A name, after its bearer died and another continues it; a word that became an agent's or ceased to be."""
    succession = (register("heir12-5", continues="gone12-4"),)
    assert "gone12-4" in compose.find_meanings(("ghost",), roster(*PEOPLE, *succession))
    assert {"abcdef-1", "role:ann"} <= compose.find_meanings(("ann",), roster(*PEOPLE))
    assert "abcdef-1" not in compose.find_meanings(("bob",), roster(*PEOPLE))


def test_a_teammate_is_addressed_by_its_team() -> None:
    """``team:t/n`` is the agent ``n@t``, and direct; ``team:t`` is a tag; one nobody knows waits, or is refused."""
    known = roster(register("ann@t", "team:t"), register("bo@t", "team:t"), event("retire", "bo@t"))
    found = compose.resolve(("team:t/ann", "team:t"), known, NAMESPACES)
    assert (found.recipients, found.warnings, found.dead) == (("ann@t", "team:t"), (), ())
    assert [agent.session_id for agent in compose.resolve(("team:t/bo",), known, NAMESPACES).dead] == ["bo@t"]
    waits = compose.resolve(("team:t/cy",), known, NAMESPACES)
    assert waits.recipients == ("cy@t",)
    assert len(waits.warnings) == 1
    with pytest.raises(NotFound):
        compose.resolve(("team:t/cy",), known, NAMESPACES, strict=True)
    for word in ("team:t/a b", "team:t/n:m", "team:t u/n"):
        named = naming.session_id(*word.removeprefix("team:").split("/"))
        found = compose.resolve((word,), known, NAMESPACES)
        assert (found.recipients, len(found.warnings)) == ((named,), 1)
    spelt = naming.session_id("t", "n" * 100)  # its word is as long as one may be
    for word in (spelt.partition("@")[0], "n" * 100):
        assert compose.resolve((f"team:t/{word}",), known, NAMESPACES).recipients == (spelt,)
    for word in ("team:t/", "team:/n"):
        with pytest.raises(Malformed):
            compose.resolve((word,), known, NAMESPACES)
    assert known.find("team:t/ann").session_id == "ann@t"
    mail = [message("m1", "ann@t"), message("m2", "team:t"), message("m3", "bo@t")]
    assert [m.id for m in conversations.exchanged(mail, "team:t/ann", known)] == ["m1"]
    assert [m.id for m in conversations.exchanged(mail, "team:t", known)] == ["m2"]
