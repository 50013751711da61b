"""Agents of Pydantic AI in jobs: no recorded model request or tool call is repeated."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ModelRetry, ToolReturn
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from penstock import Penstock, wait_event
from penstock.api.jobs import steps
from penstock.client.agents import AgentSteps
from penstock.domain.message.lease import Verb
from tests.edge.api import a_name

CALLS = 50


class WorkerEnded(BaseException):
    pass


class Researcher:
    """An agent that looks up one page after the other, and ends its worker at given requests."""

    def __init__(self, *, pages: int, ends_at: set[int]) -> None:
        self.requests: list[int] = []
        self.looked_up: list[int] = []
        self._pages = pages
        self._ends_at = ends_at
        self.agent = Agent(
            FunctionModel(self.think), name="researcher", capabilities=[AgentSteps()]
        )
        self.agent.tool_plain(self.look_up)

    async def think(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        found = [
            part
            for message in messages
            if isinstance(message, ModelRequest)
            for part in message.parts
            if isinstance(part, ToolReturnPart)
        ]
        self.requests.append(len(found))
        if len(found) in self._ends_at:
            self._ends_at.remove(len(found))
            raise WorkerEnded
        if len(found) == self._pages:
            total = sum(int(str(part.content)) for part in found)
            return ModelResponse(parts=[TextPart(str(total))])
        return ModelResponse(parts=[ToolCallPart("look_up", {"page": len(found)})])

    def look_up(self, page: int) -> int:
        self.looked_up.append(page)
        return page


def run_again_and_again(driver: Any, clock: Any) -> list[Verb]:
    """Run the due jobs; a worker that has ended sends no act, and its lease expires."""
    verbs = []
    while jobs := driver.claim():
        for job in jobs:
            act = driver.act_of(job)
            if "WorkerEnded" in (act.text or ""):
                clock.advance(minutes=1)
                continue
            driver.act(act)
            verbs.append(act.verb)
    return verbs


@pytest.mark.environments("worker")
def test_an_agent_of_fifty_model_calls_resumes_without_a_repeated_call(
    app: Penstock, queue: str, driver: Any, clock: Any
) -> None:
    ends_at = {0, 7, 23, CALLS - 1}
    researcher = Researcher(pages=CALLS - 1, ends_at=set(ends_at))
    answers: list[str] = []

    @app.job(queue=queue, attempts=100)
    async def research() -> None:
        result = await researcher.agent.run("sum up all pages")
        answers.append(result.output)
        assert result.usage.requests == CALLS

    sent = research.enqueue()

    assert run_again_and_again(driver, clock) == [Verb.COMPLETE]
    assert answers == [str(sum(range(CALLS - 1)))]
    assert researcher.looked_up == list(range(CALLS - 1))
    # Only a request that did not return is made again.
    assert researcher.requests == sorted([*range(CALLS), *ends_at])
    names = [one.name for one in app.jobs.steps(sent).steps]
    assert names[0] == "researcher model"
    assert names[1].startswith("researcher look_up ")
    assert len(names) == CALLS + CALLS - 1


def test_a_tool_may_wait_for_a_signal(app: Penstock, queue: str, driver: Any, clock: Any) -> None:
    name, seen = a_name("approved"), []
    agent = Agent(TestModel(), capabilities=[AgentSteps()])

    @agent.tool_plain
    async def ask_a_human(question: str) -> str:
        return str(await wait_event(name))

    @app.job(queue=queue)
    async def approve() -> None:
        seen.append((await agent.run("may I?")).output)

    approve.enqueue()
    assert [act.verb for act in driver.run_due()] == [Verb.SNOOZE]

    app.signal(name, "yes")
    assert [act.verb for act in driver.run_due()] == [Verb.COMPLETE]
    assert seen == ['{"ask_a_human":"yes"}']


class City(BaseModel):
    name: str


def test_results_of_tools_survive_with_their_types(
    app: Penstock, queue: str, driver: Any, clock: Any
) -> None:
    calls: list[str] = []
    image = BinaryContent(b"\x89PNG", media_type="image/png")
    agent = Agent(TestModel(), capabilities=[AgentSteps(name="guide")])

    @agent.tool_plain
    def city() -> City:
        calls.append("city")
        return City(name="Paris")

    @agent.tool_plain
    def picture() -> ToolReturn[Any]:
        calls.append("picture")
        return ToolReturn("a picture", content=["look", image], metadata={"size": 4})

    @agent.tool_plain(retries=1)
    def flaky() -> str:
        calls.append("flaky")
        if calls.count("flaky") == 1:
            raise ModelRetry("once more")
        return "worked"

    @agent.tool_plain
    def closed() -> str:
        calls.append("closed")
        raise ToolFailed("closed on Mondays")

    transcripts = []

    @app.job(queue=queue, backoff="0s")
    async def visit() -> None:
        result = await agent.run("where?")
        parts = [
            (type(part).__name__, getattr(part, "content", None))
            for message in result.all_messages()
            for part in message.parts
        ]
        transcripts.append((result.output, parts))
        if len(transcripts) == 1:
            raise RuntimeError("broken")

    visit.enqueue()

    assert run_again_and_again(driver, clock) == [Verb.FAIL, Verb.COMPLETE]
    assert sorted(calls) == ["city", "closed", "flaky", "flaky", "picture"]
    assert transcripts[0] == transcripts[1]
    assert '{"name":"Paris"}' in transcripts[0][0]


def test_runs_and_agents_inside_of_tools_have_steps_of_their_own(
    app: Penstock, queue: str, driver: Any, clock: Any
) -> None:
    inner = Agent(TestModel(custom_output_text="inner"), capabilities=[AgentSteps(name="inner")])
    outer = Agent(TestModel(), capabilities=[AgentSteps(name="outer")])

    @outer.tool_plain
    async def ask(question: str) -> str:
        return (await inner.run(question)).output

    outputs: list[list[str]] = []

    @app.job(queue=queue, backoff="0s")
    async def run() -> None:
        runs = await asyncio.gather(outer.run("a"), inner.run("b"), outer.run("c"))
        outputs.append([one.output for one in runs])
        if len(outputs) == 1:
            raise RuntimeError("broken")

    sent = run.enqueue()

    assert run_again_and_again(driver, clock) == [Verb.FAIL, Verb.COMPLETE]
    assert outputs[0] == outputs[1] == ['{"ask":"inner"}', "inner", '{"ask":"inner"}']
    names = {one.name for one in app.jobs.steps(sent).steps}
    assert {"outer model", "outer model#2", "outer 2 model", "inner model"} <= names
    assert "pyd_ai_tool_call_id__ask inner model" in names
    assert len(names) == 9


@pytest.mark.no_store("context")
def test_outside_of_a_job_the_agent_runs_as_usual() -> None:
    agent = Agent(TestModel(custom_output_text="hello"), capabilities=[AgentSteps()])

    assert asyncio.run(agent.run("hi")).output == "hello"


def test_a_streamed_run_is_recorded_too(app: Penstock, queue: str, driver: Any, clock: Any) -> None:
    seen: list[str] = []
    model = TestModel(custom_output_text="hello")
    agent = Agent(model, capabilities=[AgentSteps(name="talker")])

    @app.job(queue=queue, backoff="0s")
    async def talk() -> None:
        async with agent.run_stream("hi") as stream:
            seen.append(await stream.get_output())
        if len(seen) == 1:
            model.custom_output_text = "changed"
            raise RuntimeError("broken")

    sent = talk.enqueue()

    assert run_again_and_again(driver, clock) == [Verb.FAIL, Verb.COMPLETE]
    assert seen == ["hello", "hello"]
    found = app.backend.channel.request(steps.OF_MESSAGE, id=sent.id).steps
    assert [one.name for one in found] == ["talker model"]
