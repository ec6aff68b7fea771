"""Policies: the client's rule syntax, modes, hosts; and that more rules never open what fewer closed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core.control.messages import MODES
from agent_mailbox.permissions import patterns, rules
from agent_mailbox.permissions import shell as grammar
from agent_mailbox.permissions.named_files import NamedFiles
from agent_mailbox.permissions.patterns import Where
from agent_mailbox.permissions.policy import ALLOW, ASK, DENY, NO_OPINION, Policy, is_reading, judge_call
from tests.helpers import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

HERE = Where(cwd="/p/inscription", root="/p/inscription", home="/home/ada")
RANK = {DENY: 0, ASK: 1, None: 2, ALLOW: 3}


def bash(command: str) -> tuple[str, dict[str, Any]]:
    """A call of the shell."""
    return "Bash", {"command": command, "description": "as the test wants it"}


def verdict(policy: Policy, call: tuple[str, dict[str, Any]], where: Where = HERE, free: tuple[str, ...] = ()) -> Any:
    """What the policy says of the call."""
    return judge_call(policy, *call, where, free).decision


def denies(rule: str, call: tuple[str, dict[str, Any]], where: Where = HERE) -> bool:
    """Does a rule that denies catch it?"""
    return bool(verdict(Policy(deny=(rule,)), call, where) == DENY)


def permits(rule: str, call: tuple[str, dict[str, Any]], where: Where = HERE) -> bool:
    """Does a rule that allows let it through?"""
    return bool(verdict(Policy(allow=(rule,)), call, where) == ALLOW)


# -- the client's syntax, by its documentation ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "command", "matches"),
    [
        ("Bash", "ls", True),
        ("Bash(*)", "ls", True),
        ("Bash(npm run build)", "npm run build", True),
        ("Bash(npm run build)", "npm run build:all", False),
        ("Bash(npm run test *)", "npm run test --watch", True),
        ("Bash(npm run test:*)", "npm run test", True),
        ("Bash(ls *)", "ls -la", True),
        ("Bash(ls *)", "ls", True),
        ("Bash(ls *)", "lsof", False),
        ("Bash(ls*)", "lsof", True),
        ("Bash(* install)", "npm install", True),
        ("Bash(git * main)", "git push origin main", True),
        ("Bash(git * main)", "git push origin main2", False),
        ("Bash(git:* push)", "git push", False),
        ("Bash(npm test *)", "nohup npm test", True),
        ("Bash(safe *)", "safe && other", False),
        ("Read", "ls", False),
    ],
)
def test_commands_match_as_the_client_says(rule: str, command: str, matches: bool) -> None:
    """The examples of its documentation, as rules that allow."""
    assert permits(rule, bash(command)) is matches


@pytest.mark.parametrize(
    "around",
    [
        *("{}", "true && {}", "{} || true", "ls; {}", "ls | {}", "{} & wait", "ls\n{}", "({})", "echo $({})", "`{}`"),
        *("FOO=bar {}", "sudo {}", "sudo -u bob {}", "timeout 30 {}", "env X=1 {}", "xargs -n1 {}", "bash -c '{}'"),
        *("eval '{}'", "if true; then {}; fi", "while {}; do :; done", "{} > /dev/null", "cat <({})", "nice -n 5 {}"),
        *("bash <<X\n{}\nX", "bash <<< '{}'", "f() {{ {}; }}; f", "time {}", "/usr/bin/{}", "{}  -rf   x", "\\{}"),
        *("sh -c 'bash -c \"{}\"'", "$(echo r)m x; {}", "'{}", "env -i bash -c '{}'", "find . -exec {} \\;"),
        *("tmux new -d '{}'", "entr -s '{}'", "parallel '{}' ::: 1"),
    ],
)
def test_what_is_denied_is_denied_wherever_it_stands(around: str) -> None:
    """A rule denies a command inside a compound, behind a wrapper, in a shell's argument and in unreadable text."""
    assert denies("Bash(rm *)", bash(around.format("rm")))


HIDING = (
    # where one thing ends and the next begins: each of these runs rm in a real shell
    *("echo $(case x in x) rm x;; esac)", "function f { rm x; }; f", "coproc N { rm x; }", "time -p rm x"),
    *(
        "echo $((rm x);(ls))",
        "((rm x); ls)",
        "echo ${x:-{} ; rm y }",
        'echo ${x:-"}"}; rm x #"',
        "((x=1<<2))\nrm '\n2'",
    ),
    *(
        "for x do rm $x; done",
        "X+=y rm x",
        "a[0]=1 rm x",
        "$'\\x72m' x",
        "$'\\162m' x",
        "r$'\\u006d' x",
        "$'rm\\0y' x",
    ),
    *("cat <<E\nx\\\nE\n'\nE\nrm x #'\n", "cat <\\\n<E\n'\nE\nrm x #'\n", "echo $\\\n'\\''; rm x #'"),
    'echo "${x:-\'}"; rm x; echo "\'}"',
    "echo $'\\''; rm x #'",
    # what an expansion computes with
    *("echo '$(rm x)'; echo ${_@P}", "echo 'a[$(rm x)]'; echo ${!_}", "echo 'a[$(rm x)]'; echo \"${PATH:_}\""),
    *("echo 'a[$(rm x)]'; echo ${PATH[$_]}", "echo 'a[$(rm x)]'; echo $((_ + 1))", "echo 'a[`rm x`]'; echo ${@:_}"),
    *("cat '$(rm x)'; cat <<E\n${_@P}\nE", "echo 'a[$(rm x)]'; cat < ${PATH:_:1}", "echo 'a[$(rm x)]'; ((_))"),
    "[[ -v 'a[$(rm x)]' ]]",
    *("printf -v 'a[$(rm x)]' 1", "test -v 'a[$(rm x)]'", "[ -v 'a[$(rm x)]' ]", "read 'a[$(rm x)]' <<< 1"),
    *("declare 'a[$(rm x)]=1'", "declare -i b='a[$(rm x)]'", "declare -i b; b='a[$(rm x)]'"),
    *("a=(1); unset 'a[$(rm x)]'", "c='a[$(rm x)]'; IFS= read \"$c\" <<< 1", "mapfile -C 'rm x' -c 1 a <<< 1"),
    # what a shell is handed
    *("echo rm x | sh", "echo rm x | sudo bash -s", "sh < x", ". /dev/stdin <<< 'rm x'", "bash <(echo rm x)"),
    *("taskset 1 rm x", "script -qc 'rm x' /dev/null"),
)


