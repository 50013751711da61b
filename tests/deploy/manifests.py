"""Write deploy/kubernetes from the chart: `python -m tests.deploy.manifests`."""

from __future__ import annotations

import re

from tests.deploy.tools import DEPLOY, program, run

# Only Helm reads these.
_OF_HELM = re.compile(
    r"^ +(?:helm\.sh/\S+|app\.kubernetes\.io/managed-by|checksum/config): .*\n", re.MULTILINE
)
_EMPTY = re.compile(r"^ +annotations:\n(?= *(?:spec|labels|name)?:|spec:)", re.MULTILINE)
_NEEDS = {
    "sqlite": "One node with its messages in a volume.",
    "postgres": "Two nodes on the PostgreSQL server that the Secret penstock-postgres names.\n"
    "# Run the Job first; delete it and run it again before an upgrade.",
}


def manifest(name: str, rendered: str) -> str:
    text = re.sub(r"^# Source: .*\n", "", rendered, flags=re.MULTILINE)
    text = _EMPTY.sub("", _OF_HELM.sub("", text))
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    head = f"# {_NEEDS[name]} See docs/deploy.md.\n# Generated from the chart in deploy/helm.\n"
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    chart = DEPLOY / "helm" / "penstock"
    for name in _NEEDS:
        rendered = run(program("helm"), "template", "penstock", chart, "--set", f"store={name}")
        path = DEPLOY / "kubernetes" / f"{name}.yaml"
        path.write_text(manifest(name, rendered), encoding="utf-8")
