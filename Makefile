# Needs python3 (3.11 or newer) and a network. Variables: PYTHON, ARGS (for pytest), TORCH_CPU_INDEX.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

# Where PyTorch publishes its CPU builds for Linux; asked only when pip's own indexes do not have the pinned one.
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu

# cpu or cuda: which build of PyTorch this machine gets. The stamp carries it, so a change makes a new .venv.
BUILD := $(shell nvidia-smi -L 2>/dev/null | grep -q '^GPU' && echo cuda || echo cpu)
STAMP := $(VENV)/installed-$(BUILD)
CONSTRAINTS := $(if $(filter cpu,$(BUILD)),--constraint constraints/cpu.txt)
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help install quickstart test lint

help:
	@echo "make install      make .venv and install the bench into it"
	@echo "make quickstart   a real model, with and without speculation: about ten minutes on a laptop"
	@echo "make test         the whole test suite (ARGS='-k store' for a part of it)"
	@echo "make lint         ruff and mypy --strict"

install: $(STAMP)

$(STAMP): pyproject.toml constraints/cpu.txt Makefile
	@command -v $(PYTHON) >/dev/null || \
	  { echo "error: no $(PYTHON) on the PATH: install Python 3.11 or newer, or name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("error: $(PYTHON) is Python %d.%d, the bench needs 3.11 or newer: name one with make PYTHON=/path/to/python" % sys.version_info[:2])'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "error: $(PYTHON) cannot make virtual environments: install its venv package (on Debian and Ubuntu: python3-venv)" >&2; exit 1; }
	@test -z "$$(ls $(VENV)/installed-* 2>/dev/null | grep -v '^$@$$')" || rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
ifeq ($(BUILD),cpu)
	@# PyTorch alone and first, so that nothing else can be looked up at, or come from, its index.
	@echo "installing PyTorch's CPU build"
	@$(PIP) install --no-deps $(CONSTRAINTS) torch >/dev/null 2>&1 || \
	  { echo "pip's own index does not have it, trying $(TORCH_CPU_INDEX)" >&2; \
	    $(PIP) install --no-deps $(CONSTRAINTS) --index-url $(TORCH_CPU_INDEX) torch; } || \
	  { echo "error: no CPU build of PyTorch: the version in constraints/cpu.txt was found neither by plain pip nor at" \
	    "$(TORCH_CPU_INDEX): check the network, or name another index with make TORCH_CPU_INDEX=URL" >&2; exit 1; }
endif
	$(PIP) install --quiet $(CONSTRAINTS) --editable '.[test]'
	@touch $@

quickstart: install
	$(BIN)/bench run suites/quickstart.yaml
	@echo; echo "Figures, each with the numbers it shows:"
	@$(BIN)/bench figures quickstart
	@echo; echo "Parquet tables, the resolved suite and the machine it was measured on:"
	@cd results/runs/quickstart && run=$$(ls -td */ | head -n 1) && \
	  for file in 'cells/*.parquet' 'requests/*.parquet' 'rounds/*.parquet' suite.yaml 'environments/*.json'; \
	    do echo "results/runs/quickstart/$$run$$file"; done
	@echo; echo "The comparison again: $(BIN)/bench show quickstart"

test: install
	$(BIN)/python -m pytest $(ARGS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
