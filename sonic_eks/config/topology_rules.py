"""Rules of the two topologies: what each needs, and what has no meaning in the other.

The docstrings are the words of the generated reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sonic_eks.config.base import Refusal
from sonic_eks.config.instances import families, nearest_types
from sonic_eks.config.platform import ServingPool
from sonic_eks.config.service import Api
from sonic_eks.config.standalone import Standalone

if TYPE_CHECKING:
    from sonic_eks.config.model import Configuration


def parts_belong_to_the_topology(c: Configuration) -> None:
    """`standalone` is for `topology: standalone`; `api` and `nodes.serving` for `distributed`."""
    alone = c.topology == "standalone"
    parts: tuple[tuple[str, bool], ...] = (
        (("api", c.api != Api()), ("nodes.serving", c.nodes.serving != ServingPool()))
        if alone
        else (("standalone", c.standalone != Standalone()),)
    )
    for field, given in parts:
        if given:
            other = "distributed" if alone else "standalone"
            raise Refusal(
                "settings", f"none, or topology: {other}, which alone has them", field=field
            )


def a_server_that_stands_alone_is_whole(c: Configuration) -> None:
    """With `topology: standalone` there is one model, with an `image` and no `natsUrlEnv`.

    `standalone.warmUp.keyFile` is one of its `secretFiles`.
    """
    if c.topology != "standalone":
        return
    if len(c.models) > 1:
        raise Refusal(
            len(c.models), "one model: a server that stands alone has one", field="models"
        )
    (model,) = c.models
    given = "image" in model.model_fields_set
    if c.standalone.stand_in and given:
        raise Refusal(model.image, "none: standalone.standIn serves", field="models.0.image")
    if not c.standalone.stand_in and not given:
        raise Refusal(
            None,
            "the server's repository in the vendor's registry: the default is that of a worker",
            field="models.0.image",
        )
    key = c.standalone.warm_up.key_file
    if key is not None and key not in model.secret_files:
        raise Refusal(
            key,
            "a name of models.0.secretFiles",
            nearest=", ".join(model.secret_files) or None,
            field="standalone.warmUp.keyFile",
        )
    if model.nats_url_env is not None:
        raise Refusal(
            model.nats_url_env, "none: topology standalone has no NATS", field="models.0.natsUrlEnv"
        )
    if c.license.mode == "none" and model.license_url_env is not None:
        raise Refusal(
            model.license_url_env, "none while license.mode is none", field="models.0.licenseUrlEnv"
        )


def a_license_is_left_out_knowingly(c: Configuration) -> None:
    """`license.mode: none` is for `topology: standalone`; `standalone.standIn` needs it."""
    if c.license.mode == "none" and c.topology != "standalone":
        raise Refusal(
            "none",
            "connected or airGapped while topology is distributed",
            field="license.mode",
        )
    if c.standalone.stand_in and c.license.mode != "none":
        raise Refusal(
            c.license.mode,
            "none: standalone.standIn needs no license",
            nearest="none",
            field="license.mode",
        )


def settings_have_a_meaning(c: Configuration) -> None:
    """`scaling.generationsPerStream` is for servers that stand alone without a `loadMetric`.

    `drain.worker: wait-idle` is for `distributed`; with `license.mode: none` nothing else is set
    there.
    """
    by_streams = c.topology == "standalone" and c.standalone.load_metric is None
    if c.scaling.generations_per_stream is not None and not by_streams:
        raise Refusal(
            c.scaling.generations_per_stream,
            "none, as nothing is scaled on it",
            field="scaling.generationsPerStream",
        )
    if c.topology == "standalone" and c.drain.worker != "sigterm":
        raise Refusal(
            c.drain.worker,
            "sigterm: a server that stands alone always drains before it",
            field="drain.worker",
        )
    if c.license.mode == "none" and c.license.model_fields_set != {"mode"}:
        raise Refusal("settings", "mode alone while it is none", field="license")


def models_have_gpus(c: Configuration) -> None:
    """`nodes.gpu.instanceType` has GPUs, or none with `standalone.standIn`."""
    kind = c.gpu_type
    if c.standalone.stand_in:
        if kind.gpus:
            raise Refusal(
                kind.name,
                "a type without a GPU: standalone.standIn needs none",
                field="nodes.gpu.instanceType",
            )
        if not kind.cluster_placement:
            raise Refusal(
                kind.name,
                "a type that a cluster placement group takes",
                field="nodes.gpu.instanceType",
            )
        return
    if not kind.serves_sonic:
        raise Refusal(
            kind.name,
            "an x86_64 type with whole NVIDIA GPUs, Ampere or newer, 24 GB or more, of the"
            f" families {', '.join(families(gpu=True))} (this one has no GPU)",
            nearest=", ".join(nearest_types(kind.name, gpu=True)),
            field="nodes.gpu.instanceType",
        )


TOPOLOGY_RULES = (
    parts_belong_to_the_topology,
    a_server_that_stands_alone_is_whole,
    a_license_is_left_out_knowingly,
    settings_have_a_meaning,
    models_have_gpus,
)
