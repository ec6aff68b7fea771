"""Programs that run another program by a verb of theirs, such as ``uv run`` and ``docker exec``.

Belongs here: where that other program may stand among the words. ``command_forms`` has the programs that do nothing
else (``sudo``). Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CONTAINER = ("exec 1", "run 1")
_RUNNERS = {
    **dict.fromkeys(("npx", "bunx", "uvx", "pnpx", "pipx", "corepack", "dotenv", "dotenvx", "with-env"), ("", "run")),
    **dict.fromkeys(("poetry", "pipenv", "pdm", "hatch", "rye", "pixi", "volta", "op", "doppler", "devbox"), ("run",)),
    **dict.fromkeys(("conda", "mamba", "micromamba", "infisical", "heroku", "rustup", "opam"), ("run", "exec")),
    **dict.fromkeys(("lerna", "tox", "asdf", "rbenv", "pyenv", "nodenv", "bundle", "cabal", "dune"), ("exec", "run")),
    **dict.fromkeys(("podman", "docker", "nerdctl", "docker-compose", "kubectl", "oc", "lxc", "incus"), _CONTAINER),
    **dict.fromkeys(("direnv", "aws-vault", "chamber", "nvm", "fnm"), ("exec 1", "exec")),
    **dict.fromkeys(("mise", "rtx"), ("x", "exec", "x 1", "exec 1")),
    "uv": ("run", "tool run", "x"),
    "npm": ("exec", "x"),
    "pnpm": ("exec", "dlx", ""),
    "yarn": ("", "run", "exec", "dlx"),
    "bun": ("run", "x", "exec"),
    "nix": ("run 1", "run", "shell --command", "shell -c", "develop --command", "develop -c"),
    "nix-shell": ("--run", "--command"),
    "guix": ("shell",),
    "just": ("--command", "-c"),
    "ssh": ("1",),
    "vagrant": ("ssh -c", "ssh --command"),
    "git": ("submodule foreach", "bisect run", "rebase --exec", "rebase -x"),
    "python": ("-m",),
    "pypy": ("-m",),
    "distrobox": ("enter",),
    "toolbox": ("run",),
    "limactl": ("shell 1",),
    "gh": ("ssh --",),
    **dict.fromkeys(("microk8s", "k3s", "minikube"), ("",)),
    **dict.fromkeys(("apptainer", "singularity", "multipass"), ("exec 1",)),
    **dict.fromkeys(("gcloud", "fly", "flyctl"), ("ssh --command", "ssh console -C", "ssh console --command")),
}
"""The phrases behind which a command begins. A number is that of the words before it which are no options."""
_OWN = ("rm", "ls", "ln", "test", "install", "link", "env", "why", "pack", "list", "start", "stop", "publish", "prune")
"""Words that such a program takes for a verb of its own before it looks for a program."""


def command_places(name: str, words: Sequence[str]) -> Iterator[int]:
    """Yield the places in the words of this program where a command that it runs may begin."""
    found: dict[int, None] = {}
    for phrase in _RUNNERS.get(name, ()):
        *verbs, last = phrase.split() or [""]
        skipped = int(last) if last.isdigit() else 0
        place = _place_behind(words, verbs if last.isdigit() or not last else [*verbs, last])
        if place:
            starts = dict.fromkeys(_candidate_places(words, place, skipped))
            found.update({n: None for n in starts if phrase or words[n] not in _OWN})
    yield from found


def _place_behind(words: Sequence[str], verbs: Sequence[str]) -> int:
    """Return the place behind the verbs, which follow in order; 0 if they do not."""
    at = 1
    for verb in verbs:
        while at < len(words) and words[at] != verb and not (verb[:2] == "--" and words[at].startswith(f"{verb}=")):
            at += 1
        if at >= len(words):
            return 0
        at += words[at] == verb  # else its value is joined to it
    return at


def _candidate_places(words: Sequence[str], start: int, skipped: int) -> Iterator[int]:
    """Yield where the command may begin: behind options, each with a value or without, and ``skipped`` words."""
    may_be_value = False
    for number in range(start, len(words)):
        word = words[number]
        if word == "--":
            if number + 1 < len(words):
                yield number + 1
            return
        if word[:1] in ("-", "+"):
            may_be_value = word[:1] == "-" and "=" not in word
            if "=" in word:
                yield number  # ``--run='x y'``
            continue
        yield number
        if may_be_value:
            may_be_value = False
        elif skipped:
            skipped -= 1
        else:
            end = [*words[number:]].index("--") + number + 1 if "--" in words[number:] else len(words)
            if end < len(words):
                yield end
            return
