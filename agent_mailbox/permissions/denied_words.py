"""Commands that a rule denies, by their words: do the rule's words follow in order, with options between?

Belongs here: one command against one rule, and small tables of programs' options: which take the next word, which mean
the same. ``command_forms`` finds the commands of a text. Pure. A rule's options may stand anywhere behind the program,
in any order and cluster: ``rm -rf`` is ``rm -f --recursive`` too.

Two words hide nothing: an option, and the word behind it that may be its value. A word that only the running shell
knows may be any word. A word of another kind ends the search: ``git log push`` pushes nothing. An option that no table
names may take a value or none: such a rule tries both. Not compared: a value that is joined to a short option
(``-XPOST`` for ``-X POST``), and long spellings that are not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import patterns, shell
from .quoting import MANY, ONE, form_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NO, MAY, IS, NUMBER = range(4)
"""Whether the next word is an option's value; ``NUMBER``: it is if it is a number."""

_VALUED = {
    "git": "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source",
    "kubectl": "-n --namespace --context --cluster --kubeconfig -s --server --user --as --as-group --token -v"
    " --request-timeout --cache-dir -f --filename -l --selector -o --output",
    "helm": "-n --namespace --kube-context --kubeconfig",
    "docker": "-c --context -H --host --config -l --log-level -f --file -p --project-name --project-directory",
    "npm": "--prefix -w --workspace --registry --userconfig --loglevel --cache --tag",
    "pnpm": "--prefix -C --dir --filter -F --registry",
    "yarn": "--cwd --registry",
    "gh": "-R --repo --hostname",
    "make": "-C --directory -f --file --makefile -I --include-dir -o -W",
    "cargo": "--config -C --color --manifest-path --target-dir",
    "go": "-C",
    "aws": "--profile --region --output --endpoint-url --query",
    "gcloud": "--project --account --configuration --format --verbosity",
    "systemctl": "-H --host -M --machine -t --type -p --property",
    "uv": "--directory --project --config-file --cache-dir --python",
    "poetry": "-C --directory -P --project",
}
"""Options before a verb that take the next word."""
_PLAIN = {
    "git": "--no-pager -p -P --paginate --bare --no-replace-objects --literal-pathspecs --glob-pathspecs"
    " --noglob-pathspecs --icase-pathspecs --no-optional-locks --no-lazy-fetch --no-advice --exec-path",
    "docker": "-D --debug --tls --tlsverify",
    "npm": "--silent -s --quiet --yes -y --json --global -g --verbose",
    "make": "-s --silent -k --keep-going -n --dry-run -B --always-make -q -r -R -w -i -e -d",
    "cargo": "-v -vv -q --verbose --quiet --locked --offline --frozen",
    "terraform": "-help -version",
    "pip": "-q --quiet -v --verbose --no-input --isolated --require-virtualenv --disable-pip-version-check",
    "yarn": "-s --silent --verbose --json",
    "pnpm": "-r --recursive -s --silent -w --workspace-root",
    "kubectl": "--insecure-skip-tls-verify --warnings-as-errors",
    "systemctl": "--user --system -q --quiet --no-pager --now --no-block",
    "uv": "-q --quiet -v --verbose --offline --no-config --no-cache -n",
}
"""Options before a verb that take no value."""
_TARGETS = ("make", "gmake", "ninja", "mvn", "mvnw", "gradle", "gradlew", "ant", "rake", "task")
"""Programs that do each of their words: ``make build deploy`` deploys."""
_COUNTED = {"make": "-j --jobs -l", "ninja": "-j -l", "just": "-j"}
"""Options that take a number or nothing."""
_LONG = {
    "": "r:recursive R:recursive f:force y:yes y:assume-yes g:global a:all d:delete D:delete D:force u:set-upstream"
    " i:interactive i:in-place q:quiet v:verbose",
    "git": "f:force d:delete D:delete D:force u:set-upstream a:all p:patch x:exec q:quiet m:message",
    "kubectl": "f:filename n:namespace A:all-namespaces l:selector",
    "helm": "n:namespace f:values i:install",
    "docker": "d:detach f:file f:force v:volumes v:volume a:all i:interactive t:tty p:publish",
    "curl": "X:request d:data o:output k:insecure u:user H:header T:upload-file F:form",
    "gh": "R:repo d:delete-branch s:squash m:merge r:rebase",
    "npm": "g:global f:force w:workspace",
}
"""Long spellings of short options; those of programs without a row are under the empty name."""
_MOST_GIVEN, _MOST_WANTED = 6, 3
"""Letters of a cluster in a command, and in a rule: longer ones are the long options of some programs (``-delete``)."""
_ENDINGS = (".exe", ".cmd", ".bat")


