# Loci: every task a developer or CI needs. `make help` reads the ## comments.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUF := node_modules/.bin/buf
NODE_WORKER := services/tool_runner/sandboxes/node
# Of pyproject.toml: what `make run` begins with, and vendors' SDKs that few need.
RUN_EXTRAS := agent memory llm_gateway google tool_runner gateway cli
SDK_EXTRAS := bedrock e2b local modal
# Which SDKs to install beside the rest: those that the environment asks for, or `make setup EXTRAS="bedrock modal"`.
EXTRAS ?= $(if $(AWS_BEARER_TOKEN_BEDROCK)$(AWS_ACCESS_KEY_ID)$(BEDROCK_BASE_URL),bedrock) $(filter e2b modal,$(LOCI_SANDBOX)) $(if $(LOCI_LOCAL_EMBEDDING)$(LOCI_LOCAL_RERANKER),local)
NODE_TESTS := $(patsubst %/package-lock.json,%,$(wildcard tests/e2e/*/package-lock.json))
NODE_CLIENTS := $(NODE_TESTS:%=%/node_modules/.package-lock.json)
# Clients in Python that tests run, each with what it wants in an environment of its own.
PROGRAMS := $(patsubst %/requirements.lock,%/.venv/.ready,$(wildcard tests/e2e/programs/*/requirements.lock))
PROTOS := $(shell find protos -name '*.proto' | sort)
# Where they lie, too: a file added, renamed or removed changes its folder's time.
PROTO_FOLDERS := $(shell find protos -mindepth 1 -type d)
# What `buf breaking` compares with, instead of the commit in .ci/proven.
AGAINST ?=
UV ?= uv
LOCK = $(UV) pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
  --no-annotate --no-header --quiet
ARGS ?=
# One has the tests that look at the whole machine, the others all else: see tests/workers.py.
WORKERS ?= 2
# Where .ci/run finds what came of the tests.
TALLY ?=
SUITE = LOCI_TEST_WORKERS=$(WORKERS) $(BIN)/python -m tests.suite $(if $(TALLY),--tally $(TALLY))
# What a change leaves stale elsewhere: documents, tables and schemas that are made of code, and rules for all of it.
ARTEFACTS = tests/contract/gateway tests/contract/memory tests/contract/test_*.py tests/integration/common/test_lazy_imports.py

# Rules share .venv.
.NOTPARALLEL:

.PHONY: help
help: ## Show this list.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: run
run: setup protos ## Start everything on this machine: http://localhost:8283 (LOCI_PORT, LOCI_HOME, ...). Ctrl-C stops it.
	@nice -n 10 $(BIN)/python scripts/ade.py build & exec $(BIN)/python -m cli run

.PHONY: ade
ade: setup ## Build the page at / (make run does it by itself): with the Node that is there, else with one from a wheel.
	@$(BIN)/python scripts/ade.py build

.PHONY: test
test: setup-dev protos ## Run the short part of the tests, 8 minutes (ARGS go to pytest: those that they name instead; WORKERS=0: in one process).
	@$(SUITE) short $(ARGS)

.PHONY: test-all
test-all: ## Run all checks and tests, 30 minutes; if all passes, note that in .ci/proven. Needs Docker, Node and bubblewrap.
	@.ci/run --all

.PHONY: test-parts
test-parts: setup-dev protos $(NODE_CLIENTS) $(if $(filter programs,$(PARTS)),$(PROGRAMS)) ## Run long parts of the tests: PARTS="deaths search", see tests/suite/parts.py.
	@$(SUITE) $(PARTS) $(ARGS)

.PHONY: test-live
test-live: setup-dev protos ## Ask the real vendors whose keys are in the environment, for a few cents (LOCI_LIVE_MODELS="openai=MODEL ...").
	@LOCI_LIVE=1 $(BIN)/python -m pytest tests/live $(ARGS)

.PHONY: check
check: artefacts lint types contracts page proto-rules ## All that takes seconds, and mypy: what is stale, lint, types, import contracts, the protos' rules.

