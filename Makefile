# One command each; `make demo` and `make test` build the environment first when it is needed.
PYTHON ?= python3
ENV = . .venv/env.sh &&

.PHONY: setup demo test soak bench docs clean

setup:
	@$(PYTHON) tools/ros_env/setup.py

demo: setup
	$(ENV) robot-dynid demo

test: setup
	$(ENV) ruff check .
	$(ENV) mypy
	$(ENV) pytest -n auto --dist worksteal -m 'not ros and not slow and not soak'
	$(ENV) pytest -n auto --dist loadgroup -m 'slow and not ros and not soak'
	$(ENV) pytest -n 2 --dist loadgroup --no-loadscope-reorder -m 'ros and not soak'

soak: setup
	$(ENV) pytest -m soak

bench: setup
	$(ENV) for name in regressor identify forward rollout monitor contact; do robot-dynid bench $$name || exit 1; done

docs: setup
	$(ENV) pip install --quiet --requirement requirements/docs.txt
	$(ENV) sphinx-build -q -b html docs out/docs

clean:
	rm -rf .venv build install log out .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find robot_dynid test -name __pycache__ -prune -exec rm -rf {} +
