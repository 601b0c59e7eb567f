"""Acknowledging cdk-nag findings beside the construct that they concern."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import IConstruct

# cdk-nag spells AWS managed policies with the partition as a pseudo parameter.
_MANAGED_POLICY = "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{name}]"


def acknowledge(scope: IConstruct, reason: str, *ids: str) -> None:
    """Accept findings for `scope` and what is below it.

    Parameters
    ----------
    scope : constructs.IConstruct
        The construct that raises the findings.
    reason : str
        Why a reviewer may accept them.
    *ids : str
        Ids as cdk-nag prints them, with ``[Policy::...]`` or ``[Resource::...]`` for IAM4, IAM5.
    """
    for finding in ids:
        cdk.Validations.of(scope).acknowledge(cdk.Acknowledgment(id=finding, reason=reason))


def acknowledge_managed_policies(scope: IConstruct, reason: str, *names: str) -> None:
    """Accept that roles below `scope` use the AWS managed policies `names`."""
    acknowledge(scope, reason, *(_MANAGED_POLICY.format(name=name) for name in names))


def as_printed(scope: IConstruct, arn: str) -> str:
    """Return an ARN as cdk-nag prints it: tokens of partition and account as ``<AWS::...>``.

    Both are literal text where the environment of the stack settles them.
    """
    stack = cdk.Stack.of(scope)
    tokens = {stack.partition: "<AWS::Partition>", stack.account: "<AWS::AccountId>"}
    for token, printed in tokens.items():
        if cdk.Token.is_unresolved(token):
            arn = arn.replace(token, printed)
    return arn
