"""One word, one thing: the words of other systems stay out of ours.

Only words that could mean nothing else are listed: "task", "item" or "consumer" have honest uses.
"""

import re
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, files, plant

OUR_WORD_FOR = {
    "ack": "complete",
    "bus entry": "event",
    "change visibility": "extend",
    "checkout": "claim",
    "creating owner": "sent_by",
    "dao": "store",
    "dashboard": "console",
    "dequeue": "claim",
    "effective date": "due_at",
    "error count": "failures",
    "future event": "notification",
    "in processing": "leased",
    "job row": "message",
    "nack": "fail",
    "next delivery": "due_at",
    "processing owner": "leased_by",
    "queue item": "message",
    "queueing lock": "dedup_key",
    "receipt handle": "receipt",
    "receive count": "attempts",
    "requeue": "release",
    "rescue": "reap",
    "sample queue": "probe",
    "scheduled at": "due_at",
    "task name": "kind",
    "tube": "queue",
    "unack": "leased",
    "unique key": "dedup_key",
    "visibility timeout": "lease",
    "vt": "due_at",
    "webhook": "endpoint",
    "work unit": "job",
}
# These speak the protocol of another product and must use its words.
# The last one spells what people type from habit beside our word for it.
OUTSIDE_PROTOCOLS = (
    "edge/aweq/",
    "edge/gateleen/",
    "edge/sqs/",
    "edge/izenda/",
    "domain/delivery/signature.py",
    "outbound/rabbitmq",
    "outbound/redis",
    "edge/cli/kit/aliases.py",
)

_SPOKEN = "|".join(word.replace(" ", r"[_\- ]?") for word in OUR_WORD_FOR)
_WORD = re.compile(rf"(?<![a-z])({_SPOKEN})(?:s|d|ed|ing)?(?![a-z])", re.IGNORECASE)
_CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def test_the_package_speaks_the_glossarys_words():
    assert foreign_words(PACKAGE) == []


@pytest.mark.parametrize(
    "leak",
    [
        "def dequeue(): ...",
        "requeued = 1",
        "class QueueItem: ...",
        "visibility_timeout_ms = 30",
        "visibilityTimeout = 30",
        "# extends the visibility timeout",
        "acked_at = 1",
        "message_vt = 1",
    ],
)
def test_a_planted_foreign_word_is_found(tmp_path, leak):
    assert foreign_words(plant(tmp_path, "services/messages.py", leak))


def test_a_planted_foreign_column_is_found(tmp_path):
    assert foreign_words(plant(tmp_path, "store/sql/common/a.sql", "SELECT scheduled_at"))


@pytest.mark.parametrize("text", ["back, stack, package", "acknowledge", "knack", "scheduled"])
def test_a_word_within_a_word_is_not_that_word(tmp_path, text):
    assert foreign_words(plant(tmp_path, "services/messages.py", f'"{text}"')) == []


def test_an_edge_may_speak_its_protocol(tmp_path):
    assert foreign_words(plant(tmp_path, "edge/sqs/receive.py", "visibility_timeout = 30")) == []


def foreign_words(package: Path) -> list[str]:
    return [
        f"{place}:{number}: say {OUR_WORD_FOR[_entry(found.group(1))]}, not {found.group()}"
        for place, path in files(package, ".py", ".sql", ".html", ".js")
        if not place.startswith(OUTSIDE_PROTOCOLS)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for found in _WORD.finditer(_CAMEL_HUMP.sub("_", line))
    ]


def _entry(spoken: str) -> str:
    """The list's spelling of what was found: "visibilitytimeout" is "visibility timeout"."""
    squeezed = re.sub(r"[_\- ]", "", spoken).lower()
    return next(word for word in OUR_WORD_FOR if word.replace(" ", "") == squeezed)
