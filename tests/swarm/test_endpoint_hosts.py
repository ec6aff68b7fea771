"""The host of an endpoint: a name that the DNS has, in its ASCII form."""

from __future__ import annotations

import pytest

from agent_mailbox.swarm.protocol.wire import check_endpoint


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("bücher.example", "xn--bcher-kva.example"),
        ("bücher..example", "xn--"),
        ("a..example", "empty"),
        (".example", "empty"),
        ("example..", "empty"),
        ("a" * 64 + ".example", "63"),
    ],
)
def test_a_host_that_is_no_name_is_refused_with_why(host: str, said: str) -> None:
    """One in other letters is told its ASCII form."""
    with pytest.raises(ValueError, match=said):
        check_endpoint(f"https://{host}:8443/swarm")


@pytest.mark.parametrize("host", ["xn--bcher-kva.example", "localhost", "a.example.", "127.0.0.1:8443", "[::1]:8443"])
def test_a_host_that_is_a_name_or_an_address_is_taken(host: str) -> None:
    """An endpoint whose host is a name or an address is taken as it is."""
    assert check_endpoint(f"https://{host}/swarm") == f"https://{host}/swarm"
