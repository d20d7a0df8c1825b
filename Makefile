# Two commands do everything on a fresh machine with Python 3.11+ and make: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint format fuzz bench clean

.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("ksparse needs Python 3.11 or newer, got " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[experiments]'
	touch $@

.venv/ready-dev: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: .venv/ready
	$(BIN)/ksparse demo --out demo --force

lint: .venv/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: lint # the tests run in parallel themselves: one BLAS thread each
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

N ?= 1000
fuzz: .venv/ready-dev # N random problems, each judged by code that shares nothing with the library: make fuzz N=10000
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.fuzz $(N) $(FUZZ)

format: .venv/ready-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/ready-bench: .venv/ready-dev # the extra bench, one by one: who cannot be installed is left out, and the report says so
	$(BIN)/python benchmarks/install.py
	touch $@

bench: .venv/ready-bench
	$(BIN)/python benchmarks/all.py $(BENCH)

clean:
	rm -rf .venv build dist demo results
