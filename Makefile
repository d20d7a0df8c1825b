# Two commands do everything on a fresh machine with Python 3.11+ and make: `make demo` and `make test`.
# On another Python, in an environment of its own: `make slice PYTHON=python3.13 VENV=.venv-3.13`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto # parallel as it is: one BLAS thread each

.PHONY: demo docs browse dist test test-sweep test-all test-optional test-lowest slice lint types types-oldest format fuzz bench clean

$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("ksparse needs Python 3.11 or newer, got " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[experiments]'
	touch $@

$(VENV)/ready-dev: $(VENV)/ready
	$(PIP) --editable '.[dev]'
	touch $@

demo: $(VENV)/ready
	$(BIN)/ksparse demo --out demo --force

lint: $(VENV)/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python docs/check_docstrings.py

test: lint # every behaviour, in a few minutes
	$(PYTEST) -m "not sweep"

test-sweep: $(VENV)/ready-dev # random sweeps and long runs, which `make test` leaves out
	$(PYTEST) -m sweep

test-all: test test-sweep

test-optional: $(VENV)/ready-dev # the tests that need PyTorch or JAX, which `make test` skips where these are missing
	$(PIP) 'torch==2.13.0' 'jax>=0.6'
	$(PYTEST) -m needs

types: $(VENV)/ready-dev
	$(BIN)/mypy

slice: $(VENV)/ready-dev # the first case of every test that is not slow, in a minute or so
	$(PYTEST) -m slice

# mypy reads stubs and runs nothing: so those of the oldest NumPy will do for a Python that this NumPy never knew
$(VENV)-oldest/ready: $(VENV)/ready-dev
	$(BIN)/python -m venv --clear --without-pip $(VENV)-oldest
	$(PIP) --no-deps --only-binary :all: --python-version 3.12 'numpy==2.0.*' matplotlib rich \
		--target "$$($(VENV)-oldest/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	touch $@

types-oldest: $(VENV)-oldest/ready
	$(BIN)/mypy --python-executable $(VENV)-oldest/bin/python --cache-dir .mypy_cache/oldest

LOWEST ?= python3.11
$(VENV)-lowest/ready: pyproject.toml .ci/lowest.py
	$(LOWEST) -m venv --clear $(VENV)-lowest
	$(LOWEST) .ci/lowest.py > $(VENV)-lowest/requirements.txt
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check -r $(VENV)-lowest/requirements.txt
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

test-lowest: $(VENV)-lowest/ready # the slice with the lowest versions that pyproject.toml allows, whose own warnings are nobody's fault
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(VENV)-lowest/bin/python -m pytest -n auto -m slice -W default tests --ignore tests/docs --ignore tests/benchmarks

N ?= 1000
fuzz: $(VENV)/ready-dev # N random problems, each judged by code that shares nothing with the library: make fuzz N=10000; then bounds of other small programs
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.fuzz $(N) $(FUZZ)
	KSPARSE_EXAMPLES=fuzz $(PYTEST) tests/certify/test_bounds.py

format: $(VENV)/ready-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/ready-bench: $(VENV)/ready-dev # the extra bench, one by one: who cannot be installed is left out, and the report says so
	$(BIN)/python benchmarks/install.py
	touch $@

bench: $(VENV)/ready-bench
	$(BIN)/python benchmarks/all.py $(BENCH)

$(VENV)/ready-docs: $(VENV)/ready
	$(PIP) --editable '.[docs]'
	touch $@

docs: $(VENV)/ready-docs # the site, in build/docs: pages, API, and a gallery that is run; a warning is an error
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs # one process: JAX, which the gallery runs, cannot be forked
	@echo "The site: build/docs/index.html"

browse: docs # every page of the site in a real browser, at 1200 and 360 px; with the Chromium of the machine, or playwright's own
	$(PIP) 'playwright>=1.50,<2'
	$(BIN)/python docs/browse.py build/docs

dist: $(VENV)/ready # sdist and wheel, checked, and tried on every Python from 3.11 that is there
	$(PIP) 'build>=1.2' 'twine>=6.1'
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	.ci/smoke dist/*.whl

clean:
	rm -rf .venv .venv-* build dist demo results docs/gallery docs/reference/generated
