"""Rules that span the sections of a configuration.

Their docstrings are the words of the generated reference.
"""

from __future__ import annotations

import difflib
import ipaddress
import json
from typing import TYPE_CHECKING

from sonic_eks.config.aws import Arn, partition_of
from sonic_eks.config.base import Refusal
from sonic_eks.config.capacity_rules import CAPACITY_RULES
from sonic_eks.config.kubernetes import versions_belong_together
from sonic_eks.config.node_rules import NODE_RULES
from sonic_eks.config.scaling_rules import SCALING_RULES
from sonic_eks.config.secrets import license_can_be_seeded, secret_arns, secrets_fit_a_policy
from sonic_eks.config.sizes import Sizes
from sonic_eks.config.topology_rules import TOPOLOGY_RULES
from sonic_eks.config.vendor_images import vendor_images
from sonic_eks.upstream import UPSTREAMS, Kind

if TYPE_CHECKING:
    from sonic_eks.config.model import Configuration

# Amazon EKS user guide, "Update a managed node group": a pod has 15 minutes to leave a node.
MANAGED_NODE_GROUP_DRAIN_SECONDS = 900

# What Karpenter counts on for the type with the least to spare (g7.2xlarge: 7.5 % of the memory
# for the hypervisor, nodeadm's reservation for its addresses, the agents of a GPU node).
_LARGEST_SHARE = 0.81

# A resource has at most 50 user tags, and keys in aws: are AWS's (AWS General Reference, "Tag
# naming limits and requirements"); CDK, EKS and Karpenter add some of their own. Karpenter's
# EC2NodeClass refuses those that it sets itself, and a security group that carries
# kubernetes.io/cluster is one that the load balancer controller would edit.
_RESERVED_TAGS = (
    "aws:",
    "sonic-eks:",
    "kubernetes.io/cluster",
    "eks:",
    "karpenter.sh/",
    "karpenter.k8s.aws/",
)

# A manifest is inlined in the template and in the handler's event: 262,144 bytes (AWS Lambda
# quotas, asynchronous payload), of which everything else in a chart takes some 10 kB.
_MAX_ENVIRONMENT = 60_000


def _zones_belong_to_region(c: Configuration) -> None:
    """`network.zones` are of `deployment.region`; `network.inferenceZone` is one of them."""
    for index, zone in enumerate(c.network.zones):
        if zone[:-1] != c.deployment.region:
            raise Refusal(
                zone,
                f"a zone of deployment.region ({c.deployment.region})",
                nearest=c.deployment.region + zone[-1],
                field=f"network.zones.{index}",
            )
    if c.network.gpu_zone not in c.network.zones:
        raise Refusal(
            c.network.gpu_zone,
            f"one of network.zones ({', '.join(c.network.zones)})",
            field="network.inferenceZone",
        )


def _arns_belong_here(c: Configuration) -> None:
    """ARNs are of the region's partition; certificate and topic are of the region itself.

    So are the pods' secrets and their keys. Roles, permissions boundary, certificate, the pods'
    secrets and their keys are of `deployment.account`, when it is given.
    """
    # (field, ARN, whether the resource is regional, whether it must be in this account)
    named: list[tuple[str, str | None, bool, bool]] = [
        ("deployment.permissionsBoundaryArn", c.deployment.permissions_boundary_arn, False, True),
        ("edge.certificateArn", c.edge.certificate_arn, True, True),
        ("observability.alarmTopicArn", c.observability.alarm_topic_arn, True, False),
    ]
    named += [
        (f"cluster.adminRoleArns.{i}", arn, False, True)
        for i, arn in enumerate(c.cluster.admin_role_arns)
    ]
    named += [
        (f"registry.credentialSecretArns.{host}", arn, False, False)
        for host, arn in c.registry.credential_secret_arns.items()
    ]
    named += [(field, arn, True, True) for field, arn in secret_arns(c)]
    link = c.edge.private_link
    named += [
        (f"edge.privateLink.allowedPrincipalArns.{i}", arn, False, False)
        for i, arn in enumerate(link.allowed_principal_arns if link else ())
    ]
    for field, text, regional, own in named:
        arn = Arn.parse(text) if text else None
        if arn is None:
            continue
        if arn.partition != c.partition:
            raise Refusal(
                text,
                f"an ARN of the partition {c.partition} (that of {c.deployment.region})",
                field=field,
            )
        if regional and arn.region != c.deployment.region:
            raise Refusal(text, f"an ARN of deployment.region ({c.deployment.region})", field=field)
        account = c.deployment.account
        if own and account and arn.account not in (account, "aws"):
            raise Refusal(text, f"an ARN of deployment.account ({account})", field=field)


def _ranges_are_apart(c: Configuration) -> None:
    """`cluster.serviceCidr` overlaps neither the VPC nor any of `edge.clientCidrs`."""
    service = ipaddress.IPv4Network(c.cluster.service_cidr)
    vpc = "network.existing.vpcCidr" if c.network.existing else "network.vpcCidr"
    taken = [(vpc, c.network.cidr)]
    taken += [(f"edge.clientCidrs.{i}", cidr) for i, cidr in enumerate(c.edge.client_cidrs)]
    for field, cidr in taken:
        if service.overlaps(ipaddress.IPv4Network(cidr)):
            raise Refusal(
                c.cluster.service_cidr,
                f"a range that does not overlap {field} ({cidr})",
                field="cluster.serviceCidr",
            )


