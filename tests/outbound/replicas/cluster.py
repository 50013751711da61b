"""A make-believe Kubernetes: as much of its API as scaling needs, over real HTTP."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tests.support.http_backend import Answer, Behaviour, HttpBackend, Seen

_PATH = re.compile(r"/apis/apps/v1/namespaces/(.+?)/(deployments|statefulsets)/(.+?)(/scale)?")

_POD = re.compile(r"/api/v1/namespaces/.+?/pods/(.+)")


@dataclass
class Workload:
    wanted: int = 0
    there: int = 0
    ready: int = 0
    version: int = 1


@dataclass
class Cluster:
    backend: HttpBackend
    workloads: dict[tuple[str, str, str], Workload] = field(default_factory=dict)
    conflicts: int = 0  # how often another client is faster
    forbidden: tuple[str, ...] = ()  # "GET deployments", "PUT deployments/scale"
    tokens: set[str] = field(default_factory=set)
    notes: dict[str, dict[str, str]] = field(default_factory=dict)  # annotations by pod

    def __post_init__(self) -> None:
        self.backend.behave = self._answer

    def kubeconfig(self, folder: Path) -> Path:
        path = folder / "kubeconfig"
        contexts = [("here", self.backend.url), ("elsewhere", "http://127.0.0.1:9")]
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": name, "cluster": {"server": url}} for name, url in contexts],
            "users": [{"name": "me", "user": {"token": "s3cret"}}],
            "contexts": [
                {"name": name, "context": {"cluster": name, "user": "me"}} for name, _ in contexts
            ],
        }
        path.write_bytes(msgspec.json.encode(config))  # which is YAML, too
        return path

    def _answer(self, seen: Seen) -> Behaviour:
        self.tokens.add(seen.header("authorization") or "")
        pod = _POD.fullmatch(seen.target)
        if pod is not None:
            return self._patch(pod[1], seen)
        found = _PATH.fullmatch(seen.target)
        workload = self.workloads.get((found[1], found[2], found[3])) if found else None
        if found is None or workload is None:
            return _failure(404, "not found")
        part = found[4] or ""
        if f"{seen.method} {found[2]}{part}" in self.forbidden:
            return _failure(403, f"User cannot {seen.method} {found[2]}{part}")
        if seen.method == "PUT":
            refused = self._put(workload, msgspec.json.decode(seen.payload))
            if refused is not None:
                return refused
        return _said(_scale(found, workload) if part else _whole(found, workload))

    def _patch(self, pod: str, seen: Seen) -> Answer:
        if f"{seen.method} pods" in self.forbidden:
            return _failure(403, "User cannot PATCH pods")
        self.notes[pod] = msgspec.json.decode(seen.payload)["metadata"]["annotations"]
        return _said({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": pod}})

    def _put(self, workload: Workload, scale: dict[str, Any]) -> Answer | None:
        if self.conflicts:
            self.conflicts -= 1
            workload.version += 1
            workload.wanted += 1
        if scale["metadata"]["resourceVersion"] != str(workload.version):
            return _failure(409, "the object has been modified")
        workload.wanted = scale["spec"].get("replicas", 0)
        workload.version += 1
        return None


def _scale(found: re.Match[str], workload: Workload) -> dict[str, Any]:
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": _metadata(found, workload),
        # As Kubernetes has it: zero is left out.
        "spec": {"replicas": workload.wanted} if workload.wanted else {},
        "status": {"replicas": workload.there},
    }


def _whole(found: re.Match[str], workload: Workload) -> dict[str, Any]:
    status: dict[str, Any] = {"replicas": workload.there}
    if workload.ready:
        status["readyReplicas"] = workload.ready
    pod = {"metadata": {}, "spec": {"containers": [{"name": "worker"}]}}
    spec = {"replicas": workload.wanted, "selector": {}, "template": pod, "serviceName": "x"}
    kind = {"deployments": "Deployment", "statefulsets": "StatefulSet"}[found[2]]
    metadata = _metadata(found, workload)
    return {
        "kind": kind,
        "apiVersion": "apps/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _metadata(found: re.Match[str], workload: Workload) -> dict[str, str]:
    return {"name": found[3], "namespace": found[1], "resourceVersion": str(workload.version)}


def _said(body: dict[str, Any], status: int = 200) -> Answer:
    return Answer(status, {"Content-Type": "application/json"}, msgspec.json.encode(body))


def _failure(code: int, message: str) -> Answer:
    return _said({"kind": "Status", "status": "Failure", "message": message, "code": code}, code)