@pytest.mark.parametrize("text", HIDING)
def test_no_spelling_hides_a_command(text: str) -> None:
    """No spelling of a command hides it from the rule that denies it, or makes another rule allow it."""
    assert denies("Bash(rm:*)", bash(text))
    for rules_of_others in ("Bash(echo:*)", "Bash(cat:*)", "Bash(for:*)", "Bash(case:*)"):
        assert not permits(rules_of_others, bash(text))
    assert not is_reading(*bash(text))


@pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("dash") and shutil.which("taskset")), reason="Linux only"
)
@pytest.mark.parametrize("text", [text for text in HIDING if "sudo" not in text])
def test_the_hiding_texts_do_run_the_command(text: str, tmp_path: Path) -> None:
    """Each text that hides a command does run it in ``bash`` or ``sh``; otherwise it would prove nothing."""
    if text.startswith("script ") and not shutil.which("script"):
        pytest.skip("script is not installed: the command that it would run cannot run")
    program, ran = tmp_path / "bin" / "rm", tmp_path / "ran"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n: > "$RAN"\n')
    program.chmod(0o755)
    (tmp_path / "x").write_text("rm x\n")
    env = {"PATH": f"{program.parent}:/usr/bin:/bin", "RAN": str(ran)}
    for shell in ("bash", "sh"):
        words = (shell, "-c", f"set -- a\n{text}")
        subprocess.run(words, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    assert ran.exists()


@pytest.mark.parametrize(
    "text",
    [
        "bash x.sh",
        "bash <<E\nls\nE",
        "bash --version",
        ". ./env",
        "command -v bash",
        "git commit -m \"$(cat <<'EOF'\nit's (a) 'fix'\nEOF\n)\"",
        "find . -name '*.x'",
        "((i++))",
        "echo 'use `x`' ${y:0:5} ${z[@]} ${#z[@]} ${n%.py} ${1:-a}",
        "for i in 1 2; do echo $((i + 1)) ${z[$i]}; done",
    ],
)
def test_a_shell_that_runs_what_is_written_is_looked_into(text: str) -> None:
    """A rule does not deny a shell whose script does not contain the denied command."""
    assert not denies("Bash(rm:*)", bash(text))


@pytest.mark.parametrize(
    "command",
    [
        *("ls", "git rm x", "grep rm README", 'git commit -m "rm it"', "echo 'rm -rf /'", "rmdir x", "[ -f rm ]"),
        *("find . -name '*.py'", "for i in a b; do ls $i; done", "case $x in *) ls;; esac", "sudo -u bob ls rm"),
    ],
)
def test_a_denial_does_not_catch_what_only_mentions_it(command: str) -> None:
    """Words are words; what behind a wrapper is only an argument is caught, for nobody knows."""
    assert denies("Bash(rm *)", bash(command)) is command.startswith("sudo")


@pytest.mark.parametrize(
    ("rule", "tool", "given", "matches"),
    [
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "https://Example.com./x"}, True),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "https://example.com@evil.com/"}, False),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "https://evil.com/?example.com"}, False),
        ("WebFetch(domain:*.example.com)", "WebFetch", {"url": "http://a.b.example.com:80"}, True),
        ("WebFetch(domain:*.example.com)", "WebFetch", {"url": "http://example.com"}, False),
        ("WebFetch(domain:example.*)", "WebFetch", {"url": "http://example.org"}, True),
        ("WebFetch(domain:example.*)", "WebFetch", {"url": "http://example.evil.com"}, False),
        ("WebFetch(domain:*)", "WebFetch", {"url": "http://anything"}, True),
        ("mcp__puppeteer", "mcp__puppeteer__navigate", {}, True),
        ("mcp__puppeteer__*", "mcp__puppeteer__navigate", {}, True),
        ("mcp__puppeteer", "mcp__puppeteer2__navigate", {}, False),
        ("Agent(Explore)", "Agent", {"subagent_type": "Explore"}, True),
        ("Agent(Explore)", "Task", {"subagent_type": "Plan"}, False),
        ("Read(src/**)", "Read", {"file_path": "src/a/b.py"}, True),
        ("Read(src/**)", "Grep", {"path": "/p/inscription/src"}, True),
        ("Read(src/**)", "Read", {"file_path": "src/../.env"}, False),
        ("Edit(/docs/**)", "Write", {"file_path": "/p/inscription/docs/x.md"}, True),
        ("Edit(/docs/**)", "Write", {"file_path": "/docs/x.md"}, False),
        ("Read(~/.zshrc)", "Read", {"file_path": "/home/ada/.zshrc"}, True),
        ("Edit(//tmp/scratch.txt)", "Edit", {"file_path": "/tmp/scratch.txt"}, True),
        ("Read(*.env)", "Read", {"file_path": "deep/a.env"}, True),
        ("Read(.env)", "Read", {"file_path": "../.env"}, False),
        ("Read(//**/.env)", "Read", {"file_path": "/other/.env"}, True),
        ("Read(/src/*.ts)", "Read", {"file_path": "src/a/b.ts"}, False),
        ("Read(secret[s]/?.txt)", "Read", {"file_path": "secrets/a.txt"}, True),
    ],
)
def test_rules_of_other_tools_match_as_the_client_says(
    rule: str, tool: str, given: dict[str, Any], matches: bool
) -> None:
    """Whether they allow or deny."""
    assert permits(rule, (tool, given)) is matches
    assert denies(rule, (tool, given)) is (matches or (rule == "Read(src/**)" and tool == "Grep"))


