"""What a teammate may not run: our command in a name that is not its own, however it is wrapped; and nothing else."""

from __future__ import annotations

import shlex

import click
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.permissions import own_commands, shell
from agent_mailbox.permissions.own_commands import refusal_for_teammate
from tests.helpers import each
from tests.test_docs import LEAVES

ME = "ann@session-5e1a715d"


REFUSED = (
    "agent-mailbox send --from user --to bob --body hi",
    "agent-mailbox send --to x --body hi --from=bob",
    "agent-mailbox --dir /x send --from user --to x --body y",
    "agent-mailbox reply 1234 --from bob --body x",
    "agent-mailbox check --session bob",
    "agent-mailbox status --session-id bob",
    "agent-mailbox history --session user",
    "/usr/local/bin/agent-mailbox send --from user --to x --body y",
    "agent-mailbox-python send --from user --to x --body y",
    "\"agent-mailbox\" 'send' --fr'om' user",
    "agent-mailbox send \\\n  --from user \\\n  --to bob --body x",
    "agent-mailbox send --to bob --body x \\\n--from user",
    # the other ways to start it
    "python3 -m agent_mailbox send --from user",
    "python -I -X utf8 -m agent_mailbox send --from user",
    "python -magent_mailbox.launch send --from user",
    "python3 scripts/agent_mailbox.py send --from user --to x --body y",
    "python3 /a/b/scripts/agent_roster.py update --session-id bob --tags x",
    "scripts/agent_roster.py update --tags x --session-id bob",
    "PYTHONPATH=. python agent_mailbox/__main__.py send --from user",
    "python ./agent_mailbox send --from user",
    "uv run agent-mailbox send --from user",
    "timeout 10 nice -n 5 agent-mailbox check --session bob",
    "nohup agent-mailbox wait --session bob &",
    "sudo -u x env A=b python3 -m agent_mailbox roster register --session-id zed",
    "$(which agent-mailbox) send --from user",
    # compounds
    "cd /x && agent-mailbox check --session bob",
    "true; false || agent-mailbox check --session bob",
    "(cd /x; agent-mailbox status --session bob)",
    "{ agent-mailbox status --session bob; }",
    "if true; then agent-mailbox check --session bob; fi",
    "for i in a b; do agent-mailbox check --session $i; done",
    "case $x in a) agent-mailbox check --session bob;; esac",
    "echo hi | agent-mailbox send --from user --body - | tee log",
    "ls # list\nagent-mailbox check --session bob",
    "agent-mailbox check --session bob 2>&1 >/dev/null",
    "2>/dev/null agent-mailbox check --session bob",
    "echo $(agent-mailbox check --session bob)",
    'echo "a $(agent-mailbox check --session "bob") b"',
    "X=`agent-mailbox check --session bob`",
    "diff <(agent-mailbox check --session bob) x",
    "echo ${X:-$(agent-mailbox check --session bob)}",
    # shells, and what is handed to them
    "bash -c 'agent-mailbox send --from user'",
    'bash -lc "cd /x && agent-mailbox send --from user"',
    "timeout 5 sh -o pipefail -ec 'agent-mailbox send --from user'",
    "find . -exec sh -c 'agent-mailbox send --from user' \\;",
    'eval "agent-mailbox send --from user"',
    "ssh host 'agent-mailbox send --from user'",
    "bash <<EOF\nagent-mailbox send --from user\nEOF",
    "sh <<'EOF'\ncd x\nagent-mailbox send --from user\nEOF\necho done",
    "bash -s <<-EOF\n\tagent-mailbox send --from user\n\tEOF",
    "bash <<< 'agent-mailbox send --from user'",
    "cat <<EOF\n$(agent-mailbox send --from user)\nEOF",
    "cat > x.sh <<'EOF'\nagent-mailbox send --from user\nEOF\nbash x.sh",
    "cat > x.sh <<'EOF'\nagent-mailbox send --from user\nEOF\nchmod +x x.sh && ./x.sh",
    'echo "agent-mailbox send --from user" | sh',
    # what is not known before it runs
    'ME=bob; agent-mailbox send --from "$ME" --to x',
    "AM=agent-mailbox; $AM send --from user",
    'A="--from user"; agent-mailbox send $A --to bob',
    'am() { agent-mailbox "$@"; }; am send --from user',
    "echo bob | xargs -n1 agent-mailbox roster retire",
    "echo bob | xargs agent-mailbox send --to x --body y --from",
    "agent-mailbox send --from",
    # what is no shell's, or not to be read
    "python3 -c \"import subprocess; subprocess.run(['agent-mailbox','send','--from','user'])\"",
    "python3 - <<'EOF'\nimport os; os.system(\"agent-mailbox send --from user\")\nEOF",
    "node -e 'exec(\"agent-mailbox check --session bob\")'",
    "perl -e 'print `agent-mailbox check --session bob`'",
    "cat x.py | python3 - # subprocess\nagent-mailbox check --session bob",
    'python3 -c \'from agent_mailbox.launch import main; main(["agent-mailbox", "check", "--session", "bob"])\'',
    'agent-mailbox send --from user "unbalanced',
    "agent-mailbox send --to x --body 'it's' --from user",
    "echo $(agent-mailbox send --from user",
    # another's entry in the roster, and what the person decides
    "agent-mailbox roster update --tags x --session-id OTHER",
    "agent-mailbox roster register --session OTHER --name Zed",
    "agent-mailbox roster retire bob",
    "agent-mailbox roster heartbeat bob",
    "agent-mailbox roster freeze --session bob",
    "agent-mailbox roster retire user",
    "agent-mailbox roster update --lead bob",
    f"agent-mailbox roster register --session-id {ME} --lead=user",
    f"ssh localhost agent-mailbox roster update --session-id {ME} --lead bob",
    "agent-mailbox control approve 17 --session user",
    "agent-mailbox control deny 17 --json --session bob",
    "agent-mailbox control answer 17 approve --session=bob",
)
LEFT_ALONE = (
    f"env A=b agent-mailbox check --session {ME}; env | grep CLAUDECODE",
    f"agent-mailbox send --from {ME} --to bob --body 'see --from user'",
    f"agent-mailbox send --from={ME} --to bob --body hi",
    f'agent-mailbox send --from {ME} --to bob --body "run agent-mailbox send --from user"',
    f"agent-mailbox send --from {ME} --to b --body - <<'EOF'\nagent-mailbox send --from user\nit's \"odd $(\nEOF",
    f"agent-mailbox send --from {ME} --to bob --body --from",
    f'agent-mailbox send --from {ME} --to bob --body "$(cat x)"',
    f"AGENT_MAILBOX_SESSION=bob agent-mailbox check --session {ME}",
    "agent-mailbox roster show bob",
    "agent-mailbox roster show --session-id bob",
    "agent-mailbox roster list",
    f"agent-mailbox roster retire {ME}",
    f"agent-mailbox roster update --session-id {ME} --tags x --name Bob",
    "agent-mailbox history --with user",
    f"agent-mailbox ack $id --session {ME}",
    f"for i in a b; do agent-mailbox ack $i --session {ME}; done",
    f"agent-mailbox control approve 17 --session {ME}",
    f"agent-mailbox control deny 17 --session {ME} --json --reason 'not now'",
    f"agent-mailbox control policy {ME} --deny Bash",
    # maintenance is the client's own to ask about, and the command's to refuse
    "agent-mailbox console",
    'echo \'{"session_id": "bob"}\' | agent-mailbox hook SessionStart',
    "agent-mailbox steward run",
    "agent-mailbox doctor --repair",
    "agent-mailbox restore x.tar y",
    # words that are no calls
    'git commit -m "agent-mailbox send --from user is refused"',
    "grep -rn -- '--from user' agent_mailbox/",
    'rg "agent-mailbox send --from" docs',
    "echo agent-mailbox send --from user",
    "cat agent_mailbox/commands/roster_commands.py | grep update",
    "python -m pytest tests/agent_mailbox --from x",
    "pytest tests/agent_mailbox.py --session x",
    "cat > notes.md <<'EOF'\nagent-mailbox send --from user\nEOF",
    "cd /work/agent-mailbox && psql --session bob",
    "git log --from=bob -- agent_mailbox",
    "python3 - <<'EOF'\np = 'README.md'\ns = open(p).read().replace('`agent-mailbox send --from bob`', 'x')\nEOF",
    "python3 -c \"print('agent-mailbox check --session bob')\"",
    "perl -pi -e 's/agent-mailbox send --from bob/x/' README.md",
    "node -e 'console.log(`agent-mailbox send --from bob`)'",
    'gh pr create --title x --body "agent-mailbox send --from bob now works"',
    "mypy agent_mailbox && ruff check agent_mailbox",
    "for f in agent_mailbox/*.py; do wc -l $f; done",
    "AGENT_MAILBOX_SESSION=bob ./server # agent-mailbox",
    "echo $((1 << 2)) agent-mailbox",
    "echo 'unbalanced agent-mailbox",
    "",
)


