"""Where a lake or its tables are: a folder, or a URL such as s3://bucket/lake."""

from __future__ import annotations

import re

OBJECT_STORES = ("s3", "s3a", "gs", "abfs", "abfss")
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://")


def scheme_of(place: str) -> str | None:
    """None for a folder of this machine."""
    found = _URL.match(place)
    return None if found is None or found[1] == "file" else found[1]


def is_object_store(place: str) -> bool:
    return scheme_of(place) in OBJECT_STORES


def join(place: str, name: str) -> str:
    return f"{place.rstrip('/')}/{name}"


def local_path(place: str) -> str:
    return place.removeprefix("file://")


def object_url(place: str) -> str:
    """The URL that Arrow and deltalake know: Hadoop's s3a is their s3."""
    return _with_scheme(place, {"s3a": "s3"})


def spark_url(place: str) -> str:
    """The path that Spark knows: Hadoop's connector to S3 is named s3a."""
    return _with_scheme(place, {"s3": "s3a"})


def _with_scheme(place: str, renamed: dict[str, str]) -> str:
    scheme = scheme_of(place) or ""
    return place if scheme not in renamed else renamed[scheme] + place[len(scheme) :]
