"""Where pods may run: worked examples of the Kubernetes documentation, typed by hand.

Each rule also has a pod that breaks it, which must be named with the reason.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.manifests.scheduler.cluster import Cluster, spread
from tests.manifests.scheduler.examples import FOO, cluster, fits, four_nodes, node, rule, workload
from tests.manifests.scheduler.matching import matches, matches_term, tolerated
from tests.manifests.scheduler.pods import Pod, Workload

# --- Topology spread ("Pod Topology Spread Constraints", examples) ------------------------------


def test_one_constraint_over_zones() -> None:
    pod = workload(topologySpreadConstraints=[rule("zone")]).pod(0)
    assert fits(four_nodes(), pod) == ["node3", "node4"]


def test_a_larger_skew_admits_the_other_zone() -> None:
    pod = workload(topologySpreadConstraints=[rule("zone", maxSkew=2)]).pod(0)
    assert fits(four_nodes(), pod) == ["node1", "node2", "node3", "node4"]


def test_one_constraint_over_nodes() -> None:
    pod = workload(topologySpreadConstraints=[rule("node")]).pod(0)
    assert fits(four_nodes(), pod) == ["node4"]


def test_a_soft_constraint_keeps_nothing_off_but_is_preferred() -> None:
    soft = rule("node", whenUnsatisfiable="ScheduleAnyway")
    pod = workload(topologySpreadConstraints=[soft]).pod(0)
    made = four_nodes()
    assert fits(made, pod) == ["node1", "node2", "node3", "node4"]
    assert made.schedule([pod]) == []
    assert made.pods[pod].name == "node4"


def test_two_constraints() -> None:
    pod = workload(topologySpreadConstraints=[rule("zone"), rule("node")]).pod(0)
    assert fits(four_nodes(), pod) == ["node4"]


def test_conflicting_constraints_leave_the_pod_pending() -> None:
    made = cluster(node("node1"), node("node2"), node("node3", "zoneB"))
    for index in (0, 0, 1, 2, 2):
        made.put(workload("existing").pod(0), made.nodes[index])
    pod = workload(topologySpreadConstraints=[rule("zone"), rule("node")]).pod(0)
    assert made.schedule([pod]) == [pod]
    assert made.reasons(pod) == {
        "node1": "topology spread: skew over zone would be 2, at most 1",
        "node2": "topology spread: skew over zone would be 2, at most 1",
        "node3": "topology spread: skew over node would be 2, at most 1",
    }


def test_node_affinity_takes_a_zone_out_of_the_count() -> None:
    made = four_nodes()
    made.nodes.append(node("node5", "zoneC"))
    term = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["zoneC"]}]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
        }
    }
    pod = workload(topologySpreadConstraints=[rule("zone")], affinity=affinity).pod(0)
    assert fits(made, pod) == ["node3", "node4"]
    ignoring = rule("zone", nodeAffinityPolicy="Ignore")
    pod = workload(topologySpreadConstraints=[ignoring], affinity=affinity).pod(0)
    assert fits(made, pod) == [], "zoneC counts as empty and holds the others back"


def test_tainted_nodes_count_unless_told_otherwise() -> None:
    made = cluster(node("node1"), node("node2"), node("node3", cordoned=True))
    for place in made.nodes[:2]:
        made.put(workload("existing").pod(0), place)
    plain = workload(topologySpreadConstraints=[rule("node")]).pod(0)
    assert fits(made, plain) == [], "the cordoned node counts as empty"
    honest = rule("node", nodeTaintsPolicy="Honor")
    assert fits(made, workload(topologySpreadConstraints=[honest]).pod(0)) == ["node1", "node2"]


def test_too_few_domains_make_the_minimum_zero() -> None:
    made = cluster(node("node1"), node("node2"))
    for place in made.nodes:
        made.put(workload("existing").pod(0), place)
    three = workload(topologySpreadConstraints=[rule("node", minDomains=3)]).pod(0)
    assert fits(made, three) == []
    two = workload(topologySpreadConstraints=[rule("node", minDomains=2)]).pod(0)
    assert fits(made, two) == ["node1", "node2"]


def test_match_label_keys_count_one_revision_alone() -> None:
    made = cluster(node("node1"), node("node2"))
    old = workload("old", labels=FOO | {"revision": "1"})
    made.put(old.pod(0), made.nodes[0])
    keyed = rule("node", matchLabelKeys=["revision"])
    new = workload("new", labels=FOO | {"revision": "2"}, topologySpreadConstraints=[keyed])
    assert fits(made, new.pod(0)) == ["node1", "node2"]
    same = workload("same", labels=FOO | {"revision": "1"}, topologySpreadConstraints=[keyed])
    assert fits(made, same.pod(0)) == ["node2"]


def test_terminating_pods_are_not_counted() -> None:
    made = four_nodes()
    made.terminating |= set(made.on(made.nodes[0]))
    pod = workload(topologySpreadConstraints=[rule("zone")]).pod(0)
    assert fits(made, pod) == ["node1", "node2", "node3", "node4"]


def test_a_node_without_the_key_is_left_out() -> None:
    pod = workload(topologySpreadConstraints=[rule("rack")]).pod(0)
    assert four_nodes().reasons(pod)["node1"] == "topology spread: the node has no rack"


# --- Taints ("Taints and Tolerations") ----------------------------------------------------------

KEY1 = {"key": "key1", "value": "value1"}
KEY2 = {"key": "key2", "value": "value2"}


def test_one_untolerated_taint_keeps_a_pod_off() -> None:
    # The documentation's example: three taints, of which two are tolerated.
    taints = [
        KEY1 | {"effect": "NoSchedule"},
        KEY1 | {"effect": "NoExecute"},
        KEY2 | {"effect": "NoSchedule"},
    ]
    equal = {"key": "key1", "operator": "Equal", "value": "value1"}
    tolerations = [equal | {"effect": "NoSchedule"}, equal | {"effect": "NoExecute"}]
    made = cluster(node("node1", taints=taints))
    pod = workload(tolerations=tolerations).pod(0)
    assert made.schedule([pod]) == [pod]
    assert made.reasons(pod) == {"node1": "taints: does not tolerate key2:NoSchedule"}
    assert fits(made, workload(tolerations=[{"operator": "Exists"}]).pod(0)) == ["node1"]


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "key1", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "key1", "operator": "Exists"}, True),
        ({"key": "key1", "value": "value1", "effect": "NoSchedule"}, True),
        ({"key": "key1", "value": "other", "effect": "NoSchedule"}, False),
        ({"key": "key1", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "key2", "operator": "Exists"}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], expected: bool) -> None:
    assert tolerated(KEY1 | {"effect": "NoSchedule"}, [toleration]) is expected


def test_a_soft_taint_keeps_nothing_off() -> None:
    made = cluster(node("node1", taints=[KEY1 | {"effect": "PreferNoSchedule"}]))
    assert fits(made, workload().pod(0)) == ["node1"]


def test_a_cordoned_node_takes_no_new_pod_but_those_of_daemons() -> None:
    made = cluster(node("node1", cordoned=True))
    reason = "taints: does not tolerate node.kubernetes.io/unschedulable:NoSchedule"
    assert made.reasons(workload().pod(0)) == {"node1": reason}
    daemon = Workload("DaemonSet", "default", "agent", 0, FOO, workload().spec)
    assert fits(made, daemon.daemon("node1")) == ["node1"]


def test_a_daemon_that_does_not_tolerate_a_startup_taint_starts_after_it_is_gone() -> None:
    taint = {"key": "fsx", "effect": "NoExecute"}
    made = Cluster(spread)
    shy = Workload("DaemonSet", "default", "shy", 0, FOO, workload().spec)
    spec = {**workload().spec, "tolerations": [{"operator": "Exists"}]}
    driver = Workload("DaemonSet", "default", "driver", 0, FOO, spec, removes_taint="fsx")
    waiting = node("node1", taints=[taint])
    made.join(waiting, [shy])
    assert made.on(waiting) == []
    assert waiting.taints == [taint], "nothing takes it off"
    ready = node("node2", taints=[taint])
    made.join(ready, [shy, driver])
    assert {pod.workload for pod in made.on(ready)} == {shy, driver}
    assert ready.taints == []


def test_a_daemon_without_room_is_named() -> None:
    daemon = Workload("DaemonSet", "default", "agent", 0, FOO, workload(requests={"cpu": 5}).spec)
    made = Cluster(spread)
    assert [pod.name for pod in made.join(node("node1"), [daemon])] == ["agent@node1"]


# --- Node selection ("Assigning Pods to Nodes") -------------------------------------------------


def test_node_selector_names_what_is_wrong() -> None:
    made = cluster(node("node1", labels={"disktype": "hdd"}), node("node2"))
    pod = workload(nodeSelector={"disktype": "ssd"}).pod(0)
    assert made.schedule([pod]) == [pod]
    assert made.reasons(pod) == {
        "node1": "node selector: wants disktype=ssd, the node has hdd",
        "node2": "node selector: wants disktype=ssd, the node has None",
    }


def test_terms_are_alternatives_and_expressions_are_not() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["zoneA"]}
    name = {"key": "node", "operator": "In", "values": ["node4"]}

    def pod(*terms: dict[str, Any]) -> Pod:
        required = {"nodeSelectorTerms": list(terms)}
        return workload(
            affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        ).pod(0)

    made = four_nodes()
    either = pod({"matchExpressions": [zone]}, {"matchExpressions": [name]})
    assert fits(made, either) == ["node1", "node2", "node4"]
    both = pod({"matchExpressions": [zone, name]})
    assert fits(made, both) == []
    assert made.reasons(both)["node1"] == "node selector: no term of its node affinity matches"
    assert fits(made, pod({})) == [], "an empty term matches nothing"


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ["a", "b"], True),
        ("NotIn", ["a"], False),
        ("Exists", None, True),
        ("DoesNotExist", None, False),
    ],
)
def test_operators(operator: str, values: list[str] | None, expected: bool) -> None:
    expression = {"key": "k", "operator": operator, "values": values}
    assert matches({"matchExpressions": [expression]}, {"k": "a"}) is expected
    assert matches_term({"matchExpressions": [expression]}, {"k": "a"}) is expected


def test_numeric_operators_and_absent_keys() -> None:
    more = {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]}
    assert matches_term(more, {"cores": "8"})
    assert not matches_term(more, {"cores": "4"})
    assert not matches_term(more, {})
    assert matches({"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["a"]}]}, {})
    assert matches({}, {"any": "thing"})
    assert not matches(None, {"any": "thing"})


# --- Affinity between pods ("Assigning Pods to Nodes", inter-pod affinity) ----------------------


def between(kind: str, key: str, labels: dict[str, str]) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_a_cache_on_each_node_and_a_web_server_beside_each() -> None:
    # The documentation's example of a web server co-located with a cache, three of each.
    store, web = {"app": "store"}, {"app": "web-store"}
    made = cluster(node("node1"), node("node2"), node("node3"))
    cache = workload("cache", labels=store, affinity=between("podAntiAffinity", "node", store))
    server = workload(
        "web",
        labels=web,
        affinity=between("podAntiAffinity", "node", web) | between("podAffinity", "node", store),
    )
    early = server.pod(0)
    assert made.reasons(early)["node1"] == "pod affinity: no pod that it wants in the same node"
    assert made.schedule(cache.pod(i) for i in range(3)) == []
    assert made.schedule(server.pod(i) for i in range(3)) == []
    for place in made.nodes:
        assert sorted(pod.workload.name for pod in made.on(place)) == ["cache", "web"]
    fourth = cache.pod(3)
    assert made.schedule([fourth]) == [fourth]
    assert made.reasons(fourth)["node1"].startswith("pod anti-affinity: shares no node with cache-")


def test_anti_affinity_holds_in_both_directions() -> None:
    made = cluster(node("node1"))
    lonely = workload("lonely", labels={}, affinity=between("podAntiAffinity", "node", FOO))
    made.put(lonely.pod(0), made.nodes[0])
    assert "shares no node with it" in made.reasons(workload().pod(0))["node1"]
    elsewhere = workload()
    elsewhere.namespace = "other"
    assert fits(made, elsewhere.pod(0)) == ["node1"], "a term is about its own namespace"


def test_the_first_of_a_group_that_wants_its_own_may_start() -> None:
    made = cluster(node("node1"), node("node2", "zoneB"))
    group = workload("group", affinity=between("podAffinity", "zone", FOO))
    assert made.schedule([group.pod(0)]) == []
    (first,) = made.pods.values()
    assert fits(made, group.pod(1)) == [first.name]