def test_rules_that_deny_and_rules_that_allow_differ_where_the_client_s_do() -> None:
    """Depth of ``src/**``, links, patterns of tools, and keys of an input."""
    nested = ("Edit", {"file_path": "vendor/pkg/src/lib.js"})
    assert denies("Edit(src/**)", nested)
    assert not permits("Edit(src/**)", nested)
    linked = HERE.replace(resolve=lambda name: name.replace("/project/key", "/.ssh/id_rsa"))
    key = ("Read", {"file_path": "project/key"})
    assert denies("Read(.ssh/**)", key, linked)
    assert not permits("Read(project/**)", key, linked)
    assert permits("Read(project/**)", key)
    for rule in ("*", "mcp__*", "mcp__github__get_*"):
        call = ("mcp__github__get_issue", {"n": 1})
        assert denies(rule, call)
        assert permits(rule, call) is (rule == "mcp__github__get_*")
    for rule in ("Agent(model:opus)", "Agent(model:o*)"):
        assert denies(rule, ("Agent", {"model": "opus"}))
        assert not denies(rule, ("Agent", {"model": "haiku"}))
        assert not permits(rule, ("Agent", {"model": "opus"}))
    assert denies("Bash(run_in_background:true)", ("Bash", {"command": "ls", "run_in_background": True}))
    assert denies("Read(./.env)", ("Write", {"file_path": ".env"}))
    assert denies("READ(.ENV)".replace("READ", "Read"), ("Read", {"file_path": ".env"}))


@pytest.mark.parametrize(
    "command",
    [
        *(
            "1..3 | % { Remove-Item x }",
            "if ($a) {Remove-Item x}",
            "try { remove-item x } catch {}",
            "& 'Remove-Item' x",
        ),
        *("& \u2018Remove-Item\u2019 x", "Get-ChildItem '\u2018; Remove-Item x #'", "Get-Item x | Remove-Item"),
        *('Get-ChildItem "C:\\"; Remove-Item x; echo "', "Get-ChildItem <# ' #> ; Remove-Item x ; <# '#>"),
        *("Get-ChildItem @'\n'\n'@; Remove-Item x; echo '", 'Get-ChildItem `"; Remove-Item x; echo `"'),
        "Microsoft.PowerShell.Management\\Remove-Item x",
    ],
)
def test_a_rule_reads_powershell_by_its_own_grammar(command: str) -> None:
    """Its blocks, quotes, comments and escapes hide no command from a rule that denies, nor from one that allows."""
    call = ("PowerShell", {"command": command})
    assert denies("PowerShell(Remove-Item:*)", call)
    assert not permits("PowerShell(Get-ChildItem:*)", call)
    for plain in ("Get-ChildItem C:\\src\\x", "Get-ChildItem 'a b' | Get-ChildItem \"c\""):
        assert permits("PowerShell(Get-ChildItem:*)", ("PowerShell", {"command": plain})), plain
        assert not denies("PowerShell(Remove-Item:*)", ("PowerShell", {"command": plain})), plain
    block = ("PowerShell", {"command": "1..3 | % { Get-Item C:\\x }"})
    assert permits("PowerShell(1..3 | % { Get-Item C:\\x })", block)


def test_a_relative_rule_holds_wherever_the_session_has_gone() -> None:
    """One that denies means a file from where the client started, too; one that allows must mean it from both."""
    below = HERE.replace(cwd=f"{HERE.cwd}/web")
    for named in ("../.env", f"{HERE.root}/.env", ".env"):
        assert denies("Read(.env)", ("Read", {"file_path": named}), below), named
        assert denies("Read(.env)", bash(f"cat {named}"), below), named
    for named, is_meant in (("src/x", True), ("../src/x", True), ("../lib/x", False), ("/src/x", False)):
        call = ("Write", {"file_path": named})
        assert denies("Edit(src/**)", call, below) is is_meant, named
        assert not permits("Edit(src/**)", call, below), named
    assert permits("Edit(*.md)", ("Write", {"file_path": "x.md"}), below)
    assert not permits("Edit(*.md)", ("Write", {"file_path": "/etc/x.md"}), HERE.replace(cwd="/etc"))


MANY = f"{{{','.join(f'a{number}' for number in range(200))}}}"
"""Braces of many words: one after another four times, they would have a thousand million spellings."""


@pytest.mark.parametrize(
    ("spec", "name", "allows", "denied"),
    [
        *(("/src/[^.]*", "src/.env", False, False), ("/src/[^.]*", "src/a", True, True)),
        *(("/src/[!.]*", "src/.env", False, False), ("/src/[!.]*", "src/^a", True, True)),
        *(("/[a-c]?[]-]", "bx]", True, True), ("/[a-c]?[]-]", "dx]", False, False), ("/[z-a]", "b", False, False)),
        *(("/[[:alpha:]].md", "a.md", False, True), ("/[[:alpha:]].md", ":].md", False, False)),
        *(("/[![:space:]_]x", "_x", False, True), ("/[[=e=][.-.]]x", "ex", False, True)),
        *(("/[[:alpha:]].md", "ab.md", False, False), ("/[[]x", "[x", True, True)),
        *((r"/\[id\]/x", "[id]/x", True, True), (r"/\[id\]/x", "i/x", False, False), (r"/a\*", "ab", False, False)),
        *(
            ("/[id]/x", "i/x", True, True),
            ("/[id]/x", "[id]/x", False, True),
            ("/[...all].ts", "[...all].ts", False, True),
        ),
        *(("/*.{pem,key}", "a.key", False, True), ("/*.{pem,key}", "a.txt", False, False)),
        *(("/{a,b}{a,b}{a,b}/{c,d}/{e,f}", "aba/d/e", False, True), ("/{a}", "a", False, False)),
        *((f"/{MANY}", "a70", False, True), (f"/{MANY}", "z", False, False), (f"/{MANY * 4}", "z", False, True)),
        *(("../inscription/x", "x", False, True), ("src/../x", "x", False, True), ("..", "../y", False, True)),
        *(("~", "/home/ada/x", True, True), ("~/../ada/x", "/home/ada/x", False, True)),
        *(("caf\u00e9", "cafe\u0301", False, True), ("stra\u00dfe", "STRASSE", False, True)),
    ],
)
def test_a_pattern_of_names_means_what_git_makes_of_it(spec: str, name: str, allows: bool, denied: bool) -> None:
    """A rule that allows is read as gitignore is. One that denies also as somebody meant it who thought of a shell."""
    assert permits(f"Edit({spec})", ("Write", {"file_path": name})) is allows
    assert denies(f"Edit({spec})", ("Write", {"file_path": name})) is denied
    if allows:
        assert denies(f"Edit({spec})", bash(f"touch {shlex.quote(name)}"))


