"""Circuits.

Circuits are shared by all queues.  A key for some queues sees only the circuits that hold one of
them, and cannot change any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from penstock.api import circuits
from penstock.api.circuits import Circuit, CircuitsOfRoute, Closed, Minute, Minutes, Unheld
from penstock.api.operation import Instant
from penstock.domain.access.api_key import is_limited, sees
from penstock.domain.circuit.overrides import check_route
from penstock.domain.errors import CircuitNotFound
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Steps, Work
from penstock.services.circuits.circuits import CircuitService, CircuitView
from penstock.services.circuits.details import MAX_HELD, CircuitDetails


class CircuitOperations:
    def __init__(self, service: CircuitService, details: CircuitDetails) -> None:
        self._circuits = service
        self._details = details

    def handlers(self) -> Handlers:
        return {
            circuits.LIST: self.list,
            circuits.GET: self.get,
            circuits.SAMPLES: self.samples,
            circuits.CLOSE_ALL: self.close_all,
            circuits.CLOSE: self.close,
            circuits.UNHOLD_ALL: self.unhold_all,
            circuits.UNHOLD: self.unhold,
            circuits.OPEN: self.open,
        }

    def list(self, call: Call[None, CircuitsOfRoute]) -> Steps[circuits.Circuits]:
        route = call.query.route
        found = yield from self._circuits.overview()
        views = [*found.circuits.values()]
        if route is not None:
            views = [self._circuits.view_of(check_route(route), found)]
        held, awaiting = sum(found.held.values()), found.awaiting_unhold
        if is_limited(call.caller):
            own = yield from self._details.held_among(partial(sees, call.caller))
            views = _limited(views, own)
            held, awaiting = sum(map(len, own.values())), 0
        views.sort(key=lambda view: view.circuit.pattern)
        listed = [_circuit(view, call.instant) for view in views]
        return circuits.Circuits(circuits=listed, held=held, awaiting_unhold=awaiting)

    def get(self, call: Call[None, None]) -> Steps[Circuit]:
        found, held = yield from self._visible(call)
        if held is None:
            held = yield from self._details.held_queues(found.hash)
        return _circuit(found, call.instant, held_queues=[*held[:MAX_HELD]])

    def samples(self, call: Call[None, None]) -> Steps[Minutes]:
        yield from self._visible(call)
        minutes = yield from self._details.minutes(call.path["circuit"])
        return Minutes(
            minutes=[
                Minute(
                    at=call.instant(minute.at),
                    successes=minute.successes,
                    failures=minute.failures,
                    fail_ratio=minute.fail_ratio,
                )
                for minute in minutes
            ]
        )

    def close_all(self, call: Call[None, None]) -> Work[Closed]:
        return self._circuits.close_all().map(lambda count: Closed(closed=count))

    def close(self, call: Call[None, None]) -> Steps[Circuit]:
        circuit = call.path["circuit"]
        yield from self._existing(circuit)
        yield from self._circuits.close(circuit)
        return _circuit((yield from self._existing(circuit)), call.instant)

    def unhold_all(self, call: Call[None, None]) -> Steps[Unheld]:
        return Unheld(unheld=(yield from self._circuits.held_queues.unhold()))

    def unhold(self, call: Call[None, None]) -> Steps[Unheld]:
        circuit = call.path["circuit"]
        unheld = yield from self._circuits.held_queues.unhold(circuit)
        if not unheld:  # a removed circuit may still hold queues
            yield from self._existing(circuit)
        return Unheld(unheld=unheld)

    def open(self, call: Call[None, None]) -> Steps[Circuit]:
        circuit = call.path["circuit"]
        yield from self._circuits.force_open(circuit)
        return _circuit((yield from self._existing(circuit)), call.instant)

    def _existing(self, circuit: str) -> Steps[CircuitView]:
        found = yield from self._circuits.one(circuit)
        if found is None:
            raise CircuitNotFound(circuit)
        return found

    def _visible(self, call: Call[None, None]) -> Steps[tuple[CircuitView, Sequence[str] | None]]:
        """The circuit, and for a limited key those of its queues that the circuit holds.

        Raises CircuitNotFound, also if the key is limited and the circuit holds none of its queues.
        """
        found = yield from self._existing(call.path["circuit"])
        if not is_limited(call.caller):
            return found, None
        own = yield from self._details.held_among(partial(sees, call.caller))
        views = _limited([found], own)
        if not views:
            raise CircuitNotFound(found.hash)
        return views[0], own[found.hash]


def _limited(views: Iterable[CircuitView], own: Mapping[str, Sequence[str]]) -> list[CircuitView]:
    """The circuits that hold queues of a limited key, and how many of its queues each holds."""
    return [
        replace(view, held=len(own[view.hash]), awaiting_unhold=0)
        for view in views
        if view.hash in own
    ]


def _circuit(
    view: CircuitView, instant: Callable[[int], Instant], *, held_queues: list[str] | None = None
) -> Circuit:
    circuit = view.circuit
    return Circuit(
        hash=view.hash,
        pattern=circuit.pattern,
        state=circuit.state,
        fail_ratio=circuit.fail_ratio,
        held=view.held,
        is_forced=circuit.is_forced,
        reopened=circuit.reopened,
        awaiting_unhold=view.awaiting_unhold,
        opened_at=None if circuit.opened_at is None else instant(circuit.opened_at),
        metric_name=view.metric_name,
        held_queues=held_queues,
    )
