"""Mutants of the MCP server's rules, for ``mutants``."""

from __future__ import annotations

from tests.faults.mutant import Mutant

TOOLS = "tests/mcp/test_tools.py"

MUTANTS = (
    Mutant(
        "a tool's mail is recorded once the client has it",
        "_Call.write",
        ("if not taken.wait(PATIENCE) or self.answer.cancelled():", "if self.answer.cancelled():"),
        tests=f"{TOOLS}::test_an_answer_that_the_client_does_not_take_shows_nothing",
    ),
    Mutant(
        "a tool's caller is never the person",
        "CallContext.caller",
        ("if found.is_person else found", "if False else found"),
        tests=f"{TOOLS}::test_a_terminal_is_not_the_person_s_to_a_tool",
    ),
    Mutant(
        "a tool's argument picks among the client's own sessions",
        "CallContext.me",
        ("if who not in own:", "if False:"),
        tests=f"{TOOLS}::test_below_a_client_with_hooks_it_is_that_client_s_session",
    ),
    Mutant(
        "a tool's session is not chosen by the server's old environment",
        "CallContext.caller",
        (" if name not in client_variables.SESSIONS}", "}"),
        tests=f"{TOOLS}::test_below_a_client_with_hooks_it_is_that_client_s_session",
    ),
    Mutant(
        "what a client of no hooks configured is no other client's session",
        "CallContext.me",
        ("if self.caller.kind == callers.PROGRAM:", "if False:"),
        tests=f"{TOOLS}::test_a_terminal_is_not_the_person_s_to_a_tool",
    ),
)
