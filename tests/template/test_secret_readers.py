"""Who may read the pods' secrets: concrete requests, allowed and denied; and when."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk.assertions import Template

from sonic_eks.config import Configuration
from tests.cloudformation import Resources, iam_size
from tests.configuration import with_values
from tests.iam_evaluator import Decision, Request, evaluate
from tests.synth import stacks_of
from tests.template.dependency_graph import DependencyGraph

ALLOW, DENY = Decision.ALLOW, Decision.IMPLICIT_DENY


def secret(name: str) -> str:
    return f"arn:aws:secretsmanager:us-east-1:111122223333:secret:sonic/{name}"


KEY = "arn:aws:kms:us-east-1:111122223333:key/0f0e1d2c-0000-4000-8000-00000000000a"
API, TOKEN, SEED, USAGE = (secret(f"{n}-AbCd0{n[0]}") for n in ("api", "token", "seed", "usage"))
READERS = {
    "sonic-api": {API},
    "sonic-worker-sonic-3": {TOKEN, API},
    "sonic-license-proxy": {SEED, USAGE},
}
DOCUMENT = with_values(
    ("api.secretFiles", {"key": API}),
    ("models", [{"secretFiles": {"token": TOKEN, "key": API}}]),
    ("license.mode", "airGapped"),
    ("license.dataPath", "/data"),
    ("license.seedFile", "license.json"),
    ("license.seedSecretArn", SEED),
    ("license.secretFiles", {"usage": USAGE}),
)


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    document = {**DOCUMENT, "secrets": {"kmsKeyArns": [KEY]}}
    return DependencyGraph.of(stacks_of(Configuration.model_validate(document)))


@pytest.fixture(scope="module")
def workload(graph: DependencyGraph) -> Resources:
    return graph.stacks["workload"]


def workload_of(document: dict[str, Any]) -> Resources:
    stacks = stacks_of(Configuration.model_validate(document))
    return Resources(Template.from_stack(stacks.workload))


def role_of(workload: Resources, account: str) -> dict[str, Any]:
    """Return the role that is associated with a service account."""
    (association,) = [
        a for a in workload.of("AWS::EKS::PodIdentityAssociation") if a["ServiceAccount"] == account
    ]
    assert association["Namespace"] == "sonic"
    return workload.properties(association["RoleArn"].removeprefix("att-").removesuffix("-Arn"))


def decide(role: dict[str, Any], action: str, resource: str, **context: str) -> Decision:
    assert "ManagedPolicyArns" not in role
    policies = [policy["PolicyDocument"] for policy in role["Policies"]]
    return evaluate(policies, Request(action, resource, context))


def test_every_account_with_secrets_has_a_role(workload: Resources) -> None:
    associated = {a["ServiceAccount"] for a in workload.of("AWS::EKS::PodIdentityAssociation")}
    assert associated == set(READERS)


@pytest.mark.parametrize("account", READERS)
def test_a_role_reads_its_secrets_and_no_other(workload: Resources, account: str) -> None:
    role = role_of(workload, account)
    for action in ("GetSecretValue", "DescribeSecret"):
        for arn in (API, TOKEN, SEED, USAGE, secret("other-AbCd09")):
            expected = ALLOW if arn in READERS[account] else DENY
            assert decide(role, f"secretsmanager:{action}", arn) is expected, (action, arn)


@pytest.mark.parametrize("account", READERS)
@pytest.mark.parametrize(
    "arn",
    [
        # A secret that was deleted and made again has another end; one may start with the name.
        secret("api-AbCd0b"),
        secret("api"),
        secret("api-AbCd0a-AbCd0a"),
        API.replace("us-east-1", "eu-west-1"),
        API.replace("111122223333", "999900001111"),
        "*",
    ],
)
def test_names_that_resemble_are_no_names(workload: Resources, account: str, arn: str) -> None:
    assert decide(role_of(workload, account), "secretsmanager:GetSecretValue", arn) is DENY


@pytest.mark.parametrize("account", READERS)
@pytest.mark.parametrize(
    "action",
    [
        "PutSecretValue", "UpdateSecret", "DeleteSecret", "RotateSecret", "PutResourcePolicy",
        "ListSecretVersionIds", "BatchGetSecretValue", "TagResource",
    ],
)  # fmt: skip
def test_a_role_only_reads(workload: Resources, account: str, action: str) -> None:
    for arn in READERS[account]:
        assert decide(role_of(workload, account), f"secretsmanager:{action}", arn) is DENY


@pytest.mark.parametrize("account", READERS)
def test_only_the_account_of_this_namespace_and_cluster_assumes_it(
    graph: DependencyGraph, workload: Resources, account: str
) -> None:
    (statement,) = role_of(workload, account)["AssumeRolePolicyDocument"]["Statement"]
    assert statement.pop("Principal") == {"Service": "pods.eks.amazonaws.com"}
    policy = {"Statement": [{**statement, "Resource": "*"}]}
    # The weak reference is to the output that holds the cluster's own ARN.
    output = statement["Condition"]["StringEquals"]["aws:RequestTag/eks-cluster-arn"]
    (cluster,) = graph.stacks["cluster"].ids("AWS::EKS::Cluster")
    outputs = graph.stacks["cluster"].template["Outputs"]
    value = outputs[output.removeprefix("out-sonic-cluster-")]["Value"]
    assert value == {"Fn::GetAtt": [cluster, "Arn"]}

    def assumes(**tags: str) -> Decision:
        own = {"eks-cluster-arn": output, "kubernetes-namespace": "sonic"}
        given = own | {"kubernetes-service-account": account} | tags
        context = {f"aws:RequestTag/{key}": value for key, value in given.items()}
        return evaluate([policy], Request("sts:AssumeRole", "*", context))

    assert assumes() is ALLOW
    assert assumes(**{"kubernetes-namespace": "default"}) is DENY
    assert assumes(**{"kubernetes-service-account": "default"}) is DENY
    assert assumes(**{"eks-cluster-arn": "arn:aws:eks:us-east-1:111122223333:cluster/b"}) is DENY


@pytest.mark.parametrize("account", READERS)
def test_keys_open_these_secrets_through_secrets_manager_alone(
    workload: Resources, account: str
) -> None:
    role = role_of(workload, account)
    via, of = "kms:ViaService", "kms:EncryptionContext:SecretARN"
    service = "secretsmanager.us-east-1.amazonaws.com"
    for arn in READERS[account]:
        context = {via: service, of: arn}
        assert decide(role, "kms:Decrypt", KEY, **context) is ALLOW
        assert decide(role, "kms:Encrypt", KEY, **context) is DENY
        assert decide(role, "kms:Decrypt", KEY.replace("000a", "000b"), **context) is DENY
        assert decide(role, "kms:Decrypt", KEY, **{of: arn}) is DENY, "a direct call"
        s3 = {via: "s3.us-east-1.amazonaws.com", of: arn}
        assert decide(role, "kms:Decrypt", KEY, **s3) is DENY
        assert decide(role, "kms:Decrypt", KEY, **{via: service}) is DENY
    other = {via: service, of: secret("other-AbCd09")}
    assert decide(role, "kms:Decrypt", KEY, **other) is DENY


@pytest.mark.synth
def test_without_keys_nothing_is_decrypted() -> None:
    role = role_of(workload_of(DOCUMENT), "sonic-api")
    context = {"kms:ViaService": "secretsmanager.us-east-1.amazonaws.com"}
    context["kms:EncryptionContext:SecretARN"] = API
    assert decide(role, "secretsmanager:GetSecretValue", API) is ALLOW
    assert decide(role, "kms:Decrypt", KEY, **context) is DENY


@pytest.mark.synth
@pytest.mark.parametrize("suffix", ["amazonaws.com", "amazonaws.com.cn"])
def test_in_china_either_name_of_the_service_will_do(suffix: str) -> None:
    def there(arn: str) -> str:
        return arn.replace("arn:aws:", "arn:aws-cn:").replace("us-east-1", "cn-north-1")

    document = with_values(
        ("deployment.region", "cn-north-1"),
        ("network.zones", ["cn-north-1a", "cn-north-1b"]),
        ("api.secretFiles", {"key": there(API)}),
        ("secrets.kmsKeyArns", [there(KEY)]),
    )
    role = role_of(workload_of(document), "sonic-api")
    context = {"kms:ViaService": f"secretsmanager.cn-north-1.{suffix}"}
    context["kms:EncryptionContext:SecretARN"] = there(API)
    assert decide(role, "kms:Decrypt", there(KEY), **context) is ALLOW


@pytest.mark.synth
def test_the_longest_policy_is_one_that_iam_takes() -> None:
    # 4,000 characters of ARNs and ten multi-region keys: what the configuration takes at most.
    def there(arn: str) -> str:
        return arn.replace("arn:aws:", "arn:aws-us-gov:").replace("us-east-1", "us-gov-west-1")

    start, end = there(secret("")), "-AbCd01"
    seed, *files = [
        f"{start}{index:02}{'x' * (4000 // 11 - len(start) - 2 - len(end))}{end}"
        for index in range(11)
    ]
    keys = [there(KEY).rpartition("/")[0] + f"/mrk-{index:032x}" for index in range(10)]
    document = with_values(
        ("deployment.region", "us-gov-west-1"),
        ("network.zones", ["us-gov-west-1a", "us-gov-west-1b"]),
        ("license.mode", "airGapped"),
        ("license.dataPath", "/data"),
        ("license.seedFile", "license.json"),
        ("license.seedSecretArn", seed),
        ("license.secretFiles", {f"k{index}": arn for index, arn in enumerate(files)}),
        ("secrets.kmsKeyArns", keys),
    )
    role = role_of(workload_of(document), "sonic-license-proxy")
    size = sum(iam_size(policy["PolicyDocument"]) for policy in role["Policies"])
    # IAM quotas: inline policies of a role, in characters without white space.
    assert 9_000 < size <= 10_240


@pytest.mark.parametrize("account", READERS)
def test_pods_start_after_their_identity_and_end_before_it(
    graph: DependencyGraph, account: str
) -> None:
    association = graph.one("AWS::EKS::PodIdentityAssociation", ServiceAccount=account)
    pods = graph.applies("Deployment", account, "sonic")
    assert graph.is_after(pods, association)
    for node, manifest in graph.objects("SecretProviderClass"):
        assert graph.is_after(node, association)
        if manifest["metadata"]["name"] == account:
            assert graph.is_after(pods, node)


def test_a_deployment_without_secrets_has_no_reader(templates: dict[str, Template]) -> None:
    workload = Resources(templates["workload"])
    assert workload.ids("AWS::EKS::PodIdentityAssociation") == []
