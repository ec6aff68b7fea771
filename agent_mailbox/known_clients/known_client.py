"""A client as we know it: how its processes and calls are told, what its hooks can do, where it looks for what.

Belongs here: the shape. Each client has a module beside this one, which is the one place that knows it. All of them are
loaded by every hot verb, so they hold plain values; what only an installation needs is behind a function.
"""

from __future__ import annotations

from ..core.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

BELL = "Doorbell"
"""The hook that stays behind its event, to wake the session."""
AFTER_TOOL, AFTER_TOOLS = "PostToolUse", "PostToolBatch"
"""The events between two calls of tools: behind each that succeeded, or behind all that the model called at once."""
STOP_FAILURE = "StopFailure"
"""The event of a turn that failed by an error of the API."""
BEFORE_TOOL = "PreToolUse"
"""The event before a tool; its hook of ours refuses a command in another's name."""
PERMIT = "Permit"
"""The hook before every tool: may the session use it? Another hook judges our own commands, for that one reads a tool's
input, and this one's guard reads nothing."""
PERMISSION = "PermissionRequest"
"""The event with which the client would ask its person."""
FILES = "Files"
"""The command that a hook calls before the tools that write files."""

TIMEOUT = 10
"""Seconds the client waits for a hook of ours. Its own limits fit badly: 600 hold up a session behind a dead disk. The
1.5 that hooks of a session's end share may pass before a cold interpreter starts."""
BELL_TIMEOUT = 14 * 24 * 3600
"""Seconds the client leaves a doorbell alone. Its timers take 24 days at most, and end at once above that."""
PERMIT_TIMEOUT = 600
"""Seconds the client gives the two hooks that wait for an answer: its own limit, written down in case it changes."""
PARTS = (BELL, PERMIT, FILES)
"""The hooks of ours that share an event with another one."""
EXEC = "exec"
"""The prefix of a doorbell's command. A client that ends also ends its background hooks; for a dying shell its person
waits one and a half seconds. A doorbell in the shell's place costs no wait."""


class Wanted(Record):
    """A hook that an installation wants: on which event of the client it calls which of ours, with matcher and time-out
    (in the client's unit). ``stays``: the client's key for a hook in the background, which a doorbell is. ``since``:
    the first version that knows its event. The ``other`` event, if any, is in its place before that."""

    on: str
    event: str
    matcher: str | None = None
    timeout: int = TIMEOUT
    stays: str = "asyncRewake"
    since: tuple[int, ...] = ()
    other: str = ""

    @property
    def is_bell(self) -> bool:
        """Return whether it is a doorbell."""
        return self.event == BELL

    def command_line(self, call: str) -> str:
        """Return the hook's command line, from the call of ours."""
        return f"{EXEC} {call}" if self.is_bell else call

    @property
    def part(self) -> str:
        """Return which of an event's hooks it is."""
        return self.event if self.event in PARTS else ""


class Wording(Record):
    """The words that a client's files are made of. ``program``: how an agent starts ours. ``is_for_user``: for all
    sessions. ``tasks``: name to (description, text). ``free``: the commands that need no asking, however they go on.
    ``section``: what the model is told about its mailbox."""

    program: str
    is_for_user: bool
    tasks: Mapping[str, tuple[str, str]]
    free: Sequence[str]
    section: str