.PHONY: artefacts
artefacts: setup-dev protos ## Find what a change left stale: tables, schemas, links and paths in documents, settings, error reasons.
	@$(SUITE) short -q $(ARTEFACTS) $(ARGS)

.PHONY: lint
lint: setup-dev ## Lint and formatting.
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

.PHONY: types
types: setup-dev protos ## mypy --strict.
	@$(BIN)/mypy

.PHONY: contracts
contracts: setup-dev protos ## Who imports whom.
	@$(BIN)/lint-imports --no-logo

.PHONY: page
page: setup-dev ## Types, lint and unit tests of the page in ade/ (needs Node).
	@$(BIN)/python scripts/ade.py check

.PHONY: proto-rules
proto-rules: node_modules/.package-lock.json ## The protos' rules, and that they break no client (AGAINST: of what; default: the protos of .ci/proven).
	@if [ ! -x $(BUF) ]; then \
	  echo "not checked: buf lint, format and breaking (needs Node; run: npm ci)"; exit $(if $(findstring node,$(LOCI_REQUIRE)),1,0); fi; \
	$(BUF) lint; $(BUF) format --diff --exit-code; \
	against='$(AGAINST)'; commit=$$($(PYTHON) -m tests.suite.proven protos); \
	if [ -z "$$against" ] && [ -n "$$commit" ]; then against=".git#ref=$$commit"; fi; \
	if [ -n "$$against" ]; then $(BUF) breaking --against "$$against"; fi

.PHONY: format
format: setup-dev node_modules/.package-lock.json ## Format Python, and the protos where buf is installed.
	@$(BIN)/ruff check --fix --quiet || true
	@$(BIN)/ruff format
	@if [ -x $(BUF) ]; then $(BUF) format --write; else echo "not formatted: protos/ (needs Node; run: npm ci)"; fi

.PHONY: bench
bench: setup-dev protos ## Measure turns against a fake provider (ARGS=llm: the llm gateway, ARGS=prefix: cached input, ARGS=history: long lives, ARGS=search: large archives, ARGS=tools: sandboxes, ARGS=mcp: calls of MCP servers); prints a table.
	@$(BIN)/python -m bench $(ARGS)

.PHONY: bench-memory
bench-memory: setup-dev protos ## Score what memory finds again, per search mode, beside a BM25 library (ARGS="--seed 1", or DATA=file.json in LoCoMo's form); no model needed.
	@$(BIN)/python -m bench.memory_score $(if $(DATA),--data $(DATA)) $(ARGS)

.PHONY: api-coverage
api-coverage: setup-dev protos ## Write docs/api-coverage.md: which routes there are, and what tests them.
	@$(BIN)/python -m tests.coverage

.PHONY: setup
setup: $(VENV)/.run $(EXTRAS:%=$(VENV)/.extra-%) $(NODE_WORKER)/node_modules/.package-lock.json ## Make .venv with what `make run` needs: Python 3.11 to 3.14, nothing else (EXTRAS="bedrock e2b modal": vendors' SDKs, too).
	@:

.PHONY: setup-dev
setup-dev: setup $(VENV)/.ready ## Make .venv with all that tests and checks need, too.
	@:

# These files are npm's own note of what it installed. Without npm all works but tools in JavaScript and TypeScript.
$(NODE_WORKER)/node_modules/.package-lock.json: $(NODE_WORKER)/package-lock.json
	@if ! command -v npm >/dev/null; then :; \
	  elif npm ci --prefix $(<D) --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null; then touch $@; \
	  else echo "not installed: what JavaScript and TypeScript tools need; try: npm ci --prefix $(NODE_WORKER)" >&2; fi

# Buf, and clients in TypeScript; who needs one says that it is missing.
define npm_ci
	@if ! command -v npm >/dev/null; then :; \
	  elif npm ci --prefix $(<D) --no-audit --no-fund --loglevel=error >/dev/null; then touch $@; \
	  else echo "not installed: what checks and tests need; try: npm ci --prefix $(<D)" >&2; fi