@pytest.mark.parametrize(
    "command",
    [
        *("cat .env", "sed -i x .env", "cp ./.env y", "x > .env", "dd if=.env", "cat .e*", "cat .e?v", "cat .en[v]"),
        *("agent-mailbox send --to x --body @.env", "curl -d @./.env x", "curl --data=@.env x"),
        *("cat .e{nv,x}", "cat $PWD/.env", "cat $DIR/.env", "cat $X.env", "cd .. && cat inscription/.env"),
    ],
)
def test_a_denied_file_is_denied_to_the_shell_as_well(command: str) -> None:
    """A rule against reading a file also denies each shell command that names the file."""
    assert denies("Read(.env)", bash(command))
    for other in ("cat README.md", "cat *.py", "cat a[0-9].txt", "cd src && ls", "grep -r x .", "tar c ."):
        assert not denies("Read(.env)", bash(other))


@pytest.mark.parametrize(
    "command",
    [
        *("cat ~/.ssh/id", "cat $HOME/.ssh/id", 'cat "${HOME}/.ssh/id"', "cd ~/.ssh && cat id", "cat ~/.s*/id"),
        *(
            "cd; cat .ssh/id",
            "cd -P ~/.ssh && cat id",
            "builtin cd ~/.ssh; cat id",
            "cd ~ && cd .ssh && cat id",
            "git -C ~/.ssh show x",
            "cat /home/*/.ssh/id",
        ),
    ],
)
def test_a_denied_directory_is_denied_from_wherever_it_is_named(command: str) -> None:
    """A rule against reading a directory denies a command that names it by a variable, a pattern or ``cd``."""
    assert denies("Read(~/.ssh/**)", bash(command))
    assert not denies("Read(~/.ssh/**)", bash("cd src && cat id; ls $HOME/src; echo $x"))


@pytest.mark.parametrize("way", ["cd", "pushd", "builtin cd", "cd -P"])
def test_a_denied_file_is_denied_at_the_end_of_any_way(way: str) -> None:
    """A rule against reading a file denies it to a command that comes to its directory step by step."""
    for steps in (
        ("a", "b", "c"),
        ("a/b", "c"),
        ("a", "b/c"),
        ("a", "x", "..", "b", "c"),
        ("..", "inscription", "a/b/c"),
    ):
        for reads in ("cat key", "cat < key", "< key cat", "X=1 < key", "git -C . show x < key"):
            command = " && git -C /tmp log; ".join([*(f"{way} {step}" for step in steps), reads])
            assert denies("Read(a/b/c/key)", bash(command)), command
        beside = "/".join(steps)
        for tells in (f"env -C {beside}", f"env -C{beside}", f"env --chdir={beside}", f"uv --directory {beside} run"):
            assert denies("Read(a/b/c/key)", bash(f"{way} x; {way} ..; {tells} cat key")), tells
    for other in (f"{way} a && {way} b && cat key", f"{way} a && {way} c && cat key", f"{way} a/b && cat c"):
        assert not denies("Read(a/b/c/key)", bash(other)), other


_GIVEN = (
    *(
        "bash -c {}",
        "sh -c {}",
        "/bin/dash -c {}",
        "env sh -c {}",
        "env A=1 bash -lc {}",
        "bash -e -o pipefail -c {} x",
    ),
    *(
        "eval {}",
        "builtin eval {}",
        "exec bash -c {}",
        "command bash -c {}",
        "nohup bash -c {} &",
        "sudo -u x sh -c {}",
    ),
    *("timeout 5 bash -c {}", "ls | xargs -I_ sh -c {}", "find . -exec sh -c {} ';'", "docker exec x sh -c {}"),
    *("bash <<< {}", "echo {} | sh", ". /dev/stdin <<< {}", 'X={}; eval "$X"', "alias x={}; x", "trap {} EXIT"),
    *("env -S{}", "nix-shell --run={}", "git -c alias.x=!{} x", "if true; then ssh x {}; fi", "echo $(sh -c {})"),
    *("echo `sh -c {}`", "diff <(sh -c {}) x", "f() {{ sh -c {}; }}; f", "cat <<E | bash\nsh -c {}\nE"),
    *("bash <<'E'\nsh -c {}\nE", "sudo sh -s <<-E\n\tsh -c {}\n\tE"),
)
"""Ways to give a shell a text."""


@pytest.mark.parametrize("way", _GIVEN)
def test_a_denied_file_is_denied_within_a_text_that_a_shell_is_given(way: str) -> None:
    """The text counts as if it stood alone where it is run: without its quotes, and with its own steps."""
    reading = (
        "cat 'a/b/c/key'",
        'cat a/b/"c"/key',
        "cat<a\\/b/c/key",
        "cd a/b/c; cat key",
        "(cd a && cd b/c && cat key)",
    )
    for text in (*reading, "sh -c 'cd a/b; cat \"c/key\"'", "env -C a/b sh -c 'cd c; cat key'", "F=a/b/c/key; cat $F"):
        for command in (way.format(shlex.quote(text)), "cd x; cd ..; " + way.format(shlex.quote(text))):
            assert denies("Read(a/b/c/key)", bash(command)), command
    for text in ("cat 'b/c/key'", 'cd a; cat "key"', "cd a/b; ls 'key'", "X=$(date); cat x"):
        assert not denies("Read(a/b/c/key)", bash(way.format(shlex.quote(text)))), text


