"""Columns of the lake as fields of Arrow; needs pyarrow."""

from __future__ import annotations

import pyarrow as pa

from penstock.domain.lake.layout import LakeColumn, Type

_TYPES = {
    Type.TEXT: pa.string(),
    Type.INT: pa.int32(),
    Type.LONG: pa.int64(),
    Type.BOOL: pa.bool_(),
}


def field_of(column: LakeColumn, *, nullable: bool) -> pa.Field:
    return pa.field(column.name, _TYPES[column.type], nullable=nullable)
