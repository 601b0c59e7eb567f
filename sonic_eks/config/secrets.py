"""Secrets of the pods: which secret of Secrets Manager becomes which file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field, field_validator

from sonic_eks.config.base import Refusal, Section, Str
from sonic_eks.config.values import COMPLETE_SECRET, KMS_KEY, arn_of

if TYPE_CHECKING:
    from sonic_eks.config.model import Configuration

# No hidden names, which the driver uses itself, and no folders.
_FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
_RELATIVE_PATH = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}(/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){0,4}$"

# IAM quotas: the inline policies of a role have 10,240 characters. A role's names each secret
# twice, for reading and for its key, beside ten keys (1,000) and the rest (500).
_MAX_ARNS = 4_000

FileName = Annotated[Str, Field(pattern=_FILE_NAME)]
RelativePath = Annotated[Str, Field(pattern=_RELATIVE_PATH)]


def secret_arn(value: str | None, *, field: str | None = None) -> str | None:
    """Return `value` when it is unset or the complete ARN of a secret; refuse it otherwise."""
    return arn_of(value, COMPLETE_SECRET, field=field)


def _secret_files(value: dict[str, str]) -> dict[str, str]:
    seen: dict[str, str] = {}
    for name, arn in value.items():
        secret_arn(arn, field=name)
        if list(value.values()).index(arn) != list(value).index(name):
            # aws/secrets-store-csi-driver-provider-aws, NewSecretDescriptorList.
            raise Refusal(arn, "each secret once: the driver mounts none twice", field=name)
        other = seen.setdefault(name.lower(), name)
        if other != name:
            # Whoever looks for one by another case on another system would find the wrong key.
            raise Refusal(name, f"a name that differs from {other} by more than its case")
    return value


SecretFiles = Annotated[dict[FileName, Str], Field(max_length=10), AfterValidator(_secret_files)]


class Secrets(Section):
    """What all secrets of the pods share."""

    kms_key_arns: Annotated[tuple[Str, ...], Field(max_length=10)] = ()
    """Customer managed KMS keys of the secrets, by ARN; empty: they use aws/secretsmanager."""

    @field_validator("kms_key_arns")
    @classmethod
    def _keys(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """`kmsKeyArns` are ARNs of KMS keys by their ids, no aliases."""
        for index, arn in enumerate(value):
            arn_of(arn, KMS_KEY, field=str(index))
        return value


def _sections(c: Configuration) -> list[tuple[str, dict[str, str]]]:
    """List the sections that may name secrets, by their dotted path."""
    models = [(f"models.{i}", model.secret_files) for i, model in enumerate(c.models)]
    return [("api", c.api.secret_files), ("license", c.license.secret_files), *models]


def secret_arns(c: Configuration) -> Iterator[tuple[str, str]]:
    """Yield the dotted field and the ARN of each secret and of each of their keys."""
    for section, files in _sections(c):
        for name, arn in files.items():
            yield f"{section}.secretFiles.{name}", arn
    if c.license.seed_secret_arn is not None:
        yield "license.seedSecretArn", c.license.seed_secret_arn
    for index, arn in enumerate(c.secrets.kms_key_arns):
        yield f"secrets.kmsKeyArns.{index}", arn


def secrets_fit_a_policy(c: Configuration) -> None:
    """Secrets of a section have ARNs of at most 4000 characters in all: one policy names them."""
    for section, files in _sections(c):
        size = sum(map(len, files.values()))
        if section == "license":
            size += len(c.license.seed_secret_arn or "")
        if size > _MAX_ARNS:
            raise Refusal(
                size,
                f"at most {_MAX_ARNS} characters of ARNs; shorter names of secrets, or fewer",
                field=f"{section}.secretFiles",
            )


def license_can_be_seeded(c: Configuration) -> None:
    """`license.seedFile` and `license.seedSecretArn` come together, and only when air-gapped.

    The seed is none of `license.secretFiles`, of which there are none with `license.mode: none`.
    """
    settings = c.license
    if settings.mode == "none" and settings.secret_files:
        raise Refusal(
            settings.secret_files,
            "none while license.mode is none: there is no license proxy",
            field="license.secretFiles",
        )
    seed = {"seedFile": settings.seed_file, "seedSecretArn": settings.seed_secret_arn}
    for field, other in (("seedFile", "seedSecretArn"), ("seedSecretArn", "seedFile")):
        if seed[field] is None and seed[other] is not None:
            raise Refusal(None, f"a value, since {other} is set", field=f"license.{field}")
    if settings.seed_file is not None and settings.mode != "airGapped":
        raise Refusal(
            settings.seed_file,
            "nothing unless license.mode is airGapped: a connected license keeps no file",
            field="license.seedFile",
        )
    for name, arn in settings.secret_files.items():
        if arn == settings.seed_secret_arn:
            raise Refusal(
                arn,
                f"a secret that secretFiles ({name}) does not mount too",
                field="license.seedSecretArn",
            )
