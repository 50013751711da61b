"""The entries of TASKS that are Penstock's, and their applications with all tasks."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules, import_string

from penstock import Penstock
from penstock.django.backend import PenstockBackend
from penstock.django.interface import Task

# Modules of each installed app that workers import.
MODULES = ("tasks", "jobs")


def penstock_backends() -> dict[str, PenstockBackend]:
    """Those of this thread, by alias."""
    entries = getattr(settings, "TASKS", {})
    found = {alias: import_string(entry["BACKEND"]) for alias, entry in entries.items()}
    return {
        alias: _handler()[alias]
        for alias, backend in found.items()
        if isinstance(backend, type) and issubclass(backend, PenstockBackend)
    }


def discovered(alias: str) -> Penstock:
    """The application of an entry of TASKS, after all tasks have been declared."""
    backends = penstock_backends()
    if alias not in backends:
        raise ImproperlyConfigured(f"TASKS has no entry {alias!r} with PenstockBackend")
    autodiscover_modules(*MODULES)
    backend = backends[alias]
    for queue in backend.queues:
        backend.app.queue(queue)
    return backend.app


def _handler() -> dict[str, PenstockBackend]:
    if Task.__module__.startswith("django.tasks"):
        from django.tasks import task_backends
    else:
        from django_tasks import task_backends
    handler: dict[str, PenstockBackend] = task_backends
    return handler
