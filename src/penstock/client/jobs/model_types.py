"""Types of others that can read and write themselves: pydantic's models, if somebody has them."""

from __future__ import annotations

from typing import Any


def is_foreign(kind: object) -> bool:
    return hasattr(kind, "model_validate") and hasattr(kind, "model_dump")


def write_foreign(value: Any) -> object:
    """For msgspec, which asks about what it does not know."""
    if is_foreign(type(value)):
        return value.model_dump(mode="json")
    raise TypeError(f"a {type(value).__name__} cannot be kept as JSON")


def read_foreign(kind: Any, value: object) -> Any:
    if not is_foreign(kind):
        raise NotImplementedError
    return kind.model_validate(value)  # its ValueError becomes msgspec's, with the place
