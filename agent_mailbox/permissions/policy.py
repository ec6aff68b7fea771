"""A session's policy: what it may do, what its lead is asked about, what it may not do.

Belongs here: modes, hosts, the order of decisions. Pure. The founding texts name the modes; two of them we define.
``default``: the rules alone. ``plan``: reading, and the plan. ``acceptEdits``: edits of the project's files go unasked.
``safe``: the lead is asked about everything but reading. ``locked-down``: only reading, within the project. Nothing
here lifts the client's own questions and denials; no mode skips permissions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.control.messages import MODES
from ..core.records import Record
from ..core.text import clipped, neutral, term
from ..known_clients.every_client import USUAL
from . import patterns, rules, shell
from .patterns import Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .rules import Rule

ALLOW, ASK, DENY = "allow", "ask", "deny"
EXIT_PLAN = "ExitPlanMode"
PLANS = USUAL.plans
"""The client's file for a session's plan, which it may write before approval."""

READS = (
    *("Read", "Glob", "Grep", "LS", "NotebookRead", "TodoWrite", "TodoRead", "ToolSearch", "ListAgents"),
    *("BashOutput", "TaskOutput", "AskUserQuestion", "EnterPlanMode", EXIT_PLAN),
)
"""Tools that change nothing outside their session."""
_READERS = ("ls", "cat", "echo", "pwd", "head", "tail", "grep", "wc", "which", "diff", "stat", "du", "cd", "true")
"""Programs of which no option writes or runs anything."""
_GIT = ("status", "log", "diff", "show", "blame", "ls-files")
_GIT_ACTS = ("--out", "--ext", "--text", "--exec", "--open", "--contents", "-O")
"""Prefixes of options by which these write or run something."""
MAX_REASON = 300
_URLS = ("url", "urls", "uri", "uris")
"""Keys by which tools name where they go."""


class Policy(Record):
    """The rules for one session. ``hosts``: where its tools may go unasked (None: any). ``plan_required``: it may not
    act before its plan is approved."""

    mode: str = "default"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    hosts: tuple[str, ...] | None = None
    plan_required: bool = False

    @property
    def binds(self) -> bool:
        """Return whether the policy says anything."""
        return self != Policy()


class Judgement(Record):
    """A policy's word on a call: ``allow``, ``ask`` (the lead), ``deny``, or None, no opinion. ``host``: ask about this
    host, not about the call."""

    decision: str | None
    reason: str = ""
    host: str | None = None


NO_OPINION = Judgement(None)


def judge_call(
    policy: Policy, tool: str, given: Mapping[str, Any], where: Where | None = None, free: Sequence[str] = ()
) -> Judgement:
    """Return the policy's judgement of a call of this tool with this input.

    ``free``: rules for what stays possible in every mode (mail), unless the policy denies it.
    """
    where = where or Where()
    denied = _judge_by_rules(DENY, policy.deny, tool, given, where)
    if denied is not None:
        return denied
    if not policy.binds:
        return NO_OPINION
    is_free = rules.allowing_rule(_parse_rules(free), tool, given, where) is not None
    if is_free and not (policy.mode == "locked-down" and _sends_files(given)):
        return NO_OPINION
    held = _judge_by_mode(policy, tool, given, where)
    if held is not None:
        return held
    asked = _judge_by_rules(ASK, policy.ask, tool, given, where) or _judge_host(policy, given)
    if asked is not None:
        return asked
    allowed = rules.allowing_rule(_parse_rules(policy.allow), tool, given, where)
    if allowed is not None:
        return _make_judgement(ALLOW, f"the policy of this session allows {_show_rule(allowed)}")
    return _judge_unruled(policy, tool, given, where)


def is_reading(tool: str, given: Mapping[str, Any], where: Where | None = None) -> bool:
    """Return whether the call only looks. Fails closed: an unknown call acts."""
    if tool != "Bash":
        return tool in READS
    text = given.get("command")
    if not isinstance(text, str) or given.get("run_in_background") or given.get("dangerouslyDisableSandbox"):
        return False
    try:
        found = shell.simple_commands(text)
    except (shell.Unreadable, RecursionError):
        return False
    programs = {simple.words[0] for simple in found if simple.words}
    went = where is not None and where.resolve(where.cwd) != where.resolve(where.root)  # by an earlier command
    if "git" in programs and (went or "cd" in programs):  # that directory's git configuration may start programs
        return False
    return bool(found) and all(map(_only_reads, found))


# -- the parts of a judgement -----------------------------------------------------------------------------------------


def _make_judgement(decision: str, reason: str) -> Judgement:
    return Judgement(decision, clipped(neutral(reason), MAX_REASON))


def _show_rule(rule: Rule) -> str:
    """Return a rule for a sentence of ours: any program may write one that denies, and any text into it."""
    return term(rule.text, MAX_REASON - 60)


def _parse_rules(texts: Sequence[str]) -> list[Rule]:
    return [rules.parse_rule(text) for text in texts]


def _judge_by_rules(
    decision: str, texts: Sequence[str], tool: str, given: Mapping[str, Any], where: Where
) -> Judgement | None:
    """Return the judgement of the first rule that may mean the call; None if none may. It says why a command may be one
    that the rule means, and what to do, unless it is one for certain."""
    rule = next((rule for rule in _parse_rules(texts) if rules.may_catch(rule, tool, given, where)), None)
    if rule is None:
        return None
    is_shell = tool in rules.SHELLS and rule.tool in rules.SHELLS
    why = rules.doubt_about(rule.spec, given) if rule.spec and is_shell else ""
    doubt = f" and this may be one ({clipped(neutral(why), 120)})" if why else ""
    does = "denies" if decision == DENY else "asks about"
    return _make_judgement(decision, f"the policy of this session {does} {_show_rule(rule)}{doubt}")


def _judge_by_mode(policy: Policy, tool: str, given: Mapping[str, Any], where: Where) -> Judgement | None:
    """Return the denial of a mode or an unapproved plan, which no rule can lift; None if there is none."""
    planning = policy.plan_required or policy.mode == "plan"
    if not planning and policy.mode != "locked-down" and policy.mode in MODES:
        return None
    if is_reading(tool, given, where) and (planning or _is_inside(tool, given, where)):
        return None
    if planning and policy.mode != "locked-down" and _writes_the_plan(tool, given, where):
        return None
    if policy.plan_required:
        return _make_judgement(DENY, "this session may not act before its lead has approved its plan")
    if policy.mode not in MODES:
        return _make_judgement(DENY, f"the mode of this session is unknown: {policy.mode}")
    return _make_judgement(DENY, f"this session is in mode {policy.mode}, which lets it only read")


def _judge_unruled(policy: Policy, tool: str, given: Mapping[str, Any], where: Where) -> Judgement:
    """Return the mode's judgement of a call that no rule names."""
    if policy.mode == "safe" and not is_reading(tool, given, where):
        return _make_judgement(ASK, "this session is in mode safe: its lead is asked about everything but reading")
    if policy.mode == "acceptEdits" and tool in rules.WRITING and _is_inside(tool, given, where):
        return _make_judgement(ALLOW, "this session is in mode acceptEdits")
    return NO_OPINION


