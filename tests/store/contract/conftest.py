"""After every test of the contract the books must balance."""

from collections.abc import Iterator

import pytest

from tests.store.desk import Desk
from tests.store.recount import check_books


@pytest.fixture(autouse=True)
def books_balance(desk: Desk) -> Iterator[None]:
    yield
    check_books(desk)
