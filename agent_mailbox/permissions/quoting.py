"""A shell's words without their quotes: what of each is certain, and what only the running shell knows.

Belongs here: the form of a word, and which expansions compute. ``shell`` reads words and commands.
"""

from __future__ import annotations

import re

ONE, MANY = "\0", "\1"
"""In a word's form: a part that only the running shell knows, within one word, or perhaps several words or none."""
OPEN, CLOSE, SET = "\2", "\3", "\4"
"""In a form that is being made: braces, and a bracket, that no quote covers."""
_COMPUTES = re.compile(
    r"""
    \$ (?: \(\( | \(\\\n | [\[~^=] )        # arithmetic, and what zsh expands
    | \$ \w+ \[                             # the place in an array
    | \$\{ (?! [@*?$!#-] \}                 # but a parameter that is no name,
           | \#? \w+ (?: \[[@*]\] )? \}     # a name, its length, a whole array,
           | \w+ (?: [-+?\#%/^,] | :[-+?] | :[ 0-9:-]* \} ) )  # operators that neither compute nor set
    """,
    re.ASCII | re.VERBOSE,
)


class Word(str):
    """A word without its quotes, unexpanded. Its ``form`` has ``ONE`` and ``MANY`` for what is expanded.

    An example: ``"$x"'$y'`` is ``$x$y``, of the form ``ONE`` and ``$y``. ``is_handed``: a program such as ``xargs``
    adds it.
    """

    form: str
    is_handed = False


def make_word(text: str, form: str) -> Word:
    """Return the word of this text and form."""
    word = Word(text)
    word.form = form
    return word


def form_of(word: str) -> str:
    """Return the form of a word: one that no shell read is what it looks like."""
    return word.form if isinstance(word, Word) else word


def may_compute(text: str) -> bool:
    """Return whether an expansion in the text may compute with what a variable holds, or set one.

    A shell runs commands that it finds there. An example: ``echo 'a[$(w)]'; echo ${HOME:_}`` runs ``w``, and so does
    ``echo '$(w)'; echo ${_@P}``: ``_`` is the last word before.
    """
    return _COMPUTES.search(text) is not None


EXPANDING = {"*": MANY, "?": MANY, "[": SET, "{": OPEN, "}": CLOSE}
"""Characters that expand where no quote covers them."""


def expanded_form(form: str) -> str:
    """Return the form with ``MANY`` for braces and brackets that expand; others (``HEAD@{1}``) are characters."""
    begins, _, rest = form.partition(OPEN)
    inner, close, ends = rest.rpartition(CLOSE)
    if close and (not inner or "," in inner or ".." in inner):
        form = f"{begins}{MANY}{ends}"
    begins, _, rest = form.replace(OPEN, "{").replace(CLOSE, "}").partition(SET)
    _, close, ends = rest.rpartition("]")
    return f"{begins}{MANY}{ends}" if close else form.replace(OPEN, "{").replace(CLOSE, "}").replace(SET, "[")
