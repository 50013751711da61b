"""Keys that sign with a secret file: the contents of the database are not enough to sign."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import ApiKey, Role
from penstock.domain.errors import InvalidRequest
from penstock.wiring.broker import Broker, open_broker
from tests.edge.conftest import MakeServer, some_settings
from tests.edge.live import LiveServer
from tests.edge.sqs.aws import Aws, refused

SECRET = "5f" * 32


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    return path


def new_key(broker: Broker) -> ApiKey:
    made = broker.keys.create("a test", roles=tuple(Role)).result()
    broker.refresh_keys()
    return made.key


def signed(server: LiveServer, key: ApiKey, secret: str) -> Aws:
    return Aws(server.url, key=key.key_id, secret=secret)


def test_a_reader_of_the_database_cannot_sign_as_a_key_with_a_secret_file(
    make_server: MakeServer, secret_file: Path
) -> None:
    server = make_server(auth={"required": "always", "secret_file": str(secret_file)})
    broker = server.broker
    key = new_key(broker)

    assert signed(server, key, broker.keys.signing_secret(key)).make()
    forged = access.signing_secret(key.key_id, secret=broker.store.secret)
    with refused("SignatureDoesNotMatch", status=403):
        signed(server, key, forged).make()


def test_keys_that_were_created_before_still_work(
    make_server: MakeServer, tmp_path: Path, secret_file: Path
) -> None:
    broker = open_broker(some_settings(tmp_path / "data"))
    old = new_key(broker)
    secret = broker.keys.signing_secret(old)
    broker.close()

    server = make_server(auth={"secret_file": str(secret_file)})

    assert server.broker.keys.signing_secret(old) == secret
    assert signed(server, old, secret).make()


def test_a_node_without_the_file_rejects_what_it_cannot_check_and_logs_why(
    make_server: MakeServer,
    tmp_path: Path,
    secret_file: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = open_broker(some_settings(tmp_path / "data", auth={"secret_file": str(secret_file)}))
    key = new_key(broker)
    secret = broker.keys.signing_secret(key)
    broker.close()

    server = make_server()

    with pytest.raises(InvalidRequest, match=r"auth\.secret_file"):
        server.broker.keys.signing_secret(key)
    for _ in range(2):
        with refused("InvalidClientTokenId", status=403):
            signed(server, key, secret).make()
    [line] = [record for record in caplog.records if record.name == "penstock.keys"]
    assert key.key_id in line.getMessage()
    assert SECRET not in caplog.text


@pytest.mark.parametrize("text", ["", "short", " " * 40])
def test_a_secret_that_can_be_guessed_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "secret"
    path.write_text(text)

    with pytest.raises(InvalidRequest, match="openssl rand"):
        open_broker(some_settings(tmp_path / "data", auth={"secret_file": str(path)}))


def test_a_secret_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "nowhere")

    with pytest.raises(InvalidRequest, match="cannot be read: No such file"):
        open_broker(some_settings(tmp_path / "data", auth={"secret_file": path}))