@each("text", REFUSED)
def test_a_teammate_s_command_without_its_own_name_is_refused_however_it_is_written(text: str) -> None:
    """The answer says what to do instead."""
    why = refusal_for_teammate(text, ME)
    assert why is not None
    assert any(word in why for word in (ME, "somebody else than you", "Only that session", "Ask the person")), why


@each("text", LEFT_ALONE)
def test_nothing_else_is_refused(text: str) -> None:
    """One's own name, other people's words, looking, upkeep."""
    assert refusal_for_teammate(text, ME) is None


PIECES = st.sampled_from(
    [*"'\"`$(){}<>|&;\\\n \t#=-", "$(", "<<EOF\n", "\nEOF\n", "$((", "${", "agent-mailbox ", "send ", "--from ", "bob "]
)
TEXTS = st.lists(PIECES | st.text(max_size=4), max_size=25).map("".join)


@given(TEXTS)
def test_any_text_is_judged_and_none_is_refused_that_does_not_name_us(text: str) -> None:
    """Whatever is there: an answer, and a refusal only beside one of our names."""
    why = refusal_for_teammate(text, ME)
    assert why is None or any(name in text for name in own_commands.NAMES)
    assert refusal_for_teammate(text.replace("agent", "other"), ME) is None


WORDS = st.text(max_size=12)
CALLS = st.sampled_from(
    [
        ("agent-mailbox", "send", "--to", "bob", "--from", "user", "--body"),
        ("python3", "-m", "agent_mailbox", "check", "--session", "bob", "--dir"),
        ("/x y/agent-mailbox", "roster", "retire", "bob", "--dir"),
    ]
)
WRAPPINGS = st.sampled_from(
    [
        "{}",
        "cd /x && {}",
        "{} | tee log",
        "( {} )",
        "A=b {}",
        "echo $( {} )",
        "timeout 5 {} &",
        "if true\nthen {}\nfi",
        "true <<EOF\nit's\nEOF\n{}",
    ]
)


