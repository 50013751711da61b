"""Celery with an API key: it signs with the credentials that `penstock keys aws` prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from penstock.domain.access.api_key import Role
from penstock.edge.cli.main import main
from tests.edge.live import LiveServer
from tests.edge.sqs.celery.conftest import Shop, result_of
from tests.support.waiting import eventually

NewKey = Callable[..., tuple[str, str]]


@pytest.fixture
def new_key(server_with_keys: LiveServer, capsys: pytest.CaptureFixture[str]) -> NewKey:
    """The two parts of a key with these roles, as SDKs expect them."""

    def make(*roles: Role) -> tuple[str, str]:
        made = server_with_keys.broker.keys.create("celery", roles=roles, queues=("*",)).result()
        key_id = made.key.key_id
        eventually(
            lambda: server_with_keys.broker.keyring.signer(key_id)
        )  # servers read keys once a second
        capsys.readouterr()
        store = server_with_keys.broker.settings.store_url
        assert main(["keys", "aws", key_id, "--store", store, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        return shown["aws_access_key_id"], shown["aws_secret_access_key"]

    return make


@pytest.fixture
def open_guarded_shop(server_with_keys: LiveServer, tmp_path: Path) -> Callable[..., Shop]:
    (tmp_path / "results").mkdir()
    return lambda key: Shop(server_with_keys, tmp_path, key=key)


def test_a_worker_with_a_key_makes_its_queues_and_works(
    new_key: NewKey, open_guarded_shop: Callable[..., Shop]
) -> None:
    shop = open_guarded_shop(new_key(Role.PRODUCE, Role.CONSUME, Role.OPERATE))

    with shop.worker("shop"):
        assert result_of(shop.run("add", 20, 22)) == 42
        shop.wait_until_empty("shop")


def test_with_queues_that_exist_a_worker_needs_no_operators_key(
    new_key: NewKey, open_guarded_shop: Callable[..., Shop]
) -> None:
    operator = open_guarded_shop(new_key(Role.OPERATE))
    operator.sqs.create_queue(QueueName="made-before")
    shop = Shop(operator.server, operator.folder, key=new_key(Role.PRODUCE, Role.CONSUME))

    with shop.worker("made-before"):
        assert result_of(shop.run("add", 1, 1, queue="made-before")) == 2


@pytest.mark.parametrize("secret", ["wrong", None])
def test_a_client_that_signs_with_another_secret_is_rejected(
    new_key: NewKey, open_guarded_shop: Callable[..., Shop], secret: str | None
) -> None:
    key_id, _ = new_key(Role.PRODUCE)
    shop = open_guarded_shop((key_id, secret) if secret else ("unknown", "secret"))

    with pytest.raises(ClientError) as refusal:
        shop.run("add", 1, 1)

    wanted = "SignatureDoesNotMatch" if secret else "InvalidClientTokenId"
    assert refusal.value.response["Error"]["Code"] == wanted
