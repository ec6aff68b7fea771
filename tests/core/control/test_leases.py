"""Leases: which patterns there may be, what they cover, whose they are, and when they end."""

from __future__ import annotations

import itertools
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core.control import lease_paths, message_text
from agent_mailbox.core.control.leases import LONGEST, MOST_HELD, MOST_UNPROVEN
from agent_mailbox.core.control.messages import LeasePaths, LeaseRelease, Payload
from agent_mailbox.core.control.state import ControlState
from agent_mailbox.core.control.verdicts import APPLIED, REFUSED, REPEATED
from agent_mailbox.core.proofs import TERMINAL, of_session
from agent_mailbox.core.records import Message, RosterEvent
from agent_mailbox.core.roster import Roster

PROJECT = "/home/me/project"
MINUTE = 60_000
NAMES = st.sampled_from(["a", "b", "ab", "*", "?", "a*", "*b", "**b", "**"])
PATTERNS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PATHS = ["/".join(names) for n in (1, 2, 3) for names in itertools.product(("a", "b", "ab"), repeat=n)]


def plainly(pattern: list[str], path: list[str]) -> bool:
    """Whether a pattern covers a path, tried out."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(plainly(pattern[1:], path[at:]) for at in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and plainly(pattern[1:], path[1:])


@given(PATTERNS)
def test_a_pattern_covers_what_trying_out_says(pattern: str) -> None:
    """A pattern with stars and question marks covers exactly the paths that a plain matcher finds."""
    for path in PATHS:
        assert lease_paths.covers(pattern, path) == plainly(pattern.split("/"), path.split("/")), path


@given(PATTERNS, PATTERNS)
def test_two_patterns_overlap_where_one_path_is_of_both(one: str, other: str) -> None:
    """No path in common is missed, whichever comes first."""
    common = any(lease_paths.covers(one, path) and lease_paths.covers(other, path) for path in PATHS)
    assert lease_paths.overlap(one, other) or not common
    assert lease_paths.overlap(one, other) == lease_paths.overlap(other, one)


def test_literal_paths_overlap_only_if_they_are_one() -> None:
    """Two literal paths overlap only if they are equal. A pattern overlaps only what it covers."""
    assert not lease_paths.overlap("src/a.py", "src/b.py")
    assert lease_paths.overlap("src/**", "src/deep/a.py")
    assert not lease_paths.overlap("src/**", "docs/a.md")
    assert not lease_paths.overlap("src/*.py", "src/deep/a.py")


@pytest.mark.parametrize("pattern", ["*", "**", "?*/**", "**/x.py", "*/a", "s*/**", "", "a//b", "../x", "a/./b", "/a"])
def test_a_pattern_for_everything_is_refused(pattern: str) -> None:
    """A lease is refused if its pattern matches everything, leaves the project or has no plain form."""
    with pytest.raises(ValueError, match="a pa"):
        lease_paths.check(pattern, PROJECT)


@pytest.mark.parametrize("pattern", ["a\nb", "a\x1b[2Jb", "a\u202eb", "a\0b", "x" * 1001])
def test_a_path_with_control_characters_is_refused(pattern: str) -> None:
    """A terminal never sees one, nor a list of leases."""
    with pytest.raises(ValueError, match="control character"):
        lease_paths.check(pattern, PROJECT)


def test_outside_a_repository_a_pattern_begins_deep() -> None:
    """A home directory is nobody's to lease."""
    for pattern in ("home/**", "home/me/**", "home/*/x"):
        with pytest.raises(ValueError, match="too much"):
            lease_paths.check(pattern, lease_paths.OUTSIDE)
    assert lease_paths.check("home/me/notes/**", lease_paths.OUTSIDE)
    assert lease_paths.check("etc/x", lease_paths.OUTSIDE)


def test_a_pattern_takes_no_time_to_be_judged() -> None:
    """Stars that a slow matcher would try in all ways; the answer is there, so it tried them in one."""
    stars, name = "a*" * 300 + "b", "a" * 900
    assert not lease_paths.covers(f"src/{stars}", f"src/{name}")
    assert not lease_paths.overlap("x/" + "**/a/" * 150 + "b", "x/" + "**/a/" * 150 + "c")


