"""The page docs/lifecycle.md."""

from __future__ import annotations

from collections.abc import Iterable

from sonic_eks.lifecycle.budget import budgets, drain_seconds, teardown_seconds
from sonic_eks.lifecycle.order import Chart, steps_of
from sonic_eks.lifecycle.resources import RESOURCE_TYPES, ResourceType
from sonic_eks.names import STACKS

_INTRODUCTION = """\
# Life cycle

What creating, updating and destroying a deployment does, in which order, and how long it may take.
`make docs` writes this page from `sonic_eks/lifecycle/`; steps and times are those of the default
configuration.

## Destroying a deployment

```
make destroy CONFIG=config/default.yaml
```

It runs three commands, and may be stopped and run again at any point:

1. `sonic-eks teardown CONFIG` deletes the Workload stack and waits until no instance of Karpenter
   is left. It asks first; `--yes` (or `make destroy YES=1`) answers. It stops before anything is
   deleted, and lists them, when something of somebody else would keep a stack from being deleted:
   Capacity Reservations in the placement group, connections to the endpoint service, records in
   the private zone, transit gateway attachments or a virtual private gateway on the VPC.
2. `cdk destroy --all` deletes the other stacks.
3. `sonic-eks teardown CONFIG` once more removes what came back meanwhile and lists what is kept.

With `deployment.terminationProtection: true` the first step refuses: deploy with `false` first.

### What teardown does

The Kubernetes API has no public endpoint, so `teardown` never talks to it; a laptop with
AWS credentials is enough. Deleting the Workload stack makes CDK's handler, which sits in the VPC,
delete the objects in the order below: scalers first, so that nothing adds pods again; then API and
workers, which begin to drain; then what they lie on; then NodePools, whose
instances Karpenter drains and terminates; last the EC2NodeClasses, which stay until those are gone.
The handler waits for the objects that it deletes, not for their pods, so NATS goes while pods still
drain: a destroy cuts what is live on the distributed topology. Take callers away before it.

- It waits for Karpenter at most {limit} (the drain of a node, {drain}, and
  allowances). What is left then, and carries the tags `karpenter.sh/nodepool` and
  `kubernetes.io/cluster/NAME: owned`, it terminates itself, whatever runs on it. It touches no
  other instance.
- A deletion that fails while nodes still drain is tried again when they are gone, three times in
  all; then `teardown` ends with the reason that CloudFormation gives, and exit status 1.
- It cancels data repository tasks of the weights' file system, which would block its deletion, and
  deletes launch templates of Karpenter, and network interfaces of the CNI that no instance uses.
- When the cluster is gone, it deletes the log groups that EKS and Lambda made anew with their last
  lines; the next deployment of the same name could otherwise not make its own.
- It lists what stacks kept (bucket and key of the weights), and volumes that the EBS driver had no
  time to delete: a person decides about those.

With the Workload stack go the volumes that its pods wrote to: the metrics of Prometheus and, with
an air-gapped license, its usage logs. Fetch what must be kept before.

It needs `cloudformation:DeleteStack`, `DescribeStacks`, `DescribeStackEvents`, `ListStacks` and
`ListStackResources`; `ec2:DescribeInstances`, `DescribeLaunchTemplates`,
`DescribeNetworkInterfaces`, `DescribeVolumes`, `DescribePlacementGroups`,
`DescribeCapacityReservations`, `DescribeVpcEndpointConnections`,
`DescribeTransitGatewayVpcAttachments`, `DescribeVpnGateways`, `TerminateInstances`,
`DeleteLaunchTemplate` and `DeleteNetworkInterface`; `route53:ListResourceRecordSets`;
`eks:DescribeCluster`; `logs:DescribeLogGroups` and `DeleteLogGroup`;
`fsx:DescribeDataRepositoryTasks` and `CancelDataRepositoryTask`; and what deleting the stack needs.

### Without teardown

`cdk destroy --all` alone deletes the Workload stack first, too, in the same order. It succeeds when
every pod ends and every node drains within the handler's time. Otherwise it stops there: CDK's
handler reports an object as deleted even if kubectl failed, so the stack ends with a *node guard*,
which is deleted last, looks for instances of Karpenter in EC2 for 14 minutes, and fails with their
ids and this advice. Cluster and controllers then still run, and nothing is left behind: run
`sonic-eks teardown`, then destroy again.

Objects that were applied by other means (GitOps) are in no stack. Delete them there first, the
NodePools last; else `teardown` waits in vain and Karpenter starts anew what it terminates.

## Order of the Workload stack

Each step is one custom resource, applied after the steps on its right and deleted before them. An
object whose deletion must wait for another, or that `kubectl apply --prune` would not remove when
it disappears from its chart, is a step of its own; the others share their chart's.
The name of a step is a contract: under another one, its objects would be deleted.

A NodePool that leaves the configuration drains while CloudFormation cleans up after the update, for
up to {drain}. Past CloudFormation's hour the update is complete all the same, and Karpenter goes
on draining; an EC2NodeClass of the same name can be made again when it is done.

| Step | Objects | After |
|---|---|---|
"""