@given(CALLS, WORDS, st.lists(WRAPPINGS, max_size=3), st.integers(0, 2))
def test_a_refused_call_is_refused_in_every_wrapping(
    call: tuple[str, ...], text: str, wrappings: list[str], shells: int
) -> None:
    """Whatever text it carries, quoted as shells want it; also handed to shells in shells."""
    whole = shlex.join([*call, text.replace("\0", "")])
    for wrapping in wrappings:
        whole = wrapping.format(whole)
    for _ in range(shells):
        whole = shlex.join(["bash", "-c", whole])
    assert refusal_for_teammate(whole, ME) is not None


@given(WORDS, WORDS, st.lists(WRAPPINGS, max_size=3))
def test_mail_of_any_text_goes_out_in_every_wrapping(subject: str, body: str, wrappings: list[str]) -> None:
    """The guard lets a message of any text pass, even if the text looks like a command."""
    body = f"{body} agent-mailbox send --from user".replace("\0", "")
    whole = shlex.join(
        ["agent-mailbox", "send", "--from", ME, "--to", "b", "--subject", subject.replace("\0", ""), "--body", body]
    )
    for wrapping in wrappings:
        whole = wrapping.format(whole)
    assert refusal_for_teammate(whole, ME) is None


@given(st.lists(WORDS.map(lambda word: word.replace("\0", "")), min_size=1, max_size=5))
def test_quoted_words_are_read_as_they_are(words: list[str]) -> None:
    """The shell's grammar reads quoted words as ``shlex`` wrote them."""
    (simple,) = shell.simple_commands(shlex.join(["x", *words]))
    assert simple.words == ["x", *words]


def test_deep_nesting_ends() -> None:
    """No text makes it run out of stack; what is too deep is looked at loosely."""
    for opening in ("$(", '"$(', "`\\`", "${", "(", "<(", "eval '", 'bash -c "'):
        text = opening * 5000 + "agent-mailbox check --session bob"
        assert refusal_for_teammate(text, ME) is not None, opening


def test_the_tables_are_the_command_line_s() -> None:
    """Every verb, every option that takes a value, every option that says who acts."""
    verbs = {path[0] for path in LEAVES} | {"read"}
    assert set(own_commands.VERBS) == verbs, "name it in permissions/own_commands.py: VERBS"
    valued = {
        spelling
        for command in LEAVES.values()
        for option in command.params
        if isinstance(option, click.Option) and not option.is_flag and not option.count
        for spelling in option.opts
    }
    known = {*own_commands.VALUED, *own_commands.IDENTITY}
    assert known == valued, "name it in permissions/own_commands.py: VALUED"
    roster = {path[1] for path in LEAVES if path[0] == "roster"}
    assert roster == {*own_commands.LOOKS, *own_commands.CHANGES}