class KnownClient(Record):
    """A client. Its fields, in groups:

    *Which*: ``name`` as ``install`` takes it, ``title`` for people, ``word`` as its hooks and ``[wake]`` name it.
    ``package`` and ``program``: in npm. ``seen_with``: the versions it was run with, the newest last; tests pin that.
    Empty: not run.

    *Its variables*: ``session_variable`` names the session for its agent's commands, ``hook_variable`` for hooks alone,
    ``process_variable`` its process, ``project_variable`` the project. ``export_variable`` names a file that its shell
    reads before each command. ``teams_variable`` switches its teams on. ``marks``: others that it sets for all it
    starts.

    *Its processes*: their ``processes`` names, parts of the paths of its ``scripts`` and of its ``directories`` of
    versions. ``has_launcher``: a script, or the client itself, only starts the program. ``services``: the first words
    of its own processes that run sessions in the background. ``service_variable`` is set for such a session and all
    that it starts; ``askers_variable`` names the sessions whose agents asked for it. ``server``: the words of its own
    server, which runs the sessions of all the user's terminals; hooks have that one's environment. ``is_started``: `up`
    can start it; ``makes_trees``: with a checkout of its own. ``is_attended`` tells from a hook's environment whether a
    person may answer. ``skips_hooks`` tells from the words that a process was started with by which of them it calls no
    hook of ours.

    *Its calls*: ``calls`` tells, from the session, the JSON and the environment, whether it calls. ``session_key`` of
    the JSON names the session, ``parent_key`` whose subagent a session is, ``path_key`` of a tool's input its file.
    ``tells_time``: the JSON tells when it called. ``begins_at_prompt``: no call comes before the first prompt's.
    ``drops_errors``: behind a tool that failed it drops our words. ``shows_start``: the model keeps what its first hook
    says; else mail comes with the first prompt.

    *Its hooks*: ``hooks`` were seen to work. ``only_denies``: it takes a refusal before a tool, and another command for
    its shell, and goes on at any other answer. ``stop``: mail at a turn's end goes as ``context``, as the reason of a
    ``block``, or (empty) in a turn of its own. ``conversation``: the kind of file in which it keeps that, if we can
    read it. ``is_own_file`` tells whether a path is that of a session itself, if calls may name others;
    ``find_conversation`` names it, if calls do not. ``erases_turns``: it may take a turn out of it until the turn is
    over. ``trusts_hooks``: its person must trust each hook. ``patch_tool`` writes files by one text. ``acting``: the
    tools that act, all of them; a client that asks about all of them runs none if our hooks fail. ``wake_tokens``: what
    it adds to a wake's line. ``is_flat``: its hooks stand in no groups, and a hook's words for the model in no object
    of its answer. ``quota_ends``: the errors of a turn with which a quota ends, but for one with its ``passing`` words.
    ``time_key``: where a hook's seconds stand.

    *Its files*: in ``directory`` of a project. For all sessions it is where ``home_variable`` says, else of this name
    (or ``home_directory``) below ``above_home`` (a variable), or ``below_config`` of the user's configuration.
    ``settings``: the file with hooks, in a project and for all. ``memory`` is empty if ours is one of ``files``, which
    are all ours. ``guarded``: what there decides whether our hooks run (a directory ends in a slash); ``beside``: what
    does so beside the directory. ``managed``: the administrator's settings. ``state_file``: what it keeps of projects.
    ``plans``: the files of sessions' plans, as a rule names them. ``has_plugins``: hooks may come by a plugin, too.
    ``hook_files``: patterns of other files there that may hold hooks. ``running``: directories there of files with
    commands that the client runs without a hook of ours before them. ``is_plugin``: so are its settings.
    ``has_comments``: it accepts comments in JSON. ``has_rules``: its settings hold rules of our form.
    ``status_line``: the key there of its status line, if it has one.

    *Telling*: ``about`` what an installation does, ``after`` the person's next step. ``frees_mail``: its rules can let
    plain mail commands run unasked. ``limits``: of an ability (``abilities``), where it ends.
    """

    name: str
    title: str
    word: str = ""
    package: str = ""
    program: str = ""
    seen_with: tuple[str, ...] = ()

    session_variable: str = ""
    export_variable: str = ""
    project_variable: str = ""
    teams_variable: str = ""
    hook_variable: str = ""
    process_variable: str = ""
    marks: tuple[str, ...] = ()

    processes: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    has_launcher: bool = False
    services: tuple[tuple[str, ...], ...] = ()
    service_variable: str = ""
    askers_variable: str = ""
    server: tuple[str, ...] = ()
    is_started: bool = False
    makes_trees: bool = False
    is_attended: Callable[[Mapping[str, str]], bool] = lambda _: True
    skips_hooks: Callable[[Sequence[str]], str] = lambda _: ""

    calls: Callable[[str, Mapping[str, Any], Mapping[str, str]], bool] = lambda *_: False
    session_key: str = "session_id"
    parent_key: str = ""
    path_key: str = ""
    tells_time: bool = False
    begins_at_prompt: bool = False
    drops_errors: bool = False
    shows_start: bool = True

    hooks: Callable[[], Sequence[Wanted]] = tuple
    only_denies: bool = False
    stop: str = "block"
    conversation: str = ""
    is_own_file: Callable[[str, str], bool] | None = None
    find_conversation: Callable[[str, Mapping[str, str]], str] | None = None
    erases_turns: bool = False
    wake_tokens: int = 0
    trusts_hooks: bool = False
    patch_tool: str = ""
    acting: tuple[str, ...] = ()
    is_flat: bool = False
    quota_ends: tuple[str, ...] = ()
    passing: str = ""
    time_key: str = "timeout"

    directory: str = ""
    home_variable: str = ""
    above_home: str = "HOME"
    home_directory: str = ""
    below_config: str = ""
    settings: tuple[str, str] = ("", "")
    memory: str = ""
    files: Callable[[Wording], Mapping[str, str]] = lambda _: {}
    guarded: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    plans: str = ""
    managed: tuple[str, ...] = ()
    state_file: str = ""
    has_plugins: bool = False
    hook_files: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    is_plugin: bool = False
    has_comments: bool = False
    has_rules: bool = False
    status_line: str = ""

    about: str = ""
    after: str = ""
    frees_mail: bool = False
    limits: Mapping[str, str] = {}  # frozen, as every record

    @property
    def is_installed(self) -> bool:
        """Return whether ``install`` knows it."""
        return bool(self.hooks())

    def find_home(self, environ: Mapping[str, str]) -> str:
        """Return its directory for all sessions of the user."""
        home = environ.get("HOME") or "/"
        if self.below_config:
            above = environ.get("XDG_CONFIG_HOME") or f"{home.rstrip('/')}/.config"
            return f"{above.rstrip('/')}/{self.below_config}"
        above = environ.get(self.above_home) or home
        return environ.get(self.home_variable) or f"{above.rstrip('/')}/{self.home_directory or self.directory}"

    @property
    def events(self) -> dict[str, str]:
        """Return its names for those events of ours that it waits for."""
        return {wanted.on: wanted.event for wanted in self.hooks() if not wanted.is_bell}
