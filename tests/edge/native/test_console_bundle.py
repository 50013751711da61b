"""The console's modules, joined into one script."""

import pytest

from penstock.edge.console.bundle import bundle

DOM = """\
export function h(tag) {
  return tag;
}
export const NAMES = ["import"];
"""
PAGE = """\
import { h,
  NAMES } from "../kit/dom.js";
export class Page {}
const hidden = h(NAMES);
"""


def test_modules_come_after_those_that_they_import():
    joined = bundle(
        {
            "app.js": 'import { Page } from "./pages/page.js";\nnew Page();\n',
            "kit/dom.js": DOM,
            "pages/page.js": PAGE,
            "kit/unused.js": "export const x = 1;\n",
        },
        "app.js",
    )

    places = [joined.index(f"// {name}") for name in ("kit/dom.js", "pages/page.js", "app.js")]
    assert places == sorted(places)
    assert "const { h,\n  NAMES } = $kit_dom;" in joined
    assert "return { h, NAMES };" in joined
    assert "return { Page };" in joined
    assert "unused" not in joined


@pytest.mark.parametrize(
    "text",
    [
        'import everything from "./kit/dom.js";\n',
        'import * as dom from "./kit/dom.js";\n',
        "export default 1;\n",
        "const here = import.meta.url;\n",
        'import { app } from "./app.js";\n',
    ],
)
def test_what_is_not_understood_is_an_error(text: str):
    with pytest.raises(ValueError, match=r"app\.js"):
        bundle({"app.js": text, "kit/dom.js": DOM}, "app.js")
