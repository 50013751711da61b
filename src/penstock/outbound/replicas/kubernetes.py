"""Workers as pods: scales a deployment or a stateful set through its scale subresource.

The client library is the extra `kubernetes` and is imported only here, when a fleet needs it.
The number of ready pods is read from the resource itself; without permission for that, all existing
pods count as running.

Kubernetes decides which pods to delete.  With `spare_busy`, each pod's number of leases is first
set as its deletion cost, so that idle pods are deleted first.
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
from penstock.ports.scaling import FleetRegistry

T = TypeVar("T")

_log = logging.getLogger("penstock.fleets")

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_TRIES = 3  # another client may change the resource at the same time
_FORBIDDEN, _CONFLICT = 403, 409
_NAMES = {"deployment": "deployment", "statefulset": "stateful_set"}


class KubernetesReplicas:
    def __init__(self, fleet: str, spec: Kubernetes, *, registry: FleetRegistry) -> None:
        """Sends nothing yet; raises FleetsRefused if the library is not installed."""
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
        self._registry = registry
        self._api: Any = None
        self._lock = threading.Lock()

    def count(self, *, now: int) -> Replicas:
        scale = self._run(lambda: self._call("read", "scale"))
        requested, there = scale.spec.replicas or 0, scale.status.replicas or 0
        ready = self._ready(there)
        return Replicas(running=ready, starting=max(there - ready, 0), requested=requested)

    def scale_to(self, wanted: int, *, now: int) -> None:
        wanted = min(max(wanted, 0), self._spec.most)

        def do() -> None:
            scale = self._call("read", "scale")
            if self._spec.spare_busy and wanted < (scale.spec.replicas or 0):
                self._set_deletion_costs()
            scale.spec.replicas = wanted
            # Sends the version that was read, so that a concurrent change is a conflict.
            self._call("replace", "scale", scale)

        self._run(do, tries=_TRIES)

    def maintain(self, *, now: int) -> None:
        """Does nothing: Kubernetes restarts pods."""

    def close(self) -> None:
        """The workers stay: Kubernetes runs them."""
        with self._lock:
            if self._api is not None:
                self._api.api_client.close()

    def _ready(self, there: int) -> int:
        try:
            found = self._run(lambda: self._call("read", ""))
        except _Forbidden:
            return there
        return min(found.status.ready_replicas or 0, there)

    def _set_deletion_costs(self) -> None:
        """Failures are only logged: a busy worker that is deleted still finishes its jobs.

        A pod's name is its worker's host.
        """
        try:
            members = [one for one in self._registry.members(self._fleet) if one.host]
            leases = self._registry.lease_counts([one.id for one in members])
            costs: Counter[str] = Counter()
            for one in members:
                costs[one.host or ""] += leases[one.id]
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
            _log.warning("%s", self._prefixed(f"deletion costs could not be set: {why}"))

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
                settings.retries = False  # retries are ours: the library's ignore the timeout
                self._api = self._client.AppsV1Api(self._client.ApiClient(settings))
            return self._api

    def _load(self, settings: Any) -> None:
        spec, config = self._spec, self._config
        if spec.kubeconfig is None and spec.context is None:
            try:
                config.load_incluster_config(client_configuration=settings)
                return
            except config.ConfigException:
                pass  # not in a cluster: use the user's configuration
        config.load_kube_config(
            config_file=spec.kubeconfig, context=spec.context, client_configuration=settings
        )

    def _run(self, ask: Callable[[], T], *, tries: int = 1) -> T:
        for left in reversed(range(tries)):
            try:
                return ask()
            except self._client.ApiException as error:
                if error.status == _CONFLICT and left:
                    continue
                kind = _Forbidden if error.status == _FORBIDDEN else ReplicasUnavailable
                raise kind(self._prefixed(_reason(error))) from error
            except self._config.ConfigException as error:
                raise ReplicasUnavailable(self._prefixed(str(error))) from error
            except Exception as error:  # the library passes on errors of urllib3 and others
                why = f"{type(error).__name__}: {error}"
                raise ReplicasUnavailable(self._prefixed(why[:300])) from error
        raise AssertionError("there is at least one try")

    def _prefixed(self, why: str) -> str:
        spec = self._spec
        return f"fleet {self._fleet}, {spec.resource} {spec.namespace}/{spec.name}: {why}"


class _Forbidden(ReplicasUnavailable):
    pass


def _reason(error: Any) -> str:
    text = str(error.body or error.reason or "")[:300]
    return f"Kubernetes answered {error.status}: {' '.join(text.split())}"
