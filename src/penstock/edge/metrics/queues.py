"""Metrics in Prometheus' text form, with OpenTelemetry's messaging names where they exist."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.store.damage import Damage
from penstock.services.queues import QueueView

_GAUGES = {
    "waiting": "Messages that are not due yet.",
    "ready": "Messages that can be claimed.",
    "leased": "Messages that somebody holds.",
    "dead": "Messages at rest that need a redrive.",
}
# messaging.client.sent.messages and …consumed.messages are OpenTelemetry's names.
_COUNTERS = {
    "sent_total": ("messaging_client_sent_messages_total", "Messages that arrived."),
    "claimed_total": ("messaging_client_consumed_messages_total", "Messages handed out."),
    "done_total": ("penstock_messages_done_total", "Messages completed."),
    "dead_total": ("penstock_messages_dead_total", "Messages that died."),
    "cancelled_total": ("penstock_messages_cancelled_total", "Messages cancelled."),
    "failed_total": ("penstock_attempts_failed_total", "Attempts that failed."),
    "expired_total": ("penstock_leases_expired_total", "Leases that ran out."),
}


def render(
    views: Sequence[QueueView], *, waiting_claims: int, backend: str, damage: Damage | None = None
) -> str:
    # A page that is still being looked for counts, too.
    damaged_pages = 0 if damage is None else max(1, len(damage.pages))
    lines = [
        "# HELP penstock_claims_waiting Claims that wait for a message.",
        "# TYPE penstock_claims_waiting gauge",
        f"penstock_claims_waiting {waiting_claims}",
        "# HELP penstock_info The store behind this node.",
        "# TYPE penstock_info gauge",
        f'penstock_info{{backend="{backend}"}} 1',
        "# HELP penstock_store_damaged_pages Pages of the store that requests could not read.",
        "# TYPE penstock_store_damaged_pages gauge",
        f"penstock_store_damaged_pages {damaged_pages}",
        "# HELP penstock_queue_messages Messages in a queue by state.",
        "# TYPE penstock_queue_messages gauge",
    ]
    for view in views:
        for state in _GAUGES:
            labels = f'messaging_destination_name="{view.queue.name}",state="{state}"'
            lines.append(f"penstock_queue_messages{{{labels}}} {getattr(view.counts, state)}")
    for field, (name, help_text) in _COUNTERS.items():
        lines += [f"# HELP {name} {help_text}", f"# TYPE {name} counter"]
        for view in views:
            labels = f'messaging_system="penstock",messaging_destination_name="{view.queue.name}"'
            lines.append(f"{name}{{{labels}}} {getattr(view.counts, field)}")
    return "\n".join(lines) + "\n"
