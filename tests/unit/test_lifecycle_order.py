"""How charts are cut into steps."""

from __future__ import annotations

from typing import Any

from sonic_eks.k8s.render import RenderedChart
from sonic_eks.late import Late
from sonic_eks.lifecycle.order import Step, steps_of


def thing(kind: str, name: str = "a", version: str = "v1", namespace: str = "") -> dict[str, Any]:
    """A Kubernetes object."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def policy(name: str, *, of_all: bool = False) -> dict[str, Any]:
    """A NetworkPolicy of some pods of a namespace, or of all."""
    selector = {} if of_all else {"matchLabels": {"app": name}}
    spec = {"podSelector": selector}
    return thing("NetworkPolicy", name, "networking.k8s.io/v1", "s") | {"spec": spec}


def cut(*charts: tuple[str, list[dict[str, Any]], tuple[str, ...]]) -> dict[str, Step]:
    """Return the steps of charts by name."""
    rendered = [RenderedChart(name, tuple(objects), after) for name, objects, after in charts]
    steps = steps_of(rendered)
    assert len({step.name for step in steps}) == len(steps)
    return {step.name: step for step in steps}


def test_plain_objects_share_the_step_of_their_chart() -> None:
    steps = cut(("app", [thing("Service"), thing("Deployment", version="apps/v1")], ()))
    assert list(steps) == ["app"]
    assert [m["kind"] for m in steps["app"].manifests] == ["Service", "Deployment"]
    assert steps["app"].prune


def test_an_object_of_its_own_step_is_named_by_itself_whatever_its_chart() -> None:
    pool = thing("NodePool", "burst", "karpenter.sh/v1")
    scaler = thing("ScaledObject", "api", "keda.sh/v1alpha1", "sonic")
    assert list(cut(("x", [pool], ()))) == list(cut(("y", [pool], ()))) == ["NodePool-burst"]
    assert list(cut(("x", [scaler], ()))) == ["ScaledObject-sonic-api"]
    assert not cut(("x", [pool], ()))["NodePool-burst"].prune


def test_what_lies_on_another_object_comes_after_it_in_whatever_order_they_are_listed() -> None:
    steps = cut(
        (
            "nodes",
            [
                thing("NodePool", "p", "karpenter.sh/v1"),
                thing("EC2NodeClass", "c", "karpenter.k8s.aws/v1"),
                thing("EC2NodeClass", "d", "karpenter.k8s.aws/v1"),
            ],
            (),
        )
    )
    assert steps["NodePool-p"].after == ("EC2NodeClass-c", "EC2NodeClass-d")
    assert steps["EC2NodeClass-c"].after == steps["EC2NodeClass-d"].after == ()


def test_policies_come_before_pods_and_budgets_after_them() -> None:
    steps = cut(
        (
            "app",
            [
                thing("PodDisruptionBudget", "b", "policy/v1", "s"),
                thing("Deployment", "d", "apps/v1", "s"),
                policy("n"),
            ],
            (),
        )
    )
    assert steps["app"].after == ("NetworkPolicy-s-n",)
    assert steps["PodDisruptionBudget-s-b"].after == ("app",)


def test_a_policy_that_allows_nothing_comes_after_those_that_allow() -> None:
    steps = cut(
        ("policies", [policy("deny", of_all=True), policy("b"), policy("a")], ()),
        ("app", [thing("Deployment", "d", "apps/v1", "s")], ("policies",)),
    )
    assert steps["NetworkPolicy-s-b"].after == steps["NetworkPolicy-s-a"].after == ()
    assert set(steps["NetworkPolicy-s-deny"].after) == {"NetworkPolicy-s-a", "NetworkPolicy-s-b"}
    assert steps["app"].after == ("NetworkPolicy-s-deny",)


def test_a_policy_that_allows_nothing_waits_for_those_of_its_namespace_alone() -> None:
    other = policy("c")
    other["metadata"]["namespace"] = "t"
    alone = policy("deny", of_all=True)
    alone["metadata"]["namespace"] = "u"
    steps = cut(
        ("spaces", [thing("Namespace")], ()),
        ("policies", [policy("deny", of_all=True), policy("a"), other, alone], ("spaces",)),
        ("app", [thing("Deployment", "d", "apps/v1", "s")], ("policies",)),
    )
    assert steps["NetworkPolicy-s-deny"].after == ("NetworkPolicy-s-a",)
    assert steps["NetworkPolicy-u-deny"].after == ("spaces",)
    # What nothing denies is still there before the pods.
    assert set(steps["app"].after) == {
        "NetworkPolicy-s-deny",
        "NetworkPolicy-t-c",
        "NetworkPolicy-u-deny",
    }


def test_a_chart_waits_for_the_last_steps_of_those_before_it() -> None:
    steps = cut(
        ("edge", [thing("Service"), thing("TargetGroupBinding", "t", "elbv2.k8s.aws/v1beta1")], ()),
        ("api", [thing("Deployment", version="apps/v1")], ("edge",)),
    )
    assert steps["TargetGroupBinding-t"].after == ("edge",)
    assert steps["api"].after == ("TargetGroupBinding-t",)


def test_a_custom_object_of_an_unknown_kind_is_deleted_when_it_disappears() -> None:
    steps = cut(
        (
            "app",
            [
                thing("Widget", "w", "example.com/v1"),
                thing("CapacityBuffer", "c", "autoscaling.x-k8s.io/v1"),
                thing("Role", "r", "rbac.authorization.k8s.io/v1"),
            ],
            (),
        )
    )
    assert set(steps) == {"app", "Widget-w", "CapacityBuffer-c"}
    assert [m["kind"] for m in steps["app"].manifests] == ["Role"]


def test_an_id_in_a_name_is_no_part_of_a_step_and_the_old_object_is_deleted() -> None:
    volume = thing("PersistentVolume", f"weights-{Late.FILE_SYSTEM.marker}")
    (step,) = cut(("weights", [volume], ())).values()
    assert step.name == "PersistentVolume-weights"
    assert step.prune
    (step,) = cut(("weights", [thing("PersistentVolume", "weights")], ())).values()
    assert step.name == "PersistentVolume-weights"
    assert not step.prune


def test_a_claim_comes_before_the_pods_that_mount_it() -> None:
    claim = thing("PersistentVolumeClaim", "c", namespace="s")
    steps = cut(("app", [thing("Deployment", "d", "apps/v1", "s"), claim], ()))
    assert steps["app"].after == ("PersistentVolumeClaim-s-c",)
