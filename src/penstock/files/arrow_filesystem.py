"""The file system of Arrow for a place, and the path in it; needs pyarrow."""

from __future__ import annotations

import os
from typing import Any

from pyarrow import fs

from penstock.files.folder import open_folder
from penstock.files.object_folder import ObjectFolder


def arrow_filesystem(place: str) -> tuple[Any, str]:
    """Raises InvalidRequest for a URL that only Spark can reach."""
    folder = open_folder(place, str)
    if isinstance(folder, ObjectFolder):
        return folder.filesystem_and_path
    return fs.LocalFileSystem(), os.path.abspath(folder.place)
