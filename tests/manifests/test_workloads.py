"""What runs in the pods, and with which settings."""

from __future__ import annotations

from typing import Any

from tests.manifests.deployments import charts, container, kinds, manifests, one

WORKER = "sonic-worker-sonic-3"
WEIGHTS_VOLUME = "sonic-weights-<<known-after-deploy:FileSystemId>>"


def variables(workload: dict[str, Any]) -> dict[str, str]:
    return {v["name"]: v["value"] for v in container(workload).get("env", [])}


def test_unknown_vendor_names_are_not_made_up() -> None:
    for name in ("sonic-api", WORKER, "sonic-license-proxy"):
        assert variables(one("default", "Deployment", name)) == {}


def test_vendor_names_carry_what_we_know() -> None:
    nats = "nats://nats.sonic.svc.cluster.local:4222"
    license_url = "http://sonic-license-proxy.sonic.svc.cluster.local:8080"
    assert variables(one("vendor-names", "Deployment", WORKER)) == {
        "LOG_LEVEL": "debug",
        "MAX_STREAMS": "6",  # as configured
        "BATCH": "5",  # the generations a GPU keeps
        "WEIGHTS": "/models",
        "BUS": nats,
        "LICENSE": license_url,
    }
    assert variables(one("vendor-names", "Deployment", "sonic-api")) == {
        "LOG_LEVEL": "debug",
        "BUS": nats,
        "LICENSE": license_url,
    }
    for url in (nats, license_url):
        host, port = url.split("//")[1].split(":")
        service = one("vendor-names", "Service", host.split(".")[0])
        assert host == f"{service['metadata']['name']}.sonic.svc.cluster.local"
        assert int(port) in [p["port"] for p in service["spec"]["ports"]]


def test_workers_ask_for_one_gpu_and_their_share_of_the_node() -> None:
    # g6e.2xlarge: 8 vCPUs, 64 GiB, 1 GPU; three quarters of them.
    stated = container(one("default", "Deployment", WORKER))["resources"]
    assert stated["requests"]["cpu"] == "6000m"
    assert stated["requests"]["memory"] == f"{64 * 1024 * 3 // 4}Mi"
    assert stated["limits"]["nvidia.com/gpu"] == "1"
    # g6e.12xlarge: 48 vCPUs, 384 GiB, 4 GPUs.
    quarter = container(one("multi-gpu", "Deployment", WORKER))["resources"]
    assert quarter["requests"]["cpu"] == "9000m"
    assert quarter["requests"]["memory"] == f"{384 * 1024 // 4 * 3 // 4}Mi"
    assert quarter["limits"]["nvidia.com/gpu"] == "1"


def test_workers_wait_for_a_second_node_only_where_that_is_safe() -> None:
    (single,) = _spread("default")
    assert single["whenUnsatisfiable"] == "DoNotSchedule"
    assert (single["maxSkew"], single["minDomains"]) == (1, 2)
    for deployment in ("multi-gpu", "two-models-multi-gpu"):
        (several,) = _spread(deployment)
        assert several["whenUnsatisfiable"] == "ScheduleAnyway"
        assert "minDomains" not in several, "the API refuses it here"
    assert single["nodeTaintsPolicy"] == "Honor", "a drained node must not count as an empty one"


def _spread(deployment: str) -> list[dict[str, Any]]:
    pod = one(deployment, "Deployment", WORKER)["spec"]["template"]["spec"]
    found: list[dict[str, Any]] = pod["topologySpreadConstraints"]
    return found


def test_each_model_has_its_own_image_and_budget_of_load_time() -> None:
    images = {
        d["metadata"]["name"]: container(d)["image"].split("/")[-1]
        for d in kinds("two-models", "Deployment")
        if d["metadata"]["name"].startswith("sonic-worker")
    }
    assert images == {
        "sonic-worker-sonic-3": "sonic-worker-sonic-3:sonic-20260503",
        "sonic-worker-sonic-2": "sonic-worker-sonic-2:sonic-20260503",
    }
    probe = container(one("two-models", "Deployment", "sonic-worker-sonic-2"))["startupProbe"]
    assert 901 <= probe["failureThreshold"] * probe["periodSeconds"] < 901 + 10


