"""The switches of tests: the user's records in a place of the test's, and callers who are whom they claim to be.

They replace functions of the product, which has no such switch: no variable that ships decides who calls, or which
records count. ``STATE`` is the absolute path of the records; beside it, ``CALLER`` is ``as-said``. ``ROSTER_LINES``
has a shorter roster compacted, by the same steps.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

STATE, CALLER, AS_SAID = "AGENT_MAILBOX_TEST_STATE", "AGENT_MAILBOX_TEST_CALLER", "as-said"
ROSTER_LINES = "AGENT_MAILBOX_TEST_ROSTER_LINES"
DOOR = __file__.rpartition("/")[0]
PACKAGE = f"{DOOR.removesuffix('/tests/door')}/agent_mailbox"
MAIN = f"{DOOR}/agent_mailbox/__main__.py"
"""What starts the program with the switches."""


def is_as_said(environ: Mapping[str, str]) -> bool:
    """Return whether every caller is whom it claims to be."""
    return environ.get(CALLER) == AS_SAID and environ.get(STATE, "").startswith("/")


def _switch_records(paths: Any) -> None:
    """Keep the records, and the person's configuration, where the test says."""
    place = paths._place

    def switched(environ: Mapping[str, str], *below: str) -> str:
        state = environ.get(STATE, "")
        return (state.rstrip("/") or "/") if state.startswith("/") else place(environ, *below)

    paths._place = switched


def _switch_callers(callers: Any) -> None:
    """Believe each caller; it proves what the one whom it names would prove."""
    of, everyone = callers.caller_of, _Everyone()

    class AsSaid(callers.Caller):  # type: ignore[misc, name-defined]
        def proof_for(self, session_id: str) -> str:
            return callers.proofs.TERMINAL if session_id == callers.USER else callers.proofs.of_session(session_id)

    def switched(environ: Mapping[str, str], *given: Any, **how: Any) -> Any:
        return AsSaid(AS_SAID, everyone) if is_as_said(environ) else of(environ, *given, **how)

    callers.caller_of = switched


class _Everyone(tuple[str, ...]):
    """The sessions of a caller that is believed: all."""

    def __contains__(self, _: object) -> bool:
        return True


def _switch_hook_calls(hook_calls: Any) -> None:
    """Believe each hook that the client called it."""

    def believe(name: str, answer: Callable[..., object]) -> None:
        real = getattr(hook_calls, name)

        def switched(*given: Any, **how: Any) -> object:
            environ = next(one for one in given if hasattr(one, "keys"))
            return answer(*given) if is_as_said(environ) else real(*given, **how)

        setattr(hook_calls, name, switched)

    believe("prove_call", lambda session_id, _: hook_calls.proofs.of_session(session_id))
    believe("root_session", lambda session_id, _: session_id)
    believe("prove_shared", lambda session_id, *_: hook_calls.proofs.of_session(session_id))
    believe("is_started_with", lambda *_: True)


def _switch_context(context: Any) -> None:
    """Take the session that the option or the environment names for the caller's."""
    product, variables = context.Context, context.client_variables
    refused = sys.modules["agent_mailbox.errors"].Refused
    me, acts, own_session = product.acting_session, product.acting_party, product.own_session.fget

    def switched_me(self: Any, desk: Any, option: str = context.SESSION) -> str:
        if not is_as_said(self.environ):
            return str(me(self, desk, option))
        who = self.named or variables.session_of(self.environ) or self.environ.get(variables.OURS)
        if not who:
            raise context.session_unknown(option)
        context.check_id(who)
        if who == context.USER and _typing(variables, self.environ) != context.USER:
            what = "this terminal belongs to an agent, and only the person may act as 'user'"
            raise refused(what, "pass your own session's id")
        if self.named is not None:
            if who != context.USER:
                who = context.meant_agent(who, desk.logs.read_roster(), may_be_new=option == context.FROM)
            self.given[context.SESSION] = who
        return str(who)

    def switched_acts(self: Any, who: str) -> str:
        return _typing(variables, self.environ) if is_as_said(self.environ) else str(acts(self, who))

    def switched_own(self: Any) -> str | None:
        if not is_as_said(self.environ):
            return own_session(self)  # type: ignore[no-any-return]
        try:
            return variables.session_of(self.environ) or self.environ.get(variables.OURS)
        except context.MailboxError:  # two clients' variables are set
            return None

    product.acting_session, product.acting_party, product.own_session = (
        switched_me,
        switched_acts,
        property(switched_own),
    )


