"""Secrets of the pods: file names, ARNs, keys of KMS, and the license's seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.configuration import fault_of, load, with_values

Changes = list[tuple[str, Any]]
KMS = "arn:aws:kms:us-east-1:111122223333:"
KEY = f"{KMS}key/0f0e1d2c-0000-4000-8000-00000000000a"


def secret(name: str = "sonic/api-key", *, region: str = "us-east-1", end: str = "-AbCd09") -> str:
    """Return the ARN of a secret; Secrets Manager ends it in a hyphen and six characters."""
    return f"arn:aws:secretsmanager:{region}:111122223333:secret:{name}{end}"


AIR_GAPPED: Changes = [("license.mode", "airGapped"), ("license.dataPath", "/data")]
SEED: Changes = [("license.seedFile", "license.json"), ("license.seedSecretArn", secret("seed"))]


@pytest.mark.parametrize("section", ["api", "license", "models.0"])
def test_files_are_read_in_every_section(tmp_path: Path, section: str) -> None:
    files = {"api-key": secret(), "TLS.pem_2": secret("a/b+c=d.e@f"), "1e3": secret("x")}
    config = load(with_values(("models", [{}]), (f"{section}.secretFiles", files)), tmp_path)
    read = {
        "api": config.api.secret_files,
        "license": config.license.secret_files,
        "models.0": config.models[0].secret_files,
    }
    assert read.pop(section) == files
    assert list(read.values()) == [{}, {}]


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"a/b": secret()}, "api.secretFiles.'a/b': got 'a/b'; allowed: text that matches"),
        ({"..": secret()}, "api.secretFiles.'..': got '..'; allowed: text that matches"),
        ({".hidden": secret()}, "api.secretFiles.'.hidden': got '.hidden'"),
        ({"": secret()}, "api.secretFiles.'': got ''"),
        ({"a b": secret()}, "api.secretFiles.'a b': got 'a b'"),
        ({"key\n": secret()}, "api.secretFiles.'key\\n': got 'key\\n'"),
        ({"k" * 101: secret()}, "api.secretFiles."),
        (
            {"Key": secret(), "key": secret("other")},
            "api.secretFiles: got 'key'; allowed: a name that differs from Key by more than its",
        ),
        ({f"k{i}": secret() for i in range(11)}, "api.secretFiles: got a mapping of 11; allowed"),
        ({"k": None}, "api.secretFiles.k: got nothing"),
        ({"k": "sonic/api-key"}, "api.secretFiles.k: got 'sonic/api-key'; allowed: the ARN of a"),
        ({"k": KEY}, f"api.secretFiles.k: got '{KEY}'; allowed: the ARN of a Secrets Manager"),
        # Incomplete: a policy that names it would name no secret.
        ({"k": secret(end="")}, "api.secretFiles.k: got 'arn:aws:secretsmanager:"),
        ({"k": secret(end="-AbCd0")}, "api.secretFiles.k: got 'arn:aws:secretsmanager:"),
        ({"k": secret(end="-*")}, "api.secretFiles.k: got 'arn:aws:secretsmanager:"),
        ({"k": secret(end="-??????")}, "api.secretFiles.k: got 'arn:aws:secretsmanager:"),
        (["k"], "api.secretFiles: got a list of 1; allowed: a mapping of names to text"),
    ],
)
def test_files_refused(tmp_path: Path, files: Any, fault: str) -> None:
    assert fault_of(with_values(("api.secretFiles", files)), tmp_path).startswith(fault)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            [("api.secretFiles", {"k": secret(region="eu-west-1")})],
            f"api.secretFiles.k: got '{secret(region='eu-west-1')}'; allowed: an ARN of",
        ),
        (
            [("license.secretFiles", {"k": secret().replace("arn:aws:", "arn:aws-cn:")})],
            "license.secretFiles.k: got 'arn:aws-cn:",
        ),
        (
            [
                ("deployment.account", "444455556666"),
                ("models", [{}, {"name": "b", "secretFiles": {"k": secret()}}]),
            ],
            f"models.1.secretFiles.k: got '{secret()}'; allowed: an ARN of deployment.account",
        ),
        (
            [*AIR_GAPPED, *SEED, ("license.seedSecretArn", secret(region="eu-west-1"))],
            "license.seedSecretArn: got 'arn:aws:secretsmanager:eu-west-1",
        ),
        (
            [("secrets.kmsKeyArns", [KEY.replace("us-east-1", "eu-west-1")])],
            "secrets.kmsKeyArns.0: got 'arn:aws:kms:eu-west-1",
        ),
        (
            [("secrets.kmsKeyArns", [f"{KMS}alias/sonic"])],
            f"secrets.kmsKeyArns.0: got '{KMS}alias/sonic'; allowed: the ARN of a KMS key, by its",
        ),
        ([("secrets.kmsKeyArns", [f"{KMS}key/*"])], "secrets.kmsKeyArns.0: got"),
        ([("secrets.kmsKeyArns", [KEY] * 11)], "secrets.kmsKeyArns: got a list of 11"),
    ],
)
def test_arns_of_elsewhere_refused(tmp_path: Path, changes: Changes, fault: str) -> None:
    assert fault_of(with_values(*changes), tmp_path).startswith(fault)


def test_keys_are_read(tmp_path: Path) -> None:
    multi_region = f"{KMS}key/mrk-0f0e1d2c000040008000000000000000"
    config = load(with_values(("secrets.kmsKeyArns", [KEY, multi_region])), tmp_path)
    assert config.secrets.kms_key_arns == (KEY, multi_region)


@pytest.mark.parametrize("file", ["license.json", "v1/keys/license", "L" * 100])
def test_a_seed_is_read(tmp_path: Path, file: str) -> None:
    changes = [*AIR_GAPPED, *SEED, ("license.seedFile", file)]
    config = load(with_values(*changes), tmp_path)
    assert (config.license.seed_file, config.license.seed_secret_arn) == (file, secret("seed"))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ([*AIR_GAPPED, SEED[0]], "license.seedSecretArn: got nothing; allowed: a value, since"),
        ([*AIR_GAPPED, SEED[1]], "license.seedFile: got nothing; allowed: a value, since"),
        (SEED, "license.seedFile: got 'license.json'; allowed: nothing unless license.mode is"),
        (
            [
                ("topology", "standalone"),
                ("models", [{"image": "sonic"}]),
                ("license.mode", "none"),
                ("license.secretFiles", {"k": secret()}),
            ],
            "license.secretFiles: got a mapping of 1; allowed: none while license.mode is none",
        ),
        (
            [
                ("topology", "standalone"),
                ("models", [{"image": "sonic"}]),
                ("api.secretFiles", {"k": secret()}),
            ],
            "api: got 'settings'; allowed: none, or topology: distributed",
        ),
        (
            [*AIR_GAPPED, *SEED, ("license.secretFiles", {"copy": secret("seed")})],
            f"license.seedSecretArn: got '{secret('seed')}'; allowed: a secret that secretFiles (c",
        ),
        *(
            ([*AIR_GAPPED, *SEED, ("license.seedFile", path)], "license.seedFile: got")
            for path in ("/license", "../license", "a/../b", "a//b", "a/", ".license", "a b", "")
        ),
        (
            [*AIR_GAPPED, *SEED, ("license.seedSecretArn", secret(end=""))],
            "license.seedSecretArn: got",
        ),
    ],
)
def test_seeds_refused(tmp_path: Path, changes: Changes, fault: str) -> None:
    assert fault_of(with_values(*changes), tmp_path).startswith(fault)


def long_secrets(characters: int, count: int) -> list[str]:
    """Return ARNs with this many characters together."""
    each, rest = divmod(characters, count)
    lengths = [each] * (count - 1) + [each + rest]
    return [secret(f"{i:x<{n - len(secret(''))}}") for i, n in enumerate(lengths)]


def test_arns_fit_a_roles_policy(tmp_path: Path) -> None:
    fits, more = long_secrets(4000, 10), long_secrets(4001, 10)
    load(with_values(("api.secretFiles", {f"k{i}": arn for i, arn in enumerate(fits)})), tmp_path)
    files = {f"k{i}": arn for i, arn in enumerate(more)}
    for section in ("api", "license", "models.0"):
        changes = [("models", [{}]), (f"{section}.secretFiles", files)]
        fault = fault_of(with_values(*changes), tmp_path)
        assert fault.startswith(f"{section}.secretFiles: got 4001; allowed: at most 4000 characte")


def test_the_seed_counts_too(tmp_path: Path) -> None:
    seeded, *files = long_secrets(4001, 11)
    given = {f"k{i}": arn for i, arn in enumerate(files)}
    changes = [*AIR_GAPPED, SEED[0], ("license.seedSecretArn", seeded)]
    fault = fault_of(with_values(*changes, ("license.secretFiles", given)), tmp_path)
    assert fault.startswith("license.secretFiles: got 4001")


@pytest.mark.parametrize("field", ["weights.mountPath", "license.dataPath"])
@pytest.mark.parametrize("path", ["/mnt", "/mnt/", "/mnt/secrets", "/mnt/secrets/x"])
def test_nothing_else_is_mounted_where_secrets_are(tmp_path: Path, field: str, path: str) -> None:
    fault = fault_of(with_values((field, path)), tmp_path)
    assert fault == (
        f"{field}: got '{path}'; allowed: a folder apart from /mnt/secrets, where secrets are"
        " mounted"
    )


@pytest.mark.parametrize("path", ["/mnt/secrets2", "/mnt/secret", "/opt/mnt/secrets"])
def test_folders_with_like_names_are_apart(tmp_path: Path, path: str) -> None:
    assert load(with_values(("weights.mountPath", path)), tmp_path).weights.mount_path == path
