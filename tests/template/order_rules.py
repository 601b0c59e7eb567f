"""The rules of the order in which things are created, and deleted in reverse."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.template.dependency_graph import CHART, MANIFEST, DependencyGraph, Node

# Created after, created before; so the first is deleted first.
Pairs = Iterator[tuple[Node, Node]]
Rule = Callable[[DependencyGraph], Pairs]
RULES: list[Rule] = []

CONTROLLERS_OF_PODS = ("DaemonSet", "Deployment", "StatefulSet")


def rule(check: Rule) -> Rule:
    """Register a rule."""
    RULES.append(check)
    return check


def chart(graph: DependencyGraph, name: str) -> Node:
    """Return the Helm chart of a name."""
    return graph.one(CHART, Release=name)


@rule
def scaler_goes_before_what_it_scales(graph: DependencyGraph) -> Pairs:
    for node, scaler in graph.objects("ScaledObject"):
        target = scaler["spec"]["scaleTargetRef"]
        yield node, graph.applies(target["kind"], target["name"], scaler["metadata"]["namespace"])


@rule
def scaler_lives_within_keda_whose_webhook_checks_it(graph: DependencyGraph) -> Pairs:
    for node, _ in graph.objects("ScaledObject"):
        yield node, chart(graph, "keda")


@rule
def scaler_lives_within_the_prometheus_that_it_asks(graph: DependencyGraph) -> Pairs:
    for node, _ in graph.objects("ScaledObject"):
        yield node, graph.applies("StatefulSet", "prometheus", "monitoring")


@rule
def binding_lives_within_its_controller_and_its_target_group(graph: DependencyGraph) -> Pairs:
    for node, _ in graph.objects("TargetGroupBinding"):
        yield node, chart(graph, "aws-load-balancer-controller")
        for target_group in graph.of_type("AWS::ElasticLoadBalancingV2::TargetGroup"):
            yield node, target_group


@rule
def binding_lives_within_its_service(graph: DependencyGraph) -> Pairs:
    for node, binding in graph.objects("TargetGroupBinding"):
        namespace = binding["metadata"]["namespace"]
        yield node, graph.applies("Service", binding["spec"]["serviceRef"]["name"], namespace)


@rule
def pods_get_their_readiness_gate(graph: DependencyGraph) -> Pairs:
    # AWS Load Balancer Controller, "Pod readiness gate": at creation, if Service and binding exist.
    for node, binding in graph.objects("TargetGroupBinding"):
        # Deployment and Service have one name: the front of the deployment.
        front = binding["spec"]["serviceRef"]["name"]
        pods = graph.applies("Deployment", front, "sonic")
        yield pods, chart(graph, "aws-load-balancer-controller")
        yield pods, graph.applies("Service", front, "sonic")
        yield pods, node


@rule
def claim_lives_within_its_volume_and_the_file_system(graph: DependencyGraph) -> Pairs:
    # Their names hold the file system's id, which only a deployment knows.
    ((volume, _),) = graph.objects("PersistentVolume")
    ((claim, _),) = (
        (node, manifest)
        for node, manifest in graph.objects("PersistentVolumeClaim")
        if manifest["metadata"]["name"].startswith("weights-")
    )
    yield claim, volume
    yield volume, graph.one("AWS::EKS::Addon", AddonName="aws-fsx-csi-driver")
    yield volume, graph.one("AWS::FSx::FileSystem")
    yield volume, graph.one("AWS::FSx::DataRepositoryAssociation")


@rule
def pods_live_within_the_claims_that_they_mount(graph: DependencyGraph) -> Pairs:
    for node, pods in graph.objects(*CONTROLLERS_OF_PODS):
        for volume in pods["spec"]["template"]["spec"].get("volumes", ()):
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            applied = claim and graph.applies(
                "PersistentVolumeClaim", claim, pods["metadata"]["namespace"]
            )
            if applied and applied != node:
                yield node, applied


@rule
def claims_of_a_stateful_set_live_within_the_volume_driver(graph: DependencyGraph) -> Pairs:
    driver = graph.one("AWS::EKS::Addon", AddonName="aws-ebs-csi-driver")
    ((storage_class, _),) = graph.objects("StorageClass")
    yield storage_class, driver
    for node, pods in graph.objects("StatefulSet"):
        if pods["spec"].get("volumeClaimTemplates"):
            yield node, driver
            yield node, storage_class


@rule
def policies_are_enforced_from_the_first(graph: DependencyGraph) -> Pairs:
    for node, _ in graph.objects("NetworkPolicy"):
        yield node, graph.one("AWS::EKS::Addon", AddonName="vpc-cni")


@rule
def pods_start_under_their_policies_and_drain_under_them(graph: DependencyGraph) -> Pairs:
    policies = graph.objects("NetworkPolicy")
    for node, pods in graph.objects(*CONTROLLERS_OF_PODS):
        for policy_node, policy in policies:
            if policy["metadata"]["namespace"] == pods["metadata"]["namespace"]:
                yield node, policy_node


@rule
def what_is_allowed_outlives_the_denial_of_the_rest(graph: DependencyGraph) -> Pairs:
    policies = graph.objects("NetworkPolicy")
    denials = {
        policy["metadata"]["namespace"]: node
        for node, policy in policies
        if policy["spec"]["podSelector"] == {}
    }
    for node, policy in policies:
        denial = denials[policy["metadata"]["namespace"]]
        if node != denial:
            yield denial, node


@rule
def node_pool_goes_before_its_class_and_both_before_karpenter(graph: DependencyGraph) -> Pairs:
    karpenter = chart(graph, "karpenter")
    for node, pool in graph.objects("NodePool"):
        reference = pool["spec"]["template"]["spec"]["nodeClassRef"]
        node_class = graph.applies(reference["kind"], reference["name"])
        yield node, node_class
        yield node, karpenter
        yield node_class, karpenter
    yield karpenter, chart(graph, "karpenter-crd")


@rule
def guard_stands_between_nodes_and_karpenter(graph: DependencyGraph) -> Pairs:
    guard = graph.one("Custom::NodeGuard")
    for node, _ in graph.objects():
        if node.stack == "workload":
            yield node, guard
    yield guard, chart(graph, "karpenter")


@rule
def nodes_are_gone_before_what_they_were_started_with(graph: DependencyGraph) -> Pairs:
    guard = graph.one("Custom::NodeGuard")
    for node in (
        graph.one("AWS::EC2::PlacementGroup"),
        graph.one("AWS::IAM::InstanceProfile"),
        *graph.of_type("AWS::EKS::AccessEntry", Type="EC2_LINUX"),
        *graph.of_type("AWS::EC2::Subnet"),
        *graph.of_type("AWS::EC2::VPCEndpoint"),
    ):
        yield guard, node
    for group in graph.of_type("AWS::EKS::Nodegroup"):
        if "nvidia.com/gpu" in str(graph.stacks[group.stack].properties(group.id)):
            yield group, graph.one("AWS::EC2::PlacementGroup")


@rule
def pods_and_budgets_are_gone_before_nodes_drain(graph: DependencyGraph) -> Pairs:
    pools = [node for node, _ in graph.objects("NodePool")]
    for node, _ in graph.objects("PodDisruptionBudget", *CONTROLLERS_OF_PODS):
        for pool in pools:
            yield node, pool
        for group in graph.of_type("AWS::EKS::Nodegroup"):
            yield node, group


@rule
def budget_goes_before_its_pods(graph: DependencyGraph) -> Pairs:
    for node, budget in graph.objects("PodDisruptionBudget"):
        wanted = budget["spec"]["selector"]["matchLabels"]
        for pods_node, pods in graph.objects(*CONTROLLERS_OF_PODS):
            if wanted.items() <= pods["spec"]["template"]["metadata"]["labels"].items():
                yield node, pods_node


@rule
def namespace_goes_after_its_content(graph: DependencyGraph) -> Pairs:
    made = {manifest["metadata"]["name"]: node for node, manifest in graph.objects("Namespace")}
    for node, manifest in graph.objects():
        if namespace := manifest["metadata"].get("namespace"):
            # Helm makes the namespaces of its charts, which bear their names.
            yield node, made.get(namespace) or chart(graph, namespace)


@rule
def karpenter_lives_within_its_identity_and_queue(graph: DependencyGraph) -> Pairs:
    karpenter = chart(graph, "karpenter")
    for kind in (
        "AWS::IAM::ManagedPolicy", "AWS::SQS::Queue", "AWS::SQS::QueuePolicy", "AWS::Events::Rule",
        "AWS::IAM::InstanceProfile",
    ):  # fmt: skip
        for node in graph.of_type(kind):
            yield karpenter, node
    yield karpenter, graph.one("AWS::EKS::PodIdentityAssociation", ServiceAccount="karpenter")


@rule
def load_balancer_controller_lives_within_its_identity(graph: DependencyGraph) -> Pairs:
    service_account = "aws-load-balancer-controller"
    association = graph.one("AWS::EKS::PodIdentityAssociation", ServiceAccount=service_account)
    yield chart(graph, "aws-load-balancer-controller"), association


@rule
def nodes_live_within_the_addons_that_make_them_ready(graph: DependencyGraph) -> Pairs:
    for group in graph.of_type("AWS::EKS::Nodegroup"):
        for name in ("vpc-cni", "kube-proxy", "eks-pod-identity-agent"):
            yield group, graph.one("AWS::EKS::Addon", AddonName=name)


@rule
def addons_and_charts_live_within_the_nodes_that_they_run_on(graph: DependencyGraph) -> Pairs:
    (system,) = [
        group
        for group in graph.of_type("AWS::EKS::Nodegroup")
        if graph.stacks[group.stack].properties(group.id)["Labels"]["sonic-eks/pool"] == "system"
    ]
    for name in ("coredns", "aws-ebs-csi-driver", "aws-fsx-csi-driver", "kube-state-metrics"):
        yield graph.one("AWS::EKS::Addon", AddonName=name), system
    for node in graph.of_type(CHART):
        yield node, system


@rule
def kubectl_works_as_long_as_something_is_to_be_deleted(graph: DependencyGraph) -> Pairs:
    # The handler's role is made here; those of administrators are literal.
    entries = {
        node: graph.stacks[node.stack].properties(node.id)
        for node in graph.of_type("AWS::EKS::AccessEntry")
    }
    (entry,) = [
        node
        for node, properties in entries.items()
        if "AmazonEKSClusterAdminPolicy" in str(properties.get("AccessPolicies"))
        and properties["PrincipalArn"].startswith("att-")
    ]
    for node in (*graph.of_type(MANIFEST), *graph.of_type(CHART)):
        yield node, entry
        yield node, graph.one("AWS::EKS::Cluster")
        for function in graph.of_type("AWS::Lambda::Function"):
            if function.stack == "cluster":
                yield node, function
        for group in graph.of_type("AWS::Logs::LogGroup"):
            if group.stack == "cluster":
                yield node, group


@rule
def link_to_the_bucket_goes_before_bucket_and_file_system(graph: DependencyGraph) -> Pairs:
    association = graph.one("AWS::FSx::DataRepositoryAssociation")
    yield association, graph.one("AWS::FSx::FileSystem")
    yield association, graph.one("AWS::S3::Bucket")


@rule
def cluster_pulls_from_a_registry_that_is_there(graph: DependencyGraph) -> Pairs:
    for node in (*graph.of_type(CHART), *graph.of_type("AWS::EKS::Nodegroup")):
        for repository in graph.of_type("AWS::ECR::Repository"):
            yield node, repository
