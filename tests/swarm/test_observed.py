"""A gateway seen from outside: it says when it cannot keep mail, counts what it does, and takes up what was changed."""

from __future__ import annotations

import io
import logging
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.swarm import gateway_log
from agent_mailbox.swarm.protocol import tokens
from agent_mailbox.swarm.readiness import FRESH, REMEMBERED, Readiness
from tests.helpers import until
from tests.swarm.machine import Authority, meet
from tests.swarm.wirework import Line, Person, beside, numbers, refused, secured, told

if TYPE_CHECKING:
    from pathlib import Path

    from tests.swarm.conftest import Make
    from tests.swarm.machine import Machine


# -- readiness ---------------------------------------------------------------------------------------------------------


def _readiness(alpha: Machine) -> tuple[Readiness, list[float]]:
    clock = [0.0]
    return Readiness([Mailbox(str(alpha.box))], alpha.ledger, {}, lambda: clock[-1]), clock


def test_nothing_is_ready_that_cannot_keep_mail(machine: Make) -> None:
    """Without the mailbox, the key, the ledger or the whole home; with a directory for a log; and ready again after."""
    alpha = machine("alpha")
    readiness, clock = _readiness(alpha)
    away = alpha.scratch / "away"
    paths = [alpha.box, *(alpha.swarm_home / name for name in ("ledger.jsonl", "key.pem")), alpha.swarm_home]
    for path in paths:
        assert not readiness.current_problem()
        path.rename(away)
        clock.append(clock[-1] + FRESH)
        assert path.name in readiness.current_problem()
        away.rename(path)
        clock.append(clock[-1] + FRESH)
    for path in (alpha.swarm_home / "outbox.jsonl", alpha.swarm_home / "probe"):
        assert not readiness.current_problem()
        path.mkdir()
        clock.append(clock[-1] + FRESH)
        assert path.name in readiness.current_problem()
        path.rmdir()
        clock.append(clock[-1] + FRESH)
    assert not readiness.current_problem()


def test_mail_that_could_not_be_kept_counts_until_other_mail_is(machine: Make) -> None:
    """A quota, say, which no look at the files shows; after a minute without mail only the look counts."""
    readiness, clock = _readiness(machine("alpha"))
    readiness.note_outcome("storage_failed")
    assert "storage_failed" in readiness.current_problem()
    readiness.note_outcome("")
    assert not readiness.current_problem()
    readiness.note_outcome("storage_failed")
    clock.append(REMEMBERED)
    assert not readiness.current_problem()


def test_health_is_unhealthy_while_mail_cannot_be_kept(machine: Make) -> None:
    """503, and the owner learns why, not the peer."""
    alpha = machine("alpha").serve()
    with Line(alpha) as line:
        assert line.get("/swarm/health").json()["status"] == "healthy"
        assert beside(alpha, "/api/ready").json() == {"ready": True, "problem": None}
        alpha.box.rename(alpha.scratch / "away")
        answer = until(lambda: (a := line.get("/swarm/health")).status_code == 503 and a)
        assert answer.json()["status"] == "unhealthy"
        assert str(alpha.scratch) not in answer.text
        ready = beside(alpha, "/api/ready")
        assert (ready.status_code, ready.json()["ready"]) == (503, False)
        assert str(alpha.box) in ready.json()["problem"]
        assert numbers(alpha)["ready"] == 0


def test_without_its_ledger_a_gateway_asks_to_come_again_and_gives_nothing_up(machine: Make) -> None:
    """After 404 a peer would give up, and mail that waits here would fail for lack of a swarm: both wait."""
    alpha, beta = machine("alpha").serve(), machine("beta").serve()
    meet(alpha, beta)
    ledger, away = alpha.swarm_home / "ledger.jsonl", alpha.swarm_home / "away"
    bob = Person("bob")
    token = tokens.parse_url(alpha.ok("swarm", "invite", "demo")["url"]).token
    swarm = alpha.knows().swarm_id
    ledger.rename(away)
    with Line(alpha) as line:
        refused(line.post("message", bob.envelope(swarm, "alpha")), 503, "UNAVAILABLE")
        refused(line.post("join", bob.joining(token)), 503, "UNAVAILABLE")
        assert not ledger.exists()
    alpha.ok("send", "--from", "ann", "--to", "swarm:demo/beta", "--body", "patience")
    until(lambda: any(line["event"] == "outbox_not_swept" for line in told(alpha)))
    away.rename(ledger)
    until(lambda: beta.received() == ["patience"])


# -- the log and the numbers -------------------------------------------------------------------------------------------


def test_a_line_bears_no_words_of_an_error() -> None:
    """They may quote what was sent: type and place are enough; a library's lines are told by its name."""
    stream = io.StringIO()
    root, level = logging.getLogger(), logging.getLogger().level
    handlers = root.handlers[:]
    try:
        gateway_log.start_log("info", stream)
        try:
            raise ValueError("the secret")
        except ValueError as error:
            gateway_log.tell_defect("request_failed", error)
            logging.getLogger("asyncio").exception("it was %s", "the secret")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    first, second = stream.getvalue().splitlines()
    assert '"error":"ValueError"' in first
    assert '"library":"asyncio"' in second
    assert "secret" not in first + second


