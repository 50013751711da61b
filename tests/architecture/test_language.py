"""Code, tests and documents keep to the words of the style guide."""

import pytest

from tests.architecture.language import names, offenders, phrases, renamed_twins, shared_classes
from tests.architecture.source import plant


def test_source_tests_and_documents_keep_to_the_words_of_the_style_guide():
    assert list(offenders()) == []


@pytest.mark.parametrize(
    "text",
    [
        "as the seed does",
        "Row 45: plays our own document",
        "whoever waits is served first",
        "def test_whoever_waits(): ...",
        "a busy machine is no failure",
        "PostgreSQL needs a part more",
        "nobody holds it",
        "the transaction goes on",
        "jobs go on while it drains",
        "the worker is told",
        "it locks none in vain",
        "those that wait in line",
        "a duty for letting go",
        "such rows are no sign of damage",
        "def test_a_queue_tells_its_state(): ...",
    ],
)
def test_a_planted_phrase_is_found(text):
    assert [line for line, _ in phrases(f"\n{text}\n")] == [2]


@pytest.mark.parametrize(
    "text",
    [
        "there is no queue of that name",
        "the lease is no longer held",
        "a random seed, a seedling",
        "10 rows 3 columns",
        "inline, in line with the standard",
        "goes online",
        "there are no rows, and they are no longer read",
        "SQLite cannot tell why",
        "two holders must be told apart",
        'pwd.getpwnam("nobody")',
    ],
)
def test_plain_english_is_not_an_offence(text):
    assert list(phrases(text)) == []


def test_a_planted_name_is_found_and_the_same_word_in_prose_is_not():
    text = 'told_at = 1\n"""The worker is told."""\ndef on_told(): ...\ntheir = untold = 2\n'

    assert list(names(text)) == [(1, "told_at"), (3, "on_told")]


def test_a_planted_module_is_found(tmp_path):
    plant(tmp_path, "src/penstock/services/past.py", "")
    plant(tmp_path, "src/penstock/client/nouns/__init__.py", "")

    assert {what for _, _, what in offenders(tmp_path)} == {
        "a module called past",
        "a module called nouns",
    }


def test_planted_classes_of_one_name_are_found_unless_one_is_the_wire_form(tmp_path):
    for place in ("api/queues.py", "domain/queue.py", "client/job.py", "worker/job.py"):
        name = "Job" if "job" in place else "Queue"
        plant(tmp_path, f"src/penstock/{place}", f"class {name}: ...\nclass _Own: ...\n")

    found = list(shared_classes(tmp_path / "src/penstock", tmp_path))

    assert found == [
        ("src/penstock/client/job.py", 1, "one of 2 public classes called Job"),
        ("src/penstock/worker/job.py", 1, "one of 2 public classes called Job"),
    ]


def test_a_planted_alias_of_a_twin_is_found(tmp_path):
    for place in ("api/queues.py", "domain/queue.py"):
        plant(tmp_path, f"src/penstock/{place}", "class Queue: ...\nclass _Own: ...\n")
    aliases = "from penstock.domain.queue import Queue as Stored\nfrom a import B as C\n"
    plant(tmp_path, "src/penstock/services/queues.py", aliases)

    found = list(renamed_twins(tmp_path / "src/penstock", tmp_path))

    assert found == [("src/penstock/services/queues.py", 1, "Queue as Stored")]
