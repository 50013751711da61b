"""Routes and circuits: states, failure ratio, held queues; opening and closing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.domain.access.api_key import Role
from penstock.domain.circuit.circuit import OutcomeReport, RequestOutcome, circuit_hash
from penstock.services.circuits.permits import PermitRequest
from tests.clocks import ManualClock
from tests.console.conftest import NewKey, OpenConsole, run_in_thread
from tests.console.driver import Console, expect
from tests.console.login import log_in
from tests.console.shell import run_call, run_command
from tests.edge.api import Api, ok
from tests.edge.live import LiveServer

SHOP, MAIL = "/shop/(.*)", "/mail/(.*)"
HOSTILE = "/<img src=x onerror=alert(1)>"
UNREACHABLE = "http://127.0.0.1:9/"


@pytest.fixture
def routes(server: LiveServer, api: Api) -> Iterator[None]:
    rules = {pattern: {"url": UNREACHABLE} for pattern in (SHOP, MAIL, HOSTILE)}
    ok(api.call("PUT", "/v1/routes", {"rules": rules}))
    noting = {"circuit_check_enabled": True, "statistics_update_enabled": True}
    ok(api.call("PATCH", "/v1/breaker", noting))
    run_in_thread(server.broker.circuits.refresh)
    ok(api.call("POST", "/v1/circuits/unhold"))
    yield
    ok(api.call("POST", "/v1/circuits/close"))
    ok(api.call("POST", "/v1/circuits/unhold"))
    ok(api.call("PUT", "/v1/routes", {"rules": {}}))
    ok(api.call("DELETE", "/v1/breaker"))
    for one in api.get("/v1/circuits/settings")["circuits"]:
        ok(api.call("DELETE", f"/v1/circuits/{one['circuit']}/settings"))
    run_in_thread(server.broker.circuits.refresh)


def tried(server: LiveServer, pattern: str, *outcomes: RequestOutcome) -> None:
    """Report outcomes of a route, as the pusher does."""

    def do() -> None:
        broker = server.broker
        for number, outcome in enumerate(outcomes):
            [permitted] = broker.circuits.permits([PermitRequest(pattern)]).result()
            request_id = f"{pattern}-{broker.clock.now()}-{number}"
            broker.circuits.report([OutcomeReport(permitted, request_id, outcome)]).result()

    run_in_thread(do)


@pytest.mark.usefixtures("routes")
def test_circuits_are_listed_worst_first_beside_their_routes(
    console: Console, api: Api, server: LiveServer
) -> None:
    tried(server, MAIL, RequestOutcome.SUCCESS)
    ok(api.call("POST", f"/v1/circuits/{circuit_hash(SHOP)}/open"))

    console.open("/console/circuits")

    shop, mail = circuit_hash(SHOP), circuit_hash(MAIL)
    expect(console.cell(shop, "State")).to_have_text("open")
    expect(console.cell(mail, "State")).to_have_text("closed")
    listed = console.keys()
    known = [key for key in listed if key in (shop, mail)]
    assert known == [shop, mail]
    expect(console.page.locator("main")).to_contain_text(UNREACHABLE)
    expect(console.page.locator("main")).to_contain_text("error_threshold_percentage")
    console.shoot("circuits")


@pytest.mark.usefixtures("routes")
def test_a_circuit_shows_its_failure_ratio_and_its_history(
    console: Console, api: Api, server: LiveServer, clock: ManualClock
) -> None:
    tried(server, SHOP, *[RequestOutcome.SUCCESS] * 3, RequestOutcome.FAILURE)
    clock.advance(minutes=1)
    tried(server, SHOP, RequestOutcome.FAILURE, RequestOutcome.SUCCESS)
    minutes = api.get(f"/v1/circuits/{circuit_hash(SHOP)}/samples")["minutes"]
    assert [(m["successes"], m["failures"], m["fail_ratio"]) for m in minutes] == [
        (3, 1, 25),
        (1, 1, 50),
    ]
    ok(api.call("POST", f"/v1/circuits/{circuit_hash(SHOP)}/open"))

    console.open(f"/console/circuits/{circuit_hash(SHOP)}")

    expect(console.page.locator('[data-chart="Failures"] svg path').first).to_be_attached()
    expect(console.page.locator('[data-step="circuit_opened"]').first).to_be_visible()
    console.shoot("circuit")


@pytest.mark.usefixtures("routes")
def test_a_circuit_is_opened_and_closed_by_button_command_and_call(
    console: Console, api: Api, server: LiveServer
) -> None:
    tried(server, SHOP, RequestOutcome.SUCCESS)
    path = f"/v1/circuits/{circuit_hash(SHOP)}"

    def is_(state: str) -> None:
        assert api.get(path)["state"] == state

    console.open(f"/console/circuits/{circuit_hash(SHOP)}")
    console.ask("Force open").confirm()
    expect(console.heading.locator(".badge").first).to_have_text("open")
    is_("open")
    run_command(console.ask("Close").command())
    is_("closed")
    console.dialog.confirm()
    expect(console.heading.locator(".badge").first).to_have_text("closed")
    run_call(console.ask("Force open").call())
    is_("open")
    console.dialog.confirm()
    console.open("/console/circuits")
    run_call(console.ask("Close").call())
    is_("closed")


@pytest.mark.usefixtures("routes")
@pytest.mark.parametrize("way", ["button", "command", "call"])
def test_all_circuits_are_counted_and_then_closed_together(
    console: Console, api: Api, way: str
) -> None:
    for pattern in (SHOP, MAIL):
        ok(api.call("POST", f"/v1/circuits/{circuit_hash(pattern)}/open"))

    console.open("/console/circuits")
    dialog = console.ask("Close all")
    dialog.expect_count("2 circuits are affected.")
    if way == "button":
        dialog.confirm()
        console.expect_toast("2 closed.")
    elif way == "command":
        run_command(dialog.command())
    else:
        run_call(dialog.call())

    states = {one["state"] for one in api.get("/v1/circuits")["circuits"]}
    assert states == {"closed"}


def hold(server: LiveServer, api: Api, *queues: str) -> None:
    """Queues that an open circuit holds."""
    ok(api.call("POST", f"/v1/circuits/{circuit_hash(SHOP)}/open"))

    def do() -> None:
        broker = server.broker
        numbers = [broker.queues.get(name).result().queue.queue_no for name in queues]
        asked = broker.circuits.permits(
            [PermitRequest(SHOP, number) for number in numbers]
        ).result()
        broker.circuits.secure(asked).result()

    run_in_thread(do)


@pytest.mark.usefixtures("routes")
def test_held_queues_are_listed(console: Console, api: Api, server: LiveServer) -> None:
    queue = api.make_queue("held")
    hold(server, api, queue)

    console.open(f"/console/circuits/{circuit_hash(SHOP)}")

    expect(console.page.get_by_role("link", name=queue)).to_be_visible()
    expect(console.page.locator(".facts").first).to_contain_text("Held queues1")


@pytest.mark.usefixtures("routes")
def test_held_queues_are_unheld_by_button_command_and_call(
    console: Console, api: Api, server: LiveServer
) -> None:
    queues = [api.make_queue("held") for _ in range(2)]

    def are_held() -> set[bool]:
        return {"held_by" in api.queue(name) for name in queues}

    hold(server, api, *queues)
    ok(api.call("POST", f"/v1/circuits/{circuit_hash(SHOP)}/close"))
    console.open(f"/console/circuits/{circuit_hash(SHOP)}")
    expect(console.page.locator(".facts").first).to_contain_text("Waiting for release2")
    dialog = console.ask("Unhold")
    dialog.expect_count("2 held queues are affected.")
    run_command(dialog.command())
    assert are_held() == {False}
    hold(server, api, *queues)
    run_call(dialog.call())
    assert are_held() == {False}
    hold(server, api, *queues)
    dialog.confirm()
    console.expect_toast("2 unheld.")
    assert are_held() == {False}

    hold(server, api, *queues)
    console.open("/console/circuits")
    console.ask("Unhold all").confirm()
    console.expect_toast("2 unheld.")
    assert are_held() == {False}


@pytest.mark.usefixtures("routes")
def test_a_queue_is_unheld_on_its_own_page(console: Console, api: Api, server: LiveServer) -> None:
    queue = api.make_queue("held")
    hold(server, api, queue)

    console.open(f"/console/queues/{queue}")
    dialog = console.ask("Unhold")
    run_command(dialog.command())
    assert "held_by" not in api.queue(queue)
    hold(server, api, queue)
    dialog.confirm()
    console.expect_toast(f"{queue} has been released.")

    assert "held_by" not in api.queue(queue)
    expect(console.page.locator('button[data-action="Unhold"]')).to_have_count(0)


@pytest.mark.usefixtures("routes")
def test_settings_of_one_circuit_are_changed_by_button_command_and_call(
    console: Console, api: Api, server: LiveServer
) -> None:
    tried(server, SHOP, RequestOutcome.SUCCESS)
    path = f"/v1/circuits/{circuit_hash(SHOP)}/settings"
    wanted = {"error_threshold_percentage": 50, "entries_max_age_ms": 300_000, "slow_call_ms": None}

    console.open(f"/console/circuits/{circuit_hash(SHOP)}")
    dialog = console.ask("Settings")
    dialog.fill("Failure percentage that opens it", "fifty")
    dialog.expect_problem("“fifty” is not a whole number")
    dialog.fill("Failure percentage that opens it", "50")
    dialog.fill("Maximum age of outcomes", "5m")
    dialog.fill("Calls count as failed after", "none")
    run_command(dialog.command())
    assert api.get(path)["overrides"] == wanted
    ok(api.call("DELETE", path))
    run_call(dialog.call())
    assert api.get(path)["overrides"] == wanted
    ok(api.call("DELETE", path))
    dialog.confirm()
    console.expect_toast("The settings of the circuit are saved.")
    assert api.get(path)["overrides"] == wanted
    expect(console.page.get_by_text("override", exact=True)).to_have_count(3)

    console.open("/console/circuits")
    dialog = console.ask("Settings")
    for label in ("Failure percentage that opens it", "Maximum age of outcomes"):
        dialog.fill(label, "")
    dialog.fill("Calls count as failed after", "")
    dialog.confirm()
    console.expect_toast("The settings of the circuit are saved.")
    assert api.get(path)["overrides"] == {}


@pytest.mark.usefixtures("routes")
def test_a_hostile_route_is_shown_as_text_and_fits_a_phone(
    open_console: OpenConsole, server: LiveServer, api: Api
) -> None:
    ok(api.call("POST", f"/v1/circuits/{circuit_hash(HOSTILE)}/open"))
    phone = open_console(server.url, width=360, scheme="dark")

    for path in ("/console/circuits", f"/console/circuits/{circuit_hash(HOSTILE)}"):
        phone.open(path)
        expect(phone.page.locator("main")).to_contain_text(HOSTILE)
        assert phone.page.locator("main img").count() == 0
        assert not phone.is_too_wide(), path


def test_a_reader_cannot_open_or_close_circuits(
    server_with_keys: LiveServer, open_console: OpenConsole, new_key: NewKey
) -> None:
    api = Api(server_with_keys.url, key=new_key())
    ok(api.call("PUT", "/v1/routes", {"rules": {SHOP: {"url": UNREACHABLE}}}))
    run_in_thread(server_with_keys.broker.circuits.refresh)
    ok(api.call("POST", f"/v1/circuits/{circuit_hash(SHOP)}/open"))
    reader = log_in(open_console, server_with_keys.url, new_key(Role.READ))

    reader.open(f"/console/circuits/{circuit_hash(SHOP)}")

    for label in ("Close", "Force open"):
        expect(reader.page.locator(f'button[data-action="{label}"]')).to_be_disabled()


def test_a_key_for_some_queues_sees_the_circuits_that_hold_one_of_them(
    server_with_keys: LiveServer, open_console: OpenConsole, new_key: NewKey
) -> None:
    operator = Api(server_with_keys.url, key=new_key())
    ok(operator.call("PUT", "/v1/routes", {"rules": {SHOP: {"url": UNREACHABLE}}}))
    ok(operator.call("POST", f"/v1/circuits/{circuit_hash(SHOP)}/open"))
    console = open_console(server_with_keys.url)
    console.page.goto("/console/circuits")

    console.log_in(new_key(Role.READ, queues=("mine-*",)))

    expect(console.page.locator(".notice")).to_contain_text("limited to some queues")
    expect(console.page.locator("main")).to_contain_text("No circuit holds any of your queues.")
    expect(console.page.locator("main")).not_to_contain_text("/shop/")
    ok(operator.call("PUT", "/v1/routes", {"rules": {}}))
    operator.close()