def test_the_gateway_s_metrics_count_requests_queue_and_peers(machine: Make) -> None:
    """Requests by endpoint and status, the queue and its oldest, peers: and no series that a stranger names."""
    alpha, beta = machine("alpha").serve(), machine("beta").serve()
    meet(alpha, beta)
    beta.kill()
    alpha.ok("send", "--from", "ann", "--to", "swarm:demo/beta", "--body", "later")
    with Line(alpha) as line:
        line.get("/invented-by-a-stranger")
        refused(line.post("message", {}), 400)
    found = until(lambda: (n := numbers(alpha))['peers{reached="no"}'] and n)
    assert found['requests_total{endpoint="join",status="200"}'] == 1
    assert found['requests_total{endpoint="message",status="400"}'] == 1
    assert found['requests_total{endpoint="other",status="404"}'] == 1
    assert found["outbox_messages"] == 1
    assert found["outbox_oldest_seconds"] >= 0
    assert (found["ready"], found["incoming_waiting"]) == (1, 0)
    assert not any("stranger" in name for name in found)
    log = told(alpha)
    assert {"serving", "refused", "peer_not_reached"} <= {line["event"] for line in log}
    assert all({"at", "level", "event"} <= set(line) for line in log)


# -- what was changed --------------------------------------------------------------------------------------------------


def _serial(machine: Machine) -> int:
    with secured(machine) as line:
        found = line.getpeercert()
    assert found
    return int(str(found["serialNumber"]), 16)


@pytest.fixture
def own_files(authority: Authority, tmp_path: Path) -> Authority:
    """The tests' authority, with certificate and key in files that a test may change."""
    own = object.__new__(Authority)
    own.made, own.ca = authority.made, authority.ca
    own.cert, own.key = tmp_path / "cert.pem", tmp_path / "key.pem"
    shutil.copy(authority.cert, own.cert)
    shutil.copy(authority.key, own.key)
    return own


def test_a_renewed_certificate_is_taken_up_and_a_half_written_one_is_not(machine: Make, own_files: Authority) -> None:
    """A gateway takes up a renewed certificate at the next connection, without a word to it. The old pair serves until
    both new files belong together."""
    alpha = machine("alpha")
    alpha.authority = own_files
    alpha.serve()
    before = _serial(alpha)
    renewed = own_files.made.issue_cert("localhost")
    renewed.cert_chain_pems[0].write_to_path(str(own_files.cert))
    assert _serial(alpha) == before
    assert _serial(alpha) == before
    assert [line["event"] for line in told(alpha)].count("certificate_unusable") == 1
    renewed.private_key_pem.write_to_path(str(own_files.key))
    assert _serial(alpha) != before


def test_a_reload_takes_up_the_configuration_and_no_wrong_one(machine: Make) -> None:
    """After SIGHUP the new limits hold; a wrong file changes nothing; connections stay."""
    alpha = machine("alpha", requests_per_minute=5).serve()
    assert alpha.gateway is not None
    with Line(alpha) as line:
        asked = [line.get("/swarm/info").status_code for _ in range(6)]
        assert asked == [200] * 5 + [429]
        alpha.set(requests_per_minute="many")
        alpha.gateway.send_signal(signal.SIGHUP)
        until(lambda: any(line["event"] == "reload_failed" for line in told(alpha)))
        assert line.get("/swarm/info").status_code == 429
        alpha.set(requests_per_minute=1000)
        alpha.gateway.send_signal(signal.SIGHUP)
        until(lambda: line.get("/swarm/info").status_code == 200)


def test_a_reload_takes_up_the_certificate_beside_a_live_connection(machine: Make, own_files: Authority) -> None:
    """SIGHUP is enough, without a new connection, and whatever is wrong with the configuration; files that are no
    certificate leave the one in use, and the log says so. Who is connected stays so."""
    alpha = machine("alpha")
    alpha.authority = own_files
    alpha.serve()
    assert alpha.gateway is not None

    def logged(event: str) -> int:
        return [line["event"] for line in told(alpha)].count(event)

    before = _serial(alpha)
    with Line(alpha) as line:
        assert line.get("/swarm/info").status_code == 200
        renewed = own_files.made.issue_cert("localhost")
        renewed.private_key_pem.write_to_path(str(own_files.key))
        renewed.cert_chain_pems[0].write_to_path(str(own_files.cert))
        alpha.set(requests_per_minute="many")
        alpha.gateway.send_signal(signal.SIGHUP)
        until(lambda: logged("certificate_renewed") == 1)
        assert logged("reload_failed") == 1
        assert line.get("/swarm/info").status_code == 200
        after = _serial(alpha)
        assert after != before
        own_files.cert.write_text("no certificate\n")
        alpha.gateway.send_signal(signal.SIGHUP)
        until(lambda: logged("certificate_unusable") == 1)
        assert line.get("/swarm/info").status_code == 200
        assert _serial(alpha) == after
        own_files.cert.unlink()
        alpha.gateway.send_signal(signal.SIGHUP)
        until(lambda: logged("certificate_unusable") == 2)
        assert _serial(alpha) == after
    assert (logged("certificate_renewed"), logged("certificate_unusable")) == (1, 2)
