"""Agents of Pydantic AI as durable jobs: each model request and each tool call is a step.

    agent = Agent("openai:gpt-5", name="research", capabilities=[AgentSteps()])

In a job, `await agent.run(…)` continues behind the requests and calls that were recorded.  Outside
of a job the agent runs as usual.  Needs `pip install penstock-queue[agents]`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import pydantic_core
from pydantic import TypeAdapter
from pydantic_ai import ModelRetry, RunContext, ToolReturn
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    tool_return_content_ta,
)
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from penstock.client.jobs.current import current, running_job_label
from penstock.client.jobs.durable import DurableSteps
from penstock.domain.message.outcome import Bury

_NAME = "agent"
_tool_return: TypeAdapter[ToolReturn[Any]] = TypeAdapter(ToolReturn[Any])
_outer: ContextVar[str] = ContextVar("penstock_outer_tool_call", default="")  # an agent in a tool


@dataclass
class AgentSteps(AbstractCapability[Any]):
    """Records the model requests and tool calls of an agent's runs.

    `name`: how its steps are called; by default the agent's name.  Runs of one agent in one job are
    told apart by the order in which they begin.
    """

    name: str | None = None
    _run: str | None = None  # the name of one run; None outside of a job

    def get_ordering(self) -> CapabilityOrdering:
        """Other capabilities see recorded responses as if they had just arrived."""
        return CapabilityOrdering(position="innermost")

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        if running_job_label() is None:
            return replace(self, _run=None)
        name = self.name or (ctx.agent.name if ctx.agent is not None else None) or _NAME
        return replace(self, _run=current().steps.scope(f"{_outer.get()}{name}"))

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: Any, handler: Any
    ) -> ModelResponse:
        if self._run is None:
            response: ModelResponse = await handler(request_context)
            return response

        async def request() -> object:
            response = await handler(request_context)
            [recorded] = ModelMessagesTypeAdapter.dump_python([response], mode="json")
            return recorded

        recorded = await _steps().step(f"{self._run} model", request)
        [found] = ModelMessagesTypeAdapter.validate_python([recorded])
        assert isinstance(found, ModelResponse)
        return found

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        return None if self._run is None else _RecordedTools(toolset, self._run)


@dataclass
class _RecordedTools(WrapperToolset[Any]):
    run: str

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        step = f"{self.run} {name} {ctx.tool_call_id}".replace("#", " ")

        async def execute() -> dict[str, Any]:
            async with _inside(f"{ctx.tool_call_id} "):
                try:
                    result = await self.wrapped.call_tool(name, tool_args, ctx, tool)
                except ModelRetry as error:
                    return {"retry": error.message}
                except ToolFailed as error:
                    return {"failed": error.message}
            return _write(step, result)

        return _read(await _steps().step(step, execute))


def _steps() -> DurableSteps:
    return current().steps


@asynccontextmanager
async def _inside(tool_call: str) -> AsyncIterator[None]:
    """Agents that the tool runs have steps of their own, named after its call."""
    token = _outer.set(_outer.get() + tool_call)
    try:
        yield
    finally:
        _outer.reset(token)


def _write(step: str, result: object) -> dict[str, Any]:
    """What a tool returned, as JSON.  Raises Bury: the tool has run."""
    try:
        if isinstance(result, ToolReturn):
            return {"return": _tool_return.dump_python(result, mode="json")}
        return {"result": tool_return_content_ta.dump_python(result, mode="json")}
    except pydantic_core.PydanticSerializationError as error:
        raise Bury(f"step {step!r} has run, but cannot be recorded: {error}") from error


def _read(recorded: dict[str, Any]) -> Any:
    if "retry" in recorded:
        raise ModelRetry(recorded["retry"])
    if "failed" in recorded:
        raise ToolFailed(recorded["failed"])
    if "return" in recorded:
        return _tool_return.validate_python(recorded["return"])
    return tool_return_content_ta.validate_python(recorded["result"])
