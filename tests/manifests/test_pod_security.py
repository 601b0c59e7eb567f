"""What each pod may: hand-typed, beside the house rules that hold for all."""

from __future__ import annotations

import pytest

from tests.manifests.deployments import kinds, one

# Images of known projects run under a user of their own. What the vendor's images do as which user,
# and where they write, is not public: a stricter setting might stop them.
KNOWN = {("StatefulSet", "nats"), ("StatefulSet", "prometheus")}
VENDOR = {
    ("Deployment", "sonic-api"),
    ("Deployment", "sonic-license-proxy"),
    ("Deployment", "sonic-worker-sonic-3"),
}
WITH_TOKEN = {"prometheus"}


@pytest.mark.parametrize(("kind", "name"), sorted(KNOWN))
def test_known_images_do_not_run_as_root(kind: str, name: str) -> None:
    pod = one("default", kind, name)["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    for container in pod["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize(("kind", "name"), sorted(VENDOR))
def test_vendor_images_may_write_to_their_own_layer(kind: str, name: str) -> None:
    pod = one("default", kind, name)["spec"]["template"]["spec"]
    (main,) = (c for c in pod["containers"] if "sonic" in c["image"])
    assert main["securityContext"]["readOnlyRootFilesystem"] is False


def test_only_what_reads_the_api_has_a_token() -> None:
    workloads = [w for kind in ("Deployment", "StatefulSet") for w in kinds("default", kind)]
    mounting = {
        w["metadata"]["name"]: w["spec"]["template"]["spec"]["automountServiceAccountToken"]
        for w in workloads
    }
    assert mounting == {name: name in WITH_TOKEN for name in mounting}
    assert mounting.keys() >= WITH_TOKEN
    # The account itself gives none, to whatever pod may use it.
    for account in kinds("default", "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False
