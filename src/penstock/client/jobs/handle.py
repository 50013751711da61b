"""The handle of an enqueued job: its id, and its end."""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from penstock.client.values.return_value import PLAIN, ReturnValue
from penstock.domain.duration import Duration
from penstock.domain.message.lifecycle import State

if TYPE_CHECKING:
    from penstock.api.messages import Acted, Sent
    from penstock.client.jobs.jobs import Jobs

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class Enqueued(Generic[R_co]):
    """`await` it, or call `result`, to wait for what the job returns.

    R is what calling the function returns: for an async function a coroutine of the result.
    """

    __slots__ = ("_jobs", "_returns", "id", "is_duplicate")

    def __init__(
        self,
        id: str,
        is_duplicate: bool = False,
        *,
        jobs: Jobs,
        returns: ReturnValue = PLAIN,
    ) -> None:
        self.id = id
        self.is_duplicate = is_duplicate
        self._jobs = jobs
        self._returns = returns

    @property
    def returns(self) -> ReturnValue:
        return self._returns

    @overload
    def result(self: Enqueued[Coroutine[Any, Any, T]], timeout: Duration | None = None) -> T: ...

    @overload
    def result(self, timeout: Duration | None = None) -> R_co: ...

    def result(self, timeout: Duration | None = None) -> Any:
        """Wait until the job is done, and return what its function returned.

        Returns None if the job drops its result.  Raises JobFailed if it is dead or was cancelled,
        TimeoutError if it has not ended in time.
        """
        return self._jobs.result(self, timeout=timeout)

    @overload
    def result_async(
        self: Enqueued[Coroutine[Any, Any, T]], timeout: Duration | None = None
    ) -> Coroutine[Any, Any, T]: ...

    @overload
    def result_async(self, timeout: Duration | None = None) -> Coroutine[Any, Any, R_co]: ...

    def result_async(self, timeout: Duration | None = None) -> Coroutine[Any, Any, Any]:
        return self._jobs.result_async(self, timeout=timeout)

    @overload
    def __await__(self: Enqueued[Coroutine[Any, Any, T]]) -> Generator[Any, None, T]: ...

    @overload
    def __await__(self) -> Generator[Any, None, R_co]: ...

    def __await__(self) -> Generator[Any, None, Any]:
        return self._jobs.result_async(self).__await__()

    def state(self) -> State:
        """Its state now; `dead` also while it is in a dead-letter queue."""
        return self._jobs.state(self)

    async def state_async(self) -> State:
        return await self._jobs.state_async(self)

    def cancel(self, reason: str | None = None) -> Acted:
        """Cancel it, even while it runs; raises MessageNotFound if it has ended."""
        return self._jobs.cancel(self, reason=reason)

    async def cancel_async(self, reason: str | None = None) -> Acted:
        return await self._jobs.cancel_async(self, reason=reason)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Enqueued):
            return NotImplemented
        return (self.id, self.is_duplicate) == (other.id, other.is_duplicate)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Enqueued(id={self.id!r}, is_duplicate={self.is_duplicate})"


def handles_of(sent: Sequence[Sent], jobs: Jobs, returns: ReturnValue) -> list[Enqueued[Any]]:
    return [Enqueued(one.id, one.is_duplicate, jobs=jobs, returns=returns) for one in sent]
