"""What can be done with flows: jobs that wait for each other, and batches with callbacks."""

from __future__ import annotations

from penstock.api.flows.records import (
    CancelFlow,
    CreatedFlow,
    Flow,
    FlowGraph,
    FlowMembers,
    FlowPage,
    ListFlows,
    ListMembers,
    NewFlow,
    NewMembers,
    RedriveFlow,
    RedrivenFlow,
    ShowGraph,
    WaitForFlow,
)
from penstock.api.operation import filtered, named
from penstock.domain.access.api_key import Role
from penstock.domain.errors import (
    InvalidRequest,
    MessageNotFound,
    QueueNotFound,
    TooLarge,
    TooManyWaiting,
    WrongState,
)

_EXAMPLE = {
    "name": "nightly",
    "members": [
        {"queue": "mail", "name": "fetch", "kind": "fetch", "body": {"day": 1}},
        {"queue": "mail", "kind": "report", "body": {}, "inputs": {"rows": "fetch"}},
    ],
}

CREATE = named.post(
    "createFlow",
    "/v1/flows",
    "Create a flow. Members without parents are sent at once, the others when their parents allow.",
    CreatedFlow,
    role=Role.PRODUCE,
    request=NewFlow,
    example=_EXAMPLE,
    status=201,
    errors=(QueueNotFound, TooLarge),
)
LIST = filtered.get(
    "listFlows", "/v1/flows", "List flows, newest first.", FlowPage, query=ListFlows
)
GET = named.get(
    "getFlow",
    "/v1/flows/{flow}",
    "Retrieve a flow with its counts; waits up to `wait_ms` for its end.",
    Flow,
    query=WaitForFlow,
    errors=(TooManyWaiting,),
)
MEMBERS = named.get(
    "listFlowMembers",
    "/v1/flows/{flow}/members",
    "List the members of a flow, with callbacks, in the order they were added.",
    FlowMembers,
    query=ListMembers,
    errors=(MessageNotFound,),
)
GRAPH = named.get(
    "getFlowGraph",
    "/v1/flows/{flow}/graph",
    "Retrieve a flow as a graph; many members that are alike are one node.",
    FlowGraph,
    query=ShowGraph,
)
ADD = named.post(
    "addFlowMembers",
    "/v1/flows/{flow}/members",
    "Add members to a flow that has not ended.",
    CreatedFlow,
    role=Role.PRODUCE,
    request=NewMembers,
    example={"members": [{"queue": "mail", "kind": "fetch", "body": {"day": 2}}]},
    status=201,
    errors=(QueueNotFound, TooLarge, WrongState),
)
CLOSE = named.post(
    "closeFlow",
    "/v1/flows/{flow}/close",
    "Close a flow: it ends as soon as its members have ended.",
    Flow,
    role=Role.PRODUCE,
    is_idempotent=True,
)
CANCEL = named.post(
    "cancelFlow",
    "/v1/flows/{flow}/cancel",
    "Cancel all members of a flow that have not ended, running ones as well.",
    Flow,
    request=CancelFlow,
    example={"reason": "wrong data"},
    errors=(WrongState,),
    is_idempotent=True,
)
REDRIVE = named.post(
    "redriveFlow",
    "/v1/flows/{flow}/redrive",
    "Redrive the members of a flow that failed; those that were cancelled for it wait again.",
    RedrivenFlow,
    request=RedriveFlow,
    example={},
    errors=(WrongState, InvalidRequest),
)