def test_weights_are_on_the_file_system_and_nobody_elses_claim() -> None:
    volume = one("default", "PersistentVolume", WEIGHTS_VOLUME)["spec"]
    claim = one("default", "PersistentVolumeClaim", "weights-<<known-after-deploy:FileSystemId>>")
    assert volume["csi"] == {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": "<<known-after-deploy:FileSystemId>>",
        "volumeAttributes": {
            "dnsname": "<<known-after-deploy:FileSystemDnsName>>",
            "mountname": "<<known-after-deploy:FileSystemMountName>>",
        },
    }
    assert volume["capacity"] == {"storage": "1200Gi"}
    # A static claim cannot grow (Kubernetes, "Expanding Persistent Volumes Claims").
    assert claim["spec"]["resources"]["requests"] == {"storage": "1Gi"}
    assert volume["storageClassName"] == claim["spec"]["storageClassName"] == ""
    assert claim["spec"]["volumeName"] == WEIGHTS_VOLUME
    assert volume["claimRef"]["name"] == claim["metadata"]["name"]
    assert volume["claimRef"]["namespace"] == claim["metadata"]["namespace"] == "sonic"
    assert volume["persistentVolumeReclaimPolicy"] == "Retain"
    # aws-fsx-csi-driver, pkg/driver/controller.go: the volume modes that it accepts are single
    # node writer and multi node multi writer; ReadOnlyMany would never be mounted.
    assert volume["accessModes"] == claim["spec"]["accessModes"] == ["ReadWriteMany"]
    mount = container(one("vendor-names", "Deployment", WORKER))["volumeMounts"]
    assert [m["mountPath"] for m in mount] == ["/models"]


def test_a_connected_license_proxy_keeps_nothing() -> None:
    proxy = one("default", "Deployment", "sonic-license-proxy")
    assert "volumes" not in proxy["spec"]["template"]["spec"]
    assert len(kinds("default", "PersistentVolumeClaim")) == 1