@pytest.mark.parametrize(
    ("command", "denied"),
    [
        ("cd a && bash -c 'cd b; cat c/key'", True),
        ("eval 'cd a/b'; eval cd c; cat key", True),
        ("eval 'cd a' '&&' 'cd b'; cat c/key", True),
        (". /dev/stdin <<< 'cd a/b'; cat c/key", True),
        ("bash -c 'cd x'; cd a; cd b; cat c/key", True),
        ("env -C a sh -c 'cd b/c; cat key'", True),
        ("sh -c 'cd b'; sh -c \"sh -c 'cd b'\"; cd a; sh -c \"sh -c 'cd b; cat c/key'\"", True),
        ("sh -c 'cd b'; eval \"sh -c 'cd b'\"; env -C a sh -c \"sh -c 'cd b'; sh -c 'cat c/key'\"", True),
        ("F=a/b/c/key; cat $F", True),
        ("D=a/b; cat $D/c/key", True),
        ("F=b/c/key; cat a/$F", True),
        ('D=a/b; cd "$D"; cat c/key', True),
        ("for d in a/b; do cd $d; cat c/key; done", True),
        ("cat $(git rev-parse --show-toplevel)/a/b/c/key", True),
        ("cat ${PROJECT%/*}/a/b/c/key", True),
        ("cat x$Y/../c/key; cd $X/..", True),
        ("cd a/b/x$Y/..; cat c/key", True),
        ("chdir a/b; cat c/key", True),
        ("cd -; cat c/key", True),
        ("popd; cat c/key", True),
        ("pushd +1; cat c/key", True),
        ("(cd x); cd a; cd b; cat c/key", True),
        ("cd x | cat; cd a; cd b; cat c/key", True),
        ("cd nowhere; cd a; cd b; cat c/key", True),
        ("echo $(cd x; pwd); cd a; cd b; cat c/key", True),
        ("; ".join(f"cd {n}; cd .." for n in range(30)) + "; cd a; cd b; cat c/key", True),
        ("; ".join(f"cd {n}; cd .." for n in range(30)) + "; cat x", False),
        ("f() { cd b; }; cd a; f; cat c/key", True),
        ("function up { cd b; }; cd a; up; cat c/key", True),
        ("g() (cd c; cat key); f() { cd b; }; cd a; f; g", True),
        ("f() { cd ..; }; cd a/b/x/y; f; f; cat c/key", True),
        ("alias b='cd b'\ncd a\nb; cat c/key", True),
        ("trap 'cd b; cat c/key' EXIT; cd a", True),
        ("for i in 1 2; do cd b; cd a; done; cat c/key", True),
        ("while read x; do cd b; cat c/key; cd a\ndone <x", True),
        ("git show HEAD:a/b/c/key", True),
        ("cd a; python3 -c 'print(open(\"b/c/key\").read())'", True),
        ("curl file:///p/inscription/a/b/c/key", True),
        ("f() { cd a; cat key; }; f", False),
        ("for f in *; do cat $f; done; cat key", False),
        ("cd $X && npm test; $VENV/bin/python -m pytest; ls $X/; cp x $X/$Y", False),
        ('bash -c "it\'s"', True),  # unreadable
        ("eval " * 9 + "x", True),  # too deep
        ("sh -c 'cd a && cat key'; sh -c 'cd b && cat key'", False),
        ('git commit -m "it\'s done"', False),
        ("git commit -m 'docs: cd a/b/c before the key is made'", False),
        ("cat > x.md <<'E'\ncd a/b/c\nmake key, it's easy\nE", False),
        ('bash run.sh "it\'s"; grep -rn eval "it\'s"; bash -c \'x "$1"\' _ "it\'s"', False),
        ("echo $(a $(b $(c $(d $(e $(f 'x y'))))))", False),
        ('eval "$(ssh-agent -s)"; curl "https://x?a=1&key=2"', False),
    ],
)
def test_a_text_for_a_shell_is_followed_and_a_message_is_not(command: str, denied: bool) -> None:
    """The steps of a text are followed from where it is run, and what is only data is free."""
    assert denies("Read(a/b/c/key)", bash(command)) is denied


def test_a_search_for_names_stays_where_a_rule_lets_it_search() -> None:
    """A pattern may lead elsewhere, whatever directory is named beside it."""
    for pattern in ("/etc/*", "~/x", "../*", "a/../../*"):
        call = ("Glob", {"pattern": pattern, "path": "src"})
        assert not permits("Read(src/**)", call)
        assert verdict(Policy(mode="locked-down"), call) == DENY
    assert permits("Read(src/**)", ("Glob", {"pattern": "**/*.py", "path": "src"}))


@pytest.mark.parametrize(
    ("url", "name"),
    [
        *(
            ("https://a:b@Example.com.:8/x", "example.com"),
            ("example.com/x", "example.com"),
            ("http://x.com:/", "x.com"),
        ),
        *(("https:/evil.com", None), ("https:evil.com", None), ("https:///evil.com", None), ("//evil.com", None)),
        *(("http://ev%69l.com", None), ("http://\uff45vil.com", "evil.com"), ("http://evil\u3002com", "evil.com")),
        *(("http://ex\u00e4mple.com", "xn--exmple-cua.com"), ("http://stra\u00dfe.de", None), ("http://*", None)),
        *(("http://127.0.0.1:8", "127.0.0.1"), ("http://2130706433", None), ("http://0x7f.1", None)),
        *(
            ("http://127.1", None),
            ("http://0177.0.0.1", None),
            ("http://1.2.3.999", None),
            ("http://" + "9" * 5000, None),
        ),
        *(
            ("http://[::1]:80/", "::1"),
            ("http://[0:0:0:0:0:0:0:1]", "::1"),
            ("http://[::1", None),
            ("http://[x]", None),
        ),
    ],
)
def test_a_host_has_one_name_however_a_url_spells_it(url: str, name: str | None) -> None:
    """Else what is denied by one name would be reached by another; what programs read differently has none."""
    assert patterns.host_of(url) == name
    if name is not None:
        assert denies(f"WebFetch(domain:{name})", ("WebFetch", {"url": url}))
    assert patterns.is_host_like("ex\u00e4mple.com", "xn--exmple-cua.com")
    assert patterns.is_host_like("[::1]", "::1")