class Log:
    """Control messages, one after the other."""

    def __init__(self, *dead: str) -> None:
        self.roster = Roster()
        for at, who in enumerate(("ada", "bob", "eve")):
            self.roster.apply(RosterEvent("register", who, at, lead="eve" if who == "ada" else None, proof=TERMINAL))
        for who in dead:
            self.roster.apply(RosterEvent("retire", who, 10, proof=of_session(who)))
        self.plane = ControlState(self.roster)
        self.count = 0

    def says(self, who: str, payload: Payload, at: int = 100, proof: str | None = "") -> str:
        """One more message; its outcome. ``proof``: the writer's own unless given."""
        self.count += 1
        message = Message(
            id=f"m{self.count}", sender=who, recipients=(who,), timestamp=at, type="control",
            content=message_text.written(payload), proof=of_session(who) if proof == "" else proof,
        )  # fmt: skip
        verdict = self.plane.apply(message)
        assert verdict is not None
        return verdict.outcome

    def leases(self, who: str, *paths: str, at: int = 100, minutes: int = 30, **more: str | None) -> str:
        """A session leases paths."""
        name = f"lease-{self.count}"
        paid = LeasePaths(request_id=name, project=PROJECT, paths=paths, expires=at + minutes * MINUTE)
        return self.says(who, paid, at, **more)

    def held(self, now: int = 200) -> list[tuple[str, bool]]:
        """Who holds a lease, and whether that is proven."""
        return [(lease.owner, lease.proven) for lease in self.plane.leases.live(now)]


def test_a_lease_is_its_writer_s_whatever_sender_it_names() -> None:
    """A session that leases in another's name leases for itself; a line that proves nothing comes last, as a hint."""
    log = Log()
    assert log.leases("ada", "src/a.py", proof=None) == APPLIED
    assert log.leases("ada", "src/a.py", proof=of_session("eve")) == APPLIED
    assert log.held() == [("eve", True), ("ada", False)]


def test_a_proven_lease_ends_by_its_holder_its_lead_or_the_person() -> None:
    """Neither by a peer nor by a line in the holder's name."""
    for who, proof, outcome in (
        ("bob", "", REFUSED),
        ("ada", None, REFUSED),
        ("ada", of_session("bob"), REFUSED),
        ("ada", "", APPLIED),
        ("eve", "", APPLIED),
        ("user", TERMINAL, APPLIED),
    ):
        log = Log()
        log.leases("ada", "src/a.py")
        assert log.says(who, LeaseRelease(request_id="lease-0"), proof=proof) == outcome, (who, proof)
        assert log.held() == ([] if outcome == APPLIED else [("ada", True)])


def test_a_lease_ends_in_time_and_with_its_holder() -> None:
    """However long it says; one from the future has not begun."""
    log = Log()
    log.leases("ada", "src/a.py", minutes=10**6)
    log.leases("bob", "src/b.py", at=10**15, proof=None)
    assert log.held(100 + LONGEST - 1) == [("ada", True)]
    assert log.held(100 + LONGEST) == []
    dead = Log("ada")
    dead.leases("ada", "src/a.py")
    assert dead.held() == []
    assert dead.leases("bob", "src/a.py", minutes=-1) == REFUSED


def test_who_comes_back_from_the_dead_leases_anew() -> None:
    """Another may lease the same by then; a session that froze in between, or registers again alive, keeps its own."""
    log = Log()
    log.leases("ada", "src/a.py")
    for event, held in (("freeze", True), ("register", True), ("retire", False), ("register", False)):
        log.roster.apply(RosterEvent(event, "ada", 150, proof=of_session("ada")))
        assert log.held() == ([("ada", True)] if held else []), event
    log.leases("bob", "src/a.py", at=150)
    log.leases("ada", "src/b.py", at=150)  # at the instant of its return
    assert log.held() == [("bob", True), ("ada", True)]


