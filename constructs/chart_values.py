"""Helm values of the controllers.

Keys are those of the charts' own values files, in the versions of `sonic_eks.upstream`. Every
image that a chart would pull is named: a chart's default is a public registry, which nodes cannot
reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sonic_eks.catalogue import Catalogue
from sonic_eks.nodes.pools import FSX_STARTUP_TAINT, GPU_RESOURCE, POOL_LABEL, Pool
from sonic_eks.upstream import Kind

Values = dict[str, Any]

_ON_SYSTEM_NODES: Values = {"nodeSelector": {POOL_LABEL: Pool.SYSTEM.value}}
_ONE_AT_A_TIME: Values = {"maxUnavailable": 1}
REPLICAS = 2
"""Of each controller: one keeps working while the other's node is updated."""


def karpenter(
    catalogue: Catalogue,
    *,
    cluster_name: str,
    cluster_endpoint: str,
    queue_name: str,
    region: str,
    service_account: str,
) -> Values:
    """Return the values of Karpenter's chart.

    Parameters
    ----------
    catalogue : Catalogue
        The private registry.
    cluster_name, cluster_endpoint : str
        The cluster.
    queue_name : str
        The interruption queue.
    region : str
        Region; pods cannot ask the instance metadata service.
    service_account : str
        Name of the controller's service account.
    """
    return {
        "replicas": REPLICAS,
        "serviceAccount": {"name": service_account},
        "controller": {
            "image": {
                "repository": catalogue.image_repository("karpenter-controller"),
                "tag": catalogue.tag(Kind.IMAGE, "karpenter-controller"),
                # The chart pins one of its own, which stands only for its own tag.
                "digest": catalogue.digest(Kind.IMAGE, "karpenter-controller") or "",
            },
            "env": [{"name": "AWS_REGION", "value": region}],
            # Karpenter's getting-started guide.
            "resources": {
                "requests": {"cpu": "1", "memory": "1Gi"},
                "limits": {"cpu": "1", "memory": "1Gi"},
            },
        },
        "settings": {
            "clusterName": cluster_name,
            "clusterEndpoint": cluster_endpoint,
            "interruptionQueue": queue_name,
            # The pricing and IAM APIs have no endpoint in a VPC.
            "isolatedVPC": True,
        },
        **_ON_SYSTEM_NODES,
    }


def load_balancer_controller(
    catalogue: Catalogue,
    *,
    cluster_name: str,
    vpc_id: str,
    region: str,
    service_account: str,
    target_labels: Mapping[str, str],
) -> Values:
    """Return the values of the AWS Load Balancer Controller's chart.

    The controller only keeps targets of target groups in step with pods: load balancers and
    security groups are CloudFormation's.

    Parameters
    ----------
    catalogue : Catalogue
        The private registry.
    cluster_name : str
        The cluster.
    vpc_id, region : str
        Where it is; pods cannot ask the instance metadata service.
    service_account : str
        Name of the controller's service account.
    """
    return {
        "replicaCount": REPLICAS,
        "podDisruptionBudget": _ONE_AT_A_TIME,
        "image": _image(catalogue, "load-balancer-controller"),
        "clusterName": cluster_name,
        "region": region,
        "vpcId": vpc_id,
        "serviceAccount": {"name": service_account},
        "resources": {
            "requests": {"cpu": "100m", "memory": "256Mi"},
            "limits": {"memory": "256Mi"},
        },
        # APIs without an endpoint in a VPC.
        "enableShield": False,
        "enableWaf": False,
        "enableWafv2": False,
        # A Service must not wait for this controller: none here is of type LoadBalancer.
        "enableServiceMutatorWebhook": False,
        "enableBackendSecurityGroup": False,
        "createIngressClassResource": False,
        "ingressClassParams": {"create": False},
        "controllerConfig": {"featureGates": {"EnableServiceController": False}},
        # A pod that callers reach, without its readiness gate, would count as available before it
        # is a healthy target. Other pods start without this controller.
        "podMutatorWebhookConfig": {"failurePolicy": "Fail"},
        "objectSelector": {"matchLabels": dict(target_labels)},
        **_ON_SYSTEM_NODES,
    }


def keda(catalogue: Catalogue) -> Values:
    """Return the values of KEDA's chart."""
    host = catalogue.host
    images = {
        "keda": "keda-operator",
        "metricsApiServer": "keda-metrics-apiserver",
        "webhooks": "keda-admission-webhooks",
    }
    labels = {
        "operator": "keda-operator",
        "metricsServer": "keda-operator-metrics-apiserver",
        "webhooks": "keda-admission-webhooks",
    }
    return {
        "image": {
            "pullPolicy": "IfNotPresent",
            **{
                key: {
                    "registry": host,
                    "repository": catalogue.image_repository(name).removeprefix(f"{host}/"),
                    "tag": _tag(catalogue, name),
                }
                for key, name in images.items()
            },
        },
        "priorityClassName": "system-cluster-critical",
        "podDisruptionBudget": dict.fromkeys(
            ("operator", "metricServer", "webhooks"), _ONE_AT_A_TIME
        ),
        **{
            part: {"replicaCount": REPLICAS, "affinity": _apart(app)}
            for part, app in labels.items()
        },
        **_ON_SYSTEM_NODES,
    }


def nvidia_device_plugin(catalogue: Catalogue, *, gpus: bool) -> Values:
    """Return the values of the NVIDIA device plugin's chart: a pod on every GPU node.

    Parameters
    ----------
    catalogue : Catalogue
        The private registry.
    gpus : bool
        Whether the nodes have GPUs. On those that have none the plugin would exit again and again,
        and the chart never be ready; told not to, it waits (k8s-device-plugin, issue 170).
    """
    return {
        **({} if gpus else {"failOnInitError": "false"}),
        "image": _image(catalogue, "k8s-device-plugin"),
        # Feature discovery would bring more images; the pool's label says where GPUs are.
        "gfd": {"enabled": False},
        "nfd": {"enabled": False},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": POOL_LABEL, "operator": "In", "values": [Pool.GPU.value]}
                            ]
                        }
                    ]
                }
            }
        },
        "tolerations": [
            {"key": GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"},
            {"key": FSX_STARTUP_TAINT, "operator": "Exists", "effect": "NoExecute"},
        ],
    }


def _image(catalogue: Catalogue, name: str) -> Values:
    return {
        "repository": catalogue.image_repository(name),
        "tag": _tag(catalogue, name),
    }


def _tag(catalogue: Catalogue, name: str) -> str:
    """Return the tag, with the digest once there is a lock: charts put it after a colon."""
    digest = catalogue.digest(Kind.IMAGE, name)
    return catalogue.tag(Kind.IMAGE, name) + (f"@{digest}" if digest else "")


def _apart(app: str) -> Values:
    """Prefer another node than that of the other replica."""
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"app": app}},
                    },
                }
            ]
        }
    }
