"""The person's own marks: what is written is read again, and what is no mark hides none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core.marks import MOST, Marks, read, written

WORDS = st.text(st.characters(codec="utf-8"), max_size=9)
INSTANTS = st.dictionaries(WORDS, st.integers(0, 1 << 53), max_size=3)
PLACES = st.lists(WORDS, max_size=3).map(tuple)


@given(st.builds(Marks, st.integers(0, 1 << 53), INSTANTS, PLACES, PLACES, INSTANTS))
def test_marks_survive_their_file(marks: Marks) -> None:
    """Each list and each instant is read back as it was."""
    assert read(written(marks)) == marks


def test_the_latest_places_and_instants_are_kept() -> None:
    """A place is in its list once, the latest last; of too many the oldest are left out."""
    marks = Marks(5)
    for place in ("a", "b", "a"):
        marks = marks.placed("pinned", place, True)
    assert (marks.pinned, marks.muted) == (("b", "a"), ())
    assert marks.placed("pinned", "b", False).placed("muted", "c", True) == Marks(5, {}, ("a",), ("c",))
    for number in range(MOST + 1):
        marks = marks.placed("muted", str(number), True).put_off(str(number), number)
    assert [(len(kept), "0" in kept, str(MOST) in kept) for kept in (marks.muted, marks.later)] == [
        (MOST, False, True)
    ] * 2


def test_what_is_no_mark_hides_none_of_the_others() -> None:
    """A list or an instant of another form is left out; a file without its own instant holds no marks."""
    content = b'{"since":5,"until":{"a":1,"b":"x"},"later":[1],"pinned":["a",2],"muted":"a"}'
    assert read(content) == Marks(5, {"a": 1}, ("a",))
    for content in (b"", b"[]", b'{"since":"5"}', b'{"until":{}}'):
        assert read(content) is None