endef
node_modules/.package-lock.json: package-lock.json
	$(npm_ci)
tests/e2e/%/node_modules/.package-lock.json: tests/e2e/%/package-lock.json
	$(npm_ci)

tests/e2e/programs/%/.venv/.ready: tests/e2e/programs/%/requirements.lock scripts/install
	@test -x $(@D)/bin/pip || $(PYTHON) -m venv --clear $(@D)
	@scripts/install $(@D) $<
	@touch $@

# The same, where a machine must have them: .ci/run.
need_node = for folder in $(1); do test -e $$folder/node_modules/.package-lock.json || { echo "not installed: $$folder"; exit 1; }; done
.PHONY: node-root node-clients programs
programs: $(PROGRAMS)
node-root: setup node_modules/.package-lock.json
	@$(call need_node,. $(NODE_WORKER))
node-clients: $(NODE_CLIENTS)
	@$(call need_node,$(NODE_TESTS))

$(VENV)/.run: requirements/run.lock scripts/install
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || { \
	  echo "Loci needs Python 3.11 to 3.14, and $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing pinned packages into $(VENV) ..."
	@scripts/install $(VENV) $<
	@printf '%s\n' "$(CURDIR)" "$(CURDIR)/gen" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/loci.pth"
	@printf '#!/bin/sh\nexec "$(CURDIR)/$(BIN)/python" -m cli "$$@"\n' > $(BIN)/loci && chmod +x $(BIN)/loci
	@touch $@

# The development lock holds the run lock, in the same versions.
$(VENV)/.ready: requirements/dev.lock | $(VENV)/.run
	@echo "installing what tests and checks need into $(VENV) ..."
	@scripts/install $(VENV) $< all
	@touch $@

$(VENV)/.extra-%: requirements/%.lock | $(VENV)/.run
	@echo "installing the SDK of $* into $(VENV) ..."
	@scripts/install $(VENV) $<
	@touch $@

.PHONY: protos
protos: gen/.stamp ## Generate the Python stubs of protos/ into gen/.
	@:

# Made aside and put in place at once: whoever imports stubs meanwhile sees the old ones.
gen/.stamp: $(PROTOS) $(PROTO_FOLDERS) requirements/protos.lock | $(VENV)/.run
	@rm -rf gen.new && mkdir gen.new
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -I protos \
	  --python_out=gen.new --mypy_out=quiet:gen.new --grpc_python_out=gen.new --mypy_grpc_out=quiet:gen.new $(PROTOS)
	@touch gen.new/.stamp && rm -rf gen && mv gen.new gen

.PHONY: images
images: ## Build the container images, one per service (BASE=python:3.13-slim or a local base).
	@scripts/images

.PHONY: sandbox-image
sandbox-image: setup ## Build the image that tool code runs in (BASE: an image with Python and Node; default: made of both).
	@scripts/sandbox-image $(BASE)

.PHONY: lock
lock: ## Resolve pyproject.toml anew into requirements/*.lock (needs uv; LOCKFLAGS=--upgrade for newer versions).
	@lock() { $(LOCK) "$$@"; }; extras() { printf -- '--extra %s ' "$$@"; }; same="-c requirements/dev.lock"; \
	lock pyproject.toml $$(extras $(RUN_EXTRAS) $(SDK_EXTRAS)) --group dev $(LOCKFLAGS) -o requirements/dev.lock; \
	lock pyproject.toml $$(extras $(RUN_EXTRAS)) --group protos $$same -o requirements/run.lock; \
	lock pyproject.toml $$same -o requirements/common.lock; \
	for extra in $(RUN_EXTRAS) $(SDK_EXTRAS); do lock pyproject.toml --extra $$extra $$same -o requirements/$$extra.lock; done; \
	for group in node protos sandbox; do lock --group $$group $$same -o requirements/$$group.lock; done; \
	for folder in tests/e2e/programs/*; do lock $$folder/requirements.in $(LOCKFLAGS) -o $$folder/requirements.lock; done
