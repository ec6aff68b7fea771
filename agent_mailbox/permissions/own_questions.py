"""The questions to the person about our commands, though plain mail runs unasked: a file that is sent, another mailbox.

Belongs here: the rule, from a shell's text to why the client must ask. Pure: ``Place`` looks at the disk. The rules of
``install.texts`` end in ``:*``, so they cover every option of a command. It stops mistakes, not
attacks.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Protocol

from .directory_changes import UNKNOWN, VARIABLES, names_mailbox
from .own_commands import NAMES, VALUED, find_calls, show_word, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .own_commands import OwnCommands

    class Place(Protocol):
        """Where an agent works, and its mailbox. The words are directories, each from the one before."""

        def is_own(self, words: Sequence[str]) -> bool:
            """Return whether they end in the agent's own mailbox."""
            ...

        def finds_own(self, words: Sequence[str]) -> bool:
            """Return whether a command there finds the agent's own mailbox, or none."""
            ...


_TEXTS = ("--body", "--input")
"""Options whose text may be a file's: ``@FILE``."""
_STDIN = ("-", "/dev/stdin")
_PLACES = ("--dir", "--home")
"""Options that name a mailbox, and a gateway's home."""
_OWN = tuple(form for name in VARIABLES for form in (f"${name}", f"${{{name}}}"))


def question_about(text: str, place: Place) -> str | None:
    """Return why the client must ask its person before it runs the text; None if it need not."""
    if not any(name in text for name in NAMES):
        return None
    found = find_calls(text)
    if (file := _sent_file(found)) is not None:
        return f"this sends the file {show_word(file)}. `--body -` with a here-document needs no permission."
    if (elsewhere := next(_words_elsewhere(found, place), None)) is not None:
        return f"this uses another mailbox than this project's own ({show_word(elsewhere)}), or nobody can tell which."
    return None


# -- files ------------------------------------------------------------------------------------------------------------


def _sent_file(found: OwnCommands) -> str | None:
    """Return a file whose content our commands send. The client's rules on reading cover files the shell opens, not
    those our arguments name."""
    named = [file for call in found.calls for file in _sent_files(call)]
    loose = (file for tokens in _opaque_calls(found) for file in _sent_files(tokens))
    return next(chain(named, found.sources, loose), None)


def _sent_files(arguments: Sequence[str]) -> list[str]:
    """Return the files whose content a call sends."""
    found = []
    for word, following in zip(arguments, [*arguments, ""][1:], strict=True):
        option, equals, value = word.partition("=")
        value = value if equals else following
        if option in _TEXTS and value.startswith("@") and value[1:] not in _STDIN:
            found.append(value[1:])
        elif (option == "--attach" and value) or (option == "--jsonl" and value not in ("", *_STDIN)):
            found.append(value)
    return found


def _opaque_calls(found: OwnCommands) -> Iterator[list[str]]:
    """Yield the words of each part that is not read with certainty and that calls us."""
    for part in found.opaque:
        tokens, places = tokens_of(part)
        if places:
            yield tokens


# -- mailboxes --------------------------------------------------------------------------------------------------------


def _words_elsewhere(found: OwnCommands, place: Place) -> Iterator[str]:
    """Yield each word by which a call of ours may use another mailbox."""
    for call, moves in zip(found.calls, found.places, strict=True):
        named = list(_named_directories(call))
        yield from (word for word in named if word not in _OWN and not place.is_own([*moves, word]))
        if moves and not named and not place.finds_own(moves):
            yield moves[-1]
    if found.calls:
        yield from (word for word in found.named if word not in _OWN and not _sets_own(word, place))
    for tokens in _opaque_calls(found):
        yield from (
            word
            for word in _named_directories(tokens, all_of_them=True)
            if word not in _OWN and not place.is_own([word])
        )
        yield from (word for word in tokens if names_mailbox(word) and not _sets_own(word, place))


def _sets_own(word: str, place: Place) -> bool:
    """Return whether the word sets a variable to the agent's own mailbox."""
    name, equals, value = word.partition("=")
    return name == VARIABLES[0] and bool(equals) and place.is_own([value])


def _named_directories(arguments: Sequence[str], *, all_of_them: bool = False) -> Iterator[str]:
    """Yield the directories that a call's options name. A part of an option's name counts; ``all_of_them``: so does a
    word that may be another option's value."""
    left = iter(arguments)
    for word in left:
        option, equals, value = word.partition("=")
        if option == "--":
            return
        if len(option) > 2 and any(name.startswith(option) for name in _PLACES):
            yield value if equals else next(left, UNKNOWN)
        elif option in VALUED and not equals and not all_of_them:
            next(left, None)
