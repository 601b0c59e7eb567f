"""Where pods run: pools, tolerations and spreading."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdk8s_plus_35 import k8s

from sonic_eks.k8s.labels import Labels
from sonic_eks.nodes.pools import GPU_RESOURCE, POOL_LABEL, Pool

HOSTNAME = "kubernetes.io/hostname"


_TOLERATIONS = {
    Pool.SYSTEM: (),
    Pool.SERVING: (
        k8s.Toleration(
            key=POOL_LABEL, operator="Equal", value=Pool.SERVING.value, effect="NoSchedule"
        ),
    ),
    # The FSx startup taint is not tolerated: without the driver a worker has no weights.
    Pool.GPU: (k8s.Toleration(key=GPU_RESOURCE, operator="Exists", effect="NoSchedule"),),
}


@dataclass(frozen=True)
class Placement:
    """Where a pod may run, as parts of its spec.

    Attributes
    ----------
    pool : Pool
        The nodes.
    affinity : Affinity or None
        Rules between pods.
    spread : list of TopologySpreadConstraint
        How the pods of a workload lie over nodes.
    """

    pool: Pool
    affinity: k8s.Affinity | None = None
    spread: list[k8s.TopologySpreadConstraint] = field(default_factory=list)

    @property
    def node_selector(self) -> dict[str, str]:
        """Labels of the nodes."""
        return {POOL_LABEL: self.pool.value}

    @property
    def tolerations(self) -> list[k8s.Toleration]:
        """Tolerations of the pool's taints."""
        return list(_TOLERATIONS[self.pool])


def one_per_node(labels: Labels) -> k8s.Affinity:
    """Return an affinity that never puts two pods of a workload on one node."""
    return k8s.Affinity(
        pod_anti_affinity=k8s.PodAntiAffinity(
            required_during_scheduling_ignored_during_execution=[
                k8s.PodAffinityTerm(
                    topology_key=HOSTNAME,
                    label_selector=k8s.LabelSelector(match_labels=labels.selector),
                )
            ]
        )
    )


def spread_over_nodes(
    labels: Labels, *, required: bool, min_nodes: int | None = None
) -> list[k8s.TopologySpreadConstraint]:
    """Return constraints that keep a workload's pods evenly spread over nodes.

    Parameters
    ----------
    labels : Labels
        The workload.
    required : bool
        Whether a pod waits rather than break the rule. Without `nodeTaintsPolicy: Honor` a node
        that is being drained would count as an empty one and hold pods back.
    min_nodes : int or None
        Nodes to be used at least, where more can be added; with `required` alone.
    """
    return [
        k8s.TopologySpreadConstraint(
            max_skew=1,
            topology_key=HOSTNAME,
            when_unsatisfiable="DoNotSchedule" if required else "ScheduleAnyway",
            # The API accepts minDomains with DoNotSchedule alone.
            min_domains=min_nodes if required else None,
            node_taints_policy="Honor",
            label_selector=k8s.LabelSelector(match_labels=labels.selector),
        )
    ]
