"""Joins the console's modules and style sheets into one file each, for slow connections.

    import { h } from "./dom.js";      const { h } = $kit_dom;
    export function card() { … }   →   function card() { … }
                                       return { card };

A module becomes a function that is called once, after those that it imports.  Modules import by
name only and not in circles; anything else is an error when the server starts.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

_IMPORT = re.compile(r'^import (\{.*?\}) from "([^"]+)";\n', re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|const|class) (\w+))", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b|\bimport\.meta\b", re.MULTILINE)


def bundle(modules: Mapping[str, str], entry: str) -> str:
    """One script of all modules that `entry` needs, by path."""
    return "\n".join(_wrapped(name, modules[name]) for name in _in_order(modules, entry))


def _in_order(modules: Mapping[str, str], entry: str) -> list[str]:
    """Each after those that it imports."""
    done: list[str] = []
    begun: set[str] = set()

    def visit(name: str) -> None:
        if name in done:
            return
        if name in begun:
            raise ValueError(f"{name} imports itself through others")
        begun.add(name)
        for target in _targets(name, modules[name]):
            visit(target)
        done.append(name)

    visit(entry)
    return done


def _targets(name: str, text: str) -> Iterator[str]:
    for _, target in _IMPORT.findall(text):
        yield _resolved(name, target)


def _resolved(name: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), target))


def _wrapped(name: str, text: str) -> str:
    exports = [exported for _, exported in _EXPORT.findall(text)]
    text = _IMPORT.sub(lambda m: f"const {m[1]} = {_variable(_resolved(name, m[2]))};\n", text)
    text = _EXPORT.sub(r"\1", text)
    if found := _OTHER.search(text):
        raise ValueError(f"{name}: {found[0]!r} is not understood")
    returned = f"return {{ {', '.join(exports)} }};\n" if exports else ""
    return f"// {name}\nconst {_variable(name)} = (() => {{\n{text}{returned}}})();\n"


def _variable(name: str) -> str:
    return "$" + re.sub(r"\W", "_", name.removesuffix(".js"))
