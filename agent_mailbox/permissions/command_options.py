"""Options of programs: which take the next word, and which mean the same.

Belongs here: small tables, and how rules that deny compare options. Pure. An option that no table names may take a
value or none: such a rule tries both.

Not compared: a value that is joined to a short option (``-XPOST`` for ``-X POST``), and long spellings that are not
here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

NO, MAY, IS, NUMBER = range(4)
"""Whether the next word is an option's value; ``NUMBER``: it is if it is a number."""

_VALUED = {
    "git": "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source",
    "kubectl": "-n --namespace --context --cluster --kubeconfig -s --server --user --as --as-group --token -v"
    " --request-timeout --cache-dir -f --filename -l --selector -o --output",
    "helm": "-n --namespace --kube-context --kubeconfig",
    "docker": "-c --context -H --host --config -l --log-level -f --file -p --project-name --project-directory",
    "terraform": "",
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
TARGETS = ("make", "gmake", "ninja", "mvn", "mvnw", "gradle", "gradlew", "ant", "rake", "task")
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


def takes_value(name: str, option: str) -> int:
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


def has_every(name: str, given: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether the options of a command of this program hold every wanted one."""
    longs = [pair.split(":") for pair in _LONG.get(name, _LONG[""]).split()]
    return all(_has_option(longs, given, one) for one in wanted)


def is_helpful(name: str, given: str, wanted: Sequence[str]) -> bool:
    """Return whether an option is one of the wanted, or a part of one."""
    parts = [f"-{letter}" for one in wanted for letter in _cluster_letters(one, _MOST_WANTED)]
    return any(has_every(name, [given], [one]) for one in (*wanted, *parts))


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
