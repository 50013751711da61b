"""Logins of the console: the cookie alone is not enough, and expires with its key."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.domain.access.api_key import Role
from penstock.domain.access.login import hash_token
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok
from tests.edge.conftest import MakeServer
from tests.edge.live import LiveServer
from tests.edge.native.conftest import new_key

SESSION = "/console/session"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def locked(make_server: MakeServer, clock: ManualClock) -> LiveServer:
    return make_server(clock=clock, auth={"required": "always"})


@pytest.fixture
def browser(locked: LiveServer) -> Iterator[Api]:
    """A client that keeps cookies, as browsers do."""
    client = Api(locked.url)
    yield client
    client.close()


def log_in(browser: Api, key: str) -> dict[str, Any]:
    return dict(ok(browser.call("POST", SESSION, {"key": key})))


def with_token(session: dict[str, Any]) -> dict[str, Any]:
    return {"headers": {"x-csrf-token": session["csrf_token"]}}


def test_a_browser_that_logs_in_with_a_key_is_recognised(locked: LiveServer, browser: Api) -> None:
    session = log_in(browser, new_key(locked, Role.READ))

    again = browser.get(SESSION)

    assert again == session
    assert again["caller"] == {"name": "a test", "roles": ["read"], "queues": ["*"]}
    assert browser.call("GET", "/v1/queues", **with_token(session)).status_code == 200


def test_a_cookie_alone_acts_nowhere(locked: LiveServer, browser: Api) -> None:
    log_in(browser, new_key(locked))

    for method, path in (
        ("GET", "/v1/queues"),
        ("PUT", "/v1/queues/mail"),
        ("GET", "/v1/live"),
        ("GET", "/get-stats"),
        ("POST", "/send-message"),
    ):
        assert browser.call(method, path).status_code == 401, path
    text = assert_refused(browser.call("GET", "/v1/stats"), 401, "unauthenticated")
    assert "x-csrf-token" in text


@pytest.mark.parametrize("token", ["", "x", "0" * 64, "é"])
def test_a_wrong_page_token_is_as_good_as_none(
    locked: LiveServer, browser: Api, token: str
) -> None:
    log_in(browser, new_key(locked))

    answer = browser.call("GET", "/v1/queues", headers={"x-csrf-token": token.encode()})

    assert_refused(answer, 401, "unauthenticated")


def test_the_page_token_of_one_login_is_not_good_for_another(
    locked: LiveServer, browser: Api
) -> None:
    first = log_in(browser, new_key(locked))
    log_in(browser, new_key(locked))

    assert browser.call("GET", "/v1/queues", **with_token(first)).status_code == 401


def test_scripts_and_other_sites_do_not_get_the_cookie(locked: LiveServer, browser: Api) -> None:
    answer = browser.call("POST", SESSION, {"key": new_key(locked)})

    name, _, rest = answer.headers["set-cookie"].partition("=")
    assert name.startswith("penstock_")
    assert rest.partition("; ")[2] == "Path=/; HttpOnly; SameSite=Strict"


def test_where_the_browser_came_by_tls_the_cookie_goes_no_other_way(locked: LiveServer) -> None:
    headers = {"Origin": "https://queue.example", "Host": "queue.example"}
    client = Api(locked.url)

    answer = client.call("POST", SESSION, {"key": new_key(locked)}, headers=headers)

    assert answer.headers["set-cookie"].endswith("; Secure")
    client.close()


def test_a_revoked_key_ends_its_logins(locked: LiveServer, browser: Api) -> None:
    key = new_key(locked)
    session = log_in(browser, key)

    locked.broker.keys.revoke(key.split("_")[1]).result()
    locked.broker.refresh_keys()

    assert browser.get(SESSION)["caller"] is None
    assert browser.call("GET", "/v1/queues", **with_token(session)).status_code == 401


def test_a_login_ends_after_its_time(locked: LiveServer, browser: Api, clock: ManualClock) -> None:
    session = log_in(browser, new_key(locked))

    clock.advance(hours=12, seconds=-1)
    assert browser.call("GET", "/v1/queues", **with_token(session)).status_code == 200
    clock.advance(seconds=1)
    assert browser.call("GET", "/v1/queues", **with_token(session)).status_code == 401
    assert browser.get(SESSION)["caller"] is None


def test_a_browser_that_logs_out_is_logged_out(locked: LiveServer, browser: Api) -> None:
    session = log_in(browser, new_key(locked))

    answer = browser.call("DELETE", SESSION)

    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert browser.get(SESSION)["caller"] is None
    assert browser.call("GET", "/v1/queues", **with_token(session)).status_code == 401


def test_to_log_out_ends_the_login_for_a_copy_of_the_cookie_too(
    locked: LiveServer, browser: Api
) -> None:
    session = log_in(browser, new_key(locked))
    copied = dict(browser.http.cookies.items())
    ok(browser.call("GET", "/v1/queues", **with_token(session)))

    ok(browser.call("DELETE", SESSION))

    browser.http.cookies.update(copied)
    assert browser.call("GET", "/v1/queues", **with_token(session)).status_code == 401
    assert browser.get(SESSION)["caller"] is None


def test_other_logins_of_the_same_key_continue(locked: LiveServer, browser: Api) -> None:
    key = new_key(locked)
    log_in(browser, key)
    other = Api(locked.url)
    session = log_in(other, key)

    ok(browser.call("DELETE", SESSION))

    assert other.call("GET", "/v1/queues", **with_token(session)).status_code == 200
    other.close()


@pytest.mark.parametrize("key", ["", "pk", "pk_1_2", "pk_é_2", "a" * 5_000])
def test_an_invalid_key_opens_nothing(locked: LiveServer, browser: Api, key: str) -> None:
    answer = browser.call("POST", SESSION, {"key": key})

    assert_refused(answer, 401, "unauthenticated")
    assert "set-cookie" not in answer.headers


def test_a_forged_login_opens_nothing(locked: LiveServer, browser: Api) -> None:
    session = log_in(browser, new_key(locked))
    [(name, token)] = browser.http.cookies.items()
    forged = [token[:-1], f"{token}0", "0" * len(token), f"{token}.", "'", ""]

    for value in forged:
        browser.http.cookies.clear()
        browser.http.cookies.set(name, value)
        assert browser.call("GET", "/v1/queues", **with_token(session)).status_code == 401, value
        assert browser.get(SESSION)["caller"] is None


def test_a_login_may_do_what_its_key_may_and_no_more(locked: LiveServer, browser: Api) -> None:
    log_in(browser, new_key(locked))
    session = log_in(browser, new_key(locked, Role.READ, queues=("mail*",)))

    assert browser.call("GET", "/v1/queues/mail", **with_token(session)).status_code == 404
    assert browser.call("GET", "/v1/queues/other", **with_token(session)).status_code == 403
    assert browser.call("PUT", "/v1/queues/mail", **with_token(session)).status_code == 403


def test_other_sites_cannot_log_anybody_in(locked: LiveServer, browser: Api) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = browser.call("POST", SESSION, {"key": new_key(locked)}, headers=headers)
        assert_refused(answer, 403, "forbidden")


def test_without_keys_there_is_no_login(make_server: MakeServer) -> None:
    client = Api(make_server().url)

    session = client.get(SESSION)

    assert (session["is_key_needed"], session["caller"]["name"]) == (False, "anyone")
    assert_refused(client.call("POST", SESSION, {"key": "pk_1_2"}), 400, "invalid_request")
    client.close()


def test_nothing_in_the_store_makes_a_login(locked: LiveServer, browser: Api) -> None:
    """Everything that a reader of the database can see, tried as a cookie and as its token."""
    session = log_in(browser, new_key(locked))
    [(name, token)] = browser.http.cookies.items()
    found = everything_in(locked)
    assert token not in found
    assert session["csrf_token"] not in found
    secret, key_id = locked.broker.store.secret, new_key(locked).split("_")[1]
    until = locked.broker.clock.now() + 1_000_000
    signed = hmac.digest(secret, f"login {key_id}.{until}.{'0' * 32}".encode(), "sha256").hex()
    guesses = [f"{key_id}.{until}.{'0' * 32}.{signed}", *re.findall("[0-9a-f]{40,}", found)]

    for guess in dict.fromkeys(guesses):
        browser.http.cookies.clear()
        browser.http.cookies.set(name, guess)
        for page_token in (session["csrf_token"], hmac.digest(secret, b"page", "sha256").hex()):
            headers = {"x-csrf-token": page_token}
            assert browser.call("GET", "/v1/queues", headers=headers).status_code == 401
        assert browser.get(SESSION)["caller"] is None


def everything_in(server: LiveServer) -> str:
    path = server.broker.settings.sqlite_path
    assert path is not None
    return "".join(
        file.read_bytes().decode("latin-1") for file in sorted(path.parent.glob(f"{path.name}*"))
    )


def test_expired_logins_are_removed_from_the_store(
    locked: LiveServer, browser: Api, clock: ManualClock
) -> None:
    def number() -> int:
        def do(session: Any) -> int:
            return len(session.db.rows("logins.find", {"token_hash": first}))

        return int(locked.broker.store.read(do).result())

    log_in(browser, new_key(locked))
    [(_, token)] = browser.http.cookies.items()
    first = hash_token(token)
    assert number() == 1

    clock.advance(hours=12)
    log_in(browser, new_key(locked))

    assert number() == 0
