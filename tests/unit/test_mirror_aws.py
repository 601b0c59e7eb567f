"""What AWS's refusals become, and the list as documentation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ProfileNotFound,
    UnauthorizedSSOTokenError,
)

from sonic_eks.catalogue import every_artifact
from sonic_eks.config import Configuration
from sonic_eks.errors import PROBLEM_FOUND
from sonic_eks.mirror import aws
from sonic_eks.mirror.auth import aws_call
from sonic_eks.mirror.errors import MirrorError
from sonic_eks.mirror.table import markdown_table
from tests.synth import ROOT


def refused(code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "GetAuthorizationToken")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NoCredentialsError(), "sign in, or set AWS_PROFILE"),
        (UnauthorizedSSOTokenError(), "sign in, or set AWS_PROFILE"),
        (
            refused("ExpiredTokenException", "The security token included is expired"),
            "The security token included is expired; sign in again",
        ),
        (
            refused("AccessDeniedException", "not\nallowed"),
            r"AWS answered AccessDeniedException: not\nallowed",
        ),
        (EndpointConnectionError(endpoint_url="https://x"), "Could not connect"),
        (ProfileNotFound(profile="absent"), "absent"),
    ],
    ids=["none", "sso", "expired", "denied", "no network", "no profile"],
)
def test_refusal_is_one_line_and_status_1(error: Exception, said: str) -> None:
    with pytest.raises(MirrorError) as caught:
        aws_call("ECR token of account 1", _raiser(error))
    assert str(caught.value).startswith("ECR token of account 1: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == PROBLEM_FOUND


def _raiser(error: Exception) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


def test_profile_that_does_not_exist_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "absent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")

    with pytest.raises(MirrorError, match="absent"):
        aws.account_id()


def test_table_in_the_documentation_is_the_list(default_config: Configuration) -> None:
    artifacts = every_artifact(default_config)
    table = markdown_table(artifacts)

    assert table in (ROOT / "docs" / "mirror.md").read_text()
    assert len(table.splitlines()) == 2 + len(artifacts)
