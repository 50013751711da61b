"""`penstock insights`: answers from the pipeline's tables, and applying their advice."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.domain.errors import AdviceOutdated
from penstock.domain.insights.answer import Advice, Answer, BacktestFigure
from penstock.domain.insights.questions import BREAKER, FLEET, QUESTIONS
from penstock.domain.insights.wording import count_phrase, value_text
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import ServerCommand, argument, flag
from penstock.edge.cli.kit.confirmation import is_confirmed
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.view import View
from penstock.edge.cli.pipeline.spark_command import day

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote


def _insights(server: Remote, args: Namespace, out: Output) -> None:
    found = server.answers.list(**_days(args))
    for place, answer in enumerate(found):
        if out.json:
            out.record(answer)
            continue
        if place:
            out.line()
        _print(answer, out)


def _show(server: Remote, args: Namespace, out: Output) -> None:
    answer = server.answers.get(args.question, **_days(args))
    if out.json:
        return out.record(answer)
    _print(answer, out)
    for advice in answer.advice:
        out.line()
        _print_advice(advice, out)
    return None


def _apply(server: Remote, args: Namespace, out: Output) -> int:
    answer = server.answers.get(args.question, **_days(args))
    advice = next((one for one in answer.advice if one.target == args.target), None)
    if advice is None:
        known = ", ".join(one.target for one in answer.advice) or "none"
        raise AdviceOutdated(f"there is no advice on {args.target!r}; targets: {known}")
    if not out.json:
        _print_advice(advice, out)
    if args.dry_run:
        if out.json:
            out.record(advice)
        return exits.OK
    if not (out.json or args.yes or is_confirmed(f"Apply this to {advice.target}?")):
        exits.note("nothing was changed")
        return exits.REFUSED
    applied = server.answers.apply(args.question, advice, **_days(args))
    out.result(applied, f"\n{applied.target}: the recommended settings are in force")
    return exits.OK


def _print(answer: Answer, out: Output) -> None:
    out.line(f"{answer.question}  ({answer.name})")
    for sentence in answer.sentences:
        out.line(f"  {sentence}")


def _print_advice(advice: Advice, out: Output) -> None:
    out.fields(
        [
            ("target", advice.target),
            ("in force", _settings(advice.before)),
            ("recommended", _settings(advice.settings)),
            ("back-test", f"{count_phrase(advice.days, 'recorded day')}"),
            ("note", advice.refusal),
        ]
    )
    out.table(*_BACKTEST.table(advice.backtest))


def _settings(values: dict[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _before(figure: BacktestFigure) -> str:
    return value_text(figure.before, figure.unit)


def _after(figure: BacktestFigure) -> str:
    return value_text(figure.after, figure.unit)


_BACKTEST = View("name:back-test before:in_force after:recommended", before=_before, after=_after)


def _days(args: Namespace) -> dict[str, str | None]:
    return {"from_day": getattr(args, "from"), "to_day": args.to}


_FROM = flag("--from", "first day, such as 2030-01-31; default: four weeks", type=day)
_TO = flag("--to", "last day, inclusive; default: the newest", type=day)

COMMANDS = {
    "insights": ServerCommand(
        _insights,
        _FROM,
        _TO,
        more="The server reads the tables that `penstock pipeline run` has computed.",
        examples=("penstock insights", "penstock insights --from 2030-01-01 --json"),
    ),
    "insights show": ServerCommand(
        _show,
        argument("QUESTION", "its name", choices=[*QUESTIONS]),
        _FROM,
        _TO,
        examples=("penstock insights show breaker", "penstock insights show outage --json"),
    ),
    "insights apply": ServerCommand(
        _apply,
        argument("QUESTION", "breaker or fleet", choices=[BREAKER, FLEET]),
        argument("TARGET", "a route, * for all routes, or the name of a fleet"),
        _FROM,
        _TO,
        flag("--dry-run", "only show the back-test"),
        flag("--yes", "do not ask for confirmation"),
        more="Shows what the settings in force and the recommended ones would have done on the "
        "recorded days, asks for confirmation on a terminal (not with --yes or --json), and "
        "changes the settings. Nothing is changed if the settings in force have changed since, or "
        "were not among those replayed (advice_outdated).",
        examples=(
            "penstock insights apply breaker '*' --dry-run",
            "penstock insights apply breaker '/shop/(.*)'",
            "penstock insights apply fleet mail",
        ),
    ),
}
