"""Where a mutant enters: between what the code synthesizes and the tests that read it.

Apps and charts are made once and kept; every read of a template or a manifest goes through here,
gets the mutant's edit, and is noted, so that a mutant is shown only to the tests that read it.
"""

from __future__ import annotations

import functools
import importlib
import json
import pathlib
import sys
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import aws_cdk as cdk
from aws_cdk.assertions import Template

from sonic_eks.k8s import render
from tests.mutation.mutants import Mutant, is_meant, mutated_chart, mutated_template

CHARTS = "charts"
"""What the readers of manifests are noted under, beside the names of the stacks."""

# Functions that make an app: what they return depends on the configuration alone.
_APPS = (
    ("tests.synth", "stacks_of"),
    *(
        ("tests.template.foundation", name)
        for name in ("foundation", "network_of", "registry_of", "data_of", "edge_of")
    ),
)


class Injection:
    """Serves templates and manifests, with the edit of one mutant or none.

    Parameters
    ----------
    templates : dict
        Templates of the deployment that is mutated, by stack.
    configurations : set of str
        Texts of that deployment's configuration. Others are left as they are.
    """

    def __init__(self, templates: dict[str, Any], configurations: set[str]) -> None:
        self.mutant: Mutant | None = None
        self.reads: set[str] = set()
        self._default = templates
        self._configurations = configurations
        # Stacks that are mutated, by identity, and the folders that their apps write to.
        self._meant: dict[int, cdk.Stack] = {}
        self._folders: set[str] = set()
        self._of_stack: dict[int, tuple[Any, Template]] = {}
        # Of each template: its stack (None: it is not mutated) and its text.
        self._texts: dict[int, tuple[str | None, str]] = {}
        self._edited_texts: dict[str, str] = {}
        self._edited: dict[int, Template] = {}

    def show(self, mutant: Mutant | None) -> None:
        """Serve this mutant from now on, and forget what tests kept of the last one."""
        self.mutant = mutant
        self._edited.clear()
        self._edited_texts.clear()
        for name, module in list(sys.modules.items()):
            if name.startswith("tests.") and not name.startswith("tests.mutation"):
                for value in list(vars(module).values()):
                    if isinstance(value, functools._lru_cache_wrapper):
                        value.cache_clear()

    def install(self) -> None:
        """Take the place of the functions; before the modules of tests are imported."""
        apps = [(importlib.import_module(module), name) for module, name in _APPS]
        rendering = render.render_charts
        charts = self._charts(rendering)
        for module in list(sys.modules.values()):
            if getattr(module, "render_charts", None) is rendering:
                module.render_charts = charts  # type: ignore[attr-defined]
        for module, name in apps:
            setattr(module, name, self._kept(getattr(module, name)))
        self._install_templates()
        original = pathlib.Path.read_text
        injection = self

        def read_text(path: pathlib.Path, *args: Any, **options: Any) -> str:
            text = original(path, *args, **options)
            if path.name.endswith(".template.json") and str(path.parent) in injection._folders:
                stack = path.name.removesuffix(".template.json").rpartition("-")[2]
                return injection._text(stack, text)
            return text

        pathlib.Path.read_text = read_text  # type: ignore[method-assign]

    def _install_templates(self) -> None:
        injection = self
        from_stack = Template.from_stack

        def template_of(stack: Any, *args: Any, **options: Any) -> Template:
            kept = injection._of_stack.get(id(stack))
            if kept is None:
                with injection._unchanged():
                    made = from_stack(stack, *args, **options)
                    text = json.dumps(to_json(made))
                injection._of_stack[id(stack)] = (stack, made)
                name = stack.stack_name.rpartition("-")[2]
                injection._texts[id(made)] = (name if id(stack) in injection._meant else None, text)
                return made
            return kept[1]

        to_json = Template.to_json
        Template.from_stack = staticmethod(template_of)  # type: ignore[assignment]
        for name, method in list(vars(Template).items()):
            if callable(method) and not name.startswith(("_", "from_")):
                setattr(Template, name, injection._method(name, method))

    def _method(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(template: Template, *args: Any, **options: Any) -> Any:
            entry = self._texts.get(id(template))
            if entry is None:
                return method(template, *args, **options)
            stack, original = entry
            text = original if stack is None else self._text(stack, original)
            if name == "to_json":
                return json.loads(text)
            if name == "find_resources" and len(args) == 1 and not options:
                every = json.loads(text)["Resources"].items()
                return {key: resource for key, resource in every if resource["Type"] == args[0]}
            if text is not original:
                if id(template) not in self._edited:
                    self._edited[id(template)] = Template.from_json(json.loads(text))
                template = self._edited[id(template)]
            return method(template, *args, **options)

        return call

    def _text(self, stack: str, original: str) -> str:
        """Note a read, and return the text of a template with the edit, if it is meant."""
        self.reads.add(stack)
        mutant = self.mutant
        if mutant is None or mutant.manifest or mutant.where != stack:
            return original
        if original not in self._edited_texts:
            template = json.loads(original)
            # Some tests have stacks of their own, with a part of what stands in the default's.
            meant = is_meant(mutant, template, self._default[stack])
            self._edited_texts[original] = (
                json.dumps(mutated_template(template, mutant)) if meant else original
            )
        return self._edited_texts[original]

    def _charts(self, function: Callable[..., Any]) -> Callable[..., Any]:
        kept: dict[str, Any] = {}

        def charts(config: Any, catalogue: Any) -> Any:
            artifacts = [vars(artifact) for artifact in catalogue.artifacts]
            # Tests replace the instance type behind the configuration's back.
            key = f"{config.model_dump_json()} {config.gpu_type} {artifacts}"
            if key not in kept:
                kept[key] = function(config, catalogue)
            if config.model_dump_json() not in self._configurations:
                return kept[key]
            self.reads.add(CHARTS)
            mutant = self.mutant
            if mutant is None or not mutant.manifest:
                return kept[key]
            return tuple(
                mutated_chart(chart, mutant) if chart.name == mutant.where else chart
                for chart in kept[key]
            )

        return charts

    def _kept(self, function: Callable[..., Any]) -> Callable[..., Any]:
        kept: dict[str, Any] = {}

        @functools.wraps(function)
        def app(config: Any, **options: Any) -> Any:
            if any(value is not None for value in options.values()):
                return function(config, **options)
            key = config.model_dump_json()
            if key not in kept:
                with self._unchanged():
                    kept[key] = function(config)
                if key in self._configurations:
                    self._mean(kept[key])
            return kept[key]

        return app

    def _mean(self, app: Any) -> None:
        for stack in [app] if isinstance(app, cdk.Stack) else vars(app).values():
            if isinstance(stack, cdk.Stack):
                self._meant[id(stack)] = stack
                root: Any = stack.node.root
                self._folders.add(root.outdir)

    @contextmanager
    def _unchanged(self) -> Any:
        """Make something that is kept: without the edit, and without noting a read."""
        mutant, reads = self.mutant, set(self.reads)
        self.mutant = None
        try:
            yield
        finally:
            self.mutant, self.reads = mutant, reads
