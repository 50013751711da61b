"""Leaves a fact for each change that a caller makes: who, from where, what, before and after.

The state before and after is read with the GET operation of the same resource: for
`POST /v1/queues/{queue}/pause` that is `GET /v1/queues/{queue}`.  Both, and the fact, are
transactions of their own: a server that is killed in between has made a change without a fact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from penstock.api import deliveries, topics
from penstock.api.operation import Operation
from penstock.domain.access.api_key import Role
from penstock.domain.errors import PenstockError
from penstock.operations.call import Call, Handler, Handlers, StatusAnswer
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Steps, Work, read, write
from penstock.services.routes import RULES
from penstock.services.topics import existing_subscription

KIND = "changed_by_caller"
_LOGGED = re.compile(
    r"/v1/(queues|moves|errors|recurring|routes|breaker|circuits|scaling|answers|keys|topics"
    r"|workers/\{worker\}/drain)(?!/preview$)"
)
_MESSAGES = re.compile(r"/messages(?!/bulk)|/events")  # of single messages, history has a row
# Counters and contents, which are not settings.
_LEFT_OUT = re.compile(r"counts|totals|fired|skipped|body|attributes|note|last_\w+|\w+_at")
_LONGEST = 1_000  # characters of one value
_MISSING = "-"


def _rules(session: Session, path: Mapping[str, str]) -> dict[str, Any]:
    document = session.documents.find(RULES)
    return {} if document is None else {"rules": document.text}


def _endpoint_secrets(session: Session, path: Mapping[str, str]) -> dict[str, Any]:
    found = existing_subscription(session, path["topic"], path["subscription"]).settings.endpoint
    if found is None:
        return {}
    return {"signing_secrets": found.signing_secrets, "headers": found.headers}


# Values that answers do not show.  Facts name those that were replaced.
_HIDDEN: dict[Operation[Any], Callable[[Session, Mapping[str, str]], dict[str, Any]]] = {
    deliveries.PUT_ROUTES: _rules,
    topics.SUBSCRIBE: _endpoint_secrets,
}


def logged(handlers: Handlers, store: Store, clock: Clock) -> Handlers:
    """The same handlers; those that change something for others leave a fact."""
    readers = {o.path: run for o, run in handlers.items() if o.method == "GET" and o.query is None}
    return {
        operation: _Logged(operation, run, _reader_of(operation, readers), store, clock)
        if is_logged(operation)
        else run
        for operation, run in handlers.items()
    }


def is_logged(operation: Operation[Any]) -> bool:
    return (
        operation.role is Role.OPERATE
        and operation.method != "GET"
        and _LOGGED.match(operation.path) is not None
        and _MESSAGES.search(operation.path) is None
    )


def _reader_of(operation: Operation[Any], readers: Mapping[str, Handler]) -> Handler | None:
    """The nearest resource above that can be read and has a name in its path, or is the same."""
    path = operation.path
    while path not in readers and path.count("/") > 3:
        path = path.rpartition("/")[0]
    return readers.get(path)


class _Logged:
    def __init__(
        self,
        operation: Operation[Any],
        run: Handler,
        reader: Handler | None,
        store: Store,
        clock: Clock,
    ) -> None:
        self._operation = operation
        self._run = run
        self._reader = reader
        self._store = store
        self._clock = clock

    def __call__(self, call: Call[Any, Any]) -> Steps[Any]:
        before, hidden_before = yield from self._both(call)
        answer = yield from _steps(self._run(call))
        if getattr(call.body, "is_dry_run", False):
            return answer
        after, hidden_after = yield from self._both(call)
        both = hidden_before.keys() & hidden_after.keys()
        replaced = sorted(name for name in both if hidden_before[name] != hidden_after[name])
        if before == after and not replaced and self._operation.method in ("PUT", "PATCH"):
            return answer  # a declaration that changes nothing, as programs repeat at each start
        old, new = _differences(before, after)
        data = {
            "operation": self._operation.name,
            "by": call.caller.name,
            "key": call.caller.key_id,
            "from": call.origin,
            "before": old,
            "after": new,
            "replaced": replaced,
            "request": _short(_fields(call.body)) if self._operation.method == "POST" else {},
            "answer": _numbers(answer),
        }
        given = {name: value for name, value in data.items() if value not in ({}, [], None, "")}
        subject = next(iter(call.path.values()), self._operation.path)
        now = self._clock.now()
        yield from write(
            self._store, lambda session: session.facts.add(KIND, subject, at=now, data=given)
        )
        return answer

    def _both(self, call: Call[Any, Any]) -> Steps[tuple[dict[str, Any], dict[str, Any]]]:
        """The state that the caller sees, and the values that are shown to no caller."""
        shown = yield from self._state(call)
        hidden = _HIDDEN.get(self._operation)
        if hidden is None or not shown:
            return shown, {}
        try:
            return shown, (yield from read(self._store, lambda s: hidden(s, call.path)))
        except PenstockError:  # removed meanwhile
            return shown, {}

    def _state(self, call: Call[Any, Any]) -> Steps[dict[str, Any]]:
        if self._reader is None:
            return {}
        look = msgspec.structs.replace(call, body=None, query=None)
        try:
            found = yield from _steps(self._reader(look))
        except PenstockError:  # it does not exist, or the caller may not read it
            return {}
        return _flat(_fields(found))


def _steps(work: Any) -> Steps[Any]:
    if isinstance(work, msgspec.Struct):
        return work
    if isinstance(work, Work):
        return (yield from work)
    return (yield from work)


def _fields(value: Any) -> dict[str, Any]:
    value = value.answer if isinstance(value, StatusAnswer) else value
    plain = msgspec.to_builtins(value, enc_hook=str)
    return plain if isinstance(plain, dict) else {}


def _flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Settings next to the other fields, without counters."""
    inner = fields.get("settings")
    rest = {name: value for name, value in fields.items() if name != "settings"}
    both = rest | (inner if isinstance(inner, dict) else {})
    return {name: value for name, value in both.items() if not _LEFT_OUT.fullmatch(name)}


def _differences(
    before: dict[str, Any], after: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    names = [n for n in before | after if before.get(n, _MISSING) != after.get(n, _MISSING)]
    old = {name: before[name] for name in names if name in before}
    new = {name: after[name] for name in names if name in after}
    return _short(old), _short(new)


def _short(fields: Mapping[str, Any]) -> dict[str, Any]:
    def cut(value: Any) -> Any:
        return value if len(msgspec.json.encode(value)) <= _LONGEST else "(too long)"

    return {name: cut(value) for name, value in fields.items() if not _LEFT_OUT.fullmatch(name)}


def _numbers(answer: Any) -> dict[str, int]:
    """What an act on many reports: how many it has changed."""
    fields = _fields(answer) if isinstance(answer, msgspec.Struct) else {}
    return {
        name: value
        for name, value in fields.items()
        if isinstance(value, int) and not isinstance(value, bool)
    }