def _license_can_work(c: Configuration) -> None:
    """`license.mode: connected` needs `network.egress: system`.

    `airGapped` needs `license.dataPath`.
    """
    if c.license.mode == "connected" and c.network.egress == "none":
        raise Refusal(
            "connected",
            "airGapped while network.egress is none; or set network.egress: system",
            field="license.mode",
        )
    if c.license.mode == "airGapped" and c.license.data_path is None:
        raise Refusal(
            None,
            "the folder where the vendor's license proxy keeps its files (mode is airGapped)",
            field="license.dataPath",
        )


def _models_are_apart(c: Configuration) -> None:
    """Each of `models` has a name of its own."""
    seen: set[str] = set()
    for index, model in enumerate(c.models):
        if model.name in seen:
            raise Refusal(model.name, "each name once", field=f"models.{index}.name")
        seen.add(model.name)


def _workers_fit_their_nodes(c: Configuration) -> None:
    """Workers request at most 81 % of a GPU's share of the node's CPU and memory.

    They accept at least the generations per GPU that scaling counts on.
    """
    gpu = c.gpu_type
    workers = c.nodes.gpu.workers_per_node
    cpu = int(gpu.vcpus * 1000 / workers * _LARGEST_SHARE)
    memory = int(gpu.memory_mib / workers * _LARGEST_SHARE)
    for index, model in enumerate(c.models):
        for field, given, largest in (
            ("cpuMillicores", c.worker_cpu_millicores(model), cpu),
            ("memoryMib", c.worker_memory_mib(model), memory),
        ):
            if given > largest:
                raise Refusal(
                    given,
                    f"at most {largest}, a GPU's share of a {gpu.name}",
                    field=f"models.{index}.{field}",
                )
        if model.max_concurrent_streams and model.max_concurrent_streams < c.generations_per_gpu:
            raise Refusal(
                model.max_concurrent_streams,
                f"at least {c.generations_per_gpu}, the generations per GPU that scaling counts on",
                nearest=str(c.generations_per_gpu),
                field=f"models.{index}.maxConcurrentStreams",
            )


