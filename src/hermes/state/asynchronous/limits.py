"""The operations on approvals and quotas for programs on an event loop."""

from __future__ import annotations

from hermes.state.asynchronous.lanes import AsyncGroup
from hermes.state.asynchronous.operation import read_operation, write_operation
from hermes.state.lanes.approvals import Approvals
from hermes.state.lanes.quotas import Quotas


class AsyncApprovals(AsyncGroup[Approvals]):
    """Operations on requests to run a tool."""

    get = read_operation(Approvals.get)
    pending = read_operation(Approvals.pending)

    decide = write_operation(Approvals.decide)
    expire_due = write_operation(Approvals.expire_due)
    request = write_operation(Approvals.request)
    sweep = write_operation(Approvals.sweep)
    use = write_operation(Approvals.use)


class AsyncQuotas(AsyncGroup[Quotas]):
    """Operations on quotas."""

    read = read_operation(Quotas.read)

    add = write_operation(Quotas.add)
    begin = write_operation(Quotas.begin)
    sweep = write_operation(Quotas.sweep)
