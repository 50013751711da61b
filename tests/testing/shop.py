"""An application for tests of the kit, and the kit that runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from penstock import (
    Penstock,
    current,
)
from penstock.testing import Kit

MakeKit = Callable[..., Kit]


@dataclass
class Address:
    street: str
    since: datetime


class Shop:
    """An application with a job of each sort, and what they did."""

    def __init__(self) -> None:
        self.app = Penstock("http://no-such-host.invalid")
        self.did: list[Any] = []
        self.outcome: Any = None

        @self.app.job(queue="mail", attempts=3, backoff="1m")
        def send_mail(to: str, subject: str = "hi") -> Any:
            self.did.append((to, subject, current().attempts))
            if isinstance(self.outcome, BaseException):
                raise self.outcome
            return self.outcome

        @self.app.job(queue="post")
        async def send_parcel(address: Address) -> str:
            await asyncio.sleep(0)
            self.did.append(address)
            return "sent"

        @self.app.job
        def order(customer: str) -> None:
            send_mail.enqueue(customer)

        self.send_mail, self.send_parcel, self.order = send_mail, send_parcel, order


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def kit(shop: Shop, penstock_kit: MakeKit, kit_url: str) -> Kit:
    return penstock_kit(shop.app, url=kit_url)
