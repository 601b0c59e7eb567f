"""Registries that want to know who asks: TLS, an ECR-style token, upstream secrets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from sonic_eks.mirror.auth import Credentials, EcrToken, SecretCredentials
from sonic_eks.mirror.copier import Copier, Status
from tests.e2e.artifacts import Connect, MakeArtifact, only
from tests.e2e.aws_endpoint import AwsEndpoint, aws_endpoint
from tests.e2e.fault_proxy import Fault, Proxy, once
from tests.e2e.registries import RegistryProcess, noise, push_image, registry, write_password

pytestmark = pytest.mark.slow


SECRET_ARN = "arn:aws:secretsmanager:us-east-1:111122223333:secret:vendor-AbCdEf"


@pytest.fixture
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    """A registry with TLS that lets in AWS with the password `secret`."""
    folder = tmp_path_factory.mktemp("guarded")
    with registry(folder, password="secret", tls=True) as running:
        yield running


@pytest.fixture
def aws() -> Iterator[AwsEndpoint]:
    with aws_endpoint() as running:
        yield running


@pytest.fixture
def trusted(guarded: RegistryProcess, monkeypatch: pytest.MonkeyPatch) -> RegistryProcess:
    """The guarded registry, its certificate trusted."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(guarded.ca_file))
    return guarded


def token_of(aws: AwsEndpoint) -> EcrToken:
    return EcrToken(aws.client("ecr"), "111122223333")


def test_token_of_ecr_lets_in(
    upstream: RegistryProcess,
    trusted: RegistryProcess,
    aws: AwsEndpoint,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    image = push_image(upstream, f"{place}/image", "1.0", [noise(100_000, 1), noise(10, 2)])
    artifact = artifact_of(upstream.host)

    outcome = only(Copier(connect_to(trusted.host, credentials=token_of(aws))).run([artifact]))

    assert (outcome.message, outcome.digest) == ("", image.digest)
    assert trusted.digest(artifact.repository, "1.0") == image.digest
    assert aws.calls == ["GetAuthorizationToken"]


def test_token_that_ends_in_the_middle_of_a_copy_is_renewed(
    upstream: RegistryProcess,
    upstream_proxy: Proxy,
    trusted: RegistryProcess,
    aws: AwsEndpoint,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    layers = [noise(200_000, seed) for seed in range(5)]
    image = push_image(upstream, f"{place}/image", "1.0", layers)
    artifact = artifact_of(upstream_proxy.host)
    password = ["secret"]
    aws.password = lambda: password[0]

    def change(method: str, path: str) -> None:
        if path.endswith(image.blobs[3]) and password[0] == "secret":
            password[0] = "another"
            assert trusted.htpasswd is not None
            write_password(trusted.htpasswd, "another")

    upstream_proxy.rule = change

    connections = connect_to(trusted.host, credentials=token_of(aws), parallel=1)
    outcome = only(Copier(connections).run([artifact]))

    trusted.basic = ("AWS", "another")
    assert (outcome.message, outcome.digest) == ("", image.digest)
    assert trusted.digest(artifact.repository, "1.0") == image.digest
    assert aws.calls == ["GetAuthorizationToken"] * 2


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", 403, text="Your Authorization Token has expired. Reauthenticate."),
        Fault("status", 403, "DENIED", text="Your authorization token has expired."),
        Fault("status", 400),
    ],
    ids=["text", "document", "without a word"],
)
def test_answers_of_ecr_to_an_ended_token_renew_it(
    upstream: RegistryProcess,
    private_proxy: Proxy,
    aws: AwsEndpoint,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
    fault: Fault,
) -> None:
    push_image(upstream, f"{place}/image", "1.0", [noise(1000, 1)])
    private_proxy.rule = once("/blobs/uploads/", fault, method="POST")
    passwords = iter(["first", "second", "third"])
    aws.password = lambda: next(passwords)
    connections = connect_to(private_proxy.host, credentials=token_of(aws))

    assert only(Copier(connections).run([artifact_of(upstream.host)])).message == ""
    assert aws.calls == ["GetAuthorizationToken"] * 2


