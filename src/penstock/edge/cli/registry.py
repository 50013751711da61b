"""Every command by name, with its module, which is imported only when the command runs."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from penstock.edge.cli.kit.aliases import ALIASES
from penstock.edge.cli.kit.command import Command
from penstock.edge.cli.kit.parser import Parser


class CommandEntry(NamedTuple):
    module: str
    summary: str


GROUPS: dict[str, dict[str, dict[str, str]]] = {  # by title, by module: name and summary
    "Run": {
        "operate.serve": {"serve": "start a server"},
        "workers.worker": {"worker": "run the jobs of an application"},
        "workers.dev": {"dev": "run a server, workers and the console while you write jobs"},
        "workers.scaling": {"autoscale": "start and drain workers according to the backlog"},
        "operate.store": {"migrate": "bring the store's schema up to date"},
    },
    "Messages": {
        "broker.send": {"send": "send messages to a queue"},
        "broker.leases": {
            "claim": "claim messages from a queue",
            "complete": "complete claimed messages",
            "fail": "report a failed attempt; the message is retried later",
            "release": "return claimed messages unhandled",
            "extend": "prolong leases",
            "snooze": "postpone claimed messages",
        },
        "broker.messages": {
            "messages": "list the messages of a queue",
            "messages show": "show one message and its history",
            "messages complete": "mark unclaimed messages as done",
            "messages cancel": "cancel messages, with --running also leased ones",
            "messages bury": "mark messages as dead, or move them to the dead-letter queue",
            "messages redrive": "send dead messages back to be handled again",
            "messages reschedule": "change the due date of a message",
            "messages bulk": "act on all matching messages of a queue",
        },
        "broker.errors": {
            "errors": "group the errors of dead messages",
            "errors redrive": "retry the dead messages of a group of errors",
        },
    },
    "Jobs": {
        "workers.jobs": {
            "jobs": "list jobs of a server or a store",
            "jobs list": "list jobs of a server or a store",
            "jobs show": "show one job",
            "jobs count": "count jobs by state",
            "jobs cancel": "cancel jobs, including running ones",
            "jobs reschedule": "change the due date of a waiting job",
            "jobs redrive": "retry dead jobs with all their attempts",
            "jobs wait": "wait until a job has ended",
            "result": "print what a job returned, once it is done",
        },
        "broker.flows": {
            "flows": "list flows and batches, newest first",
            "flows show": "show a flow with its members",
            "flows graph": "show a flow as a graph, with members that are alike as one node",
            "flows cancel": "cancel all members that have not ended",
            "flows redrive": "run the members that failed again",
            "flows close": "let an open flow end when its members have ended",
        },
        "workers.signals": {"signal": "continue the jobs that wait for a signal"},
    },
    "Queues": {
        "broker.queues": {
            "queues": "list the queues",
            "queues show": "show a queue with its settings",
            "queues create": "create a queue",
            "queues set": "change some settings of a queue",
            "queues pause": "stop claims; messages can still be sent",
            "queues resume": "allow claims again",
            "queues unhold": "release a queue that a circuit holds",
            "queues purge": "cancel all messages of a queue",
            "queues redrive": "send dead messages back to be handled again",
            "queues delete": "delete a queue",
        },
        "broker.moves": {
            "moves": "list the moves out of a queue, newest first",
            "moves start": "move messages out of a queue in the background",
            "moves show": "show one move",
            "moves cancel": "stop a move; messages already moved stay moved",
        },
    },
    "Workers": {
        "workers.workers": {
            "workers": "list the workers and their number of leases",
            "workers show": "show one worker and its leases",
            "workers drain": "let a worker finish its leases and exit",
        },
        "workers.scaling": {
            "scaling": "show the fleets and their latest scaling decisions",
            "scaling set": "override settings of a fleet's profile",
        },
    },
    "Recurring": {
        "broker.recurring": {
            "recurring": "list recurring work",
            "recurring set": "create or change recurring work",
            "recurring show": "show recurring work with its next and last firing",
            "recurring preview": "show the next firings",
            "recurring run": "send its message once, now",
            "recurring pause": "stop firings",
            "recurring resume": "allow firings again",
            "recurring remove": "delete recurring work",
        },
    },
    "Notifications and the bus": {
        "broker.notifications": {
            "notifications": "find notifications by their tags",
            "notifications record": "record a notification for a set time",
            "notifications move": "change the due date of a notification",
            "notifications remove": "cancel notifications",
        },
        "broker.topics": {
            "topics": "list the topics",
            "topics show": "show a topic with its subscriptions",
            "topics create": "create a topic",
            "topics delete": "delete a topic",
            "topics subscribe": "create or change a subscription",
            "topics unsubscribe": "delete a subscription",
            "topics publish": "publish an event",
        },
    },
    "Pushing": {
        "broker.pushing": {
            "routes": "list the routes of deliveries, in order",
            "routes set": "replace all routes with those of a file",
            "routes match": "show which route a delivery takes, and its target",
            "circuits": "list the circuits and their states",
            "circuits show": "show one circuit",
            "circuits close": "close circuits; their held queues are released gradually",
            "circuits unhold": "release the held queues of circuits at once",
            "circuits open": "open a circuit until it is closed by hand",
            "circuits settings": "show the breaker's settings, or those of one circuit",
            "circuits set": "change the breaker's settings, or those of one circuit",
        },
    },
    "Insight": {
        "broker.stats": {
            "stats": "show counts and totals",
            "tail": "follow finished messages and the counts",
            "history": "list finished messages, newest first",
        },
        "broker.insights": {
            "insights": "answer questions from the pipeline's tables, in words",
            "insights show": "answer one question, with its advice",
            "insights apply": "apply recommended settings to a breaker or a fleet",
        },
    },
    "The lake": {
        "operate.archive": {
            "archive": "show archive progress",
            "archive status": "show archive progress",
            "archive run": "write new history to the lake",
            "archive snapshot": "take a snapshot of all unfinished messages",
        },
        "operate.sql": {"sql": "query the lake and the computed tables with SQL"},
    },
    "Pipeline": {
        "pipeline.run": {
            "pipeline": "list the jobs and their tables",
            "pipeline run": "compute the tables of new data in the lake, on Spark",
            "pipeline schema": "show the schemas of all tables, with their versions",
            "pipeline status": "show what is computed and what is pending",
            "pipeline compact": "compact small files of the computed tables",
            "pipeline report": "render the computed tables as one HTML page",
            "pipeline java": "show the JAVA_HOME that Spark uses",
        },
        "pipeline.tables": {
            "pipeline tables": "list the computed tables",
            "pipeline show": "show rows of a computed table",
            "pipeline versions": "list the versions of a Delta table",
        },
        "pipeline.demo": {"pipeline demo": "generate sample history and compute all tables"},
        "pipeline.restore": {
            "pipeline restore": "restore the messages that existed at an instant",
        },
        "pipeline.views": {"pipeline views": "print views of all tables, for Spark or dbt"},
        "pipeline.resend": {"pipeline resend": "send finished messages again"},
        "pipeline.simulate": {
            "pipeline simulate": "simulate recorded days with other workers, limits or retries",
        },
        "pipeline.stream": {"pipeline stream": "update the rollups continuously, on Spark"},
    },
    "Upkeep": {
        "operate.store": {
            "backup": "copy a SQLite store while the server runs",
            "promote": "move a SQLite store to PostgreSQL or MariaDB",
        },
        "operate.mcp": {"mcp": "offer a broker's state and acts to language models"},
        "operate.definitions": {
            "export": "print queues, topics, settings and schedules as a file",
            "apply": "create and change what a file defines",
        },
        "operate.doctor": {"doctor": "check the machine, the settings and the store"},
        "operate.keys": {
            "keys": "list the API keys",
            "keys create": "create an API key; its secret is shown once",
            "keys aws": "show the AWS credentials of an API key",
            "keys revoke": "revoke an API key",
        },
        "operate.completion": {"completion": "print a completion script for a shell"},
        "operate.settings": {
            "settings": "show every setting and its origin",
            "version": "show the version",
        },
    },
}
ENTRIES: dict[str, CommandEntry] = {
    name: CommandEntry(module, summary)
    for modules in GROUPS.values()
    for module, commands in modules.items()
    for name, summary in commands.items()
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
    parser.subcommands = subcommands(name)
    command.configure(parser)
    parser.add_common()
    return parser


def subcommands(name: str) -> tuple[str, ...]:
    """The words that make a longer command of this one."""
    return tuple(
        entry.removeprefix(f"{name} ") for entry in ENTRIES if entry.startswith(f"{name} ")
    )


def env_names() -> frozenset[str]:
    """The environment variables of all flags; some begin like those of settings."""
    return frozenset(
        name for command in ENTRIES for name in parser_of(command, load(command)).env_names
    )