def _typing(variables: Any, environ: Mapping[str, str]) -> str:
    """Return who types, by the environment: an agent, else the person."""
    named = (environ.get(name) for name in (*variables.SESSIONS, variables.OURS))
    agent = next(filter(None, named), None)
    if agent == "user" and any(environ.get(name) for name in variables.SESSIONS):
        return "an-agent"
    return agent or ("an-agent" if any(environ.get(name) for name in variables.MARKS) else "user")


def _switch_installation(installation: Any) -> None:
    """Have installed hooks come through the door, in a checkout with an environment of its own, too. A copy of the
    package has its own door (``tests.helpers.copy_package``)."""
    installation.checkout_shim = lambda: None
    if f"{DOOR.removesuffix('/tests/door')}/agent_mailbox" == installation.PACKAGE:
        installation.MAIN = MAIN


def _switch_starting(hook_command: Any) -> None:
    """Have what a hook starts come through the door."""
    real = hook_command._package_directory

    def package() -> str:
        found = str(real())
        return f"{DOOR}/agent_mailbox" if found == PACKAGE else found

    hook_command._package_directory = package


def _switch_compaction(roster_compaction: Any) -> None:
    """Compact a roster of more lines than the test says."""
    import os

    lines = os.environ.get(ROSTER_LINES)
    if lines:
        roster_compaction.COMPACT_ABOVE = int(lines)


SWITCHES: dict[str, Callable[[Any], None]] = {
    "agent_mailbox.store.files.paths": _switch_records,
    "agent_mailbox.store.archive.roster_compaction": _switch_compaction,
    "agent_mailbox.identity.callers": _switch_callers,
    "agent_mailbox.identity.hook_calls": _switch_hook_calls,
    "agent_mailbox.cli.context": _switch_context,
    "agent_mailbox.commands.hook_command": _switch_starting,
    "agent_mailbox.clients.install.installation": _switch_installation,
}


_set: set[str] = set()
"""The modules whose switches are set in this process."""


def switch_now() -> None:
    """Set the switches in this process, once, for tests that call the product within it."""
    from importlib import import_module

    for name, switch in SWITCHES.items():
        if name not in _set:
            _set.add(name)
            switch(import_module(name))


def switch_as_imported() -> None:
    """Set each switch as its module is imported: a command imports few, and a bundle brings some by itself."""
    sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds the modules that have a switch, and the one that starts a command."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name not in SWITCHES and name != "agent_mailbox.launch":
            return None
        others = (one for one in sys.meta_path if one is not self)
        spec = next((found for one in others if (found := one.find_spec(name, path, target)) is not None), None)
        if spec is not None:
            loader = _Loader(spec.loader, SWITCHES.get(name, self._switch_launch))
            spec.loader = loader
        return spec

    def _switch_launch(self, launch: Any) -> None:
        """Set the switches of the modules that the bundle brought, before the command runs."""
        main = launch.main

        def switched(argv: Any = None) -> int:
            sys.meta_path.remove(self)
            sys.meta_path.insert(0, self)  # before the bundle's own finder
            for name, switch in SWITCHES.items():
                module = sys.modules.get(name)
                if module is not None and not hasattr(module, "_is_switched"):
                    switch(module)
            return main(argv)  # type: ignore[no-any-return]

        launch.main = switched


class _Loader:
    """Loads a module as its own loader does, and then sets its switch."""

    def __init__(self, real: Any, switch: Callable[[Any], None]) -> None:
        self._real, self._switch = real, switch

    def create_module(self, spec: Any) -> Any:
        return self._real.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self._real.exec_module(module)
        self._switch(module)
        module._is_switched = True
