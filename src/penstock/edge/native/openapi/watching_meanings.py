"""What the fields and parameters of news, problems and graphs mean."""

from __future__ import annotations

from typing import Any

FIELDS = {
    "damage": "Pages of the store that requests could not read; null: none.",
    "DamageOut.pages": "Those that were found; empty while they are looked for.",
    "DamageOut.text": "All of it in words.",
    "DamagedPageOut.index": "The index it belongs to; null: it holds rows, or that is not known.",
    "DamagedPageOut.page": "Its number in the database file.",
    "DamagedPageOut.queues": "Whose messages may be on it, as far as known.",
    "DamagedPageOut.table": "The table it belongs to; null: not known.",
    "DamagedPageOut.text": "All of it in words.",
    "Readiness.reason": "Why it is degraded.",
    "HangingRouteOut.deliveries": "How many are without an answer for 10 seconds or more.",
    "HangingRouteOut.endpoint": "Where the route leads; null: it is not in the table any more.",
    "hanging_routes": "Routes whose endpoint does not answer, those with most deliveries first.",
    "happened": "What happened in this step.",
    "is_cut": "There are more.",
    "old_transactions": "On PostgreSQL: transactions that are open for a minute or longer and keep "
    "vacuum from removing deleted rows, which slows claims; the oldest first.",
    "OldTransactionOut.application": "The application_name of the session; null: unknown.",
    "OldTransactionOut.kind": "A session, a standby that reports its queries, a prepared "
    "transaction or a replication slot.",
    "OldTransactionOut.name": "Of a prepared transaction or a slot; null: it is a session.",
    "OldTransactionOut.pid": "The server process; null: it has none.",
    "OldTransactionOut.since": "When the transaction began; null: unknown.",
    "OldTransactionOut.transactions": "How many transactions the server has begun since.",
    "OldTransactionOut.user": "The PostgreSQL user; null: unknown.",
    "most_ready": "How many could be claimed at the most.",
    "parts": "Parts of the process that do not work; absent if all do.",
    "PartOut.name": "The part's name.",
    "PartOut.state": "failed: it has raised an error and is being restarted; stuck: it has work "
    "and finishes none of it.",
    "points": "One for each step from the first that something is known of.",
    "problems": "What is wrong, the worst first.",
    "QueueProblemsOut.queue": "The queue's name.",
    "QueueProblemsOut.held_by": "The circuit that holds it; null: none does.",
    "QueueProblemsOut.oldest_ready_at": "Since when the next in line could have been claimed; "
    "null: none is in line.",
    "step_ms": "How long each step is.",
    "wait_p50_ms": "How long half of the messages waited at most until they were claimed, counted "
    "from the instant of sending: the mean of the minutes.",
    "wait_p95_ms": "How long 95 of 100 waited at most: the highest of the minutes.",
    "work_p50_ms": "How long half of the messages took at most from their last claim until they "
    "were done: the mean of the minutes.",
    "work_p95_ms": "How long 95 of 100 took at most: the highest of the minutes.",
    "HangingRouteOut.route": "Its pattern.",
    "HangingRouteOut.since": "When the oldest of these attempts began.",
    "GraphOut.from": "Where the first step begins.",
    "GraphOut.to": "Until when something is known.",
    "PointOut.at": "Where the step begins.",
    "PointOut.dead": "How many were dead at its end.",
    "PointOut.leased": "How many were held at its end.",
    "PointOut.oldest_ready_at": "Since when the next in line could have been claimed at its end.",
    "PointOut.ready": "How many could be claimed at its end.",
    "PointOut.waiting": "How many were not due yet at its end.",
}

PARAMETERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "events": (
        "After how many events it ends; without it, never.",
        {"type": "integer", "minimum": 1, "maximum": 100_000},
        "1",
    ),
    "step_ms": (
        "How long each step is: a multiple of 60000; without it the finest of at most 500 steps.",
        {"type": "integer", "minimum": 60_000, "multipleOf": 60_000},
        "",
    ),
}
