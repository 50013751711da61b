"""Every command by name, with the module that holds it.  Nothing is imported until it is needed."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from penstock.edge.cli.kit.aliases import FINISH, OTHER_NAMES, TAKE
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser


class Command(NamedTuple):
    run: Callable[[Namespace, Output], int]
    configure: Callable[[Parser], None]
    examples: tuple[str, ...] = ()
    more: str = ""  # what the one line in the list leaves out


class Entry(NamedTuple):
    module: str
    summary: str


GROUPS: dict[str, dict[str, Entry]] = {
    "Run": {
        "serve": Entry("operate.serve", "start a server"),
        "worker": Entry("workers.worker", "run the jobs of an application"),
        "autoscale": Entry("workers.autoscale", "start and drain workers as the backlog needs"),
        "migrate": Entry("operate.migrate", "bring the store's schema up to date"),
    },
    "Messages": {
        "send": Entry("broker.send", "send messages to a queue"),
        TAKE: Entry("broker.claim", "claim messages from a queue"),
        FINISH: Entry("broker.leases", "complete claimed messages"),
        "fail": Entry("broker.leases", "say that an attempt did not work; it is tried again later"),
        "release": Entry("broker.leases", "give claimed messages back unhandled"),
        "extend": Entry("broker.leases", "prolong leases"),
        "snooze": Entry("broker.leases", "have claimed messages come back later"),
        "messages": Entry("broker.messages", "look at the messages of a queue"),
        "messages show": Entry("broker.messages", "show one message and its past"),
        "messages complete": Entry(
            "broker.messages", "say that messages are done that nobody holds"
        ),
        "messages cancel": Entry(
            "broker.messages", "cancel messages, with --running also leased ones"
        ),
        "messages bury": Entry("broker.messages", "put messages among the dead ones"),
        "messages redrive": Entry("broker.messages", "bring dead messages back"),
        "messages reschedule": Entry("broker.messages", "give a message another due date"),
        "messages bulk": Entry("broker.messages_bulk", "act on all messages of a queue that fit"),
    },
    "Jobs": {
        "jobs": Entry("workers.jobs", "list jobs, at a server or in a store"),
        "jobs list": Entry("workers.jobs", "list jobs, at a server or in a store"),
        "jobs show": Entry("workers.jobs", "show one job"),
        "jobs count": Entry("workers.jobs", "count jobs by state"),
        "jobs cancel": Entry("workers.jobs", "cancel jobs, also running ones"),
        "jobs reschedule": Entry("workers.jobs", "give a waiting job another due date"),
        "jobs redrive": Entry("workers.jobs", "give dead jobs a new life"),
        "jobs wait": Entry("workers.jobs", "wait until a job has ended"),
    },
    "Queues": {
        "queues": Entry("broker.queues", "list the queues"),
        "queues show": Entry("broker.queues", "show a queue with its settings"),
        "queues create": Entry("broker.queues_change", "make a queue"),
        "queues set": Entry("broker.queues_change", "change some settings of a queue"),
        "queues pause": Entry("broker.queues", "stop claims; sends go on"),
        "queues resume": Entry("broker.queues", "let claims go on"),
        "queues unhold": Entry("broker.queues", "end the hold of a circuit on a queue"),
        "queues purge": Entry("broker.queues_empty", "cancel everything in a queue"),
        "queues redrive": Entry("broker.queues_empty", "bring dead messages back"),
        "queues delete": Entry("broker.queues_empty", "remove a queue"),
        "moves": Entry("broker.moves", "list the moves out of a queue, newest first"),
        "moves start": Entry("broker.moves", "move messages out of a queue in the background"),
        "moves show": Entry("broker.moves", "show one move"),
        "moves cancel": Entry("broker.moves", "stop a move; what was moved stays moved"),
    },
    "Workers": {
        "workers": Entry("workers.workers", "list the workers and how much they hold"),
        "workers show": Entry("workers.workers", "show one worker and what it holds"),
        "workers drain": Entry("workers.workers", "have a worker finish and claim nothing more"),
        "scaling": Entry("workers.scaling", "show the fleets, what was decided last, and why"),
    },
    "Recurring": {
        "recurring": Entry("broker.recurring", "list recurring work"),
        "recurring set": Entry("broker.recurring", "make recurring work, or change it"),
        "recurring show": Entry(
            "broker.recurring", "show recurring work with its next and last firing"
        ),
        "recurring preview": Entry("broker.recurring", "tell the next firings"),
        "recurring run": Entry("broker.recurring", "send it once now"),
        "recurring pause": Entry("broker.recurring", "hold firings back"),
        "recurring resume": Entry("broker.recurring", "let firings go on"),
        "recurring remove": Entry("broker.recurring", "no more firings"),
    },
    "Notifications and the bus": {
        "notifications": Entry("broker.notifications", "find notifications by their tags"),
        "notifications record": Entry("broker.notifications", "record a message for a set time"),
        "notifications move": Entry("broker.notifications", "give a notification another date"),
        "notifications remove": Entry("broker.notifications", "cancel notifications"),
        "topics": Entry("broker.topics", "list the topics"),
        "topics show": Entry("broker.topics", "show a topic with its subscriptions"),
        "topics create": Entry("broker.topics", "make a topic"),
        "topics delete": Entry("broker.topics", "remove a topic"),
        "topics subscribe": Entry("broker.topics", "make or change a subscription"),
        "topics unsubscribe": Entry("broker.topics", "end a subscription"),
        "topics publish": Entry("broker.topics", "publish an event"),
    },
    "Pushing": {
        "routes": Entry("broker.routes", "list the routes of deliveries in their order"),
        "routes set": Entry("broker.routes", "replace all routes by those of a file"),
        "routes match": Entry(
            "broker.routes", "tell which route a delivery would take, and where to"
        ),
        "circuits": Entry("broker.circuits", "list the circuits and how they are"),
        "circuits show": Entry("broker.circuits", "show one circuit"),
        "circuits close": Entry(
            "broker.circuits", "close circuits; their queues are let go in turn"
        ),
        "circuits unhold": Entry("broker.circuits", "unhold the queues of circuits now"),
        "circuits open": Entry("broker.circuits", "open a circuit until somebody closes it"),
        "circuits settings": Entry(
            "broker.circuits", "show the settings of the breaker, or of one circuit"
        ),
        "circuits set": Entry(
            "broker.circuits", "change settings of the breaker, or of one circuit"
        ),
    },
    "Insight": {
        "stats": Entry("broker.stats", "counts and totals"),
        "tail": Entry("broker.tail", "follow what finishes and what waits"),
        "history": Entry("broker.history", "list finished messages, newest first"),
    },
    "The lake": {
        "archive": Entry("operate.archive", "tell how far the lake is"),
        "archive status": Entry("operate.archive", "tell how far the lake is"),
        "archive run": Entry("operate.archive", "write what is new to the lake"),
        "archive snapshot": Entry("operate.archive", "take a snapshot of all that has not ended"),
    },
    "Pipeline": {
        "pipeline": Entry("pipeline.run", "list the jobs and their tables"),
        "pipeline run": Entry("pipeline.run", "compute what is new in the lake, on Spark"),
        "pipeline status": Entry("pipeline.status", "tell what was computed, and what is to do"),
        "pipeline demo": Entry("pipeline.demo", "make a past to look at, and compute all of it"),
        "pipeline restore": Entry("pipeline.restore", "bring back what was there at an instant"),
        "pipeline resend": Entry("pipeline.restore", "send messages that have ended once more"),
        "pipeline stream": Entry("pipeline.stream", "keep the rollups fresh, on Spark"),
        "pipeline report": Entry("pipeline.report", "draw what was computed, on one page"),
        "pipeline java": Entry("pipeline.java", "tell the JAVA_HOME that Spark is given"),
    },
    "Upkeep": {
        "backup": Entry("operate.backup", "copy a SQLite store while the server works"),
        "promote": Entry("operate.promote", "move a SQLite store to PostgreSQL"),
        "doctor": Entry("operate.doctor", "check the machine, the settings and the store"),
        "keys": Entry("operate.keys", "list the API keys"),
        "keys create": Entry("operate.keys", "make an API key; its secret is shown once"),
        "keys aws": Entry("operate.keys", "show what AWS's tools need to sign with an API key"),
        "keys revoke": Entry("operate.keys", "make an API key useless"),
        "settings": Entry("operate.settings", "show every setting and where it came from"),
        "version": Entry("operate.version", "show the version"),
    },
}
ENTRIES: dict[str, Entry] = {
    name: entry for group in GROUPS.values() for name, entry in group.items()
}


def load(name: str) -> Command:
    module = import_module(f"penstock.edge.cli.{ENTRIES[name].module}")
    commands: dict[str, Command] = module.COMMANDS
    return commands[name]


def pick(words: list[str]) -> tuple[str | None, list[str]]:
    """The command that the words begin with, and the rest of them."""
    if not words:
        return None, []
    first = OTHER_NAMES.get(words[0], words[0])
    if f"{first} {words[1] if len(words) > 1 else ''}" in ENTRIES:
        return f"{first} {words[1]}", words[2:]
    return (first if first in ENTRIES else None), words[1:]


def parser_of(name: str, command: Command, environ: dict[str, str] | None = None) -> Parser:
    """The command's parser, with all its flags."""
    parser = Parser(name, environ or {})
    parser.summary = ENTRIES[name].summary
    parser.more = command.more
    parser.examples = command.examples
    command.configure(parser)
    parser.add_common()
    return parser


def env_names() -> frozenset[str]:
    """The variables of all flags: what else may begin like a setting's."""
    return frozenset(
        name for command in ENTRIES for name in parser_of(command, load(command)).env_names
    )
