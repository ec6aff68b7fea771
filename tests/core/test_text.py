"""Other people's text, made safe to show: no field ends its line, moves a cursor, hides, or poses as a frame."""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import subprocess
import unicodedata

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_mailbox.core import text
from tests.helpers import each

BREAKS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
CONTROLS = [chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)]]
BIDI = list("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
INVISIBLE = [*"\u00ad\u200b\u2060\u2061\u2062\u2063\u2064\ufeff\u180e", *map(chr, range(0xE0000, 0xE0080))]
JOINERS = "\u200c\u200d"
BLANK = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00013441\U00013442\U00016fe4\U0001d159"
"""Letters and symbols that leave nothing on the screen."""
FRAMES = [
    "system-reminder",
    "system",
    "command-name",
    "command-message",
    "command-args",
    "local-command-stdout",
    "local-command-caveat",
    "bash-input",
    "bash-stdout",
    "bash-stderr",
    "user-prompt-submit-hook",
    "session-start-hook",
    "task-notification",
    "teammate-message",
    "channel source=x",
    "hook_context",
    "environment_context",
    "session_context",
    "permissions instructions",
    "instructions",
    "turn_aborted",
    "subagent_notification",
    "developer",
    "function_calls",
    "function_results",
    "invoke name=x",
    "antml:invoke",
    "antml:function_calls",
    "agent-mailbox",
    "user",
    "human",
    "assistant",
    "tool_use",
    "tool_result",
]

any_text = st.text(st.characters(exclude_categories=()), max_size=60)
PLANE = 1 << 16
WHOLE = (0, 1, 2, 3, 14)
"""The planes of Unicode with characters of scripts. The others hold none or private ones: their ends stand for all."""


@functools.cache
def every_character() -> tuple[str, ...]:
    """Return each character of these planes, and both ends of the others."""
    planes = (range(plane * PLANE, (plane + 1) * PLANE) for plane in range(17))
    kept = (codes if at in WHOLE else (*codes[:64], *codes[-64:]) for at, codes in enumerate(planes))
    return tuple(map(chr, itertools.chain.from_iterable(kept)))


def is_plain(char: str) -> bool:
    """Does the character print, or is it one that scripts are spelt with?"""
    return char.isprintable() or char in JOINERS


# -- a word for a command ---------------------------------------------------------------------------------------------


def test_a_word_that_is_pasted_is_read_back_by_a_shell():
    """Each character is, and each byte of a path that is not UTF-8: in a word of its own, and among others."""
    odd = [*BREAKS, *CONTROLS[1:], *BIDI, *INVISIBLE, *JOINERS, *BLANK, *map(chr, range(0xDC80, 0xDD00))]
    odd += [
        "<system>",
        "\uff1csystem>",
        "a  b",
        " ",
        "it's",
        "$(id)",
        "`id`",
        '"',
        "\\",
        "!!",
        "~x",
        "-x",
        "é",
        "1",
        "",
    ]
    wanted = [*odd, *(f"it's $x\\{one}7<user" for one in odd)]
    words = [text.typed(word) for word in wanted]
    assert all(text.neutral(word) == word for word in words)
    script = f"printf '%s\\0' {' '.join(words)}".encode()
    said = subprocess.run(["bash"], input=script, capture_output=True, check=True).stdout
    assert [os.fsdecode(word) for word in said.split(b"\0")[:-1]] == wanted


@given(any_text)
def test_a_word_for_a_command_is_one_printable_line(given_text):
    """Whatever comes in, halves of surrogate pairs among it."""
    typed = text.typed(given_text)
    typed.encode("utf-8")
    assert text.neutral(typed) == typed


# -- one line ---------------------------------------------------------------------------------------------------------


@each("char", [*CONTROLS, *BIDI, *INVISIBLE, chr(0xD800), chr(0xDFFF), "\ufff9", "\U0001d173"])
def test_a_character_that_does_not_print_never_comes_out(char):
    """Control, bidirectional, invisible and half characters become something one can see, in one line."""
    shown = text.neutral(f"before{char}after")
    assert char not in shown
    assert shown.startswith("before")
    assert shown.endswith("after")
    assert shown != "beforeafter"
    (line,) = text.neutral_lines(f"before{char}after") if char not in BREAKS else [shown]
    assert char not in line


def test_no_character_of_unicode_survives_that_does_not_print():
    """A shown text contains only the characters of Unicode that print, and the two joiners."""
    everything = "".join(every_character())
    assert all(map(is_plain, set(text.neutral(everything))))
    for line in text.neutral_lines(everything):
        assert all(map(is_plain, set(line)))


@pytest.mark.parametrize("mark", BREAKS, ids=ascii)
def test_every_line_break_of_unicode_is_a_space_in_a_field_and_one_break_in_a_body(mark):
    """A subject stays on its line; a body's lines are counted as a reader of any client would count them."""
    assert text.neutral(f"one{mark}two") == "one two"
    assert text.neutral_lines(f"one{mark}two") == ["one", "two"]


def test_no_other_character_breaks_a_line():
    """The list of breaks above is all that Python, and so every caller, would split at."""
    assert {c for c in every_character() if len(f"a{c}b".splitlines()) > 1} == set(BREAKS) - {"\r\n"}


def test_terminal_sequences_show_as_text():
    """An escape sequence loses the byte that makes a terminal obey it, and shows what was tried."""
    assert text.neutral("\x1b[2J\x1b]0;title\x07") == "\\x1b[2J\\x1b]0;title\\x07"
    assert text.neutral("\x9b31m") == "\\x9b31m"
    assert text.neutral_lines("a\x1b[1A\x08b") == ["a\\x1b[1A\\x08b"]


@pytest.mark.parametrize(
    "fine",
    [
        "Grüße, Ωμέγα, 日本語, عربي, עברית",
        "family: 👨‍👩‍👧 and flag 🏳️‍🌈",
        "می‌خواهم",
        "a < b and c > d; List<String>; <div class='x'></div>; 1 << 3; <-",
        "quotes \" ' \\ and {json: [1, 2]}",
        "two  spaces stay",
        "",
    ],
)
def test_ordinary_text_is_shown_as_it_was_written(fine):
    """Scripts, emoji, code and markup that frames nothing pass unchanged."""
    assert text.neutral(fine) == fine
    assert text.neutral_lines(fine) == ([fine] if fine else [])


def test_tabs_in_a_body_become_columns_and_empty_lines_at_its_end_vanish():
    """A body keeps its look; what trails it cannot push the frame's end away."""
    assert text.neutral_lines("a\tb\n\n  c\n \n\t\n\n") == ["a   b", "", "  c"]
    assert text.neutral_lines("\n \u2028\x0b") == []


@given(any_text)
def test_a_field_is_one_printable_line_that_utf_8_can_hold(given_text):
    """Whatever comes in, one line comes out that can be written to any terminal, and neutral text stays as it is."""
    shown = text.neutral(given_text)
    assert all(map(is_plain, shown))
    assert len(shown.splitlines()) <= 1
    shown.encode("utf-8")
    assert text.neutral(shown) == shown


@given(any_text)
def test_a_body_has_the_lines_it_had(given_text):
    """Lines are neither joined nor added; each is printable by itself."""
    shown = text.neutral_lines(given_text)
    assert len(shown) <= len(given_text.splitlines())
    for line, before in zip(shown, given_text.splitlines(), strict=False):
        assert all(map(is_plain, line))
        assert len(line.splitlines()) <= 1
        assert ascii_letters(before) in ascii_letters(line)
    assert not any(line.strip() for line in given_text.splitlines()[len(shown) :])


def ascii_letters(line: str) -> str:
    """What of a line nothing may take away."""
    return "".join(c for c in line if c.isascii() and c.isalpha()) if line.isprintable() else ""


@pytest.mark.parametrize(
    "hidden",
    [*JOINERS, "\u180b", "\ufe00", "\ufe0f", "\U000e0100", "\U000e01ef", "\u034f", *BLANK],
    ids=ascii,
)
def test_a_row_of_characters_that_draw_nothing_is_shown(hidden):
    """Each could stand for a bit or a byte of words that nobody sees; where a script needs one, it stays."""
    for before in ("a", " ", "\u6f22", "", "\U0001f600"):
        shown = text.neutral(f"{before}{hidden * 3}b")
        assert sum(not is_drawn(char) for char in shown) <= (not before.isascii())
        assert f"{ord(hidden):04x}" in shown
        assert hidden not in text.ascii_json(json.dumps(hidden, ensure_ascii=False))


@pytest.mark.parametrize(
    "spelt", ["\u0645\u06cc\u200c\u062e", "\u0915\u094d\u200d\u0937", "\u2764\ufe0f", "#\ufe0f\u20e3",
              "\U0001f469\u200d\u2764\ufe0f\u200d\U0001f469", "\u845b\U000e0100"], ids=ascii
)  # fmt: skip
def test_scripts_and_emoji_keep_the_joiners_that_they_are_spelt_with(spelt):
    """Persian, Devanagari, a red heart, a key, a couple, a variant of a Japanese name's character."""
    assert text.neutral(spelt) == spelt
    assert text.neutral_lines(spelt) == [spelt]


def is_drawn(char: str) -> bool:
    """Return whether the character leaves something on the screen."""
    return not is_invisible(char) and char not in BLANK


# -- frame markers ----------------------------------------------------------------------------------------------------


def frames_in(shown: str) -> list[str]:
    """What a reader who does not see invisible characters would take for a client's marker."""
    seen = "".join(c for c in shown if not is_invisible(c)).casefold()
    names = "|".join(re.escape(frame.split()[0]) for frame in FRAMES)
    return re.findall(rf"<[\s/]*(?:{names})", seen)


def is_invisible(char: str) -> bool:
    """Default-ignorable: format characters, variation selectors, the grapheme joiner (DerivedCoreProperties)."""
    selects = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return selects or char == "\u034f" or unicodedata.category(char) == "Cf"


@pytest.mark.parametrize("frame", FRAMES)
def test_a_clients_frame_marker_loses_its_bracket(frame):
    """Mail cannot open or close what a client puts around its own words, in any case or spacing."""
    for forged in (f"<{frame}>", f"</{frame}>", f"< {frame}>", f"<{frame.upper()}>", f"< / {frame}>", f"x<<{frame}>"):
        assert frames_in(forged), "the test itself would not see it"
        for shown in (text.neutral(forged), *text.neutral_lines(forged)):
            assert not frames_in(shown)
            assert frame.casefold() in shown.casefold()


@pytest.mark.parametrize(
    "forged",
    ["<\uff53ystem-reminder>", "\uff1c/system-reminder>", "\ufe64user>", "<|im_start|>user"],
    ids=["a wide letter", "a wide bracket", "a small bracket", "a bar"],
)
def test_wide_letters_and_brackets_do_not_save_a_marker(forged):
    """A forged marker with wide letters, other brackets or a template's bar is made harmless as well."""
    for shown in (text.neutral(forged), *text.neutral_lines(forged)):
        assert shown.startswith("&lt;")
    assert text.neutral("f <| x, List<User2>, a < b \uff1c c") == "f <| x, List<User2>, a < b \uff1c c".replace(
        "<User", "&lt;User"
    )


@pytest.mark.parametrize(
    "gap", ["\t", "\n", "\r\n", "\x0b", "\x1f", "\x85", "\u00a0", "\u2003", "\u2028", "\u3000"], ids=ascii
)
def test_no_white_space_inside_a_marker_saves_it(gap):
    """A forged marker with any white space inside is made harmless as well."""
    assert not frames_in(text.neutral(f"<{gap}system-reminder>"))
    assert not frames_in(text.neutral(f"<{gap}/{gap}system-reminder>"))
    for line in text.neutral_lines(f"<{gap}system-reminder>"):
        assert not frames_in(line)


@pytest.mark.parametrize("hidden", ["\u200c", "\u200d", "\ufe0f", "\ufe00", "\U000e0100", "\u034f"], ids=ascii)
def test_no_invisible_character_inside_a_marker_saves_it(hidden):
    """A marker that only *looks* whole is a forgery of the frame all the same: a reader sees no joiner in it."""
    for forged in (
        f"<{hidden}system-reminder>",
        f"</{hidden}system-reminder>",
        f"<{hidden}/system-reminder>",
        f"<sys{hidden}tem-reminder>",
        f"<system-{hidden}reminder>",
    ):
        assert frames_in(forged), "the test itself would not see it"
        assert not frames_in(text.neutral(forged))
        assert not frames_in("".join(text.neutral_lines(forged)))


@given(
    st.lists(
        st.one_of(
            st.sampled_from([*"<</ \t\n\r>-", "\u2028", "\x1b", "\u200b", "\u202e", "ſ", "K"]),
            st.sampled_from([frame.split()[0] for frame in FRAMES]).map(
                lambda frame: frame.upper() if len(frame) % 2 else frame
            ),
        ),
        max_size=12,
    ).map("".join)
)
@settings(max_examples=7 * settings().max_examples)
def test_no_mixture_of_brackets_breaks_and_markers_forges_a_frame(forged):
    """However brackets, slashes, white space, controls and markers are strung together, no marker is left."""
    assert not frames_in(text.neutral(forged))
    assert not any(frames_in(line) for line in text.neutral_lines(forged))


# -- JSON -------------------------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=8,
)


