"""Every command by name, with the module that holds it.  Nothing is imported until it is needed."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from penstock.edge.cli.output import Output
from penstock.edge.cli.parser import Parser
from penstock.edge.cli.words import FINISH, OTHER_NAMES, TAKE


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
        "serve": Entry("serve", "start a server"),
        "worker": Entry("worker", "run the jobs of an application"),
        "autoscale": Entry("autoscale", "start and drain workers as the backlog needs"),
        "migrate": Entry("migrate", "bring the store's schema up to date"),
    },
    "Messages": {
        "send": Entry("send", "send messages to a queue"),
        TAKE: Entry("claim", "claim messages from a queue"),
        FINISH: Entry("leases", "complete claimed messages"),
        "fail": Entry("leases", "say that an attempt did not work; it is tried again later"),
        "release": Entry("leases", "give claimed messages back unhandled"),
        "extend": Entry("leases", "prolong leases"),
        "snooze": Entry("leases", "have claimed messages come back later"),
        "messages": Entry("messages", "look at the messages of a queue"),
        "messages show": Entry("messages", "show one message and its past"),
        "messages complete": Entry("messages", "say that messages are done that nobody holds"),
        "messages cancel": Entry("messages", "cancel messages, with --running also leased ones"),
        "messages bury": Entry("messages", "put messages among the dead ones"),
        "messages redrive": Entry("messages", "bring dead messages back"),
        "messages reschedule": Entry("messages", "give a message another due date"),
        "messages bulk": Entry("messages_bulk", "act on all messages of a queue that fit"),
    },
    "Jobs": {
        "jobs": Entry("jobs", "list jobs, at a server or in a store"),
        "jobs list": Entry("jobs", "list jobs, at a server or in a store"),
        "jobs show": Entry("jobs", "show one job"),
        "jobs count": Entry("jobs", "count jobs by state"),
        "jobs cancel": Entry("jobs", "cancel jobs, also running ones"),
        "jobs reschedule": Entry("jobs", "give a waiting job another due date"),
        "jobs redrive": Entry("jobs", "give dead jobs a new life"),
        "jobs wait": Entry("jobs", "wait until a job has ended"),
    },
    "Queues": {
        "queues": Entry("queues", "list the queues"),
        "queues show": Entry("queues", "show a queue with its settings"),
        "queues create": Entry("queues_change", "make a queue"),
        "queues set": Entry("queues_change", "change some settings of a queue"),
        "queues pause": Entry("queues", "stop claims; sends go on"),
        "queues resume": Entry("queues", "let claims go on"),
        "queues purge": Entry("queues_empty", "cancel everything in a queue"),
        "queues redrive": Entry("queues_empty", "bring dead messages back"),
        "queues delete": Entry("queues_empty", "remove a queue"),
        "moves": Entry("moves", "list the moves out of a queue, newest first"),
        "moves start": Entry("moves", "move messages out of a queue in the background"),
        "moves show": Entry("moves", "show one move"),
        "moves cancel": Entry("moves", "stop a move; what was moved stays moved"),
    },
    "Workers": {
        "workers": Entry("workers", "list the workers and how much they hold"),
        "workers show": Entry("workers", "show one worker and what it holds"),
        "workers drain": Entry("workers", "have a worker finish and claim nothing more"),
        "scaling": Entry("scaling", "show the fleets, what was decided last, and why"),
    },
    "Recurring": {
        "recurring": Entry("recurring", "list recurring work"),
        "recurring set": Entry("recurring", "make recurring work, or change it"),
        "recurring show": Entry("recurring", "show recurring work with its next and last firing"),
        "recurring preview": Entry("recurring", "tell the next firings"),
        "recurring run": Entry("recurring", "send it once now"),
        "recurring pause": Entry("recurring", "hold firings back"),
        "recurring resume": Entry("recurring", "let firings go on"),
        "recurring remove": Entry("recurring", "no more firings"),
    },
    "Notifications and the bus": {
        "notifications": Entry("notifications", "find notifications by their tags"),
        "notifications record": Entry("notifications", "record a message for a set time"),
        "notifications move": Entry("notifications", "give a notification another date"),
        "notifications remove": Entry("notifications", "cancel notifications"),
        "topics": Entry("topics", "list the topics"),
        "topics show": Entry("topics", "show a topic with its subscriptions"),
        "topics create": Entry("topics", "make a topic"),
        "topics delete": Entry("topics", "remove a topic"),
        "topics subscribe": Entry("topics", "make or change a subscription"),
        "topics unsubscribe": Entry("topics", "end a subscription"),
        "topics publish": Entry("topics", "publish an event"),
    },
    "Pushing": {
        "routes": Entry("routes", "list the routes of deliveries in their order"),
        "routes set": Entry("routes", "replace all routes by those of a file"),
        "routes match": Entry("routes", "tell which route a delivery would take, and where to"),
        "circuits": Entry("circuits", "list the circuits and how they are"),
        "circuits show": Entry("circuits", "show one circuit"),
        "circuits close": Entry("circuits", "close circuits; their queues are let go in turn"),
        "circuits open": Entry("circuits", "open a circuit until somebody closes it"),
        "circuits settings": Entry("circuits", "show the settings of the circuit breaker"),
        "circuits set": Entry("circuits", "change some settings of the circuit breaker"),
    },
    "Insight": {
        "stats": Entry("stats", "counts and totals"),
        "tail": Entry("tail", "follow what finishes and what waits"),
        "history": Entry("history", "list finished messages, newest first"),
    },
    "The lake": {
        "archive": Entry("archive", "tell how far the lake is"),
        "archive status": Entry("archive", "tell how far the lake is"),
        "archive run": Entry("archive", "write what is new to the lake"),
        "archive snapshot": Entry("archive", "take a snapshot of all that has not ended"),
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
        "backup": Entry("backup", "copy a SQLite store while the server works"),
        "promote": Entry("promote", "move a SQLite store to PostgreSQL"),
        "doctor": Entry("doctor", "check the machine, the settings and the store"),
        "keys": Entry("keys", "list the API keys"),
        "keys create": Entry("keys", "make an API key; its secret is shown once"),
        "keys aws": Entry("keys", "show what AWS's tools need to sign with an API key"),
        "keys revoke": Entry("keys", "make an API key useless"),
        "settings": Entry("settings", "show every setting and where it came from"),
        "version": Entry("version", "show the version"),
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
