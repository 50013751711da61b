"""The file system of Arrow for a place, and the path in it; needs pyarrow."""

from __future__ import annotations

import os
from typing import Any

from pyarrow import fs

from penstock.domain.lake.places import is_object_store, local_path
from penstock.files.object_folder import ObjectFolder


def arrow_filesystem(place: str) -> tuple[Any, str]:
    if is_object_store(place):
        return ObjectFolder(place).opened
    return fs.LocalFileSystem(), os.path.abspath(local_path(place))
