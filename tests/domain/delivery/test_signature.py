"""Signatures by the Standard Webhooks specification, with the vector of its own libraries."""

import base64
import hashlib
import hmac

import pytest

from penstock.domain.delivery.signature import key_of, sign
from penstock.domain.errors import InvalidRequest

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"


def test_a_signature_is_the_one_that_others_expect():
    headers = dict(
        sign([SECRET], message_id=ID, now=1_614_265_330_999, payload=b'{"test": 2432232314}')
    )

    assert headers == {
        "webhook-id": ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_every_secret_gives_a_signature_so_that_one_can_be_replaced():
    other = "whsec_" + base64.b64encode(b"o" * 32).decode()

    signature = dict(sign([SECRET, other], message_id="m", now=5_000, payload=b"x"))[
        "webhook-signature"
    ]

    mac = hmac.digest(b"o" * 32, b"m.5.x", hashlib.sha256)
    assert len(signature.split(" ")) == 2
    assert signature.split(" ")[1] == f"v1,{base64.b64encode(mac).decode()}"


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_short", "whsec_###", "a" * 200])
def test_an_invalid_secret_is_refused_and_not_repeated_in_the_error(secret):
    with pytest.raises(InvalidRequest) as refused:
        key_of(secret)

    assert not secret or secret.removeprefix("whsec_") == "" or secret not in str(refused.value)
