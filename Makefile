# Everything below needs Python >= 3.10 and a Rust toolchain, and sets up the rest itself in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
REPORT ?= report.html
JOBS ?= auto

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1
# Otherwise every worker and every child process of the tests compiles all modules anew.
unexport PYTHONDONTWRITEBYTECODE
export VIRTUAL_ENV := $(abspath $(VENV))
# The binding crate asks this interpreter how to link.
export PYO3_PYTHON := $(abspath $(PY))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv build demo test quick test-durations lint lint-rust lint-python cargo-test pytest reading sweep stubtest evidence constant-time \
	constant-time-leaks constant-time-welch architecture schema mutation fuzz fuzz-parsers packages packages-test bench bench-compare clean build-demo

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- set-up: one stamp for the build tool alone, one for what checks and tests need, one for the peers in the benchmarks

$(VENV)/.stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "userdp needs Python 3.10 or newer; set PYTHON=... (here: $$($(PYTHON) --version))" >&2; exit 1; }
	@command -v cargo >/dev/null || { echo "userdp is built with Rust: install a toolchain from https://rustup.rs" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --upgrade "pip>=25.1"
	$(PY) -m pip install "maturin>=1.9.4,<2"
	touch $@

$(VENV)/.stamp-check: $(VENV)/.stamp
	$(PY) -m pip install --group check
	touch $@

$(VENV)/.stamp-bench: $(VENV)/.stamp
	$(PY) -m pip install --group bench
	touch $@

venv: $(VENV)/.stamp-check ## create .venv with the build tool and the checkers

# --- build: cargo decides what is out of date, so the extension is never older than its sources

build-demo: $(VENV)/.stamp
	$(BIN)/maturin develop --release --extras demo

build: $(VENV)/.stamp ## compile the core and install userdp into .venv, with all extras
	$(BIN)/maturin develop --release --extras demo,frame,learn,optimal,plot,progress,report

demo: build-demo ## run the demo on the wage panel and write report.html and report.json
	$(BIN)/userdp demo --output $(REPORT)

# --- checks

test: ## lint, cargo test and its benchmarks once each, pytest, the stub check and the evidence on constant time, from nothing
	$(MAKE) --no-print-directory venv build
	$(MAKE) --no-print-directory -j2 lint-rust lint-python cargo-test stubtest
	$(MAKE) --no-print-directory -j2 pytest evidence

# A worker takes tests from the others when its own are done. What forks, sends signals or watches threads runs alone.
IN_PARALLEL := $(PY) -m pytest -n $(JOBS) --maxprocesses 8 --dist worksteal
SERIAL := $(PY) -m pytest -m serial $$(grep -rl --include='test_*.py' 'mark\.serial' tests)

lint: lint-rust lint-python ## rustfmt, clippy, rustdoc, ruff and mypy

lint-rust: $(VENV)/.stamp-check
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

lint-python: $(VENV)/.stamp-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The benchmarks run once each in the profile of the tests, whose build of the core they share: `cargo bench -- --test`
# would build it again with link-time optimization over the whole program, which takes minutes.
cargo-test: # needs no Python
	cargo test --locked
	cargo test --locked --benches

stubtest: $(VENV)/.stamp-check
	$(PY) -m mypy.stubtest userdp._core

pytest: $(VENV)/.stamp-check
	$(IN_PARALLEL) -m "not serial"
	$(SERIAL)

quick: ## lint and the fast tests, in less than a minute and a half: not those marked slow, statistical or serial
	$(MAKE) --no-print-directory -j2 lint-rust lint-python
	$(IN_PARALLEL) -m "not slow and not statistical and not serial"

reading: $(VENV)/.stamp-check ## how tables are read: 100,000 cells in all containers, and 10,000 tables with a hostile user
	PYTHONPATH=tests $(PY) -m support.reading_generator

sweep: $(VENV)/.stamp-check ## public functions with numbers at the ends of what they accept: processor seconds, worst first
	PYTHONPATH=tests $(PY) -m support.sweep

test-durations: $(VENV)/.stamp-check ## run all tests and write docs/test-durations.md
	$(IN_PARALLEL) --record-durations

# --- evidence that time does not depend on secrets (docs/constant-time.md), on the wheel as it is released

CONSTANT_TIME := PYTHONPATH=evidence $(PY) -m constant_time

constant-time: $(VENV)/.stamp-check build ## memcheck and callgrind on every constant-time sampler; needs valgrind
	$(CONSTANT_TIME)

evidence: $(VENV)/.stamp-check # of what is built already, as the extension must not change while tests run
	$(CONSTANT_TIME) --if-possible

constant-time-leaks: $(VENV)/.stamp-check build ## the same must fail for a leak planted in any kernel
	$(CONSTANT_TIME).leaks

constant-time-welch: $(VENV)/.stamp-check build ## times of two classes of secrets, as a smoke test
	$(CONSTANT_TIME).welch

# --- the house: docs/architecture.md and its picture, from the imports in the code

schema: build ## write docs/report.schema.json anew, from the fields that reports declare
	$(PY) -c "import json; from userdp.report import Report; print(json.dumps(Report.schema(), indent=1))" > docs/report.schema.json

architecture: build ## draw docs/architecture.md anew
	$(PY) evidence/architecture.py

# --- coverage-guided fuzzing of what reads foreign bytes, so many runs of each target; needs a C++ compiler

FUZZ_RUNS ?= 10000000
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-trace-compares
FUZZ := target/fuzz/$(shell rustc -vV | sed -n 's/host: //p')/release

fuzz: ## run the tokenizer and the grammars of numbers, times and texts on 10^7 inputs each, and compare with the reference
	cd rust/fuzz && RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --release --target-dir ../../target/fuzz \
		--target $(shell rustc -vV | sed -n 's/host: //p')
	mkdir -p target/fuzz/corpus/rows target/fuzz/corpus/cells
	$(FUZZ)/rows -runs=$(FUZZ_RUNS) -max_len=96 -timeout=10 -artifact_prefix=target/fuzz/ target/fuzz/corpus/rows
	$(FUZZ)/cells -runs=$(FUZZ_RUNS) -max_len=48 -timeout=10 -artifact_prefix=target/fuzz/ target/fuzz/corpus/cells
	PYTHONPATH=tests $(PY) -m support.reading_corpus target/fuzz/corpus/cells

# Atheris is no dependency: pip install atheris, into the environment of the tests or as PY=... into another one.
FUZZED ?= messages schemas ledgers certificates reports

fuzz-parsers: FUZZ_RUNS = 2000000
fuzz-parsers: ## run what reads reports, certificates, messages, ledgers and schemas on altered ones, so many of each; needs atheris
	for name in $(FUZZED); do PYTHONPATH=tests $(PY) -W ignore -m fuzz $$name $(FUZZ_RUNS) target/fuzz/parsers || exit 1; done

# --- what is published: one wheel for all Pythons from 3.10 on, and the sources

packages: $(VENV)/.stamp ## build the wheel and the source distribution into dist
	rm -rf dist
	$(BIN)/maturin build --release --out dist
	$(BIN)/maturin sdist --out dist

# Cargo compares times, and both are made from this tree: the second build finds nearly all of it done.
packages-test: packages ## install either into an environment of its own and use it there
	rm -rf target/packages
	$(PYTHON) -m venv target/packages/wheel
	target/packages/wheel/bin/python -m pip install "userdp[demo] @ file://$$(ls $(abspath dist)/*.whl)"
	$(PYTHON) -m venv target/packages/sdist
	CARGO_TARGET_DIR=$${CARGO_TARGET_DIR:-$(abspath target)} target/packages/sdist/bin/python -m pip install dist/userdp-*.tar.gz
	target/packages/wheel/bin/python -I evidence/smoke.py
	target/packages/sdist/bin/python -I evidence/smoke.py

# --- evidence that the tests notice small faults (docs/mutation.md); takes hours, and goes on where it was stopped

mutation: $(VENV)/.stamp-check build ## plant faults in the package and count those that tests notice
	$(PY) -m pip install --group mutation
	PYTHONPATH=evidence nice -n 5 $(PY) -m mutation

# --- measurements

bench: ## criterion benchmarks of the core, and the table of docs/performance.md from them
	cargo bench --locked
	$(PYTHON) benches/core_table.py

bench-compare: $(VENV)/.stamp-bench build ## side by side with other libraries, as markdown
	$(PY) benches/compare_divergence.py
	$(PY) benches/compare_samplers.py
	$(PY) benches/compare_scores.py
	$(PY) benches/threshold_fit.py
	$(PY) benches/correlated_sampling.py
	$(PY) benches/littlestone.py
	$(PY) benches/local_protocols.py
	$(PY) benches/shuffle.py

clean: ## remove .venv, compiled files and reports
	rm -rf $(VENV) target dist .mypy_cache .ruff_cache .pytest_cache .hypothesis $(REPORT)
	rm -f python/userdp/_core*.so python/userdp/_core*.pyd
	find python tests benches evidence examples -name __pycache__ -type d -prune -exec rm -rf {} +
