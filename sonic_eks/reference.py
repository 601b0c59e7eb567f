"""The configuration reference, docs/configuration.md: ``python -m sonic_eks.reference``.

It is made from the model alone, so that it cannot say something else than the code does.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator

from pydantic import BaseModel

from sonic_eks.config.base import Section
from sonic_eks.config.instances import families
from sonic_eks.config.model import Configuration
from sonic_eks.config.rules import RULES
from sonic_eks.config.schema import Node, allowed, configuration_schema, resolved

_INTRODUCTION = """\
# Configuration

A deployment is one YAML file. `deployment.name`, `deployment.region` and `network.zones` are
required; everything else has the default below, and `config/default.yaml` is the shortest file.

- Keys are camelCase with the unit in the name; an unknown or a repeated key is refused.
- A value keeps its type: write account ids and versions in quotes, numbers plainly. Aliases, tags
  and merge keys of YAML are refused.
- A wrong file never reaches CDK: one line for each fault names the field, the value, what is
  allowed and, where it can be told, the nearest valid value; the exit status is 2.
- `sonic-eks config schema` prints the JSON Schema for editors; `sonic-eks config show FILE` prints
  every value with the defaults filled in, and what follows from them.

`make docs` writes this page from the model in `sonic_eks/config/`.
"""


def configuration_reference() -> str:
    """Return the reference as Markdown: a table for each section, then the rules across them."""
    parts = [_INTRODUCTION]
    parts += _section("", configuration_schema(), Configuration)
    parts.append("## Rules across sections\n")
    parts.append("\n".join(f"- {_words(rule)}" for rule in RULES) + "\n")
    parts.append("## Instance types\n")
    parts.append(f"GPU nodes: {', '.join(families(gpu=True))}.\n")
    parts.append(f"CPU nodes, large or above: {', '.join(families(gpu=False))}.\n")
    return "\n".join(parts)


def _section(path: str, node: Node, section: type[BaseModel]) -> Iterator[str]:
    """Give the text of a section, then that of each section below it."""
    below = []
    rows = []
    for key, field in node["properties"].items():
        attribute = _attribute(section, key)
        inner = _inner(attribute)
        if inner is not None:
            repeated = "[]" if field.get("type") == "array" else ""
            below.append((f"{path}.{key}{repeated}".lstrip("."), field, inner))
        else:
            rows.append(_row(key, field, required=key in node.get("required", ())))
    if path:
        yield f"## {path}\n\n{_description(node)}\n"
    if rows:
        if not path:
            yield "## Top level\n"
        yield "| Key | Allowed | Default | Meaning |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
    if rules := list(_rules(section)):
        yield "\n".join(f"- {rule}" for rule in rules) + "\n"
    for name, field, inner in below:
        child = resolved(field["items"]) if field.get("type") == "array" else resolved(field)
        yield from _section(name, child, inner)


def _row(key: str, field: Node, *, required: bool) -> str:
    default = "**required**" if required else _code(field.get("default"))
    cells = (f"`{key}`", _allowed(field), default, _description(resolved(field)))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _allowed(field: Node) -> str:
    text = allowed(field)
    what, pattern_follows, pattern = text.partition(" that matches ")
    return f"{what}{pattern_follows}`{pattern}`" if pattern else text


def _code(value: object) -> str:
    return "unset" if value is None else f"`{json.dumps(value)}`"


def _description(node: Node) -> str:
    return str(node["description"])


def _attribute(section: type[BaseModel], key: str) -> object:
    fields = section.model_fields.items()
    return next(field.annotation for name, field in fields if key in (name, field.alias))


def _inner(annotation: object) -> type[BaseModel] | None:
    """Return the section that a field holds, alone or in a list."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return annotation
    first = next(iter(getattr(annotation, "__args__", ())), None)
    return first if inspect.isclass(first) and issubclass(first, Section) else None


def _rules(section: type[BaseModel]) -> Iterator[str]:
    """Give the rules of a section in words: the docstrings of its validators."""
    for owner in section.__mro__:
        if not issubclass(owner, Section) or owner in (Section, Configuration):
            continue
        for name, member in vars(owner).items():
            checks = isinstance(member, classmethod) or inspect.isfunction(member)
            if checks and name.startswith("_") and not name.startswith("__"):
                yield _words(getattr(owner, name))


def _words(rule: object) -> str:
    return " ".join((inspect.getdoc(rule) or "").split())


if __name__ == "__main__":
    sys.stdout.write(configuration_reference())
