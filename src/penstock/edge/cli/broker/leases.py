"""Acts on leases, one command per verb: each takes the receipts that a claim has printed."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from penstock.api.leases import ActOptions, BatchAct
from penstock.api.messages import Acted
from penstock.domain.message.lease import Verb
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.aliases import FINISH
from penstock.edge.cli.kit.bodies import body_of
from penstock.edge.cli.kit.flags import duration, remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command


def _command(
    verb: Verb,
    *,
    flags: Callable[[Parser], None] = lambda parser: None,
    options: Callable[[Namespace], ActOptions] = lambda args: {},
    more: str = "",
    examples: tuple[str, ...] = (),
) -> Command:
    def configure(parser: Parser) -> None:
        parser.argument("RECEIPT", "what the claim has printed", nargs="+")
        flags(parser)
        server_flags(parser)

    def run(args: Namespace, out: Output) -> int:
        acts = [BatchAct(receipt, verb, **options(args)) for receipt in args.receipt]
        with remote(args) as server:
            results = server.act_batch(acts)
        code = exits.OK
        for result in results:
            if isinstance(result, Acted):
                _show(result, out)
            else:
                exits.tell(result, result.code)
                code = exits.REFUSED
        return code

    return Command(run, configure, examples, more)


def _show(acted: Acted, out: Output) -> None:
    if out.json:
        out.record(acted)
    else:
        out.line(f"{acted.id} {acted.state}")


def _fail_flags(parser: Parser) -> None:
    parser.flag("--error", value="TEXT", text="what went wrong, for the history")
    parser.flag(
        "--retry-in", value="DURATION", text="instead of the queue's back-off", type=duration
    )


def _delay_flag(parser: Parser) -> None:
    parser.flag(
        "--delay",
        value="DURATION",
        text="claimable again only after that; default 0s",
        type=duration,
        default=0,
    )


def _lease_flag(parser: Parser) -> None:
    parser.flag(
        "--lease",
        value="DURATION",
        text="how long from now on; default: as the queue says",
        type=duration,
    )
    parser.flag("--start", text="work begins now: its timeout is counted from here")
    parser.flag("--progress", value="JSON", text="how far you are; text if it is not JSON")


def _extension(args: Namespace) -> ActOptions:
    progress = args.progress
    if progress is not None:
        progress = body_of(progress, as_json=False, as_text=False)
    return {"lease_ms": args.lease, "is_start": args.start or None, "progress": progress}


COMMANDS = {
    FINISH: _command(
        Verb.COMPLETE,
        more="They are done and leave the queue for the history. A lease that is not held any more "
        "is refused, and the command ends with code 1.",
        examples=(f"penstock {FINISH} RECEIPT",),
    ),
    "fail": _command(
        Verb.FAIL,
        flags=_fail_flags,
        options=lambda args: {"error": args.error, "retry_in_ms": args.retry_in},
        more="When no attempt is left, the message is dead.",
        examples=("penstock fail RECEIPT --error 'no route to host' --retry-in 5m",),
    ),
    "release": _command(
        Verb.RELEASE,
        flags=_delay_flag,
        options=lambda args: {"delay_ms": args.delay},
        more="The attempt does not count.",
        examples=("penstock release RECEIPT --delay 1m",),
    ),
    "extend": _command(
        Verb.EXTEND,
        flags=_lease_flag,
        options=_extension,
        more="Past the deadline of a message, it is refused and the attempt is timed out.",
        examples=(
            "penstock extend RECEIPT --lease 10m",
            """penstock extend RECEIPT --progress '{"done": 10, "of": 100}'""",
        ),
    ),
    "snooze": _command(
        Verb.SNOOZE,
        flags=_delay_flag,
        options=lambda args: {"delay_ms": args.delay},
        more="Like a release, but the history tells that it was meant.",
        examples=("penstock snooze RECEIPT --delay 1h",),
    ),
}