def _is_inside(tool: str, given: Mapping[str, Any], where: Where) -> bool:
    """Return whether the call's files are in the project, and the client guards none. A shell command may name any:
    no."""
    if tool in rules.SHELLS:
        return False
    key = rules.READING.get(tool) or rules.WRITING.get(tool)
    value = given.get(key, where.cwd) if key else where.cwd
    if not isinstance(value, str) or rules.may_stray(tool, given):
        return False
    name = patterns.absolute_path(value, where)
    root = patterns.absolute_path(where.root, where).rstrip("/") + "/"
    for spelled in (name, where.resolve(name)):
        inner = f"{spelled}/".removeprefix(root)
        above = f"/{inner}".rpartition("/")[0].rpartition("/")[0]
        is_guarded = inner.startswith(".") or "/." in above  # a package within may have settings of its own
        if not f"{spelled}/".startswith(root) or (tool in rules.WRITING and is_guarded):
            return False
    return True


def _writes_the_plan(tool: str, given: Mapping[str, Any], where: Where) -> bool:
    return (
        tool in ("Write", "Edit")
        and rules.allowing_rule([rules.parse_rule(f"Edit({PLANS})")], tool, given, where) is not None
    )


def _sends_files(given: Mapping[str, Any]) -> bool:
    """Return whether our command sends a file's content. Mail must not get around rules on reading."""
    text = given.get("command")
    words = [word for simple in shell.simple_commands(text if isinstance(text, str) else "") for word in simple.words]
    return any(word.startswith(("@", "--jsonl", "--attach")) or "=@" in word for word in words)


def _judge_host(policy: Policy, given: Mapping[str, Any]) -> Judgement | None:
    """Return the judgement on a host that the policy does not list; None if there is none."""
    if policy.hosts is None:
        return None
    for url in _urls_in(given):
        name = patterns.host_of(url)
        if name is None or not any(patterns.is_host_like(pattern, name) for pattern in policy.hosts):
            return _ask_about_host(name, url)
    return None


def _urls_in(given: Mapping[str, Any]) -> Iterator[str]:
    for key, value in given.items():
        if key.lower() in _URLS:
            yield from (one for one in (value if isinstance(value, list | tuple) else [value]) if isinstance(one, str))


def _ask_about_host(name: str | None, url: str) -> Judgement:
    shown = name or clipped(url, 100)
    said = _make_judgement(ASK, f"{shown} is not among the hosts that this session may go to")
    return said.replace(host=name) if name else said.replace(decision=DENY)


def _only_reads(simple: shell.ShellCommand) -> bool:
    if any(target != "/dev/null" for target in simple.targets) or not simple.words:
        return False
    if any(source.startswith("/dev/") for source in simple.sources):  # some shells open connections for such names
        return False
    if simple.computes:
        return False
    program, *rest = simple.words
    if program == "git":
        return bool(rest) and rest[0] in _GIT and not any(word.startswith(_GIT_ACTS) for word in rest)
    return program in _READERS
