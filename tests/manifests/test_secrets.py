"""Which secret each pod mounts, as which file, and as whom; and the license's seed."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from sonic_eks.k8s.sonic.readers import secret_readers
from tests.manifests.deployments import configuration, kinds, manifests, one

SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:"
WORKER = "sonic-worker-sonic-3"
PROXY = "sonic-license-proxy"


def pod_of(name: str, deployment: str = "secrets") -> dict[str, Any]:
    found: dict[str, Any] = one(deployment, "Deployment", name)["spec"]["template"]["spec"]
    return found


def files_of(name: str) -> dict[str, str]:
    """Return the files of a class by name, as a parser of YAML 1.2 would read them."""
    (manifest,) = [c for c in kinds("secrets", "SecretProviderClass") if name_of(c) == name]
    parameters = manifest["spec"]["parameters"]
    assert parameters["region"] == "us-east-1"
    objects = yaml.load(parameters["objects"], yaml.BaseLoader)
    return {entry["objectAlias"]: entry["objectName"] for entry in objects}


def name_of(manifest: dict[str, Any]) -> str:
    return str(manifest["metadata"]["name"])


def csi_volumes(pod: dict[str, Any]) -> dict[str, str]:
    """Return the classes of secrets of a pod by the name of their volume."""
    return {
        v["name"]: v["csi"]["volumeAttributes"]["secretProviderClass"]
        for v in pod["volumes"]
        if "csi" in v
    }


def test_each_workload_has_the_files_of_its_own_section() -> None:
    assert {name_of(c) for c in kinds("secrets", "SecretProviderClass")} == {
        "sonic-api",
        WORKER,
        PROXY,
        "sonic-license-seed",
    }
    api = {"api-key": f"{SECRET}sonic/api-AbCd03", "1e3": f"{SECRET}n-AbCd04"}
    assert files_of("sonic-api") == api
    assert files_of(WORKER) == {"token": f"{SECRET}sonic/token-AbCd05"}
    assert files_of(PROXY) == {"usage-key": f"{SECRET}sonic/usage-AbCd02"}
    assert list(files_of("sonic-license-seed").values()) == [f"{SECRET}sonic/license-AbCd01"]


def test_names_of_files_are_text_to_any_parser() -> None:
    """To YAML 1.2, `1e3` is a number, which the provider would not take for a name."""
    (api,) = (c for c in kinds("secrets", "SecretProviderClass") if name_of(c) == "sonic-api")
    assert '"objectAlias": "1e3"' in api["spec"]["parameters"]["objects"]


@pytest.mark.parametrize("name", ["sonic-api", WORKER, PROXY])
def test_the_main_container_finds_them_in_one_folder(name: str) -> None:
    pod = pod_of(name)
    assert csi_volumes(pod)["secrets"] == name
    (main,) = pod["containers"]
    mounts = {m["mountPath"]: m for m in main["volumeMounts"]}
    assert mounts["/mnt/secrets"] == {
        "name": "secrets",
        "mountPath": "/mnt/secrets",
        "readOnly": True,
    }


@pytest.mark.parametrize("name", ["sonic-api", WORKER, PROXY])
def test_pods_run_as_the_account_that_may_read_them(name: str) -> None:
    assert pod_of(name)["serviceAccountName"] == name
    assert one("secrets", "ServiceAccount", name)["metadata"]["namespace"] == "sonic"


def test_a_server_that_stands_alone_has_its_files_too() -> None:
    pod = pod_of("sonic-standalone", "standalone-load")
    assert pod["serviceAccountName"] == "sonic-standalone"
    assert csi_volumes(pod) == {"secrets": "sonic-standalone"}
    (main,) = pod["containers"]
    assert "/mnt/secrets" in {m["mountPath"] for m in main["volumeMounts"]}


def test_the_environment_names_a_file() -> None:
    (main,) = pod_of("sonic-api")["containers"]
    assert {"name": "KEY_FILE", "value": "/mnt/secrets/api-key"} in main["env"]


def test_a_workload_without_secrets_is_as_it_was() -> None:
    plain = pod_of("sonic-worker-plain")
    assert "serviceAccountName" not in plain
    assert csi_volumes(plain) == {}
    kinds_there = {m["kind"] for m in manifests("default")}
    assert "SecretProviderClass" not in kinds_there
    assert [name_of(a) for a in kinds("default", "ServiceAccount")] == ["prometheus"]


def test_pods_follow_the_list_of_their_files() -> None:
    def annotations(name: str) -> dict[str, str]:
        template = one("secrets", "Deployment", name)["spec"]["template"]
        found: dict[str, str] = template["metadata"].get("annotations", {})
        return found

    key = "sonic-eks/secrets-sha256"
    assert annotations("sonic-api")[key] != annotations(WORKER)[key]
    assert key not in annotations("sonic-worker-plain")


def test_roles_are_for_what_the_pods_mount(deployment: str) -> None:
    """The stack asks `secret_readers`; the pods have their own say."""
    mounted: dict[str, set[str]] = {}
    classes = {name_of(c): c for c in kinds(deployment, "SecretProviderClass")}
    for workload in kinds(deployment, "Deployment"):
        pod = workload["spec"]["template"]["spec"]
        for volume in pod.get("volumes", []):
            if "csi" in volume:
                name = volume["csi"]["volumeAttributes"]["secretProviderClass"]
                objects = yaml.safe_load(classes[name]["spec"]["parameters"]["objects"])
                reads = mounted.setdefault(pod["serviceAccountName"], set())
                reads |= {entry["objectName"] for entry in objects}
    readers = secret_readers(configuration(deployment))
    assert {account: set(arns) for account, arns in readers.items()} == mounted


# --- the license's seed ---


def seed_container() -> dict[str, Any]:
    (found,) = pod_of(PROXY)["initContainers"]
    assert isinstance(found, dict)
    return found


def test_the_seed_goes_to_its_place_on_the_volume() -> None:
    assert seed_container()["command"] == ["python3", "-B", "-m", "sidecar.license_seed"]
    assert seed_container()["args"] == [
        "/mnt/secrets/license",
        "/var/lib/license/v1/license.json",
    ]
    mounts = {m["mountPath"]: m for m in seed_container()["volumeMounts"]}
    assert mounts["/var/lib/license/"] == {"name": "data", "mountPath": "/var/lib/license/"}
    assert mounts["/mnt/secrets"]["readOnly"] is True
    # The class has a file of the name that is the first argument.
    volume = mounts["/mnt/secrets"]["name"]
    assert list(files_of(csi_volumes(pod_of(PROXY))[volume])) == ["license"]


def test_only_the_init_container_sees_the_seed() -> None:
    assert csi_volumes(pod_of(PROXY)) == {"secrets": PROXY, "seed": "sonic-license-seed"}
    (main,) = pod_of(PROXY)["containers"]
    assert {m["name"] for m in main["volumeMounts"]} == {"data", "secrets"}


def test_the_seed_writes_as_the_group_of_the_volume() -> None:
    security = seed_container()["securityContext"]
    assert security["runAsGroup"] == pod_of(PROXY)["securityContext"]["fsGroup"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] > 0
    assert security["readOnlyRootFilesystem"] is True


def test_the_code_is_where_python_looks_for_it() -> None:
    (code,) = (v for v in pod_of(PROXY)["volumes"] if "configMap" in v)
    data = one("secrets", "ConfigMap", code["configMap"]["name"])["data"]
    assert {"__init__.py", "__main__.py"} < data.keys()
    (mount,) = (m for m in seed_container()["volumeMounts"] if m["name"] == code["name"])
    package = f"{seed_container()['workingDir']}/sidecar/license_seed"
    assert mount["mountPath"] == package
    for name, text in data.items():
        compile(text, name, "exec")


def test_without_a_seed_there_is_no_init_container() -> None:
    assert "initContainers" not in pod_of(PROXY, "air-gapped")
    assert "sonic-license-seed" not in {name_of(m) for m in manifests("air-gapped")}
