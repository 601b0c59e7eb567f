"""Rules that span fields, with the last value that each accepts and the first that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.configuration import fault_of, load, with_values

Changes = list[tuple[str, Any]]
POLICY = "arn:aws:iam::111122223333:policy/boundary"
ROLE = "arn:aws:iam::111122223333:role/platform"
CERTIFICATE = "arn:aws:acm:us-east-1:111122223333:certificate/0f0e1d2c-0000-4000-8000-00000000000a"
TOPIC = "arn:aws:sns:us-east-1:111122223333:alarms"
# Digits to Unicode, not to AWS.
ARABIC_DIGITS = "\u0661" * 12
AIR_GAPPED: Changes = [("license.mode", "airGapped"), ("license.dataPath", "/data")]


@pytest.mark.parametrize(
    "changes",
    [
        [("network.inferenceZone", "us-east-1b")],
        [("network.zones", ["us-east-1a", "us-east-1b", "us-east-1c"])],
        [("models", [{"minReplicas": 8, "maxReplicas": 8}])],
        [("api.minReplicas", 6)],
        [("slo.ttfbMs", 100), ("slo.pathBudgetMs", 99)],
        [("drain.maxStreamSeconds", 720)],
        [("drain.propagationSeconds", 600), ("drain.maxStreamSeconds", 240)],
        [
            ("drain.propagationSeconds", 600),
            ("drain.marginSeconds", 300),
            ("drain.maxStreamSeconds", 0),
        ],
        [*AIR_GAPPED, ("network.egress", "none")],
        [*AIR_GAPPED, ("network.egress", "system")],
        [("models", [{"name": "a", "maxReplicas": 4}, {"name": "b", "maxReplicas": 5}])],
        [("nodes.gpu.instanceType", "g6e.12xlarge"), ("models", [{"maxReplicas": 36}])],
        [("nodes.gpu.baseSize", 9)],
        [("models", [{"cpuMillicores": 6480, "memoryMib": 53084}])],
        [("models", [{"maxConcurrentStreams": 2}])],
        [("scaling.generationsPerGpu", 4), ("models", [{"maxConcurrentStreams": 4}])],
        [("network.vpcCidr", "172.16.0.0/16")],
        [("edge.clientCidrs", ["172.16.0.0/14", "10.0.0.0/8"])],
        [("edge.certificateArn", CERTIFICATE), ("edge.tcpIdleTimeoutSeconds", 350)],
        [("edge.tcpIdleTimeoutSeconds", 6000)],
        [
            (
                "registry.versions",
                {"nats": "2.12.9-alpine", "sonic-api": "x", "sonic-worker-a": "y"},
            ),
            ("models", [{"name": "a"}]),
        ],
        [("models", [{"env": {"A": "1"}, "natsUrlEnv": "B", "licenseUrlEnv": "C"}])],
        [
            ("deployment.permissionsBoundaryArn", "arn:aws:iam::aws:policy/PowerUserAccess"),
            ("deployment.account", "111122223333"),
        ],
        [("deployment.permissionsBoundaryArn", POLICY), ("deployment.account", "111122223333")],
        [("cluster.adminRoleArns", [ROLE, ROLE + "/with/a/path"])],
        [("scaling.headroomGpus", 7)],
        [
            ("models", [{"minReplicas": 9, "maxReplicas": 9}]),
            ("scaling.headroomGpus", 0),
            ("scaling.rollout", "replace"),
        ],
        [("drain.worker", "wait-idle"), ("drain.idleSeconds", 60)],
        [
            ("observability.alarmTopicArn", "arn:aws:sns:us-east-1:999900001111:shared"),
            ("deployment.account", "111122223333"),
        ],
    ],
)
def test_accepted(tmp_path: Path, changes: Changes) -> None:
    config = load(with_values(*changes), tmp_path)
    values = config.model_dump(by_alias=True, mode="json")
    for path, value in changes:
        section, _, key = path.partition(".")
        if key and "." not in key:
            assert values[section][key] == value


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            [("network.zones", ["us-east-1a", "us-west-2b"])],
            (
                "network.zones.1: got 'us-west-2b'; allowed: a zone of deployment.region"
                " (us-east-1);"
                " nearest: us-east-1b"
            ),
        ),
        (
            [("network.inferenceZone", "us-east-1c")],
            (
                "network.inferenceZone: got 'us-east-1c'; allowed: one of network.zones"
                " (us-east-1a,"
                " us-east-1b)"
            ),
        ),
        (
            [("models", [{"minReplicas": 9, "maxReplicas": 8}])],
            "models.0.minReplicas: got 9; allowed: at most maxReplicas (8); nearest: 8",
        ),
        (
            [("scaling.headroomGpus", 8), ("nodes.gpu.maxNodes", 9)],
            (
                "scaling.headroomGpus: got 8; allowed: at most 7: nodes.gpu.maxNodes (9) have that"
                " many GPUs beside the models' minReplicas (2); nearest: 7"
            ),
        ),
        (
            [
                ("models", [{"minReplicas": 9, "maxReplicas": 9}]),
                ("scaling.headroomGpus", 0),
                ("nodes.gpu.maxNodes", 9),
            ],
            (
                "scaling.rollout: got 'surge'; allowed: replace, as no GPU is left for a worker's"
                " update: the models' minReplicas take all of nodes.gpu.maxNodes (9);"
                " nearest: replace"
            ),
        ),
        (
            [("api.minReplicas", 7)],
            "api.minReplicas: got 7; allowed: at most maxReplicas (6); nearest: 6",
        ),
        (
            [("slo.ttfbMs", 100), ("slo.pathBudgetMs", 100)],
            "slo.pathBudgetMs: got 100; allowed: less than ttfbMs (100)",
        ),
        (
            [("drain.maxStreamSeconds", 721)],
            (
                "drain.maxStreamSeconds: got 721; allowed: at most 720: a managed node"
                " group's update"
                " gives pods 15 minutes to leave, of which propagationSeconds and"
                " marginSeconds take"
                " 180; for more set nodes.upgrade: replaceGroup (docs/upgrading.md); nearest: 720"
            ),
        ),
        (
            [("drain.propagationSeconds", 600), ("drain.marginSeconds", 301)],
            (
                "drain.marginSeconds: got 301; allowed: at most 300: a managed node group's update"
                " gives pods 15 minutes to leave, propagationSeconds included"
            ),
        ),
        (
            [("network.egress", "none")],
            (
                "license.mode: got 'connected'; allowed: airGapped while network.egress is"
                " none; or set"
                " network.egress: system"
            ),
        ),
        (
            [("license.mode", "airGapped")],
            (
                "license.dataPath: got nothing; allowed: the folder where the vendor's"
                " license proxy"
                " keeps its files (mode is airGapped)"
            ),
        ),
        (
            [("models", [{"name": "a"}, {"name": "a"}])],
            "models.1.name: got 'a'; allowed: each name once",
        ),
        (
            [
                ("models", [{"name": "a", "maxReplicas": 5}, {"name": "b", "maxReplicas": 5}]),
                ("nodes.gpu.maxNodes", 9),
            ],
            (
                "nodes.gpu.maxNodes: got 9; allowed: at least 10: the models' maxReplicas"
                " add up to 10"
                " workers, a GPU each; nearest: 10"
            ),
        ),
        (
            [
                ("nodes.gpu.instanceType", "g6e.12xlarge"),
                ("nodes.gpu.maxNodes", 9),
                ("models", [{"maxReplicas": 37}]),
            ],
            (
                "nodes.gpu.maxNodes: got 9; allowed: at least 10: the models' maxReplicas"
                " add up to 37"
                " workers, a GPU each; nearest: 10"
            ),
        ),
        (
            [("nodes.gpu.baseSize", 10), ("nodes.gpu.maxNodes", 9)],
            "nodes.gpu.baseSize: got 10; allowed: at most nodes.gpu.maxNodes (9); nearest: 9",
        ),
        # g6e.2xlarge: 8 vCPUs and 65,536 MiB for one GPU, of which 81 %.
        (
            [("models", [{"cpuMillicores": 6481}])],
            (
                "models.0.cpuMillicores: got 6481; allowed: at most 6480, a GPU's share of a"
                " g6e.2xlarge"
            ),
        ),
        (
            [("models", [{"memoryMib": 53085}])],
            "models.0.memoryMib: got 53085; allowed: at most 53084, a GPU's share of a g6e.2xlarge",
        ),
        # g6e.12xlarge: 48 vCPUs for four GPUs.
        (
            [("nodes.gpu.instanceType", "g6e.12xlarge"), ("models", [{"cpuMillicores": 9721}])],
            (
                "models.0.cpuMillicores: got 9721; allowed: at most 9720, a GPU's share of a"
                " g6e.12xlarge"
            ),
        ),
        (
            [("models", [{"maxConcurrentStreams": 1}])],
            (
                "models.0.maxConcurrentStreams: got 1; allowed: at least 2, the generations per GPU"
                " that scaling counts on; nearest: 2"
            ),
        ),
        (
            [("network.vpcCidr", "172.20.0.0/16")],
            (
                "cluster.serviceCidr: got '172.20.0.0/16'; allowed: a range that does not overlap"
                " network.vpcCidr (172.20.0.0/16)"
            ),
        ),
        (
            [("cluster.serviceCidr", "10.42.128.0/20")],
            (
                "cluster.serviceCidr: got '10.42.128.0/20'; allowed: a range that does not overlap"
                " network.vpcCidr (10.42.0.0/16)"
            ),
        ),
        (
            [("edge.clientCidrs", ["10.0.0.0/8", "172.16.0.0/12"])],
            (
                "cluster.serviceCidr: got '172.20.0.0/16'; allowed: a range that does not overlap"
                " edge.clientCidrs.1 (172.16.0.0/12)"
            ),
        ),
        (
            [("edge.certificateArn", CERTIFICATE), ("edge.tcpIdleTimeoutSeconds", 351)],
            "edge.tcpIdleTimeoutSeconds: got 351; allowed: 350, which a TLS listener has and keeps",
        ),
        (
            [("models", [{"env": {"NATS": "x"}, "natsUrlEnv": "NATS"}])],
            "models.0.natsUrlEnv: got 'NATS'; allowed: a name that env does not set too",
        ),
        (
            [("models", [{"concurrencyEnv": "N", "batchSizeEnv": "N"}])],
            "models.0.batchSizeEnv: got 'N'; allowed: a name that concurrencyEnv does not set too",
        ),
        (
            [("api", {"natsUrlEnv": "U", "licenseUrlEnv": "U"})],
            "api.licenseUrlEnv: got 'U'; allowed: a name that natsUrlEnv does not set too",
        ),
    ],
)
def test_refused(tmp_path: Path, changes: Changes, fault: str) -> None:
    assert fault_of(with_values(*changes), tmp_path) == fault


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("natz", "nats"), ("sonic-worker-other", "sonic-worker-sonic-3"), ("zzzzzz", "")],
)
def test_versions_are_of_artifacts(tmp_path: Path, name: str, nearest: str) -> None:
    fault = fault_of(with_values(("registry.versions", {name: "1"})), tmp_path)
    assert fault.startswith(
        f"registry.versions: got '{name}'; allowed: names of artifacts: karpent"
    )
    assert fault.partition("; nearest: ")[2] == nearest


ACCOUNT = ("deployment.account", "111122223333")


@pytest.mark.parametrize(
    ("field", "arn", "what"),
    [
        # Another region, partition or account.
        ("edge.certificateArn", CERTIFICATE.replace("us-east-1", "us-west-2"), "deployment.region"),
        (
            "edge.certificateArn",
            CERTIFICATE.replace("arn:aws:", "arn:aws-cn:"),
            "the partition aws (",
        ),
        ("edge.certificateArn", CERTIFICATE.replace("1111", "9999"), "deployment.account (1111"),
        (
            "observability.alarmTopicArn",
            TOPIC.replace("us-east-1", "eu-west-1"),
            "deployment.region",
        ),
        (
            "observability.alarmTopicArn",
            TOPIC.replace("arn:aws:", "arn:aws-us-gov:"),
            "partition aws",
        ),
        (
            "deployment.permissionsBoundaryArn",
            POLICY.replace("aws:", "aws-cn:", 1),
            "partition aws",
        ),
        ("deployment.permissionsBoundaryArn", POLICY.replace("1111", "9999"), "deployment.account"),
        ("cluster.adminRoleArns.0", ROLE.replace("aws:", "aws-us-gov:", 1), "the partition aws ("),
        ("cluster.adminRoleArns.0", ROLE.replace("1111", "9999"), "deployment.account (1111"),
        # Another kind of resource, or no ARN of it.
        ("edge.certificateArn", TOPIC, "the ARN of an ACM certificate"),
        ("edge.certificateArn", "0f0e1d2c", "the ARN of an ACM certificate"),
        (
            "edge.certificateArn",
            CERTIFICATE.replace("us-east-1", ""),
            "the ARN of an ACM certificate",
        ),
        (
            "edge.certificateArn",
            CERTIFICATE.replace("acm:", "iam:"),
            "the ARN of an ACM certificate",
        ),
        ("observability.alarmTopicArn", TOPIC + ":0f0e-subscription", "the ARN of an SNS topic"),
        (
            "observability.alarmTopicArn",
            TOPIC.replace("111122223333", ""),
            "the ARN of an SNS topic",
        ),
        ("observability.alarmTopicArn", TOPIC + "\n", "the ARN of an SNS topic"),
        ("deployment.permissionsBoundaryArn", ROLE, "the ARN of an IAM policy"),
        ("deployment.permissionsBoundaryArn", "PowerUserAccess", "the ARN of an IAM policy"),
        ("cluster.adminRoleArns.0", POLICY, "the ARN of an IAM role"),
        ("cluster.adminRoleArns.0", ROLE.replace("role/", "user/"), "the ARN of an IAM role"),
        (
            "cluster.adminRoleArns.0",
            ROLE.replace("iam::", "iam:us-east-1:"),
            "the ARN of an IAM role",
        ),
        (
            "cluster.adminRoleArns.0",
            "arn:aws:sts::111122223333:assumed-role/platform/me",
            "the ARN of an IAM role",
        ),
        (
            "cluster.adminRoleArns.0",
            (
                "arn:aws:iam::\u0661\u0661\u0661\u0661\u0662\u0662\u0662\u0662\u0663\u0663\u0663\u0663:role/"
                "a"
            ),
            "the ARN of an IAM role",
        ),
    ],
)
def test_arns_refused(tmp_path: Path, field: str, arn: str, what: str) -> None:
    value = [arn] if field.endswith(".0") else arn
    fault = fault_of(with_values(ACCOUNT, (field.removesuffix(".0"), value)), tmp_path)
    given, _, allowed = fault.partition("; allowed: ")
    assert given.startswith(f"{field}: got {repr(arn)[:70]}")
    assert what in allowed


def test_an_admin_stands_once(tmp_path: Path) -> None:
    fault = fault_of(with_values(("cluster.adminRoleArns", [ROLE, ROLE])), tmp_path)
    assert fault == f"cluster.adminRoleArns.1: got '{ROLE}'; allowed: each role once"


@pytest.mark.parametrize(
    ("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_arns_of_the_other_partitions(tmp_path: Path, region: str, partition: str) -> None:
    place: Changes = [
        ("deployment.region", region),
        ("network.zones", [f"{region}a", f"{region}b"]),
    ]
    here = CERTIFICATE.replace("arn:aws:", f"arn:{partition}:").replace("us-east-1", region)
    config = load(with_values(*place, ("edge.certificateArn", here)), tmp_path)
    assert config.edge.certificate_arn == here
    there = here.replace(f"arn:{partition}:", "arn:aws:")
    fault = fault_of(with_values(*place, ("edge.certificateArn", there)), tmp_path)
    assert f"an ARN of the partition {partition} (that of {region})" in fault


def test_without_an_account_any_is_accepted(tmp_path: Path) -> None:
    config = load(with_values(("edge.certificateArn", CERTIFICATE)), tmp_path)
    assert config.edge.certificate_arn == CERTIFICATE