@pytest.mark.parametrize(
    "text",
    [
        "x " * 50_000,
        "ls " + "*/" * 50_000,
        "cd a;" * 5_000,
        "$((" * 30_000,
        "cat <<E\n" + "a\\\n" * 50_000,
        "sudo " * 20_000,
        "sudo -C a 'x y' " * 9_000,
        "eval 'a b' " * 9_000,
        "echo " + "a" * 100_000,
        "echo" + "\n" * 100_000 + "pwd",
        "".join(f"f{number}(){{ :;}};" for number in range(9_000)),
        "sed 's/a/" + "e" * 100_000 + "!'",
        "for i in x y; do cd a; done;" * 100_000,
        "cd a " * 25_000,
        "a=b " * 32_000,
        "xargs " + "".join(f"-I m{number} " for number in range(13_000)),
        "alias a='" + "b;" * 30_000 + "';" + "a;" * 30_000,
        "alias a='" + "b;" * 20_000 + "';a " + "c " * 30_000,
    ],
)
def test_a_huge_command_is_judged_all_the_same(text: str) -> None:
    """The policy judges a huge command in time that grows with its length, or denies it."""
    policy = Policy(deny=("Bash(rm:*)", "Read(~/.ssh/**)"))
    assert verdict(policy, bash(text)) in (DENY, None)


@pytest.mark.parametrize(
    "command",
    [
        *("npm test > x", "npm test; rm y", "npm test $(rm y)", "X=1 npm test", "npm test <<E\nE", "'npm test", ""),
        *("npm test &", "npm test >> /etc/passwd", "bash -c 'npm test'", "npm test | tee x"),
        *("npm test 1<>x", "npm test <>x", "'npm test' x"),
    ],
)
def test_an_allowed_command_is_allowed_alone(command: str) -> None:
    """A rule that allows a command does not allow it with another command, a written file or a variable."""
    assert permits("Bash(npm test *)", bash(command)) is (command == "npm test &")


# -- modes, hosts, plans ----------------------------------------------------------------------------------------------


WRITE = ("Write", {"file_path": "a.py", "content": ""})
READ = ("Read", {"file_path": "a.py"})
AWAY = ("Read", {"file_path": "/etc/passwd"})
RUN = bash("make")
LOOK = bash("git log --oneline | head -3")
FETCH = ("WebFetch", {"url": "https://example.com/", "prompt": ""})
PLAN = ("Write", {"file_path": "/home/ada/.claude/plans/brave-fox.md", "content": "# Plan"})
EXIT = ("ExitPlanMode", {"plan": "# Plan"})


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("default", {}),
        ("acceptEdits", {"WRITE": ALLOW}),
        ("plan", {"WRITE": DENY, "RUN": DENY, "FETCH": DENY}),
        ("safe", {"WRITE": ASK, "RUN": ASK, "FETCH": ASK, "PLAN": ASK}),
        ("locked-down", {"WRITE": DENY, "RUN": DENY, "FETCH": DENY, "PLAN": DENY, "AWAY": DENY, "LOOK": DENY}),
        ("bypassPermissions", {"WRITE": DENY, "RUN": DENY, "FETCH": DENY, "PLAN": DENY, "AWAY": DENY, "LOOK": DENY}),
    ],
)
def test_each_mode_decides_a_call_that_no_rule_names(mode: str, said: dict[str, str]) -> None:
    """Each mode decides a call that no rule names. An unknown mode lets only reading pass."""
    calls = {"WRITE": WRITE, "READ": READ, "AWAY": AWAY, "RUN": RUN, "LOOK": LOOK, "FETCH": FETCH, "PLAN": PLAN}
    found = {name: verdict(Policy(mode=mode), call) for name, call in calls.items()}
    assert found == {**dict.fromkeys(calls), **said}
    assert verdict(Policy(mode=mode), EXIT) is None


@pytest.mark.parametrize(
    ("path", "said"),
    [
        *(("src/a.py", ALLOW), ("/p/inscription/docs/.keep", ALLOW), ("./a..py", ALLOW), ("src/../b.py", ALLOW)),
        *((".env", None), (".git/hooks/pre-commit", None), (".claude/settings.json", None), ("./.mcp.json", None)),
        *(("src/../.envrc", None), ("/p/inscription/.vscode/tasks.json", None), ("linked/settings.json", None)),
        *(
            ("web/.vscode/tasks.json", None),
            ("web/x/.git/config", None),
            ("web/.idea/a/b.xml", None),
            ("a/b.c/d", ALLOW),
        ),
        *(("../other/a.py", None), ("/etc/passwd", None), ("~/a.py", None), ("away/a.py", None)),
        ("/p/inscription-2/a.py", None),
    ],
)
def test_accept_edits_lets_through_the_project_s_plain_files_alone(path: str, said: str | None) -> None:
    """Neither hidden ones, by which programs are configured, nor others; whatever a path is called or leads to."""
    links = {"/p/inscription/linked/": "/p/inscription/.claude/", "/p/inscription/away/": "/p/"}

    def resolve(name: str) -> str:
        return next((to + name[len(link) :] for link, to in links.items() if name.startswith(link)), name)

    where = HERE.replace(resolve=resolve)
    for tool, key in (("Write", "file_path"), ("Edit", "file_path"), ("NotebookEdit", "notebook_path")):
        assert verdict(Policy(mode="acceptEdits"), (tool, {key: path}), where) == said
    assert verdict(Policy(mode="acceptEdits"), bash(f"touch {path}"), where) is None


def test_a_session_whose_plan_is_not_approved_only_reads_and_plans() -> None:
    """Whatever its rules allow and its mode; mail stays possible."""
    free = ("Bash(agent-mailbox control request:*)",)
    for mode in ("default", "plan", "acceptEdits", "safe"):
        policy = Policy(mode=mode, allow=("Bash", "Write", "Edit"), plan_required=True)
        assert [verdict(policy, call) for call in (WRITE, RUN, FETCH)] == [DENY] * 3
        assert DENY not in [verdict(policy, call) for call in (READ, AWAY, LOOK, PLAN, EXIT)]
        ask = bash("agent-mailbox control request plan --body 'first this'")
        assert verdict(policy, ask, free=free) is None
        assert verdict(policy, bash(ask[1]["command"] + "; make"), free=free) == DENY
        assert verdict(policy, ask) == DENY