def plain_program(word: str) -> str:
    """Return a program's name as a system that ignores case reads it: without its directory, package and version.

    ``/usr/bin/git``, ``git.exe``, ``nixpkgs#git``, ``npm@latest`` and ``bitnami/kubectl:1.2`` are programs.
    """
    name = word.rstrip("/").rpartition("/")[2].rpartition("\\")[2].rpartition("#")[2].lower()
    for sign in "@:":
        name = name.partition(sign)[0] or name
    return next((name[: -len(end)] for end in _ENDINGS if name.endswith(end)), name)


def match_denied(spec: str, words: Sequence[str]) -> str | None:
    """Return None if the rule does not mean this command, nothing if it does, and what makes it possible if it may."""
    for wanted in _spellings_of(spec.removesuffix(":*").split() + ["*"] * spec.endswith(":*")):
        for given in _spellings_of(words):
            if _is_meant(wanted, given, wild=False):
                return ""
            unknown = next((word for word in given if _is_wild(word)), None)
            if unknown is not None and _is_meant(wanted, given, wild=True):
                return unknown
    return None


def _spellings_of(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the words, and those of a program's second name: ``git-push`` is ``git push``."""
    yield words
    name, dash, verb = (words[0] if words else "").rpartition("/")[2].partition("-")
    if dash and name and verb:
        yield [name, verb, *words[1:]]


def _is_meant(wanted: Sequence[str], words: Sequence[str], *, wild: bool) -> bool:
    is_open = wanted[-1:] == ["*"] or (wanted[-1:] != [] and wanted[-1].endswith("*"))
    wanted = wanted[:-1] if wanted[-1:] == ["*"] else wanted
    if not wanted or not words:
        return False
    known = not _is_wild(words[0])
    if (
        not patterns.is_like(plain_program(wanted[0]), plain_program(words[0]))
        if known
        else len(wanted) == 1 or not wild
    ):
        return False
    options = [word for word in wanted[1:] if _is_option(word)]
    operands = [word for word in wanted[1:] if not _is_option(word)]
    search = _Search(operands, options, plain_program(wanted[0]), is_open=is_open, wild=wild and known)
    return search.is_found(words[1:]) and (known or any(word in operands for word in words[1:]))


class _Search:
    """One search for a rule's words. A state is the number of operands found, and whether a value follows."""

    def __init__(
        self, operands: Sequence[str], options: Sequence[str], name: str, *, is_open: bool, wild: bool
    ) -> None:
        self.operands, self.options, self.name = operands, options, name
        self.is_open, self.wild = is_open, wild
        self.slots = len(operands) + len(options)  # words of the rule behind the program

    def is_found(self, words: Sequence[str]) -> bool:
        """Return whether the words behind the program hold the rule's."""
        states = {(0, NO)}
        found = self.is_open and not self.operands
        for word in words:
            states = {after for state in states for after in self._next_states(state, word)}
            found = found or (self.is_open and any(self._is_found(state) for state in states))
            if found or not states:
                break
        return (found or any(self._is_found(state) for state in states)) and self._has_options(words)

    def _is_found(self, state: tuple[int, int]) -> bool:
        return all(word == "*" for word in self.operands[state[0] :])

    def _next_states(self, state: tuple[int, int], word: str) -> Iterator[tuple[int, int]]:
        """Yield the states behind this word."""
        number, value = state
        if value == IS or (value == NUMBER and (word.isdigit() or _is_wild(word))):
            yield number, NO
            return
        if value == MAY and not _is_option(word):
            yield number, NO
        wanted = self.operands[number] if number < len(self.operands) else None
        if wanted == "*":
            yield number, NO
            yield from self._next_states((number + 1, NO), word)
        if _is_option(word):
            yield number, _takes_value(self.name, word)
        elif shell.is_setting(word) or (wanted is not None and self.name in _TARGETS):
            yield number, NO
        if wanted is not None and (patterns.is_like(wanted, word) or self._is_short(number, word)):
            yield number + 1, NO
        if self.wild and _is_wild(word):
            yield from self._unknown_states(number, form_of(word))

    def _is_short(self, number: int, word: str) -> bool:
        """Return whether a word is the beginning of a verb, for npm, which takes ``pub`` for ``publish``."""
        return self.name == "npm" and not number and len(word) > 2 and self.operands[0].startswith(word)

    def _unknown_states(self, number: int, form: str) -> Iterator[tuple[int, int]]:
        """Yield the states behind a word that is known only at run time."""
        left = self.operands[number:]
        if form[0] in (ONE, MANY):
            yield number, MAY  # an option
        if left and _could_be(form, left[0], left[0]):
            yield number + 1, NO
        if MANY in form:
            yield from ((number + n, NO) for n in range(len(left) + 1) if n and _could_be(form, left[0], left[n - 1]))
            if not form.strip(ONE + MANY):
                yield number, NO  # nothing

    def _has_options(self, words: Sequence[str]) -> bool:
        """Return whether the words hold every option of the rule, in any spelling."""
        if not self.options:
            return True
        given = [word for word in words if _is_option(word)]
        if _has_every(self.name, given, self.options):
            return True
        if not self.wild:
            return False
        place, value = 0, NO
        for word in words[: [*words, "--"].index("--")]:
            if word[:1] == "-" and word[:2] != "--" and _is_wild(word):  # a cluster such as -r$F
                return True
            helps = _is_option(word) and _is_helpful(self.name, word, self.options)
            if value != IS and place < self.slots and _is_wild(word) and not form_of(word).strip(ONE + MANY):
                return not getattr(word, "is_handed", False)
            if _is_option(word):
                place, value = place + helps, NO if helps else _takes_value(self.name, word)
            else:
                place, value = place + (value == NO), NO
        return False


def _is_option(word: str) -> bool:
    return len(word) > 1 and word[0] in "-+" and not _is_wild(word[:1])


def _is_wild(word: str) -> bool:
    form = form_of(word)
    return ONE in form or MANY in form


def _could_be(form: str, first: str, last: str) -> bool:
    """Return whether an unknown word may begin as the first of the rule's words, and end as the last."""
    begins = form.replace(MANY, ONE).partition(ONE)[0]
    ends = form.replace(MANY, ONE).rpartition(ONE)[2]
    head, star, _ = first.partition("*")
    tail = last.rpartition("*")[2] if "*" in last else last
    starts = first.startswith(begins) or (bool(star) and begins.startswith(head))
    return starts and (last.endswith(ends) or ("*" in last and ends.endswith(tail)))


# -- options ------------------------------------------------------------------------------------------------------


def _takes_value(name: str, option: str) -> int:
    """Return whether the word behind this option of the program is its value."""
    if "=" in option or option == "--":
        return NO
    if option in _VALUED.get(name, "").split():
        return IS
    if option in _PLAIN.get(name, "").split():
        return NO
    if option in _COUNTED.get(name, "").split():
        return NUMBER
    is_joined = option[:2] != "--" and len(option) > 2 and option[:2] in _VALUED.get(name, "").split()
    return NO if is_joined or option[0] == "+" else MAY


def _has_every(name: str, given: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether the options of a command of this program hold every wanted one."""
    longs = [pair.split(":") for pair in _LONG.get(name, _LONG[""]).split()]
    return all(_has_option(longs, given, one) for one in wanted)


def _is_helpful(name: str, given: str, wanted: Sequence[str]) -> bool:
    """Return whether an option is one of the wanted, or a part of one."""
    parts = [f"-{letter}" for one in wanted for letter in _cluster_letters(one, _MOST_WANTED)]
    return any(_has_every(name, [given], [one]) for one in (*wanted, *parts))


def _cluster_letters(option: str, most: int) -> str:
    """Return the letters of a cluster of short options; none for an option that is no cluster."""
    letters = option[1:]
    return letters if option[0] == "-" and letters.isalpha() and letters.isascii() and len(letters) <= most else ""


def _has_option(longs: Sequence[Sequence[str]], given: Sequence[str], wanted: str) -> bool:
    """Return whether the options hold the wanted one, in any of its spellings."""
    plain = wanted.lstrip("-").removesuffix("=*")
    if any(one == wanted or (len(plain) > 1 and plain in (_option_name(one), one.lstrip("-"))) for one in given):
        return True
    if wanted[:2] == "--":
        shorts = [letter for letter, long in longs if long == plain]
        return any(_is_beginning_of(one, plain) for one in given) or any(_has_letter([], given, one) for one in shorts)
    letters = _cluster_letters(wanted, _MOST_WANTED)
    return bool(letters) and all(_has_letter(longs, given, letter) for letter in letters)


def _option_name(option: str) -> str:
    return option.lstrip("-").partition("=")[0]


def _is_beginning_of(option: str, long: str) -> bool:
    """Return whether an option is this long one, or a beginning of it: many programs take that."""
    return option[:2] == "--" and len(option) > 2 and long.startswith(_option_name(option))


def _has_letter(longs: Sequence[Sequence[str]], given: Sequence[str], letter: str) -> bool:
    names = {long for short, long in longs if short == letter}
    same = {letter, *(short for short, long in longs if long in names)}
    return any(
        same & {*_cluster_letters(one, _MOST_GIVEN)} or any(_is_beginning_of(one, long) for long in names)
        for one in given
    )
