"""Names that go to kubectl: those that Kubernetes allows, and nothing that is an option."""

from __future__ import annotations

import pytest

from sonic_eks.errors import BAD_INPUT, SonicEksError
from sonic_eks.verify_drain.names import check_names

# Kubernetes, "Object Names and IDs": what a label may be, what a subdomain may be besides.
LABELS = ["a", "0", "worker-1", "a--b", "7d9f8c6b5-x2x4z", "a" * 63]
SUBDOMAINS = ["worker-1.example", "a.b.c", "a" * 64, "a" * 253, "a." * 126 + "a"]
NEVER = [
    *("", "-", "-x", "-lapp=x", "--all", "x-", ".", ".a", "a.", "a..b", "a-.b", "a.-b"),
    *("A", "Worker", "a_b", "a b", " a", "a ", "a\n", "\na", "a\x00", "a/b", "a,b", "a=b"),
    *("pod/a", "*", "ä", "\u0661", "a" * 254, "\ud800", "\x1b[2J"),
]


def refused(pod: str | None, namespace: str, container: str | None) -> str:
    """Return what it is refused with; empty: it is not."""
    try:
        check_names(pod, namespace, container)
    except SonicEksError as error:
        said, status = str(error), error.exit_status
    else:
        return ""
    assert status == BAD_INPUT
    assert said.isprintable()
    return said


@pytest.mark.parametrize("name", LABELS)
def test_a_label_is_a_name_of_each(name: str) -> None:
    assert refused(name, name, name) == ""


@pytest.mark.parametrize("name", SUBDOMAINS)
def test_a_subdomain_is_a_name_of_a_pod_alone(name: str) -> None:
    assert refused(name, "sonic", None) == ""
    assert refused(None, name, None).startswith("--namespace: got '")
    assert refused(None, "sonic", name).startswith("--container: got '")


@pytest.mark.parametrize("name", NEVER)
def test_what_is_no_name(name: str) -> None:
    for option, given in (
        ("--pod", (name, "sonic", None)),
        ("--namespace", (None, name, None)),
        ("--container", ("p", "sonic", name)),
    ):
        said = refused(*given)
        assert said.startswith(f"{option}: got '")
        assert "; allowed: a name of lower-case letters, digits" in said
