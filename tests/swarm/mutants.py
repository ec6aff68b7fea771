"""Protections of the gateway, each with how it is taken away and the test that must miss it; see
``tests.faults.mutants``."""

from __future__ import annotations

MAILBOXES = "tests/swarm/test_mailboxes.py"
PROTOCOL, REFUSALS, GATEWAYS, TIME, BESIDE = (
    f"tests/swarm/test_{name}.py" for name in ("protocol", "refusals", "gateways", "time", "beside")
)
PROOFS, CLOCKS, FAULTS, PRESSURE, BOUNDED, OBSERVED = (
    f"tests/swarm/test_{name}.py" for name in ("proofs", "clocks", "faults", "pressure", "bounded", "observed")
)
SEALED = f"{PROOFS}::test_who_sealed_once_is_heard_sealed_alone"
AGREED = f"{CLOCKS}::test_everybody_knows_who_is_in_whatever_their_clocks_say"
TAMPERED = f"{PROTOCOL}::test_the_vector_is_accepted_and_every_tampered_signed_field_is_not"
NO_MESSAGE = f"{PROTOCOL}::test_what_is_no_message_for_us_is_refused"
TOKENS = f"{PROTOCOL}::test_nobody_joins_by_a_token_that_is_not_ours"
SAY = f"{REFUSALS}::test_what_is_signed_well_and_still_not_ours_to_take"
REPLAY = f"{REFUSALS}::test_a_replay_has_no_second_effect"

IDENTITY, PAIR, STATUSES = (f"tests/swarm/test_{name}.py" for name in ("identity", "pair", "statuses"))