def test_an_air_gapped_license_proxy_keeps_its_files_on_one_volume() -> None:
    proxy = one("air-gapped", "Deployment", "sonic-license-proxy")
    claim = one("air-gapped", "PersistentVolumeClaim", "sonic-license-proxy-data")
    (volume,) = proxy["spec"]["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    (mount,) = container(proxy)["volumeMounts"]
    assert mount == {"name": volume["name"], "mountPath": "/var/lib/license"}
    assert claim["spec"]["resources"]["requests"]["storage"] == "7Gi"
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    # Two pods cannot mount it: the old one has to go first.
    assert proxy["spec"]["strategy"] == {"type": "Recreate"}
    assert variables(proxy) == {"LOG_LEVEL": "info"}


def test_api_readiness_is_the_documented_path_and_nothing_else_depends_on_it() -> None:
    probes = container(one("default", "Deployment", "sonic-api"))
    ports = {p["name"]: p["containerPort"] for p in probes["ports"]}
    check = probes["readinessProbe"]["httpGet"]
    assert (check["path"], ports[check["port"]]) == ("/status", 5000)
    assert ports["metrics"] == 8080
    assert "tcpSocket" in probes["startupProbe"]
    assert "tcpSocket" in probes["livenessProbe"]


def test_the_sonic_namespace_gives_readiness_gates() -> None:
    labels = one("default", "Namespace", "sonic")["metadata"]["labels"]
    assert labels["elbv2.k8s.aws/pod-readiness-gate-inject"] == "enabled"
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert labels["pod-security.kubernetes.io/warn"] == "restricted"
    monitoring = one("default", "Namespace", "monitoring")["metadata"]["labels"]
    assert monitoring["pod-security.kubernetes.io/enforce"] == "restricted"
    assert "elbv2.k8s.aws/pod-readiness-gate-inject" not in monitoring


def test_no_word_of_a_partition_or_account_is_fixed(deployment: str) -> None:
    for manifest in manifests(deployment):
        # The configuration names secrets by their ARNs.
        if manifest["kind"] != "SecretProviderClass":
            assert "arn:aws:" not in str(manifest)


def test_images_are_in_the_registry_of_account_and_region() -> None:
    gov = container(one("long-name-govcloud", "Deployment", "sonic-api"))["image"]
    assert gov.startswith("123456789012.dkr.ecr.us-gov-west-1.amazonaws.com/voice-")
    china = container(one("china", "StatefulSet", "nats"))["image"]
    assert china.split("/")[0].endswith(".dkr.ecr.cn-north-1.amazonaws.com.cn")


def test_a_worker_is_updated_with_a_spare_gpu_or_without_one() -> None:
    for deployment, surge in (("default", 1), ("no-spare-gpu", 0)):
        strategy = one(deployment, "Deployment", "sonic-worker-sonic-3")["spec"]["strategy"]
        assert strategy["rollingUpdate"] == {"maxSurge": surge, "maxUnavailable": 1 - surge}
        api = one(deployment, "Deployment", "sonic-api")["spec"]["strategy"]
        assert api["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_headroom_holds_a_gpu_each_and_has_the_images_of_the_workers() -> None:
    headroom = one("two-models", "Deployment", "sonic-headroom")["spec"]
    pod = headroom["template"]["spec"]
    assert headroom["replicas"] == 2
    (pause,) = pod["containers"]
    assert pause["image"].endswith("/images/pause:3.10")
    assert pause["resources"]["limits"]["nvidia.com/gpu"] == "1"
    pulled = [c["image"].rpartition("/")[2] for c in pod["initContainers"]]
    assert pulled == [f"sonic-worker-{m}:sonic-20260503" for m in ("sonic-3", "sonic-2")]
    assert all("nvidia.com/gpu" not in c["resources"]["limits"] for c in pod["initContainers"])
    assert one("default", "Deployment", "sonic-headroom")["spec"]["replicas"] == 1


def test_no_headroom_is_no_chart() -> None:
    assert "headroom" not in {chart.name for chart in charts("no-spare-gpu")}


def test_a_server_that_stands_alone_has_a_gpu_and_the_weights() -> None:
    server = one("standalone", "Deployment", "sonic-standalone")
    main = container(server)
    assert main["image"].endswith("/images/sonic-worker-any:sonic-20260503")
    assert main["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert {m["mountPath"]: m["readOnly"] for m in main["volumeMounts"]} == {"/mnt/weights": True}
    assert [p["containerPort"] for p in main["ports"]] == [5000]
    assert variables(server) == {"A": "1"}
    assert main["readinessProbe"]["tcpSocket"] == {"port": "http"}
    assert {m["metadata"]["name"] for m in kinds("standalone", "Deployment")} == {
        "sonic-license-proxy",
        "sonic-standalone",
        "sonic-headroom",
    }
    # No serving nodes: the license proxy is on those of the controllers.
    proxy = one("standalone", "Deployment", "sonic-license-proxy")["spec"]["template"]["spec"]
    assert proxy["nodeSelector"] == {"sonic-eks/pool": "system"}
    names = {m["metadata"]["name"] for m in kinds("standalone", "NodePool")}
    assert names == {"gpu-burst", "gpu-overflow"}


def test_a_server_with_metrics_of_its_own_is_read_there() -> None:
    server = one("standalone-load", "Deployment", "sonic-standalone")
    main = container(server)
    ports = {p["name"]: p["containerPort"] for p in main["ports"]}
    assert ports == {"http": 9000, "metrics": 9090}
    assert main["readinessProbe"]["httpGet"] == {"path": "/ready?deep=1", "port": "http"}
    assert variables(server) == {"WEIGHTS": "/mnt/weights"}
    assert kinds("standalone-load", "StatefulSet")[0]["metadata"]["name"] == "prometheus"
    assert len(kinds("standalone-load", "StatefulSet")) == 1
    (service,) = [
        m for m in kinds("standalone-load", "Service") if m["metadata"]["namespace"] == "sonic"
    ]
    assert [p["port"] for p in service["spec"]["ports"]] == [9000]
    (binding,) = kinds("standalone-load", "TargetGroupBinding")
    assert binding["spec"]["serviceRef"] == {"name": "sonic-standalone", "port": 9000}


def test_the_stand_in_needs_no_gpu_and_no_vendor() -> None:
    server = one("smoke", "Deployment", "sonic-standalone")
    main = container(server)
    assert "nvidia.com/gpu" not in main["resources"]["limits"]
    assert main["command"] == ["python3", "-B", "-m", "sidecar.stand_in"]
    assert main["securityContext"]["readOnlyRootFilesystem"] is True
    mounts = {m["mountPath"] for m in main["volumeMounts"]}
    assert "/opt/sonic/sidecar/stand_in" in mounts
    code = one("smoke", "ConfigMap", "stand-in")["data"]
    assert {"__main__.py", "server.py", "web.py"} <= code.keys()
    images = {
        c["image"].rpartition("/")[2].partition(":")[0]
        for w in (*kinds("smoke", "Deployment"), *kinds("smoke", "StatefulSet"))
        for c in w["spec"]["template"]["spec"]["containers"]
    }
    assert images == {"python", "pause", "prometheus"}


def test_the_api_sees_the_voices_where_it_is_told_to() -> None:
    api = one("vendor-names", "Deployment", "sonic-api")
    (mount,) = container(api)["volumeMounts"]
    assert mount == {"name": "weights", "mountPath": "/voices", "readOnly": True}
    (volume,) = (v for v in api["spec"]["template"]["spec"]["volumes"] if v["name"] == "weights")
    assert volume["persistentVolumeClaim"] == {
        "claimName": "weights-<<known-after-deploy:FileSystemId>>",
        "readOnly": True,
    }
    assert "volumeMounts" not in container(one("default", "Deployment", "sonic-api"))
