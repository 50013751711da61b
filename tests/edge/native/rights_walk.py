"""Call one operation with every key that may not, and then with those that may."""

from __future__ import annotations

from typing import NamedTuple

import httpx

from penstock.domain.access.api_key import Role, Scope
from tests.edge.native.examples import Command
from tests.edge.native.rights_table import Right

WRONG = "pk_0000000000_" + "0" * 40
# From what the examples create; keys for other queues must not see any of it.
WORDS = ("mail", "orders", "nightly", "/shop/", "stripe", "aweq")


class Keys(NamedTuple):
    """A key of each role: for all queues, for those of the examples, for others."""

    everywhere: dict[Role, str]
    own: dict[Role, str]
    other: dict[Role, str]


class Walk:
    """Calls an operation with every key that lacks the right, then with those that have it."""

    def __init__(self, wire: httpx.Client, keys: Keys) -> None:
        self._wire = wire
        self._keys = keys

    def call(self, command: Command, key: str | None) -> httpx.Response:
        headers = {n: v for n, v in command.headers.items() if n.lower() != "authorization"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return self._wire.request(
            command.method, command.url, headers=headers, content=command.body
        )

    def walk(self, name: str, right: Right, command: Command) -> None:
        if right.scope is None:
            assert self.call(command, None).status_code not in (401, 403), name
            return
        for key in (None, WRONG):
            assert self.call(command, key).status_code == 401, name
        may = self._may(right.role)
        for role in Role:
            if role not in may:
                for of in self._keys:
                    assert self.call(command, of[role]).status_code == 403, (name, role)
        for role in may:
            self._refused_elsewhere(name, right.scope, command, role)
        self._served(name, right, command, may)

    def _may(self, role: Role | None) -> list[Role]:
        """The keys with access, the intended one first."""
        if role is None:
            return list(Role)
        return [role, Role.OPERATE] if role is Role.READ else [role]

    def _refused_elsewhere(self, name: str, scope: Scope, command: Command, role: Role) -> None:
        answer = self.call(command, self._keys.other[role])
        match scope:
            case Scope.QUEUE | Scope.ALL:
                assert answer.status_code == 403, (name, role, answer.text)
            case Scope.NAMED if name == "POST /v1/leases/logs":
                assert answer.json()["results"] == ["forbidden"]
            case Scope.NAMED if name == "POST /v1/leases/batch":
                assert answer.json()["results"][0]["error"]["code"] == "forbidden"
            case Scope.NAMED:
                # What a key may not see does not exist for it.
                assert answer.status_code in (403, 404), (name, role, answer.text)
            case Scope.FILTERED:
                assert answer.is_success, (name, role, answer.text)
                seen = [word for word in WORDS if word in answer.text]
                assert seen == [], (name, role, answer.text)
            case Scope.NONE:
                assert answer.is_success, (name, role, answer.text)

    def _served(self, name: str, right: Right, command: Command, may: list[Role]) -> None:
        if right.scope is Scope.ALL:
            for role in may:
                assert self.call(command, self._keys.own[role]).status_code == 403, name
            first = self._keys.everywhere
        else:
            first = self._keys.own
        answer = self.call(command, first[may[0]])
        assert answer.is_success, (name, answer.text)
        assert not answer.text.startswith('{"results":[{"error"'), (name, answer.text)
        # It has been done already, which others may see; but they are authorised.
        for role in may:
            again = self.call(command, self._keys.everywhere[role])
            assert again.status_code not in (401, 403), (name, role, again.text)