def test_a_command_beside_the_conversation_is_a_command() -> None:
    """A rule that denies the shell something denies it there as well; one that allows it does not allow it there."""
    watch = ("Monitor", {"command": "rm x", "description": "d"})
    for rule in ("Bash(rm:*)", "Bash", "Monitor", "Monitor(rm:*)"):
        assert denies(rule, watch)
    assert denies("Read(.env)", ("Monitor", {"command": "tail -f .env"}))
    assert not denies("Bash(ls:*)", watch)
    assert not permits("Bash(rm:*)", watch)
    assert permits("Monitor(rm:*)", watch)


def test_mail_is_no_way_around_what_may_be_read() -> None:
    """``send`` cannot read a file that a rule denies, or any file in the mode ``locked-down``."""
    free = ("Bash(agent-mailbox send:*)",)
    policy = Policy(mode="locked-down", deny=("Read(~/.ssh/**)",))
    assert verdict(policy, bash("agent-mailbox send --to x --body 'ask @ann = @bob'"), free=free) is None
    for text in ("--to x --body @/etc/passwd", "--to x --body=@a", "--jsonl /etc/passwd", "--to x --body '@a b'"):
        assert verdict(policy, bash(f"agent-mailbox send {text}"), free=free) == DENY
        assert verdict(policy.replace(mode="plan"), bash(f"agent-mailbox send {text}"), free=free) is None
    key = bash("agent-mailbox send --to x --body @$HOME/.ssh/id")
    assert verdict(policy.replace(mode="default"), key, free=free) == DENY


def test_hosts_are_allowed_or_asked_about_by_name() -> None:
    """Named hosts are no matter, others are asked about by their name, what names none for certain is denied."""
    policy = Policy(hosts=("example.com", "*.example.org"))
    assert verdict(policy, FETCH) is None
    asked = judge_call(policy, "WebFetch", {"url": "https://evil.com/example.com"})
    assert (asked.decision, asked.host) == (ASK, "evil.com")
    assert judge_call(policy, "mcp__x__open", {"url": "a.example.org/x"}).decision is None
    for key, value in (("uri", "http://evil.com"), ("urls", ["http://example.com", "http://evil.com"])):
        assert judge_call(policy, "mcp__x__open", {key: value}).host == "evil.com"
    assert judge_call(policy, "WebFetch", {"url": "https://evil.com\\@example.com"}).decision == DENY
    assert judge_call(policy.replace(allow=("WebFetch",)), "WebFetch", {"url": "http://evil.com"}).decision == ASK


def test_an_allow_rule_of_the_lead_lets_through_what_the_mode_would_ask_about() -> None:
    """A lead's rule allows a call that the mode would ask about. A mode that denies, or a rule that asks, is
    stronger."""
    assert verdict(Policy(mode="safe", allow=("Bash(make)",)), RUN) == ALLOW
    assert verdict(Policy(mode="safe", allow=("Bash",), ask=("Bash(make)",)), RUN) == ASK
    assert verdict(Policy(mode="plan", allow=("Bash",)), RUN) == DENY
    assert verdict(Policy(mode="locked-down", allow=("Bash",)), RUN) == DENY


@pytest.mark.parametrize(
    ("command", "reads"),
    [
        *(
            ("ls -la", True),
            ("cat a | grep b", True),
            ("git diff HEAD", True),
            ("ls 2>/dev/null", True),
            ("ls 2>&1", True),
        ),
        *(("ls > x", False), ("git push", False), ("git -c x=y log", False), ("git log --output=x", False)),
        *(("X=1 ls", False), ("ls; make", False), ("ls $(make)", False), ("find . -delete", False), ("", False)),
        *(("echo x 1<>y", False), ("cat <>y", False), ("cat </dev/tcp/x/80", False), ("cd x && git status", False)),
        *(("echo $((PATH=0)); ls", False), ("echo ${PATH:=.}; ls", False), ("ls ${a[PATH=0]}", False), ("ls $X", True)),
        *(("ls ${X}", True), ("ls ${X%.py} ${X:0:5}", True), ("ls ${#X[@]}", True), ("echo $X[y] x", False)),
        *(("ls ${X:y}", False), ("ls ${!X}", False), ("ls ${X@P}", False), ("ls ${(e)X}", False), ("ls $~X", False)),
        *(("ls '", False), ("/tmp/ls", False), ("cat <<X\n$(make)\nX", False), ("git grep -O x", False)),
    ],
)
def test_only_commands_that_certainly_read_are_free(command: str, reads: bool) -> None:
    """Those of which it is certain."""
    assert is_reading(*bash(command)) is reads


def test_git_only_reads_where_the_session_started() -> None:
    """An earlier command may have gone to a directory whose git configuration starts programs (``core.fsmonitor``)."""
    at, below = Where("/home/ada/x", "/home/ada/x"), Where("/home/ada/x/vendor", "/home/ada/x")
    for mode in ("plan", "safe"):
        assert judge_call(Policy(mode=mode), *bash("git status"), at) == NO_OPINION
        assert judge_call(Policy(mode=mode), *bash("git status"), below).decision in (ASK, DENY)
        assert judge_call(Policy(mode=mode), *bash("ls | head -3"), below) == NO_OPINION


@pytest.mark.parametrize("key", ["dangerouslyDisableSandbox", "run_in_background"])
def test_a_command_that_runs_elsewhere_is_another(key: str) -> None:
    """Outside the client's sandbox it is not the one that a rule names; neither there nor beside does it only look."""
    call = ("Bash", {"command": "ls", key: True})
    assert not is_reading(*call)
    assert is_reading("Bash", {"command": "ls", key: False})
    assert verdict(Policy(mode="safe"), call) == ASK
    for rule in ("Bash(ls)", "Bash(ls:*)", "Bash(l*)"):
        assert permits(rule, call) is (key == "run_in_background")


