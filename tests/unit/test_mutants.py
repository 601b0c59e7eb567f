"""The edits of `make mutate`: each is made, none is one that CloudFormation would refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sonic_eks.k8s.render import RenderedChart
from tests.mutation.mutants import (
    Mutant,
    is_meant,
    mutants_of_chart,
    mutants_of_template,
    mutated_chart,
    mutated_template,
)

VALUES = {"Fn::Join": ["", ['{"role":"', {"Ref": "Role"}, '","tolerations":[{"key":"a"}]}']]}
TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Role": {"Type": "AWS::IAM::Role", "Properties": {}},
        "Policy": {"Type": "AWS::IAM::Policy", "Properties": {"Roles": [{"Ref": "Role"}]}},
        "Chart": {
            "Type": "Custom::Chart",
            "Properties": {"Values": VALUES, "Wait": True},
            # The second one alone brings the first.
            "DependsOn": ["Role", "Policy"],
        },
        "Group": {
            "Type": "AWS::EKS::Nodegroup",
            "Properties": {
                "Taints": [{"Key": "a"}, {"Key": "b"}],
                "Attributes": [{"Key": "k", "Value": "true"}],
            },
            "DependsOn": "Chart",
        },
    }
}


def named(kind: str) -> list[Mutant]:
    return [m for m in mutants_of_template("stack", TEMPLATE) if m.kind == kind]


def test_what_others_refer_to_is_not_deleted() -> None:
    assert {m.target for m in named("resource")} == {"Policy", "Chart", "Group"}


def test_a_deleted_resource_leaves_no_dependency_behind() -> None:
    for mutant in named("resource"):
        left = mutated_template(TEMPLATE, mutant)["Resources"]
        assert left.keys() == TEMPLATE["Resources"].keys() - {mutant.target}
        for resource in left.values():
            assert mutant.target not in resource.get("DependsOn", [])


def test_a_dependency_without_which_the_order_is_the_same_is_not_deleted() -> None:
    assert {(m.target, m.path) for m in named("dependency")} == {
        ("Chart", ("Policy",)),
        ("Group", ("Chart",)),
    }


def test_a_toleration_is_taken_from_values_with_references() -> None:
    (mutant,) = named("toleration")
    changed = mutated_template(TEMPLATE, mutant)["Resources"]["Chart"]["Properties"]["Values"]
    first, reference, last = changed["Fn::Join"][1]
    assert reference == {"Ref": "Role"}
    assert json.loads(f"{first}arn{last}") == {"role": "arn", "tolerations": []}


@pytest.mark.parametrize("key", ["a", "b"])
def test_a_taint_is_taken_away(key: str) -> None:
    (mutant,) = (m for m in named("taint") if m.path[-1] == (0 if key == "a" else 1))
    group = mutated_template(TEMPLATE, mutant)["Resources"]["Group"]
    assert [taint["Key"] for taint in group["Properties"]["Taints"]] == [{"a": "b", "b": "a"}[key]]


def test_booleans_are_turned_around_as_text_too() -> None:
    changed = TEMPLATE
    for mutant in named("boolean"):
        changed = mutated_template(changed, mutant)
    resources = changed["Resources"]
    assert resources["Chart"]["Properties"]["Wait"] is False
    assert resources["Group"]["Properties"]["Attributes"] == [{"Key": "k", "Value": "false"}]
    assert TEMPLATE["Resources"]["Chart"]["Properties"]["Wait"] is True, "the original stays"


def test_an_edit_is_made_where_its_place_looks_the_same() -> None:
    for mutant in mutants_of_template("stack", TEMPLATE):
        assert is_meant(mutant, TEMPLATE, TEMPLATE)
        assert not is_meant(mutant, mutated_template(TEMPLATE, mutant), TEMPLATE)
        assert not is_meant(mutant, {"Resources": {}}, TEMPLATE)


def test_manifests_lose_objects_probes_and_taints() -> None:
    pod = {"containers": [{"name": "c", "livenessProbe": {"httpGet": {}}}], "hostNetwork": False}
    manifest = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {**pod, "tolerations": [{"key": "a"}]},
    }
    chart = RenderedChart(name="chart", manifests=(manifest,), after=())
    mutants = {m.kind: m for m in mutants_of_chart(chart)}
    assert mutants.keys() == {"object", "probe", "toleration", "boolean"}
    assert mutated_chart(chart, mutants["object"]).manifests == ()
    (left,) = mutated_chart(chart, mutants["probe"]).manifests
    assert left["spec"]["containers"] == [{"name": "c"}]
    (left,) = mutated_chart(chart, mutants["toleration"]).manifests
    assert left["spec"]["tolerations"] == []
    (left,) = mutated_chart(chart, mutants["boolean"]).manifests
    assert left["spec"]["hostNetwork"] is True
    assert len({m.name for m in mutants.values()}) == 4
