"""`penstock moves`, and queues by their dead-letter queue."""

from __future__ import annotations

import pytest

from tests.edge.api import Api
from tests.edge.duties import advance_moves


@pytest.fixture
def letters(api: Api) -> str:
    return api.make_queue("letters")


@pytest.fixture
def queue(api: Api, letters: str) -> str:
    return api.make_queue(dead_letter_queue=letters)


def test_a_move_is_started_shown_and_listed(cli, api: Api, server, clock, letters, queue):
    api.die(queue)

    ran = cli("moves", "start", letters, "--max-per-second", "5")
    move_id = ran.out.strip()
    advance_moves(server, clock)

    assert ran.code == 0
    assert ran.err == f"penstock: about 1 messages to move; see penstock moves {letters}\n"
    shown = cli("moves", "show", move_id, "--json").record
    assert (shown["state"], shown["moved"], shown["max_per_second"]) == ("completed", 1, 5)
    assert cli("moves", letters, "--json").records == [shown]
    assert move_id in cli("moves", letters).out
    assert "completed" in cli("moves", "show", move_id).out
    assert api.counts(queue) == {"ready": 1}


def test_a_move_to_another_queue_is_cancelled(cli, api: Api, letters, queue):
    other = api.make_queue()
    for _ in range(5):
        api.die(queue)

    move = cli("moves", "start", letters, "--to", other, "--max-per-second", "1", "--json").record
    ran = cli("moves", "cancel", move["id"], "--json")

    assert (move["state"], move["to"], move["to_move"]) == ("running", other, 5)
    assert ran.record["state"] == "cancelling"
    again = cli("moves", "cancel", move["id"])
    assert again.code == 1
    assert again.err.endswith("(move_not_running)\n")


def test_a_cancelled_move_reports_its_progress(cli, api: Api, letters, queue):
    for _ in range(5):
        api.die(queue)
    move = cli("moves", "start", letters, "--max-per-second", "1", "--json").record

    assert cli("moves", "cancel", move["id"]).out.endswith(" moved before it was cancelled\n")


def test_an_unknown_move_or_queue_is_refused(cli, letters):
    assert cli("moves", "show", "none").err.endswith("(move_not_found)\n")
    assert cli("moves", "start", letters, "--to", "none").err.endswith("(target_not_found)\n")
    assert cli("moves", "start", "none").err.endswith("(queue_not_found)\n")


def test_queues_are_listed_by_their_dead_letter_queue(cli, api: Api, letters, queue):
    ran = cli("queues", "--dead-letter-queue", letters, "--json")

    assert [record["name"] for record in ran.records] == [queue]