@pytest.mark.parametrize("rule", ["Bash(git", "", "(x)", "Bash git", "Bash(x)y"])
def test_a_malformed_rule_denies_its_whole_tool(rule: str) -> None:
    """A malformed rule allows nothing, and denies its whole tool."""
    assert not permits(rule, RUN)
    assert denies(rule, RUN) is rule.startswith("Bash(")


# -- properties -------------------------------------------------------------------------------------------------------

words = st.sampled_from(["git", "push", "rm", "-rf", "x", "npm", "test", "*", "ls", "$X", "'a b'", ".env", "sudo"])
commands = st.lists(words, min_size=1, max_size=4).map(" ".join)
texts = st.text(alphabet="ab *?[]()/.~:\\'\"$`;&|<>\n=-", max_size=20) | st.text(max_size=10)
RULES = [
    *("Bash", "Bash(git push:*)", "Bash(rm *)", "Bash(npm test)", "Read(.env)", "Edit(src/**)", "Write", "*", "mcp__*"),
    *("WebFetch(domain:example.com)", "Agent(Explore)", "Bash(ls*)", "Read", "Bash(x", "mcp__a__b", "Skill(x)"),
]
some_rules = st.lists(st.sampled_from(RULES) | texts.map(lambda t: f"Bash({t})"), max_size=3).map(tuple)
calls = st.one_of(
    commands.map(bash),
    texts.map(bash),
    st.tuples(st.sampled_from(["Read", "Write", "Edit", "Grep"]), st.fixed_dictionaries({"file_path": texts})),
    st.tuples(st.sampled_from(["WebFetch", "mcp__a__b"]), st.fixed_dictionaries({"url": texts})),
    st.tuples(st.sampled_from(["Agent", "Skill", "New"]), st.dictionaries(texts, st.none() | st.booleans() | texts)),
)
policies = st.builds(
    Policy,
    mode=st.sampled_from([*MODES, "auto"]),
    allow=some_rules,
    ask=some_rules,
    deny=some_rules,
    hosts=st.none() | st.lists(texts, max_size=2).map(tuple),
    plan_required=st.booleans(),
)


@given(policies, calls, some_rules)
def test_more_rules_that_deny_or_ask_never_open_anything(
    policy: Policy, call: tuple[str, dict[str, Any]], more: tuple[str, ...]
) -> None:
    """A further rule that denies or asks never allows more. A rule that allows never changes what is denied."""
    before = RANK[verdict(policy, call)]
    assert RANK[verdict(policy.replace(deny=(*policy.deny, *more)), call)] <= before
    assert RANK[verdict(policy.replace(ask=(*policy.ask, *more)), call)] <= before
    if before == RANK[DENY]:
        assert verdict(policy.replace(allow=(*policy.allow, *more)), call) == DENY
    assert verdict(Policy(), call) is None
    assert judge_call(policy, *call, HERE).reason.isprintable()


@given(policies, calls)
def test_only_a_rule_or_a_mode_that_allows_allows(policy: Policy, call: tuple[str, dict[str, Any]]) -> None:
    """Without both, nothing is; and nothing that a mode holds."""
    if verdict(policy, call) == ALLOW:
        assert policy.allow or policy.mode == "acceptEdits"
        if policy.plan_required or policy.mode not in ("default", "acceptEdits", "safe"):
            assert is_reading(*call)


@given(commands, commands, st.sampled_from(["&&", "||", ";", "|", "\n"]), some_rules)
def test_a_compound_is_as_closed_as_its_parts(one: str, other: str, between: str, some: tuple[str, ...]) -> None:
    """Denied where one part is; allowed only where both are."""
    both = bash(f"{one} {between} {other}")
    bare = tuple(rule for rule in some if "*" not in rule)
    for policy in (Policy(deny=some),):
        if DENY in (verdict(policy, bash(one)), verdict(policy, bash(other))):
            assert verdict(policy, both) == DENY
    if verdict(Policy(allow=bare), both) == ALLOW and "Bash" not in bare:
        assert {verdict(Policy(allow=bare), bash(part)) for part in (one, other)} == {ALLOW}


@given(st.lists(st.text(alphabet="ab c'", min_size=1, max_size=5), min_size=1, max_size=4))
def test_quoting_hides_nothing(parts: list[str]) -> None:
    """A command is caught however its words are quoted, and in whatever shell within a shell."""
    inner = shlex.join(["rm", *parts])
    for text in (inner, shlex.join(["bash", "-c", inner]), shlex.join(["sudo", "sh", "-c", inner])):
        assert denies("Bash(rm *)", bash(text)), text


@given(st.text(alphabet="ab*.", max_size=8), st.text(alphabet="ab.", max_size=10))
def test_patterns_are_what_a_regular_expression_would_say(pattern: str, text: str) -> None:
    """``*`` for anything."""
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None
    assert patterns.is_like(pattern, text) is expected


@given(texts, texts, st.booleans())
def test_no_pattern_and_no_path_breaks_it(pattern: str, name: str, loose: bool) -> None:
    """Every text is one."""
    assert patterns.is_path_like(pattern, name, HERE, loose=loose) in (True, False)
    assert patterns.host_of(name) is None or patterns.is_host_like(pattern, name) in (True, False)
    assert rules.parse_rule(pattern).text == pattern.strip()


def test_a_text_that_runs_again_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop is followed from each place that it may begin in, and read as a text but once."""
    parsed, parse = list[str](), grammar.simple_commands
    monkeypatch.setattr(grammar, "simple_commands", lambda text, depth=0: parsed.append(text) or parse(text, depth))
    command = "for i in 1 2 3; do cd b; sh -c 'cat key'; done"
    assert {f"{HERE.cwd}/b", f"{HERE.cwd}/b/b", f"{HERE.cwd}/b/b/b"} <= NamedFiles(command, HERE).places.keys()
    assert (parsed.count(command), parsed.count("cat key")) == (1, 1)


@given(st.integers(1, 400))
def test_a_wrapped_wrapper_takes_no_time(depth: int) -> None:
    """Wrappers in wrappers are looked through once, not each way."""
    assert denies("Bash(rm *)", bash("env " * depth + "rm x"))
    assert denies("Bash(rm *)", bash("bash -c " * depth + "rm"))
