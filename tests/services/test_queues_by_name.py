"""Sends and claims by the name of a queue, which another node may remove and create again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.domain.errors import InvalidRequest, QueueNotFound
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.message.draft import Draft
from penstock.domain.queue.queue import QueueSettings
from penstock.outbound.dice import SystemDice
from penstock.ports.store import Sent, Store
from penstock.ports.unit_of_work import run_steps
from penstock.services.directory import Directory
from penstock.services.messages import MessageService
from penstock.services.queues import QueueService
from tests.clocks import ManualClock

DRAFT = Draft(body='"hello"')
INVALID = Draft(body='"hello"', priority=10**9)


@pytest.fixture
def messages(store: Store, clock: ManualClock) -> MessageService:
    return MessageService(store, clock, SystemDice(), DEFAULT_LIMITS, Directory(store, clock))


@pytest.fixture
def other_node(store: Store, clock: ManualClock) -> QueueService:
    """With a directory of its own."""
    return QueueService(store, clock, Directory(store, clock))


def create(node: QueueService) -> None:
    node.put("mail", QueueSettings()).result()


def replace(node: QueueService) -> None:
    node.remove("mail", force=True).result()
    create(node)


def test_a_send_to_a_replaced_queue_fails_once_and_then_reaches_the_new_one(
    messages: MessageService, other_node: QueueService
) -> None:
    create(other_node)
    assert isinstance(messages.send_to("mail", [DRAFT]).result()[0], Sent)
    replace(other_node)

    [error] = messages.send_to("mail", [DRAFT]).result()
    assert isinstance(error, QueueNotFound)
    assert "'mail'" in str(messages.error_of("mail", error))
    assert isinstance(messages.send_to("mail", [DRAFT]).result()[0], Sent)


def test_a_batch_to_a_replaced_queue_fails_once_and_names_it(
    messages: MessageService, other_node: QueueService
) -> None:
    create(other_node)
    messages.send_to("mail", [DRAFT]).result()
    replace(other_node)

    [error] = run_steps(messages.send_each("mail", [DRAFT]))
    assert isinstance(error, QueueNotFound)
    assert "'mail'" in str(error)
    assert isinstance(run_steps(messages.send_each("mail", [DRAFT]))[0], Sent)


def test_a_claim_from_a_replaced_queue_fails_once_and_then_finds_the_new_one(
    messages: MessageService, other_node: QueueService
) -> None:
    create(other_node)
    assert run_steps(messages.claim_from("mail")).messages == []
    replace(other_node)

    with pytest.raises(QueueNotFound, match="'mail'"):
        run_steps(messages.claim_from("mail"))
    messages.send_to("mail", [DRAFT]).result()
    assert len(run_steps(messages.claim_from("mail")).messages) == 1


def test_an_invalid_draft_keeps_the_others_from_being_sent_unless_each_is_sent_for_itself(
    messages: MessageService, other_node: QueueService
) -> None:
    create(other_node)

    with pytest.raises(InvalidRequest):
        messages.send_to("mail", [DRAFT, INVALID]).result()
    assert run_steps(messages.claim_from("mail")).messages == []
    sent, error = run_steps(messages.send_each("mail", [DRAFT, INVALID]))
    assert (type(sent), type(error)) == (Sent, InvalidRequest)
    assert len(run_steps(messages.claim_from("mail")).messages) == 1


def test_on_a_loop_answers_and_errors_come_to_the_callback_whether_the_queue_is_known_or_not(
    messages: MessageService, other_node: QueueService
) -> None:
    create(other_node)

    async def answer_to(name: str, draft: Draft) -> Any:
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        messages.send_to(name, [draft]).then(answered.set_result)
        return await answered

    async def program() -> list[Any]:
        unknown = [await answer_to("nowhere", DRAFT), await answer_to("mail", INVALID)]
        return [*unknown, await answer_to("mail", DRAFT), await messages.send_to("mail", [DRAFT])]

    missing, invalid, *sent = asyncio.run(program())

    assert (type(missing), type(invalid)) == (QueueNotFound, InvalidRequest)
    assert [type(answer) for [answer] in sent] == [Sent, Sent]