def test_token_about_to_end_is_renewed_before_it_is_used(aws: AwsEndpoint) -> None:
    aws.seconds_valid = 600
    token = token_of(aws)

    assert token.current(None) == token.current(None)
    assert len(aws.calls) == 2
    aws.seconds_valid = 12 * 3600
    assert token.current(None) == token.current(None)
    assert len(aws.calls) == 3


def test_wrong_token_is_one_line(
    upstream: RegistryProcess,
    trusted: RegistryProcess,
    aws: AwsEndpoint,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    push_image(upstream, f"{place}/image", "1.0", [b"layer"])
    aws.password = lambda: "hunter2"

    connections = connect_to(trusted.host, credentials=token_of(aws))
    outcome = only(Copier(connections).run([artifact_of(upstream.host)]))

    assert outcome.status is Status.FAILED
    assert "refused those given (HTTP 401)" in outcome.message
    assert "hunter2" not in outcome.message


def test_certificate_that_is_not_trusted_is_one_line(
    upstream: RegistryProcess,
    guarded: RegistryProcess,
    aws: AwsEndpoint,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    push_image(upstream, f"{place}/image", "1.0", [b"layer"])

    connections = connect_to(guarded.host, credentials=token_of(aws))
    outcome = only(Copier(connections).run([artifact_of(upstream.host)]))

    assert outcome.message.endswith(
        "the TLS certificate is not trusted; name the file of its authority in the environment"
        " variable REQUESTS_CA_BUNDLE"
    )


@pytest.mark.parametrize(
    "secret",
    [
        {"username": "AWS", "password": "secret"},
        {"username": "AWS", "accessToken": "secret"},
    ],
    ids=["password", "accessToken"],
)
def test_secret_lets_in_upstream(
    trusted: RegistryProcess,
    private: RegistryProcess,
    aws: AwsEndpoint,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
    secret: dict[str, str],
) -> None:
    image = push_image(trusted, f"{place}/image", "1.0", [noise(1000, 1)])
    aws.secrets[SECRET_ARN] = json.dumps(secret)
    artifact = artifact_of(trusted.host, secret_arn=SECRET_ARN)

    connections = connect_to(private.host, secrets=secrets_of(aws))
    outcome = only(Copier(connections).run([artifact]))

    assert (outcome.message, outcome.digest) == ("", image.digest)
    assert aws.calls == ["GetSecretValue"]


def test_upstream_without_credentials_is_one_line(
    trusted: RegistryProcess,
    private: RegistryProcess,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
) -> None:
    push_image(trusted, f"{place}/image", "1.0", [b"layer"])

    outcome = only(Copier(connect_to(private.host)).run([artifact_of(trusted.host)]))

    assert "the registry wants credentials" in outcome.message


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (None, "AWS answered ResourceNotFoundException"),
        ("not JSON", 'not {"username": ..., "password": ...}'),
        ('{"username": "only"}', 'not {"username": ..., "password": ...}'),
    ],
)
def test_secret_that_cannot_be_used_is_one_line(
    trusted: RegistryProcess,
    private: RegistryProcess,
    aws: AwsEndpoint,
    place: str,
    artifact_of: MakeArtifact,
    connect_to: Connect,
    stored: str | None,
    said: str,
) -> None:
    if stored is not None:
        aws.secrets[SECRET_ARN] = stored
    artifact = artifact_of(trusted.host, secret_arn=SECRET_ARN)

    outcome = only(Copier(connect_to(private.host, secrets=secrets_of(aws))).run([artifact]))

    assert said in outcome.message
    assert "\n" not in outcome.message


def secrets_of(aws: AwsEndpoint) -> Callable[[str], Credentials]:
    return lambda arn: SecretCredentials(aws.client("secretsmanager"), arn)


def test_service_account_key_is_a_password(aws: AwsEndpoint) -> None:
    key = json.dumps({"type": "service_account", "private_key": "for tests"})
    aws.secrets[SECRET_ARN] = key

    assert secrets_of(aws)(SECRET_ARN).current(None) == ("_json_key", key)
