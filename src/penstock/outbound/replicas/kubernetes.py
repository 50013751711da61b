"""Workers as pods: the scale subresource of a deployment or a stateful set.

The client library is the extra `kubernetes` and is imported only here, when a fleet needs it.
How many are ready is read from the resource itself; where that is not allowed, all that exist count
as running.

Which pods go when there are too many is for Kubernetes to say.  With `spare_busy` it is told before
how much each of them holds, as the cost of its deletion: those with the least go first.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from penstock.domain.errors import FleetsRefused, ReplicasUnavailable, StoreUnavailable
from penstock.domain.optional_parts import not_installed
from penstock.domain.scaling.fleet import Kubernetes
from penstock.domain.scaling.recommendation import Replicas
from penstock.ports.fleet_registry import FleetRegistry

T = TypeVar("T")

_log = logging.getLogger("penstock.fleets")

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_TRIES = 3  # somebody else may change the same thing at the same time
_FORBIDDEN, _CONFLICT = 403, 409
_NAMES = {"deployment": "deployment", "statefulset": "stateful_set"}


class KubernetesReplicas:
    def __init__(self, fleet: str, spec: Kubernetes, *, roll: FleetRegistry) -> None:
        """Raises FleetsRefused if the library is missing; nothing is asked yet."""
        try:
            from kubernetes import client, config
        except ImportError as error:
            raise FleetsRefused(
                f"fleets.{fleet}: {not_installed('Kubernetes support', 'kubernetes')}"
            ) from error
        self._client: Any = client
        self._config: Any = config
        self._fleet = fleet
        self._spec = spec
        self._roll = roll
        self._api: Any = None
        self._lock = threading.Lock()

    def count(self, *, now: int) -> Replicas:
        scale = self._asked(lambda: self._call("read", "scale"))
        requested, there = scale.spec.replicas or 0, scale.status.replicas or 0
        ready = self._ready(there)
        return Replicas(running=ready, starting=max(there - ready, 0), requested=requested)

    def scale_to(self, wanted: int, *, now: int) -> None:
        wanted = min(max(wanted, 0), self._spec.most)

        def do() -> None:
            scale = self._call("read", "scale")
            if self._spec.spare_busy and wanted < (scale.spec.replicas or 0):
                self._tell_costs()
            scale.spec.replicas = wanted
            # With the version that was read: whoever changed it meanwhile is not overruled unseen.
            self._call("replace", "scale", scale)

        self._asked(do, tries=_TRIES)

    def tend(self, *, now: int) -> None:
        """Kubernetes does."""

    def close(self) -> None:
        """They stay: Kubernetes runs them."""
        with self._lock:
            if self._api is not None:
                self._api.api_client.close()

    def _ready(self, there: int) -> int:
        try:
            found = self._asked(lambda: self._call("read", ""))
        except _Forbidden:
            return there
        return min(found.status.ready_replicas or 0, there)

    def _tell_costs(self) -> None:
        """A pod is found by its name, which is its host's.  What cannot be told is not waited for:
        a busy worker that has to go finishes what it has all the same."""
        try:
            members = [one for one in self._roll.members(self._fleet) if one.host]
            held = self._roll.holding([one.id for one in members])
            costs: Counter[str] = Counter()
            for one in members:
                costs[one.host or ""] += held[one.id]
            core = self._client.CoreV1Api(self._apps().api_client)
            for pod, cost in costs.items():
                note = {_DELETION_COST: str(cost)}
                core.patch_namespaced_pod(
                    pod,
                    self._spec.namespace,
                    {"metadata": {"annotations": note}},
                    _request_timeout=self._spec.timeout_ms / 1000,
                )
        except (StoreUnavailable, self._client.ApiException) as error:
            why = _reason(error) if isinstance(error, self._client.ApiException) else error
            _log.warning("%s", self._told(f"which pods are idle could not be told: {why}"))

    def _call(self, verb: str, part: str, *body: object) -> Any:
        kind = _NAMES[self._spec.resource]
        name = f"{verb}_namespaced_{kind}{'_' + part if part else ''}"
        return getattr(self._apps(), name)(
            self._spec.name,
            self._spec.namespace,
            *body,
            _request_timeout=self._spec.timeout_ms / 1000,
        )

    def _apps(self) -> Any:
        with self._lock:
            if self._api is None:
                settings = self._client.Configuration()
                self._load(settings)
                settings.retries = False  # of us, not of the library: it must keep to the time
                self._api = self._client.AppsV1Api(self._client.ApiClient(settings))
            return self._api

    def _load(self, settings: Any) -> None:
        spec, config = self._spec, self._config
        if spec.kubeconfig is None and spec.context is None:
            try:
                config.load_incluster_config(client_configuration=settings)
                return
            except config.ConfigException:
                pass  # then it is the one of the user
        config.load_kube_config(
            config_file=spec.kubeconfig, context=spec.context, client_configuration=settings
        )

    def _asked(self, ask: Callable[[], T], *, tries: int = 1) -> T:
        for left in reversed(range(tries)):
            try:
                return ask()
            except self._client.ApiException as error:
                if error.status == _CONFLICT and left:
                    continue
                kind = _Forbidden if error.status == _FORBIDDEN else ReplicasUnavailable
                raise kind(self._told(_reason(error))) from error
            except self._config.ConfigException as error:
                raise ReplicasUnavailable(self._told(str(error))) from error
            except Exception as error:  # the library lets those of urllib3 and others through
                why = f"{type(error).__name__}: {error}"
                raise ReplicasUnavailable(self._told(why[:300])) from error
        raise AssertionError("there is at least one try")

    def _told(self, why: str) -> str:
        spec = self._spec
        return f"fleet {self._fleet}, {spec.resource} {spec.namespace}/{spec.name}: {why}"


class _Forbidden(ReplicasUnavailable):
    pass


def _reason(error: Any) -> str:
    text = str(error.body or error.reason or "")[:300]
    return f"Kubernetes answered {error.status}: {' '.join(text.split())}"
