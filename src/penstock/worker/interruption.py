"""Interrupts a sync handler: raises JobCancelled on its thread.

The exception is raised before the next bytecode of the thread, so a call into C (`time.sleep`, a
socket, a lock) ends first.  The handler's thread and the one that interrupts agree as follows:

    handler    names its thread ──▶ was it stopped? ──▶ runs ──▶ unnames it ──▶ was it stopped?
    other      sets the stop reason ──▶ is a thread named? then raise there

If both happen at once, the handler's thread withdraws an exception that was not raised yet: the
next job of this thread must not see it.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Protocol

_lock = threading.Lock()
_set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
_set_exception.argtypes = (ctypes.c_ulong, ctypes.py_object)


class OnThread(Protocol):
    thread_id: int  # 0: no handler runs


class JobCancelled(BaseException):
    """Raised in a sync handler whose job was cancelled, or does not count any more.

    Like `asyncio.CancelledError` it is not an Exception, so that `except Exception` lets it pass.
    """

    def __init__(self) -> None:
        super().__init__("the job was cancelled, or its lease was lost")


def interrupt(job: OnThread) -> None:
    """Raise JobCancelled on the thread that runs the handler, if it still runs."""
    with _lock:
        if job.thread_id:
            _set_exception(job.thread_id, ctypes.py_object(JobCancelled))


def withdraw_interrupt() -> None:
    """On the handler's thread, after its call: drop an exception that was not raised yet."""
    with _lock:
        _set_exception(threading.get_ident(), ctypes.py_object())
