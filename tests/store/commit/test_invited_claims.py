"""Claims that wait are invited to the commit of a send, and get its messages at once."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from penstock.domain.limits import MINUTE
from penstock.ports.store import Claim
from tests.factories import a_new_message


@pytest.fixture
def mail(driver):
    return driver.queue("mail")


@pytest.fixture
def wakeups(driver, mail) -> list[Any]:
    """How many messages each commit has announced."""
    found: list[Any] = []
    driver.store.listen(lambda woken: found.append(woken[mail.queue_no]))
    return found


def invite(driver, mail, claimed: list[Any], *, limit: int = 1) -> Callable[..., bool]:
    """Claims once, in the next iteration of the loop."""
    is_invited = False

    def invite(loop: asyncio.AbstractEventLoop, sends: Any) -> bool:
        nonlocal is_invited
        if is_invited or not list(sends):
            return False
        is_invited = True
        claim = Claim(queue_no=mail.queue_no, now=driver.now, limit=limit)
        loop.call_soon(lambda: driver.store.claim(claim).then(claimed.append))
        return True

    return invite


async def send(driver, mail, count: int, **draft: Any) -> Any:
    return await driver.store.send(
        [a_new_message(mail, now=driver.now, **draft) for _ in range(count)]
    )


def test_an_invited_claim_gets_what_is_being_sent(driver, mail, wakeups):
    claimed: list[Any] = []
    driver.store.invite_claims(invite(driver, mail, claimed))

    [sent] = asyncio.run(send(driver, mail, 1))

    [answer] = claimed  # although it came after the send: both were in one commit
    assert [message.id for message, _ in answer.messages] == [sent.id]
    assert wakeups == []  # nothing is left for others


def test_other_claims_are_woken_for_what_invited_ones_leave(driver, mail, wakeups):
    driver.store.invite_claims(invite(driver, mail, [], limit=2))

    asyncio.run(send(driver, mail, 5))

    assert wakeups == [3]


def test_older_messages_of_invited_claims_do_not_count(driver, mail, wakeups):
    driver.send_many(mail, 2)
    wakeups.clear()
    driver.store.invite_claims(invite(driver, mail, [], limit=2))

    asyncio.run(send(driver, mail, 5))

    assert wakeups == [5]


def test_a_new_due_date_is_announced_although_all_ready_messages_are_claimed(driver, mail, wakeups):
    driver.store.invite_claims(invite(driver, mail, []))

    async def both() -> None:
        later = asyncio.create_task(send(driver, mail, 1, delay_ms=MINUTE))
        await send(driver, mail, 1)
        await later

    asyncio.run(both())

    assert wakeups == [0]


def test_a_failing_invitation_does_not_keep_requests_from_the_store(driver, mail):
    def fail(*_: Any) -> bool:
        raise RuntimeError("broken")

    driver.store.invite_claims(fail)

    assert len(asyncio.run(asyncio.wait_for(send(driver, mail, 2), 30))) == 2
