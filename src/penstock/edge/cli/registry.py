"""Every command by name, with its module, which is imported only when the command runs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from penstock.edge.cli.kit.aliases import ALIASES
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser


class Command(NamedTuple):
    run: Callable[[Namespace, Output], int]
    configure: Callable[[Parser], None]
    examples: tuple[str, ...] = ()
    more: str = ""  # details after the one-line summary


class CommandEntry(NamedTuple):
    module: str
    summary: str


GROUPS: dict[str, dict[str, CommandEntry]] = {
    "Run": {
        "serve": CommandEntry("operate.serve", "start a server"),
        "worker": CommandEntry("workers.worker", "run the jobs of an application"),
        "autoscale": CommandEntry(
            "workers.autoscale", "start and drain workers according to the backlog"
        ),
        "migrate": CommandEntry("operate.migrate", "bring the store's schema up to date"),
    },
    "Messages": {
        "send": CommandEntry("broker.send", "send messages to a queue"),
        "claim": CommandEntry("broker.claim", "claim messages from a queue"),
        "complete": CommandEntry("broker.leases", "complete claimed messages"),
        "fail": CommandEntry(
            "broker.leases", "report a failed attempt; the message is retried later"
        ),
        "release": CommandEntry("broker.leases", "return claimed messages unhandled"),
        "extend": CommandEntry("broker.leases", "prolong leases"),
        "snooze": CommandEntry("broker.leases", "postpone claimed messages"),
        "messages": CommandEntry("broker.messages", "list the messages of a queue"),
        "messages show": CommandEntry("broker.messages", "show one message and its history"),
        "messages complete": CommandEntry("broker.messages", "mark unclaimed messages as done"),
        "messages cancel": CommandEntry(
            "broker.messages", "cancel messages, with --running also leased ones"
        ),
        "messages bury": CommandEntry("broker.messages", "move messages to the dead-letter queue"),
        "messages redrive": CommandEntry(
            "broker.messages", "send dead messages back to be handled again"
        ),
        "messages reschedule": CommandEntry("broker.messages", "change the due date of a message"),
        "messages bulk": CommandEntry(
            "broker.messages_bulk", "act on all matching messages of a queue"
        ),
    },
    "Jobs": {
        "jobs": CommandEntry("workers.jobs", "list jobs of a server or a store"),
        "jobs list": CommandEntry("workers.jobs", "list jobs of a server or a store"),
        "jobs show": CommandEntry("workers.jobs", "show one job"),
        "jobs count": CommandEntry("workers.jobs", "count jobs by state"),
        "jobs cancel": CommandEntry("workers.jobs", "cancel jobs, including running ones"),
        "jobs reschedule": CommandEntry("workers.jobs", "change the due date of a waiting job"),
        "jobs redrive": CommandEntry("workers.jobs", "retry dead jobs with all their attempts"),
        "jobs wait": CommandEntry("workers.jobs", "wait until a job has ended"),
    },
    "Queues": {
        "queues": CommandEntry("broker.queues", "list the queues"),
        "queues show": CommandEntry("broker.queues", "show a queue with its settings"),
        "queues create": CommandEntry("broker.queue_settings", "create a queue"),
        "queues set": CommandEntry("broker.queue_settings", "change some settings of a queue"),
        "queues pause": CommandEntry("broker.queues", "stop claims; messages can still be sent"),
        "queues resume": CommandEntry("broker.queues", "allow claims again"),
        "queues unhold": CommandEntry("broker.queues", "release a queue that a circuit holds"),
        "queues purge": CommandEntry("broker.queues_empty", "cancel all messages of a queue"),
        "queues redrive": CommandEntry(
            "broker.queues_empty", "send dead messages back to be handled again"
        ),
        "queues delete": CommandEntry("broker.queues_empty", "delete a queue"),
        "moves": CommandEntry("broker.moves", "list the moves out of a queue, newest first"),
        "moves start": CommandEntry(
            "broker.moves", "move messages out of a queue in the background"
        ),
        "moves show": CommandEntry("broker.moves", "show one move"),
        "moves cancel": CommandEntry(
            "broker.moves", "stop a move; messages already moved stay moved"
        ),
    },
    "Workers": {
        "workers": CommandEntry("workers.workers", "list the workers and their number of leases"),
        "workers show": CommandEntry("workers.workers", "show one worker and its leases"),
        "workers drain": CommandEntry("workers.workers", "let a worker finish its leases and exit"),
        "scaling": CommandEntry(
            "workers.scaling", "show the fleets and their latest scaling decisions"
        ),
    },
    "Recurring": {
        "recurring": CommandEntry("broker.recurring", "list recurring work"),
        "recurring set": CommandEntry("broker.recurring", "create or change recurring work"),
        "recurring show": CommandEntry(
            "broker.recurring", "show recurring work with its next and last firing"
        ),
        "recurring preview": CommandEntry("broker.recurring", "show the next firings"),
        "recurring run": CommandEntry("broker.recurring", "send its message once, now"),
        "recurring pause": CommandEntry("broker.recurring", "stop firings"),
        "recurring resume": CommandEntry("broker.recurring", "allow firings again"),
        "recurring remove": CommandEntry("broker.recurring", "delete recurring work"),
    },
    "Notifications and the bus": {
        "notifications": CommandEntry("broker.notifications", "find notifications by their tags"),
        "notifications record": CommandEntry(
            "broker.notifications", "record a notification for a set time"
        ),
        "notifications move": CommandEntry(
            "broker.notifications", "change the due date of a notification"
        ),
        "notifications remove": CommandEntry("broker.notifications", "cancel notifications"),
        "topics": CommandEntry("broker.topics", "list the topics"),
        "topics show": CommandEntry("broker.topics", "show a topic with its subscriptions"),
        "topics create": CommandEntry("broker.topics", "create a topic"),
        "topics delete": CommandEntry("broker.topics", "delete a topic"),
        "topics subscribe": CommandEntry("broker.topics", "create or change a subscription"),
        "topics unsubscribe": CommandEntry("broker.topics", "delete a subscription"),
        "topics publish": CommandEntry("broker.topics", "publish an event"),
    },
    "Pushing": {
        "routes": CommandEntry("broker.routes", "list the routes of deliveries, in order"),
        "routes set": CommandEntry("broker.routes", "replace all routes with those of a file"),
        "routes match": CommandEntry(
            "broker.routes", "show which route a delivery takes, and its target"
        ),
        "circuits": CommandEntry("broker.circuits", "list the circuits and their states"),
        "circuits show": CommandEntry("broker.circuits", "show one circuit"),
        "circuits close": CommandEntry(
            "broker.circuits", "close circuits; their held queues are released gradually"
        ),
        "circuits unhold": CommandEntry(
            "broker.circuits", "release the held queues of circuits at once"
        ),
        "circuits open": CommandEntry(
            "broker.circuits", "open a circuit until it is closed by hand"
        ),
        "circuits settings": CommandEntry(
            "broker.circuits", "show the breaker's settings, or those of one circuit"
        ),
        "circuits set": CommandEntry(
            "broker.circuits", "change the breaker's settings, or those of one circuit"
        ),
    },
    "Insight": {
        "stats": CommandEntry("broker.stats", "show counts and totals"),
        "tail": CommandEntry("broker.tail", "follow finished messages and the counts"),
        "history": CommandEntry("broker.history", "list finished messages, newest first"),
    },
    "The lake": {
        "archive": CommandEntry("operate.archive", "show archive progress"),
        "archive status": CommandEntry("operate.archive", "show archive progress"),
        "archive run": CommandEntry("operate.archive", "write new history to the lake"),
        "archive snapshot": CommandEntry(
            "operate.archive", "take a snapshot of all unfinished messages"
        ),
    },
    "Pipeline": {
        "pipeline": CommandEntry("pipeline.run", "list the jobs and their tables"),
        "pipeline run": CommandEntry(
            "pipeline.run", "compute the tables of new data in the lake, on Spark"
        ),
        "pipeline status": CommandEntry(
            "pipeline.status", "show what is computed and what is pending"
        ),
        "pipeline demo": CommandEntry(
            "pipeline.demo", "generate sample history and compute all tables"
        ),
        "pipeline restore": CommandEntry(
            "pipeline.restore", "restore the messages that existed at an instant"
        ),
        "pipeline resend": CommandEntry("pipeline.restore", "send finished messages again"),
        "pipeline stream": CommandEntry(
            "pipeline.stream", "update the rollups continuously, on Spark"
        ),
        "pipeline report": CommandEntry(
            "pipeline.report", "render the computed tables as one HTML page"
        ),
        "pipeline java": CommandEntry("pipeline.java", "show the JAVA_HOME that Spark uses"),
    },
    "Upkeep": {
        "backup": CommandEntry("operate.backup", "copy a SQLite store while the server runs"),
        "promote": CommandEntry("operate.promote", "move a SQLite store to PostgreSQL"),
        "doctor": CommandEntry("operate.doctor", "check the machine, the settings and the store"),
        "keys": CommandEntry("operate.keys", "list the API keys"),
        "keys create": CommandEntry("operate.keys", "create an API key; its secret is shown once"),
        "keys aws": CommandEntry("operate.keys", "show the AWS credentials of an API key"),
        "keys revoke": CommandEntry("operate.keys", "revoke an API key"),
        "settings": CommandEntry("operate.settings", "show every setting and its origin"),
        "version": CommandEntry("operate.version", "show the version"),
    },
}
ENTRIES: dict[str, CommandEntry] = {
    name: entry for group in GROUPS.values() for name, entry in group.items()
}
_BY_ALIAS = {alias: name for name, alias in ALIASES.items()}


def load(name: str) -> Command:
    module = import_module(f"penstock.edge.cli.{ENTRIES[name].module}")
    commands: dict[str, Command] = module.COMMANDS
    return commands[name]


def find_command(words: list[str]) -> tuple[str | None, list[str]]:
    """The command that the words begin with, and the remaining words."""
    if not words:
        return None, []
    first = _BY_ALIAS.get(words[0], words[0])
    if f"{first} {words[1] if len(words) > 1 else ''}" in ENTRIES:
        return f"{first} {words[1]}", words[2:]
    return (first if first in ENTRIES else None), words[1:]


def parser_of(name: str, command: Command, environ: dict[str, str] | None = None) -> Parser:
    """The parser of a command, with all its flags."""
    parser = Parser(name, environ or {})
    parser.summary = ENTRIES[name].summary
    parser.more = command.more
    parser.alias = ALIASES.get(name, "")
    parser.examples = command.examples
    command.configure(parser)
    parser.add_common()
    return parser


def env_names() -> frozenset[str]:
    """The environment variables of all flags; some begin like those of settings."""
    return frozenset(
        name for command in ENTRIES for name in parser_of(command, load(command)).env_names
    )