@given(json_values, st.sampled_from([None, 2]))
@example({"\u2028\x7f": "\x9b\ud800\U000e0041\u202e"}, None)
def test_json_made_harmless_is_the_same_value_and_prints(value, indent):
    """The document means what it meant; nothing in it reaches a terminal that does not print."""
    document = json.dumps(value, ensure_ascii=False, indent=indent)
    harmless = text.ascii_json(document)
    assert json.loads(harmless) == json.loads(document)
    assert all(c.isprintable() or c == "\n" for c in harmless)
    harmless.encode("utf-8")


def test_every_character_of_unicode_survives_in_harmless_json():
    """All code points but the halves of surrogate pairs come back from it as they were, read by another parser."""
    everything = "".join(c for c in every_character() if not "\ud800" <= c <= "\udfff")
    harmless = text.ascii_json(json.dumps(everything, ensure_ascii=False))
    assert orjson.loads(harmless) == everything
    assert harmless.isprintable()


def test_harmless_json_keeps_what_prints():
    """Letters of any script stay readable: only what does not print is spelt out."""
    assert text.ascii_json('{"a":"Grüße 日本"}') == '{"a":"Grüße 日本"}'
    assert text.ascii_json('"\u200b\U000e0041"') == '"\\u200b\\udb40\\udc41"'


# -- small things -----------------------------------------------------------------------------------------------------


def test_words_are_what_white_space_separates():
    """The "500 words" of the protocol are counted as a person counts them."""
    assert text.words("") == 0
    assert text.words(" one\ttwo\n\nthree ") == 3


@given(any_text, st.integers(1, 30))
def test_a_clipped_text_keeps_its_width_and_says_that_it_was_cut(given_text, width):
    """A clipped text has at most ``width`` characters. It is whole if it fits, and else ends with an ellipsis."""
    shown = text.clipped(given_text, width)
    assert len(shown) <= width
    if len(given_text) <= width:
        assert shown == given_text
    else:
        assert shown.endswith("…")
        assert given_text.startswith(shown[:-1])


def test_near_words_are_the_likely_ones_first_and_at_most_three():
    """A misspelt word brings what it may have meant; a strange one brings nothing."""
    known = ["architect", "architecture", "archivist", "archer", "steward"]
    assert text.near("architct", known)[0] == "architect"
    assert len(text.near("archi", known)) <= 3
    assert text.near("zzz", known) == []
