"""`penstock flows`: jobs that wait for each other."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.api.flows.records import CancelFlow, Flow, FlowMember, FlowNode, FlowState
from penstock.client.resources.flows import FlowClient
from penstock.domain.flow.member import MemberState, RunsOn
from penstock.edge.cli.kit.command import AppCommand, argument, flag, limit_flag
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.client.app import Penstock

_REASON = RecordFlags(CancelFlow, "reason")
_ONE = argument("ID", "id of the flow")


def _progress(flow: Flow) -> str:
    return f"{flow.total - flow.remaining}/{flow.total}"


def _after(member: FlowMember) -> str:
    return ", ".join(
        edge.member if edge.on is RunsOn.DONE else f"{edge.member} {edge.on}"
        for edge in member.after
    )


def _states(node: FlowNode) -> str:
    if not node.states:
        return str(node.member.message_state or node.member.state)
    return ", ".join(f"{count} {state}" for state, count in node.states.items())


_FLOW = View(
    "id name state progress failed skipped is_open created_at ended_at", progress=_progress
)
_MEMBER = View(
    "id name kind queue role state waits_for reason sent_at leased_at ended_at after", after=_after
)
_NODE = View(
    "layer member.id member.name member.kind count states after",
    states=_states,
    after=lambda node: _after(node.member),
)


def _list(app: Penstock, args: Namespace, out: Output) -> None:
    state = None if args.state is None else FlowState(args.state)
    page = _flows(app).page(name=args.name, state=state, is_failing=args.failing, limit=args.limit)
    out.records(page.flows, _FLOW)
    if page.next is not None and not out.json:
        out.line("more flows match; raise --limit to see them")


def _show(app: Penstock, args: Namespace, out: Output) -> None:
    client = _flows(app)
    state = None if args.state is None else MemberState(args.state)
    flow = client.get(args.id)
    members = list(client.members(args.id, state=state, like=args.like))
    out.show({"flow": flow, "members": members}, _FLOW.lines(flow), _MEMBER.table(members))


def _graph(app: Penstock, args: Namespace, out: Output) -> None:
    graph = _flows(app).graph(args.id, fold=args.fold)
    out.show(graph, _FLOW.lines(graph.flow), _NODE.table(graph.nodes))
    if graph.is_cut and not out.json:
        out.line("more nodes follow; a smaller --fold may help")


def _cancel(app: Penstock, args: Namespace, out: Output) -> None:
    flow = _flows(app).cancel(args.id, **_REASON.values(args))
    out.result(flow, f"{flow.id} {flow.state}, {flow.failed} of {flow.total} members cancelled")


def _redrive(app: Penstock, args: Namespace, out: Output) -> None:
    redriven = _flows(app).redrive(args.id, member=args.member)
    out.result(redriven, f"{redriven.redriven} members run again")


def _close(app: Penstock, args: Namespace, out: Output) -> None:
    flow = _flows(app).close(args.id)
    out.result(flow, f"{flow.id} {flow.state}")


def _flows(app: Penstock) -> FlowClient:
    return FlowClient(app.backend.channel)


COMMANDS = {
    "flows": AppCommand(
        _list,
        flag("--name", "only flows of this name", value="NAME"),
        flag("--state", "only flows in this state", choices=[str(s) for s in FlowState]),
        flag("--failing", "only flows with failed members that were not cancelled"),
        limit_flag(100),
        examples=("penstock flows --state failed", "penstock flows --store sqlite:///jobs.db"),
    ),
    "flows show": AppCommand(
        _show,
        _ONE,
        flag("--state", "only members in this state", choices=[str(s) for s in MemberState]),
        flag("--like", "only members that are like this one, by name or id", value="NAME"),
        more="Lists its members with their parents; `failed` and `ended` say when they may run, if "
        "not after the parent is done.",
        examples=("penstock flows show 01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11",),
    ),
    "flows graph": AppCommand(
        _graph,
        _ONE,
        flag("--fold", "more members than this that are alike are one node", type=int, default=10),
        more="Members are alike if they have the same role, queue and kind, and parents that are "
        "alike; `flows show --like` lists them.",
        examples=("penstock flows graph 01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11",),
    ),
    "flows cancel": AppCommand(
        _cancel,
        _ONE,
        _REASON.add,
        more="Members that run are taken from their workers.",
        examples=(
            "penstock flows cancel 01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11 --reason 'bad data'",
        ),
    ),
    "flows redrive": AppCommand(
        _redrive,
        _ONE,
        flag("--member", "only this member, by name or id", value="NAME"),
        more="Members that were cancelled because of them wait for them again.",
        examples=(
            "penstock flows redrive 01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11",
            "penstock flows redrive 01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11 --member fetch",
        ),
    ),
    "flows close": AppCommand(
        _close,
        _ONE,
        more="An open flow, such as a batch, does not end before it is closed.",
        examples=("penstock flows close 01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11",),
    ),
}
