"""Every policy of a deployment with ARNs such as AWS would give, for a linter to read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.cloudformation import ACCOUNT

_REGION = "us-east-1"

# AWS service authorization reference: the ARNs of a service's resources, from the physical name.
_ARNS = {
    "AWS::CodeBuild::Project": f"arn:aws:codebuild:{_REGION}:{ACCOUNT}:project/{{}}",
    "AWS::EKS::Cluster": f"arn:aws:eks:{_REGION}:{ACCOUNT}:cluster/{{}}",
    "AWS::Events::Rule": f"arn:aws:events:{_REGION}:{ACCOUNT}:rule/{{}}",
    "AWS::IAM::Role": f"arn:aws:iam::{ACCOUNT}:role/{{}}",
    "AWS::KMS::Key": f"arn:aws:kms:{_REGION}:{ACCOUNT}:key/{{}}",
    "AWS::Lambda::Function": f"arn:aws:lambda:{_REGION}:{ACCOUNT}:function:{{}}",
    "AWS::Logs::LogGroup": f"arn:aws:logs:{_REGION}:{ACCOUNT}:log-group:{{}}:*",
    "AWS::S3::Bucket": "arn:aws:s3:::{}",
    "AWS::SQS::Queue": f"arn:aws:sqs:{_REGION}:{ACCOUNT}:{{}}",
    "AWS::StepFunctions::StateMachine": (f"arn:aws:states:{_REGION}:{ACCOUNT}:stateMachine:{{}}"),
}
# Types whose Ref is their ARN (CloudFormation Template Reference, return values).
_REF_IS_ARN = ("AWS::StepFunctions::StateMachine",)

# Policies that name no resource, as they are about the one that they belong to.
_ABOUT = {
    "AssumeRolePolicyDocument": f"arn:aws:iam::{ACCOUNT}:role/this",
    "RepositoryPolicyText": f"arn:aws:ecr:{_REGION}:{ACCOUNT}:repository/this",
}


@dataclass(frozen=True)
class Policy:
    """A policy document, and where it is."""

    stack: str
    kind: str
    name: str
    document: dict[str, Any]


def policies_of(templates: dict[str, dict[str, Any]]) -> Iterator[Policy]:
    """Yield every policy document in the templates of a deployment, by stack."""
    for stack, template in templates.items():
        for name, resource in template["Resources"].items():
            for about, found in _documents(resource.get("Properties", {})):
                document = _resolved(found, stack, templates)
                if about in _ABOUT:
                    for statement in document["Statement"]:
                        statement["Resource"] = _ABOUT[about]
                yield Policy(stack, resource["Type"], name, document)


def _documents(value: Any, key: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        if isinstance(value.get("Statement"), list):
            yield key, value
            return
        for name, item in value.items():
            yield from _documents(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _documents(item, key)


def _resolved(value: Any, stack: str, templates: dict[str, dict[str, Any]]) -> Any:
    if isinstance(value, list):
        return [_resolved(item, stack, templates) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((function, argument),) = value.items()
        if function == "Ref" or function.startswith("Fn::"):
            return _function(function, argument, stack, templates)
    return {key: _resolved(item, stack, templates) for key, item in value.items()}


_PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": _REGION,
    "AWS::URLSuffix": "amazonaws.com",
}


def _function(
    function: str, argument: Any, stack: str, templates: dict[str, dict[str, Any]]
) -> Any:
    resources = templates[stack]["Resources"]
    if function == "Ref":
        if argument in _PSEUDO:
            return _PSEUDO[argument]
        kind = resources.get(argument, {}).get("Type")
        return _ARNS[kind].format(argument) if kind in _REF_IS_ARN else argument.lower()
    if function == "Fn::GetAtt":
        name, attribute = argument
        if attribute in ("Arn", "RoleArn"):
            return _ARNS[resources[name]["Type"]].format(name.lower())
        return f"{name}-{attribute}"
    if function == "Fn::Join":
        separator, parts = argument
        return str(separator).join(str(part) for part in _resolved(parts, stack, templates))
    if function == "Fn::Sub":
        return re.sub(r"\$\{([^}]+)\}", lambda match: _PSEUDO[match[1]], argument)
    if function == "Fn::GetStackOutput":
        ((other, output),) = (
            (name, template["Outputs"][argument["OutputName"]]["Value"])
            for name, template in templates.items()
            if argument["StackName"].endswith(f"-{name}")
        )
        return _resolved(output, other, templates)
    return {function: _resolved(argument, stack, templates)}
