# Everything happens in .venv, from pinned packages. `make demo` and `make test` need Python 3.11 and nothing else;
# a C compiler is used if there is one, and Java: Spark, which only tests and soaks install, brings one for machines
# that have none.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
RUN    := $(VENV)/bin/

.PHONY: demo test check bench soak compile clean

demo: $(VENV)/runtime
	@$(RUN)holdfast demo

test: $(VENV)/spark compile
	$(RUN)python tools/run_tests.py

check: $(VENV)/develop
	$(RUN)ruff check .
	$(RUN)ruff format --check .
	$(RUN)mypy

bench: $(VENV)/develop compile
	$(RUN)holdfast bench matching --markdown docs/benchmarks.md --results docs/experiments/results
	$(RUN)holdfast bench network --markdown docs/benchmarks.md
	$(RUN)holdfast bench durable --data . --markdown docs/benchmarks.md

soak: $(VENV)/spark compile
	$(RUN)python tools/soak.py

compile: $(VENV)/develop
	$(RUN)python tools/compile_matching.py
	$(RUN)python tools/compile_columns.py

$(VENV)/python: Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Holdfast needs Python 3.11 or newer; set PYTHON=…")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/runtime: $(VENV)/python requirements.txt pyproject.toml
	$(RUN)python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
	$(RUN)python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/develop: $(VENV)/runtime requirements-dev.txt
	$(RUN)python -m pip install --quiet --disable-pip-version-check --requirement requirements-dev.txt
	touch $@

$(VENV)/spark: $(VENV)/develop requirements-spark.txt
	$(RUN)python -m pip install --quiet --disable-pip-version-check --requirement requirements-spark.txt
	touch $@

clean:
	rm -rf $(VENV) build src/*.so src/holdfast/matching/compiled src/holdfast/pipeline/alike_compiled.*.so src/holdfast/pipeline/*.fingerprint .mypy_cache .ruff_cache .pytest_cache .hypothesis
