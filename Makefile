# Everything runs in .venv, made here with the standard tools; nothing but Python is needed.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
.DEFAULT_GOAL := help
.PHONY: help demo test mutants check bench paper paper-quick frontier external docs clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

demo: $(VENV)/.demo  ## set up, train within a budget, compare, decide one row feature by feature, write a report
	$(RUN) -m budgetforest demo

test: $(VENV)/.test  ## set up and pass the tests
	$(RUN) -m pytest -p no:cacheprovider -n 2 --dist loadfile --cov --cov-report=
	@echo "The laws once more without the compiler, on fewer examples; coverage is that of both runs."
	NUMBA_DISABLE_JIT=1 HYPOTHESIS_EXAMPLES=3 $(RUN) -m pytest -p no:cacheprovider -n 2 --dist loadfile --cov --cov-append \
		--cov-fail-under=95 -k "not thousand" tests/data/test_binning.py \
		tests/growing/test_reference.py tests/growing/test_entropy_trees.py tests/growing/test_boosting.py \
		tests/inference/test_laws.py tests/inference/test_trace.py tests/inference/test_batch_walk.py \
		tests/selection/test_paper.py tests/selection/test_min_cut.py tests/acquisition/test_live.py \
		tests/files/test_delimited.py

mutants: $(VENV)/.test  ## make plausible mistakes in the source and see whether a test fails, in five minutes or more
	$(RUN) tests/mutants.py

check: $(VENV)/.check  ## format, lint, types, import order
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

bench: $(VENV)/.bench  ## measure speed beside the peers, in an hour or two, write docs/speed.md; what certain exit saves, the README's curve
	$(RUN) -m benchmarks

paper: $(VENV)/.bench  ## measure the paper's tables and figures and the peers, within an hour; write docs/results.md
	$(RUN) -m benchmarks paper

paper-quick: $(VENV)/.bench  ## the same on few rows and settings, in minutes, into .paper-quick/
	$(RUN) -m benchmarks paper --quick --out .paper-quick

frontier: $(VENV)/.bench  ## compare with the best peer of every cell, in hours; what is measured is kept; write docs/frontier.md
	$(RUN) -m benchmarks frontier

external: $(VENV)/.bench  ## measure tables that others printed, in an hour or more; write docs/external.md
	$(RUN) -m benchmarks external

docs: $(VENV)/.docs  ## build the documentation into site/
	$(VENV)/bin/mkdocs build --strict

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --disable-pip-version-check -e ".[report]"
	@touch $@

$(VENV)/.%: pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	@touch $@

clean:  ## remove what make made
	rm -rf $(VENV) .paper-quick site .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
