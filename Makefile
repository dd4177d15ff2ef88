# `make help` lists what can be made. Needs git, python3 (3.11 or newer, with venv) and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
EXAMPLE ?= examples/gemm.py
# Of `make gpu`.
MINUTES ?= 20
SOURCES := $(wildcard fragir dialects passes tests benchmarks examples docs/hooks setup.py)
CORE := setup.py $(wildcard fragir/emulator/native/source/*.[ch])
# What runs with the emulator's other core too: arithmetic of tensor cores, and whole kernels.
ANY_CORE := $(patsubst %,tests/emulator/test_%.py,gemm tensor_mma tensor_model tensor_wgmma wmma correct_kernels)
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs

ifndef BESIDE
.NOTPARALLEL:
endif
.PHONY: help run test check lint hooks pytest room package-check core docs docs-serve dist bench opinions notebook gpu gpu-kit gpu-report format constraints clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

run: $(VENV)/installed ## Install, then compile, assemble, run and check a GEMM
	$(BIN)/python $(EXAMPLE)
	@echo 'next: source $(BIN)/activate puts the command fragir on PATH (or call $(BIN)/fragir); fragir --help'

# Types, pages and packages take one core each; the tests take all.
test: $(VENV)/developed ## Install, then all the checks that a change must pass
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target BESIDE=1 check docs package-check
	@$(MAKE) --no-print-directory pytest

check: lint ## Lint, formatting, the imports between rooms, and types
	$(BIN)/pyright

lint: $(VENV)/developed ## The same without types, in seconds
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/lint-imports --no-cache

hooks: $(VENV)/developed ## Have git run ruff at each commit (.pre-commit-config.yaml)
	$(BIN)/pre-commit install

pytest: $(VENV)/developed ## The tests, those for a GPU too where there is one
	$(BIN)/python -m pytest -q -n auto
	FRAGIR_CORE=numpy $(BIN)/python -m pytest -q -n auto $(ANY_CORE)

room: $(VENV)/developed ## The tests that a change of a room can touch, the nearest first: make room R=emulator/checks
	@files=$$($(BIN)/python -m tests.rooms.touched $(R)) && $(BIN)/python -m pytest -q -n auto $$files

package-check: $(VENV)/developed ## Build the package and try it in an empty environment
	$(BIN)/python -m pytest -q -m packaging

core: | $(BIN)/python ## Build the emulator's compiled core in the checkout, after a change of its C
	@$(PIP) 'setuptools>=77'
	$(BIN)/python -m tests.emulator.native.straight_list
	$(BIN)/python setup.py -q build_ext --inplace

docs: $(VENV)/developed ## Build the documentation site into build/site; any warning fails
	$(MKDOCS) build

docs-serve: $(VENV)/developed ## Show the site on http://127.0.0.1:8000 and anew after each change
	$(MKDOCS) serve --livereload --no-strict

dist: $(VENV)/developed ## Build sdist and wheels into dist/; the same commit gives the same wheels
	rm -rf dist
	export SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct); \
	$(BIN)/python -m build && FRAGIR_PURE=1 $(BIN)/python -m build --wheel && \
	for wheel in dist/*-linux_*.whl; do \
	  [ ! -f "$$wheel" ] || { PATH="$$PWD/$(BIN):$$PATH" auditwheel repair --wheel-dir dist "$$wheel" && rm "$$wheel"; } || exit; \
	done

bench: $(VENV)/developed ## Measure everything on an idle machine; write docs/benchmarks.md anew
	$(BIN)/python benchmarks/compile.py --update docs/benchmarks.md
	$(BIN)/python benchmarks/growth.py --update docs/benchmarks.md
	$(BIN)/python benchmarks/cliffs.py --update docs/benchmarks.md
	$(BIN)/python benchmarks/statements.py --update docs/benchmarks.md
	$(BIN)/python benchmarks/tensor_memory.py --update docs/benchmarks.md
	$(BIN)/python benchmarks/operands.py --update docs/benchmarks.md
	$(BIN)/python benchmarks/schedules.py --update docs/benchmarks.md
	$(BIN)/python benchmarks/attention.py --update docs/benchmarks.md
	$(BIN)/python benchmarks/conversions.py --update docs/benchmarks.md
	$(BIN)/python benchmarks/emulator.py --update docs/benchmarks.md
	$(BIN)/python benchmarks/ptx_reader.py --update docs/benchmarks.md

opinions: $(VENV)/developed ## Another ptxas, 13.2, into a folder of its own; tests compare versions where it is
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target $(VENV)/nvidia-tools/13.2 nvidia-cuda-nvcc==13.2.86

notebook: $(VENV)/developed ## Open the notebooks of examples/notebooks to edit
	$(BIN)/marimo edit examples/notebooks

gpu-kit: $(VENV)/developed ## Prepare what a GPU is to be asked into build/gpu-kit, for a machine without a network
	$(BIN)/python -m benchmarks.gpu.build

gpu-report: $(VENV)/developed ## Keep the results of a run: make gpu-report DIR=FOLDER; README's table, docs/hardware.md
	$(BIN)/python -m benchmarks.gpu.report $(DIR)

gpu: $(VENV)/developed ## With a GPU here: make the kit, run it, keep the results; it goes on after it was broken off
	@$(BIN)/python -c 'import sys; from fragir.toolchain import driver; sys.exit(driver.available())'
	$(BIN)/python -m benchmarks.gpu.build --here
	PYTHON=$(CURDIR)/$(BIN)/python build/gpu-kit/run.sh --minutes $(MINUTES) --resume build/gpu
	$(BIN)/python -m benchmarks.gpu.report build/gpu

format: $(VENV)/developed ## Format the code and sort the imports
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

constraints: ## Write constraints.txt anew, with the newest versions
	$(PYTHON) -m venv --clear build/constraints
	build/constraints/bin/python -m pip install --quiet --disable-pip-version-check '.[dev,gui]'
	{ sed '/^#/!d' constraints.txt; \
	  build/constraints/bin/python -m pip freeze --all --exclude fragir --exclude pip; } > build/constraints.txt
	mv build/constraints.txt constraints.txt

clean: ## Delete the environment and what was built
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment. A stamp says what was installed from the present pyproject.toml and
# built from the present C.

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fragir needs Python 3.11 or newer; name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "python3 lacks venv; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

$(VENV)/installed: pyproject.toml constraints.txt $(CORE) | $(BIN)/python
	@echo 'installing into $(VENV) (only this once)'
	@$(PIP) --editable '.[disassembler]'
	@touch $@

$(VENV)/developed: pyproject.toml constraints.txt $(CORE) | $(BIN)/python
	@echo 'installing into $(VENV) (only this once)'
	@$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/installed