_BUDGETS = """
Charts of the Cluster stack are installed with `--wait`, so a controller and its webhook answer
before the Workload stack exists, and are there until it is gone. Stacks deploy in the order
{stacks}, and are destroyed in reverse.

## Time

| On | Longest step | At most | Limit | |
|---|---|---|---|---|
"""

_TYPES = """
A step of a delete that runs out of time is tried again by Lambda; after an hour CloudFormation
gives up, and the stack is in `DELETE_FAILED`, from where it can be deleted again.

## Resources

A change of a property in the second column replaces the resource: a new one is made, what refers
to it follows, the old one is deleted. *Refused* means that CloudFormation will not replace it
while its name, the property in brackets, stays the same. Everything else changes in place.
Source: CloudFormation Template Reference, page of the type, "Update requires".

| Type | Replaced on a change of | On update | On destroy |
|---|---|---|---|
"""


def lifecycle_page(charts: Iterable[Chart]) -> str:
    """Return docs/lifecycle.md as Markdown.

    Parameters
    ----------
    charts : iterable of Chart
        Rendered charts of the default configuration.
    """
    charts = tuple(charts)
    drain = drain_seconds(charts)
    text = _INTRODUCTION.replace("{limit}", _time(teardown_seconds(drain)))
    text = text.replace("{drain}", _time(drain))
    steps = [
        f"| {step.name} | {_kinds(step.manifests)} | {', '.join(step.after) or 'NodeGuard'} |"
        for step in steps_of(charts)
    ]
    times = [
        f"| {b.operation} | {b.step} | {_time(b.seconds)} | {_time(b.limit_seconds)} | {b.limit} |"
        for b in budgets(charts)
    ]
    rows = [_row(resource) for resource in RESOURCE_TYPES]
    order = _BUDGETS.rstrip("\n").replace("{stacks}", ", ".join(STACKS))
    parts = [*steps, order, *times, _TYPES.rstrip("\n"), *rows]
    return text + "\n".join(parts) + "\n"


def _kinds(manifests: Iterable[dict[str, object]]) -> str:
    return ", ".join(dict.fromkeys(str(manifest["kind"]) for manifest in manifests))


def _time(seconds: int) -> str:
    return f"{seconds} s ({-(-seconds // 60)} min)"


def _row(resource: ResourceType) -> str:
    replaced = ", ".join(f"`{name}`" for name in resource.replaced)
    if resource.named_by is not None and (others := set(resource.replaced) - {resource.named_by}):
        replaced += f"; refused while [`{resource.named_by}`] stays" if others else ""
    on_update = resource.on_update or "in place"
    destroyed = "deleted"
    if resource.kept_in:
        stacks = ", ".join(resource.kept_in)
        destroyed = f"kept ({stacks}); deleted elsewhere" if resource.on_destroy else "kept"
    on_destroy = f"{destroyed}; {resource.on_destroy}" if resource.on_destroy else destroyed
    return f"| {resource.name} | {replaced or 'nothing'} | {on_update} | {on_destroy} |"
