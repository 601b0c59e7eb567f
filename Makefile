# Everything a person runs. `make` alone lists the targets.
#
# PYTHON    interpreter that makes .venv, 3.11 or newer      (python3)
# CONFIG    deployment to synthesize, deploy or destroy      (config/default.yaml)
# OUT       where templates and manifests go                 (cdk.out)
# STACKS    stacks to deploy                                (all)
# CDK_ARGS, PYTEST_ARGS, BENCH_ARGS, MUTATE_ARGS   passed on as they are

PYTHON ?= python3
CONFIG ?= config/default.yaml
OUT ?= cdk.out
BENCH_REPEATS ?= 5
# A process a core, four at most; the tests of a file share one, and with it what they synthesize.
PARALLEL = --numprocesses auto --maxprocesses 4 --dist loadfile

# Explicit folders, not names looked up on the PATH: some versions of make search their own PATH.
BIN := .venv/bin
CDK = node_modules/.bin/cdk
CDK_CONTEXT = -c "config=$$CONFIG" -o "$$OUT"
PYTHON_STAMP := .venv/.python-stamp
NPM_STAMP := node_modules/.npm-stamp

export PYTHON
# Recipes read these from the environment, so that no character in them is the shell's.
export CONFIG OUT
# Child processes (the CDK app, jsii's node) find the tools of this tree first.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# The set-up picks a Node.js that is known to work, so jsii's banners about it help nobody.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20,22
export JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION := 1
export JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup node synth diff deploy destroy test test-fast mutate lint format bench docs lock clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' Makefile

setup: $(PYTHON_STAMP) $(NPM_STAMP) | node ## install the pinned tools into .venv and node_modules

synth: setup ## templates and manifests of CONFIG into OUT; needs no AWS account
	@$(BIN)/sonic-eks config check "$$CONFIG"
	@$(CDK) synth $(CDK_CONTEXT) --quiet $(CDK_ARGS)
	@$(BIN)/sonic-eks summary "$$CONFIG" --out "$$OUT"

diff: setup ## what a deployment of CONFIG would change; needs credentials
	@$(BIN)/sonic-eks config check "$$CONFIG"
	@$(CDK) diff $(or $(STACKS),--all) $(CDK_CONTEXT) $(CDK_ARGS)

deploy: setup ## create or update every stack of CONFIG (YES=1: without asking)
	@$(BIN)/sonic-eks config check "$$CONFIG"
	@$(CDK) deploy $(or $(STACKS),--all) --force $(if $(YES),--require-approval never) $(CDK_CONTEXT) \
		--outputs-file "$$OUT/$(if $(STACKS),outputs-of-some,outputs).json" $(CDK_ARGS)

destroy: setup ## remove workload, nodes and every stack of CONFIG (YES=1: without asking)
	@$(BIN)/sonic-eks teardown "$$CONFIG" $(if $(YES),--yes)
	@$(CDK) destroy --all $(CDK_CONTEXT) $(if $(YES),--force) $(CDK_ARGS)
	@$(BIN)/sonic-eks teardown "$$CONFIG" $(if $(YES),--yes)

test: setup ## every test
	@$(BIN)/python -m pytest $(PARALLEL) $(PYTEST_ARGS)

test-fast: setup ## the tests that take milliseconds, on few deployments
	@$(BIN)/python -m pytest $(PARALLEL) -m "not slow and not synth" $(PYTEST_ARGS)

mutate: setup ## edit templates and manifests; see whether the tests notice (up to 20 minutes)
	@$(BIN)/python -m tests.mutation $(MUTATE_ARGS)

lint: setup ## style, formatting and types
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --no-error-summary -p sonic_eks -m app -m benchmarks.synth -m benchmarks.mirror -m benchmarks.policies -m benchmarks.streams -m benchmarks.streams_core -p sidecar

format: setup ## rewrite the sources in the house style
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

bench: setup ## measure: a synth, the mirror, the scaling policy against the vendor's, the load test
	@status=0; \
	$(BIN)/python benchmarks/synth.py --config "$$CONFIG" --repeats "$(BENCH_REPEATS)" $(BENCH_ARGS) || status=1; \
	$(BIN)/python benchmarks/mirror.py --repeats "$(BENCH_REPEATS)" $(BENCH_ARGS) || status=1; \
	$(BIN)/python benchmarks/policies.py $(BENCH_ARGS) || status=1; \
	$(BIN)/python benchmarks/streams.py $(BENCH_ARGS) || status=1; \
	exit $$status

docs: setup ## rewrite the generated references under docs/
	@$(BIN)/sonic-eks docs --out docs

lock: $(PYTHON_STAMP) ## rewrite the pinned requirements from pyproject.toml (UPGRADE=1: newest that fit)
	@scripts/lock $(if $(UPGRADE),--upgrade)

clean: ## remove outputs and caches
	@rm -rf cdk.out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . \( -name .venv -o -name node_modules -o -name .git \) -prune -o \
		-name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove the set-up too
	@rm -rf .venv node_modules .setup.log

# A stamp is written last, so an interrupted step is done again.
# It holds the tree's path: .venv has paths in it, so that of a moved or copied tree is of no use.
ifneq ($(shell cat $(PYTHON_STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(PYTHON_STAMP)
endif
$(PYTHON_STAMP): requirements-dev.txt pyproject.toml scripts/setup-python
	@scripts/setup-python $@

# Checked on every run (it takes milliseconds), as the system's own Node.js may come and go.
node: $(PYTHON_STAMP)
	@scripts/setup-node

$(NPM_STAMP): package.json package-lock.json .npmrc scripts/setup-npm | node
	@scripts/setup-npm $@