TAKEN = (
    (
        "no command signs with a key that the swarms do not know",
        "gateway_identity.key_of",
        ("    if others := strangers(known, signing.public_of(key)):", "    if others := ():"),
        f"{IDENTITY}::test_another_key_in_its_place_is_noticed_too",
    ),
    (
        "a key that a swarm knows is not replaced",
        "gateway_identity.take_new_key",
        ("        if ours:", "        if False:"),
        f"{IDENTITY}::test_a_new_key_begins_with_new_memberships",
    ),
    (
        "one key is one agent",
        "membership.bearer_of",
        ('if agent != less), "")', 'if False), "")'),
        f"{IDENTITY}::test_one_key_is_one_agent",
    ),
    (
        "a secret does not leave by a command",
        "leaving.check",
        ("(found := secret_in(message, directory))", "(found := '')"),
        "tests/swarm/test_gateways.py::test_a_secret_does_not_leave_unless_the_person_insists",
    ),
    (
        "only the person lets a secret leave",
        "leaving.is_allowed",
        (" and proofs.is_person(proof)", ""),
        "tests/swarm/test_gateways.py::test_a_secret_does_not_leave_unless_the_person_insists",
    ),
    (
        "a secret does not leave by another program's line",
        "outbox.Outbox._peers",
        ("        found = leaving.secret_in(message, self.mailbox.directory)", "        found = ''"),
        "tests/swarm/test_gateways.py::test_a_secret_does_not_leave_unless_the_person_insists",
    ),
    (
        "mail from another machine makes no team",
        "mirror.team_of",
        ("None if is_remote(message.sender) else message.metadata", "message.metadata"),
        "tests/swarm/test_mailbox_side.py::test_mail_from_elsewhere_makes_no_team",
    ),
    (
        "mail from another machine does not outrank that of this one",
        "budget._is_from_elsewhere",
        ("    return is_remote(item.message.sender)", "    return False"),
        "tests/claude/test_budget.py::"
        "test_mail_from_another_machine_is_behind_that_of_this_one_however_urgent_it_says_it_is",
    ),
    (
        "a record of a gateway has all its members",
        "gateway_events.problem",
        ("        model.model_validate(event)", "        pass"),
        "tests/swarm/test_damaged_records.py::"
        "test_a_record_that_lacks_a_member_is_passed_by_and_both_doctors_name_its_line",
    ),
    (
        "a message of a swarm is signed by its sender",
        "acceptance.examine",
        ("not signing.verifies(envelope, envelope.signature, sender.public_key)", "False"),
        TAMPERED,
    ),
    (
        "a message is for this agent, or for all",
        "acceptance.examine",
        ("if envelope.recipient not in (wire.BROADCAST, known.agent_id):", "if False:"),
        NO_MESSAGE,
    ),
    (
        "a message is of this quarter of an hour",
        "acceptance.examine",
        ("    if abs(instant.parse(envelope.timestamp) - now) > wire.FRESH:", "    if False:"),
        f"{PROTOCOL}::test_a_stale_or_future_timestamp_is_refused",
    ),
    (
        "base64 has one spelling",
        "wire.unbase64",
        ("    if base64.b64encode(data).decode() != text:", "    if False:"),
        f"{PROTOCOL}::test_a_signature_has_one_spelling",
    ),
    (
        "no key stands in an object twice",
        "wire._pairs",
        ("    if len(found) != len(pairs):", "    if False:"),
        f"{PROTOCOL}::test_json_is_read_strictly",
    ),
    (
        "no id ends in a type",
        "wire.is_admissible",
        (" and not agent_id.endswith(TYPES)", ""),
        f"{PROTOCOL}::test_no_id_lets_a_message_verify_as_another",
    ),
    (
        "a key of small order is no key",
        "wire.raw_key",
        ("    if key[:31] + bytes([key[31] & 0x7F]) in _SMALL:", "    if False:"),
        f"{REFUSALS}::test_nobody_joins_by_what_is_no_token_of_ours",
    ),
    (
        "a token's signature is verified",
        "tokens._payload",
        ('    options: Any = {"verify_signature": key is not None}', '    options: Any = {"verify_signature": False}'),
        TOKENS,
    ),
    (
        "a use is counted by what was signed",
        "tokens.fingerprint",
        ('token.rpartition(".")[0].encode', "token.encode"),
        f"{PROTOCOL}::test_a_token_spelt_otherwise_is_the_same_token",
    ),
    (
        "a token has so many uses",
        "admission._check_token",
        ("len(use.by) >= claims.max_uses", "False"),
        f"{REFUSALS}::test_two_joins_race_one_use",
    ),
    (
        "joining is decided under the ledger's lock",
        "Gateway._admit",
        (
            "admission.decide(request, known, self.ledger.now(), proof)",
            "admission.decide(request, before, self.ledger.now(), proof)",
        ),
        (
            "        def decide(known: Knowledge) -> tuple[list[Event], Admission]:\n",
            "        before = self._before = getattr(self, '_before', self.ledger.known())\n"
            "        def decide(known: Knowledge) -> tuple[list[Event], Admission]:\n",
        ),
        f"{REFUSALS}::test_two_joins_race_one_use",
    ),
    (
        "nobody is re-keyed by asking again",
        "admission.decide",
        ("        if member.public_key != new.public_key:\n", "        if False:\n"),
        f"{PROTOCOL}::test_a_token_of_one_use_lets_one_in_and_the_same_one_again",
    ),
    (
        "who was kicked needs a new invitation",
        "membership._gone",
        ('(*swarm.denied, agent_id) if event["event"] == "kicked" else swarm.denied', "swarm.denied"),
        f"{PROTOCOL}::test_who_was_kicked_needs_a_new_invitation",
    ),
    (
        "only the master says who is in",
        "lifecycle.decide",
        ("    if action in _MASTERS and sender != swarm.master:", "    if False:"),
        SAY,
    ),
    (
        "an agent leaves by its own word",
        "lifecycle.decide",
        ("        if about != sender:\n", "        if False:\n"),
        SAY,
    ),
    (
        "a false master's answer is no membership",
        "admission.entered",
        ('    tokens.verified(token, signer["public_key"])\n', ""),
        f"{PROTOCOL}::test_the_answer_to_a_join_is_believed_only_with_the_key_that_signed_the_invitation",
    ),
    (
        "a message is kept once",
        "Gateway",
        ("        if key in self.index:\n            return\n", ""),
        ("            if known_as(accepted) in self.index:", "            if False:"),
        REPLAY,
    ),
    (
        "what a wrong clock forgot is known again",
        "Gateway._prune",
        ("        elif self._pruned - now > instant.HOUR:", "        elif False:"),
        f"{TIME}::test_a_clock_that_was_ahead_doubles_nothing",
    ),
    (
        "a wrong clock delays mail and loses none",
        "outgoing.verdict",
        ("    if answer.status == 400 and answer.code == _WRONG_CLOCK:", "    if False:"),
        f"{TIME}::test_a_wrong_clock_delays_mail_and_loses_none",
    ),
    (
        "a mailbox sees its own swarms alone",
        "Knowledge.sees",
        ("return not self.here or ", "return True or "),
        f"{MAILBOXES}::test_a_mailbox_sees_and_steers_its_own_swarms_alone",
    ),
    (
        "mail goes to the mailbox of its swarm",
        "Gateway._mailbox_of",
        ("return self._mailboxes.get(place) if place else self.mailbox", "return self.mailbox"),
        f"{MAILBOXES}::test_mail_of_each_swarm_goes_to_its_mailbox_alone",
    ),
    (
        "a swarm that another mailbox is in stays there",
        "joining._refuse_another",
        ("and not known.sees(there):", "and False:"),
        f"{MAILBOXES}::test_a_mailbox_sees_and_steers_its_own_swarms_alone",
    ),
    (
        "a mailbox has one gateway",
        "pairing._check_home",
        ("other not in (None, mine)\n", "False\n"),
        f"{BESIDE}::test_a_mailbox_has_one_gateway_and_a_gateway_one_mailbox",
    ),
    (
        "a notice is told once, whoever tells it",
        "Outbox.announce",
        ("take_in(here, {message.id for message in here})", "take_in(here)"),
        f"{BESIDE}::test_what_happened_is_told_once_whoever_tells_it",
    ),
    (
        "a message is known by its sender, too",
        "inbound.key_of",
        ('f"{swarm_id} {sender} {message_id}"', 'f"{swarm_id} {message_id}"'),
        REPLAY,
    ),
    (
        "what was taken in is known after a restart",
        "Gateway.__init__",
        ("        self.index = inbound.load(mailboxes, ledger.now())", "        self.index = inbound.InboundIndex()"),
        f"{GATEWAYS}::test_what_came_before_a_restart_is_known_after_it",
    ),
    (
        "limits count verified senders alone",
        "Gateway.message",
        (
            "        known, now = self.known(), self.ledger.now()\n        limits",
            "        known, now = self.known(), self.ledger.now()\n"
            '        _limited(self._senders.take("bob", now), "x")\n        limits',
        ),
        f"{REFUSALS}::test_the_limits_of_the_founding_text_are_the_defaults",
    ),
    (
        "forwarding headers are believed of known proxies alone",
        "limits.origin",
        ("            if _plain(found) not in trusted:\n                break\n", ""),
        f"{REFUSALS}::test_the_limits_of_the_founding_text_are_the_defaults",
    ),
    (
        "a body is bounded",
        "server.body_of",
        ("            if len(data) > most:\n", "            if False:\n"),
        f"{REFUSALS}::test_bodies_that_are_none",
    ),
    (
        "one address has its share of the places",
        "Room.enter",
        ("        if not speaks_for_many and self._inside[address] >= self.each:", "        if False:"),
        f"{BOUNDED}::test_one_address_that_opens_a_thousand_connections_keeps_nobody_out",
    ),
    (
        "strangers leave places to members",
        "Room.enter",
        ("self.total if known else self.total - self.total // KEPT", "self.total"),
        f"{BOUNDED}::test_a_member_gets_in_while_strangers_fill_the_room",
    ),
    (
        "who takes no answer loses the connection",
        "Bounded.__call__",
        ("asyncio.timeout(WRITING)", "asyncio.timeout(None)"),
        f"{BOUNDED}::test_an_http2_window_of_nothing_holds_no_connection",
    ),
    (
        "who reads nothing loses the connection",
        "Served.is_over",
        ("now - self._moved > WRITING or ", ""),
        f"{BOUNDED}::test_who_reads_nothing_of_an_answer_loses_the_connection",
    ),
    (
        "who hung up holds no place",
        "Connection._read_data",
        ("        await self.idle_task.stop()\n", ""),
        f"{BOUNDED}::test_who_hangs_up_gives_its_place_back",
    ),
    (
        "an address of QUIC proves itself first",
        "BoundedQuic._begin",
        ("        if not header.token:", "        if False:"),
        f"{BOUNDED}::test_a_first_packet_of_quic_takes_no_place",
    ),
    (
        "each kind of line has its number a minute",
        "Sparing.filter",
        ("        if count >= MOST:", "        if False:"),
        f"{BOUNDED}::test_each_kind_of_line_has_its_number_a_minute",
    ),
    (
        "without its ledger a gateway refuses nothing for good",
        "gateway._identified",
        ("    if not known.agent_id:", "    if False:"),
        f"{OBSERVED}::test_without_its_ledger_a_gateway_asks_to_come_again_and_gives_nothing_up",
    ),
    (
        "without its ledger a gateway gives no mail up",
        "Outbox._sweep",
        ("self.ledger.identified()  # ", "self.ledger.known()  # "),
        "tests/swarm/test_pressure.py::test_mail_waits_for_a_ledger_that_goes_as_it_is_looked_at",
    ),
    (
        "a pair that does not belong together is not served",
        "Certificates.reload",
        ("            return False\n", "            raise\n"),
        f"{OBSERVED}::test_a_renewed_certificate_is_taken_up_and_a_half_written_one_is_not",
    ),
    (
        "SIGHUP is enough for a renewed certificate",
        "gateway_process.run",
        ("            tls.reload()\n", "            pass\n"),
        f"{OBSERVED}::test_a_reload_takes_up_the_certificate_beside_a_live_connection",
    ),
    (
        "a wrong configuration keeps no renewed certificate out",
        "GatewayProcess.reload",
        ("            return\n", "            raise\n"),
        f"{OBSERVED}::test_a_reload_takes_up_the_certificate_beside_a_live_connection",
    ),
    (
        "a socket that others can open is not asked",
        "InboxView._ask",
        (" or mode_problem(place)", ""),
        f"{STATUSES}::test_a_socket_that_others_can_open_is_not_asked",
    ),
    (
        "a malformed answer at the gateway's socket is passed by",
        "inbox_view._row",
        ("    if not isinstance(entry, dict):\n        return None\n", ""),
        f"{STATUSES}::test_what_answers_at_the_socket_is_believed_only_if_it_is_well_formed",
    ),
    (
        "a gateway answers for its own mailbox alone",
        "AllStatuses.within",
        ("if place in (None, os.path.realpath(one.mailbox.directory))]", "]"),
        f"{STATUSES}::test_a_gateway_answers_for_its_own_mailbox_alone",
    ),
    (
        "nobody is connected to at a private address",
        "Peers._addresses",
        ("if self._may_be_at(address)]", "]"),
        f"{GATEWAYS}::test_a_gateway_speaks_to_no_private_address",
    ),
    (
        "nobody elsewhere answers what is said among us",
        "inbound._parent",
        ("    return index.place(message_id)\n", "    return message_id\n"),
        f"{REFUSALS}::test_nobody_elsewhere_answers_what_is_said_among_us",
    ),
    (
        "a decision holds what is to be told of it",
        "Outbox.announce",
        ("in self.ledger.announcements(self.refresh().senders) if", "in () if"),
        f"{GATEWAYS}::test_members_come_and_go",
    ),
    (
        "a seal is the sender's",
        "acceptance.examine",
        ("not signing.seal_holds(signing.MESSAGE, value, sender.public_key)", "False"),
        SEALED,
    ),
    (
        "who sealed once must seal",
        "acceptance.examine",
        ("envelope.seal is None and sender.public_key in known.sealing", "False"),
        SEALED,
    ),
    (
        "who sealed once is remembered",
        "Gateway.message",
        ("            await self._pool_run(lambda: self._pin(key))\n", "            pass\n"),
        SEALED,
    ),
    (
        "a seal of a request to join holds",
        "admission.parse",
        ("not signing.seal_holds(signing.JOIN, value, request.sender.public_key)", "False"),
        f"{PROOFS}::test_a_seal_of_a_request_holds_or_is_refused",
    ),
    (
        "a request to join is answered once",
        "admission._answered_once",
        ("    if request.message_id in swarm.asked:\n", "    if False:\n"),
        f"{PROOFS}::test_a_request_is_answered_once",
    ),
    (
        "a member with an old invitation shows that it is one",
        "admission.decide",
        ("            _check_unproven(claims, swarm.uses.get(token, Use()), member, now)\n", "            pass\n"),
        f"{PROOFS}::test_a_member_with_an_invitation_that_is_no_longer_good_shows_that_it_is_the_member",
    ),
    (
        "an event is dated after what it follows upon",
        "wire.later",
        ("max(now, instant.parse(past) + 1) if past else now", "now"),
        AGREED,
    ),
    (
        "an event counts ahead of its message",
        "lifecycle.decide",
        ("instant.text(instant.parse(envelope.timestamp) + wire.FRESH)", "envelope.timestamp"),
        AGREED,
    ),
    (
        "a decision holds what those here are told of it",
        "_decide_system.recorded",
        ('{**event, "announce": [announce_received(message)]}', "event"),
        f"{FAULTS}::test_what_changed_a_swarm_is_told_whoever_dies_before_telling_it",
    ),
    (
        "mail does not end before its sender says",
        "inbound.message_of",
        ("expires_at=acceptance.expiry(envelope)", "ttl_hours=1"),
        f"{PROOFS}::test_mail_never_ends_before_its_sender_says_so",
    ),
    (
        "what was decided and not kept is told once",
        "Gateway._write_to",
        ("ids & self._decided)", "())"),
        f"{PRESSURE}::test_what_could_not_be_kept_at_once_is_told_once",
    ),
    (
        "who repeats a message uses up nothing",
        "Gateway.message",
        ("if known_as(accepted) in self.index or known_as(accepted) in self._writing:", "if False:"),
        f"{PRESSURE}::test_who_repeats_what_another_said_uses_up_nothing_of_it",
    ),
    (
        "a key asks so often an hour",
        "_admit.decide",
        ('                _limited(wait, "requests to join by this key")\n', ""),
        f"{PRESSURE}::test_who_asks_again_and_again_from_everywhere_is_limited",
    ),
    (
        "a refusal is of the invitation that was asked by",
        "stop.decide",
        ("(swarm.state, swarm.invitation) == (JOINING, asked.invitation)", "swarm.state == JOINING"),
        f"{PRESSURE}::test_a_late_refusal_of_one_invitation_does_not_end_a_joining_by_another",
    ),
    (
        "a mailbox is believed about its gateway if that says so",
        "mailbox_gateway.gateway_of",
        ("here in places_of(home))", "True)"),
        f"{BESIDE}::test_the_doctor_looks_at_no_gateway_of_another_mailbox",
    ),
    (
        "an invitation's key counts alone",
        "peer_client._trusts",
        ("(key,) if only else", "(key,) if False else"),
        f"{PAIR}::test_a_man_in_the_middle_hears_nothing",
    ),
    (
        "an invitation's key made it",
        "tokens._key",
        ("        verified(token, key)", "        pass"),
        f"{PAIR}::test_an_invitation_whose_key_was_replaced_is_refused_before_anything_is_sent",
    ),
    (
        "the invitation's master answers",
        "joining._entering",
        ("    if invitation.key and ", "    if False and "),
        f"{PAIR}::test_the_answer_names_the_invitations_key",
    ),
    (
        "a key vouches for its endpoint's name alone",
        "own_certificate.believing",
        ("    made.minimum_version", "    made.check_hostname = False\n    made.minimum_version"),
        f"{PAIR}::test_whose_word_for_a_certificate_counts",
    ),
    (
        "a new key of the gateway has a new certificate",
        "own_certificate._is_good",
        ("        by.verify(found.signature, found.tbs_certificate_bytes)\n", ""),
        f"{PAIR}::test_the_certificate_is_made_when_it_is_needed",
    ),
    (
        "a listing of the outbox keeps no text of what is over",
        "outgoing.Outgoing.apply",
        ("                    parcel.event = _without_text(parcel.event)\n", ""),
        f"{PROTOCOL}::test_a_listing_has_the_latest_of_each_swarm_and_counts_them_all",
    ),
    (
        "the inbox is read again once the steward replaced a log",
        "statuses.Statuses._look",
        ("        if any(map(_is_replaced, (self._mail, self._records, self._events))):", "        if False:"),
        f"{STATUSES}::test_the_fold_follows_mail_reading_marks_and_the_steward",
    ),
    (
        "archived mail that was read stays read",
        "statuses.Statuses._look",
        ("self.mailbox.archive.reads() if began else ()", "()"),
        f"{STATUSES}::test_the_fold_follows_mail_reading_marks_and_the_steward",
    ),
    (
        "the gateway's view of its inbox remembers what it read",
        "statuses.Statuses._look",
        ("        if any(map(_is_replaced, (self._mail, self._records, self._events))):", "        if True:"),
        f"{STATUSES}::test_a_question_reads_no_history",
    ),
)
"""(what is protected, the file under ``swarm/``, the patches …, the test that must fail)."""