def test_a_lease_goes_on_with_who_has_the_holder_s_place() -> None:
    """Though the holder comes back; it ends when that one dies, and its return does not bring it back."""
    log = Log()
    log.leases("ada", "src/a.py")
    log.roster.apply(RosterEvent("retire", "ada", 150, proof=of_session("ada")))
    log.roster.apply(RosterEvent("register", "bob", 160, continues="ada", proof=TERMINAL))
    log.roster.apply(RosterEvent("register", "ada", 170, proof=of_session("ada")))
    assert log.held() == [("ada", True)]
    for event in ("retire", "register"):
        log.roster.apply(RosterEvent(event, "bob", 180, proof=of_session("bob")))
        assert log.held() == [], event
    log.roster.apply(RosterEvent("register", "cat", 185, continues="ada"))
    log.roster.apply(RosterEvent("update", "bob", 190, continues="cat", proof=of_session("bob")))
    assert log.held() == [], "whose mail alone it has passes nothing on"


def test_ten_thousand_leases_are_as_many_as_a_session_may_hold() -> None:
    """A session can hold only so many leases, and all unproven lines together too. The end of one makes room."""
    log = Log()
    outcomes = [log.leases("ada", f"src/{n}.py") for n in range(10_000)]
    assert outcomes.count(APPLIED) == MOST_HELD
    outcomes = [log.leases(f"x{n}", f"src/{n}.py", proof=None) for n in range(MOST_UNPROVEN * 3)]
    assert outcomes.count(APPLIED) == MOST_UNPROVEN
    assert log.leases("bob", "src/a.py") == APPLIED
    assert log.says("ada", LeaseRelease(request_id="lease-0")) == APPLIED
    assert log.leases("ada", "src/a.py") == APPLIED


def test_a_lease_that_holds_stays_in_the_log() -> None:
    """A lease that still holds, and the lines that belong to it, stay in the log. One that is over may go."""
    log = Log()
    log.leases("ada", "src/a.py")
    assert log.plane.standing(200) == {"m1"}
    assert log.plane.standing(100 + 30 * MINUTE) == frozenset()
    log.says("ada", LeaseRelease(request_id="lease-0"))
    assert log.plane.standing(200) == frozenset()
    assert ["m1", "m2"] in log.plane.groups()


@pytest.mark.parametrize(
    ("project", "paths"),
    [
        ("src", ("a.py",)), ("/a\nb", ("a.py",)),
        (PROJECT, ()), (PROJECT, tuple(f"{n}.py" for n in range(lease_paths.MOST_PATHS + 1))),
    ],
)  # fmt: skip
def test_a_lease_of_no_project_or_of_no_bounded_paths_is_refused(project: str, paths: tuple[str, ...]) -> None:
    """Any program may write such a line, which would be shown to others."""
    log = Log()
    assert log.says("ada", LeasePaths(request_id="x", project=project, paths=paths, expires=10**9)) == REFUSED
    assert log.held() == []


def test_where_names_differ_by_case_alone_a_lease_covers_the_file_in_each() -> None:
    """A file system may take ``A.py`` and ``a.py`` as one; who leased one of them works on it."""
    log = Log()
    log.leases("ada", "Src/*.py", "Src/B.txt")
    lease = log.plane.leases.live(200)[0]
    for path in ("src/A.PY", "src/b.TXT"):
        assert [lease.covers(PROJECT, path, blind=blind) for blind in (True, False)] == [True, False]


def test_a_lease_is_of_its_own_project_alone() -> None:
    """A directory beside it, whose name begins with the project's or is its beginning, has files of its own."""
    log = Log()
    log.leases("ada", "src/a.py")
    lease = log.plane.leases.live(200)[0]
    for project, is_its in ((PROJECT, True), (f"{PROJECT}-2", False), (PROJECT[:-1], False)):
        found = [lease.covers(project, "src/a.py"), lease.overlaps(project, ("src/*.py",))]
        assert found == [is_its, is_its], project


def test_a_lease_s_id_cannot_be_given_again() -> None:
    """Neither its holder nor another widens it by saying it again."""
    log = Log()
    log.leases("ada", "src/a.py")
    again = LeasePaths(request_id="lease-0", project=PROJECT, paths=("src/**",), expires=10**9)
    assert log.says("ada", again.replace(paths=("src/a.py",))) == REPEATED
    assert log.says("ada", again) == REFUSED
    assert log.says("ada", again.replace(paths=("src/a.py",), project=PROJECT[:-1])) == REFUSED
    assert log.says("bob", again) == REFUSED
    assert log.plane.leases.live(200)[0].paths == ("src/a.py",)
