# Loci: every task a developer or CI needs. `make help` reads the ## comments.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := agent memory llm_gateway tool_runner gateway cli
PROTOS := $(shell find protos -name '*.proto' 2>/dev/null | sort)
UV ?= uv

.PHONY: help
help: ## Show this list.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-15s %s\n", $$1, $$2}'

.PHONY: setup
setup: $(VENV)/.ready ## Make .venv from the lock (needs Python 3.11 or newer, nothing else).

$(VENV)/.ready: requirements/dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Loci needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing pinned packages into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements/dev.lock
	@printf '%s\n' "$(CURDIR)" "$(CURDIR)/gen" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/loci.pth"
	@touch $@

.PHONY: protos
protos: gen/.stamp ## Generate the Python stubs of protos/ into gen/.

# The list of files is part of the stamp: a removed .proto makes the stubs anew, too.
gen/.stamp: $(PROTOS) requirements/dev.lock | $(VENV)/.ready
	@rm -rf gen && mkdir -p gen
	@if [ -n "$(PROTOS)" ]; then PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -I protos \
	  --python_out=gen --mypy_out=gen --grpc_python_out=gen --mypy_grpc_out=gen $(PROTOS); fi
	@touch $@

.PHONY: lock
lock: ## Resolve pyproject.toml anew into requirements/*.lock (the only task that needs uv).
	@lock() { $(UV) pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --no-emit-find-links --no-annotate --no-header --quiet "$$@"; }; \
	lock $(addprefix --extra ,$(EXTRAS)) --group dev $(LOCKFLAGS) -o requirements/dev.lock; \
	for extra in $(EXTRAS); do lock --extra $$extra -c requirements/dev.lock -o requirements/$$extra.lock; done