def _gpus_suffice(c: Configuration) -> None:
    """`nodes.gpu.maxNodes` have a GPU for each of the models' `maxReplicas`.

    `nodes.gpu.baseSize` is at most `nodes.gpu.maxNodes`.
    """
    pool, most = c.nodes.gpu, c.gpu_max_nodes
    if pool.base_size > most:
        raise Refusal(
            pool.base_size,
            f"at most nodes.gpu.maxNodes ({most})",
            nearest=str(most),
            field="nodes.gpu.baseSize",
        )
    sizes = Sizes(c)
    wanted = sum(sizes.max_replicas(model) for model in c.models)
    nodes = -(-wanted // pool.workers_per_node)
    if nodes > most:
        raise Refusal(
            most,
            f"at least {nodes}: the models' maxReplicas add up to {wanted} workers, a GPU each",
            nearest=str(nodes),
            field="nodes.gpu.maxNodes",
        )


def _updates_have_a_gpu(c: Configuration) -> None:
    """With `scaling.rollout: surge`, `nodes.gpu.maxNodes` have a GPU beside the `minReplicas`.

    `scaling.headroomGpus` are at most the GPUs beside the `minReplicas`.
    """
    pool = c.nodes.gpu
    sizes = Sizes(c)
    least = sum(sizes.min_replicas(model) for model in c.models)
    spare = c.gpu_max_nodes * pool.workers_per_node - least
    if spare < c.headroom_gpus:
        raise Refusal(
            c.headroom_gpus,
            f"at most {spare}: nodes.gpu.maxNodes ({c.gpu_max_nodes}) have that many GPUs beside"
            f" the models' minReplicas ({least})",
            nearest=str(spare),
            field="scaling.headroomGpus",
        )
    if c.scaling.rollout == "surge" and spare < 1:
        raise Refusal(
            c.scaling.rollout,
            "replace, as no GPU is left for a worker's update: the models' minReplicas take all"
            f" of nodes.gpu.maxNodes ({c.gpu_max_nodes})",
            nearest="replace",
            field="scaling.rollout",
        )


def _drains_end_in_time(c: Configuration) -> None:
    """`drain.propagationSeconds`, `maxStreamSeconds` and `marginSeconds` are 900 at most.

    Together, that is: a managed node group's update gives pods 15 minutes to leave. With
    `nodes.upgrade: replaceGroup` EKS updates no group, and there is no such limit.
    """
    if c.nodes.upgrade == "replaceGroup":
        return
    rest = c.drain.propagation_seconds + c.drain.margin_seconds
    longest = MANAGED_NODE_GROUP_DRAIN_SECONDS - rest
    if longest < 0:
        raise Refusal(
            c.drain.margin_seconds,
            f"at most {MANAGED_NODE_GROUP_DRAIN_SECONDS - c.drain.propagation_seconds}: a managed"
            " node group's update gives pods 15 minutes to leave, propagationSeconds included",
            field="drain.marginSeconds",
        )
    if c.drain.max_stream_seconds > longest:
        raise Refusal(
            c.drain.max_stream_seconds,
            f"at most {longest}: a managed node group's update gives pods 15 minutes to leave,"
            f" of which propagationSeconds and marginSeconds take {rest}; for more set"
            " nodes.upgrade: replaceGroup (docs/upgrading.md)",
            nearest=str(longest),
            field="drain.maxStreamSeconds",
        )


def _credentials_are_of_upstreams(c: Configuration) -> None:
    """Keys of `registry.credentialSecretArns` are hosts that images come from."""
    known = {u.source.removeprefix("oci://").split("/")[0] for u in UPSTREAMS if not u.is_http}
    if c.registry.vendor_registry:
        known.add(c.registry.vendor_registry.split("/")[0])
    for host in c.registry.credential_secret_arns:
        if host not in known:
            close = difflib.get_close_matches(host, sorted(known), n=1)
            raise Refusal(
                host,
                f"hosts of upstream registries: {', '.join(sorted(known))}",
                nearest=close[0] if close else None,
                field="registry.credentialSecretArns",
            )


def _registry_is_shared_elsewhere(c: Configuration) -> None:
    """`registry.pullAccountIds` are not `deployment.account`.

    `registry.replicateTo` are other regions of the partition.
    """
    for index, account in enumerate(c.registry.pull_account_ids):
        if account == c.deployment.account:
            raise Refusal(
                account,
                "accounts other than deployment.account, whose roles pull by their own policies",
                field=f"registry.pullAccountIds.{index}",
            )
    for index, region in enumerate(c.registry.replicate_to):
        if region == c.deployment.region or partition_of(region) != c.partition:
            raise Refusal(
                region,
                f"a region of the partition {c.partition} other than deployment.region"
                f" ({c.deployment.region})",
                field=f"registry.replicateTo.{index}",
            )


def _versions_are_of_artifacts(c: Configuration) -> None:
    """Keys of `registry.versions` are names of artifacts."""
    known = [upstream.name for upstream in UPSTREAMS]
    known += vendor_images(c)
    for name in c.registry.versions:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise Refusal(
                name,
                f"names of artifacts: {', '.join(known)}",
                nearest=close[0] if close else None,
                field="registry.versions",
            )


def _tags_are_free(c: Configuration) -> None:
    """Keys of `tags` are not those of AWS, EKS, Karpenter or this project.

    They differ by more than upper and lower case, which IAM does not tell apart.
    """
    if len({key.lower() for key in c.tags}) != len(c.tags):
        raise Refusal(", ".join(c.tags), "keys that differ by more than their case", field="tags")
    for key in c.tags:
        if key.lower().startswith(_RESERVED_TAGS):
            raise Refusal(
                key, f"keys that do not start with {' or '.join(_RESERVED_TAGS)}", field="tags"
            )


def _environments_are_small(c: Configuration) -> None:
    """All `env` together are at most 60000 bytes as they travel, in JSON in a Lambda event."""
    environments = [c.api.env, c.license.env, *(model.env for model in c.models)]
    # A manifest is text in the event: JSON in JSON, where a quote takes four bytes.
    size = sum(len(json.dumps(json.dumps(env))) for env in environments if env)
    if size > _MAX_ENVIRONMENT:
        raise Refusal(size, f"at most {_MAX_ENVIRONMENT} bytes of env in all", field="models")


def _parts_of_a_component_share_a_version(c: Configuration) -> None:
    """`registry.versions` moves charts and images of a component together, or an image alone."""
    for component in ("karpenter", "load-balancer-controller", "keda", "nvidia-device-plugin"):
        parts = [upstream for upstream in UPSTREAMS if upstream.component == component]
        tags = {part.name: c.registry.versions.get(part.name, part.tag) for part in parts}
        # An image that is named may be a patched one; what is left must be of one release.
        together = {
            tags[part.name].removeprefix("v")
            for part in parts
            if part.kind is Kind.CHART or part.name not in c.registry.versions
        }
        if len(together) > 1:
            given = next(name for name in tags if name in c.registry.versions)
            raise Refusal(
                tags[given],
                f"one version for {', '.join(tags)}; give each of them",
                field=f"registry.versions.{given}",
            )


RULES = (
    _zones_belong_to_region,
    _arns_belong_here,
    _ranges_are_apart,
    _license_can_work,
    license_can_be_seeded,
    secrets_fit_a_policy,
    _models_are_apart,
    *TOPOLOGY_RULES,
    *SCALING_RULES,
    *CAPACITY_RULES,
    _workers_fit_their_nodes,
    _gpus_suffice,
    _updates_have_a_gpu,
    *NODE_RULES,
    _drains_end_in_time,
    _credentials_are_of_upstreams,
    _registry_is_shared_elsewhere,
    _versions_are_of_artifacts,
    versions_belong_together,
    _parts_of_a_component_share_a_version,
    _environments_are_small,
    _tags_are_free,
)
