# One command each; what needs the environment builds it first. ROS_WHEELS=jazzy builds it with the
# wheels of that ROS 2 where none is sourced.
PYTHON ?= python3
ENV = . .venv/env.sh &&
# A file in one worker, so that what its tests share is made once; the long ones first. A worker
# that has died is not replaced: its test would be tried again and again.
GROUPS = --dist loadfile --no-loadscope-reorder --max-worker-restart=0
# A test that hangs, even inside a library, says where after these seconds, and fails.
LIMIT = -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

# one suite at a time, also under `make -j`
.NOTPARALLEL:
.PHONY: setup demo test test-fast test-static test-core test-ros test-alone tiers soak bench trust versions docs clean

setup:
	@$(PYTHON) tools/ros_env/setup.py

demo: setup
	$(ENV) robot-dynid demo

# The tests with ROS mostly wait for robots: checks of types and tests without ROS run beside them, on
# the processor time that is left, and are shown after them.
test: setup
	@mkdir -p out
	@env --default-signal=INT,QUIT chrt --idle 0 $(MAKE) test-static test-core > out/test-core.log 2>&1 & core=$$!; \
	$(MAKE) test-ros; ros=$$?; wait $$core; core=$$?; cat out/test-core.log; test $$ros$$core = 00
	@$(MAKE) test-alone

# Tests without ROS of less than 0.15 s each; `make test` also runs those below 0.5 s,
# those that any change may break, and those that alone reach many lines; `make soak` all others.
test-fast: setup
	$(ENV) pytest -n auto $(GROUPS) $(LIMIT) -m 'not ros and not slow and not soak'

# Measure which are slow, on a machine that does nothing else, and which of them reach lines that no
# other reaches: test/support/tiers.py
tiers: setup
	$(ENV) ROBOT_DYNID_TIERS=all pytest -n auto $(GROUPS) -m 'not ros and not soak'
	$(ENV) ROBOT_DYNID_TIERS=fast pytest -n auto $(GROUPS) -m 'not ros and not slow and not soak'
	$(ENV) ROBOT_DYNID_TIERS=lines pytest -n auto $(GROUPS) -m 'not ros and not soak' \
		--cov=robot_dynid --cov=robot_dynid_extras --cov-context=test --cov-report=

test-static: setup
	$(ENV) ruff check .
	$(ENV) mypy

test-core: setup
	$(ENV) pytest -n auto $(GROUPS) $(LIMIT) -m 'not ros and not soak'
	$(ENV) pytest -q robot_dynid/test

# On a busy machine, measured by test/support/busy_machine.py, a failed test of processes is run once
# more: at most two in a hundred of them.
test-ros: setup
	$(ENV) pytest -n 2 $(GROUPS) $(LIMIT) --max-suite-reruns 9 -m 'ros and not soak and not alone' test/ros

# They measure time: nothing else may run
test-alone: setup
	$(ENV) pytest $(LIMIT) --max-suite-reruns 1 -m 'alone and not soak' test/ros

soak: setup
	$(ENV) pytest -m soak
	$(ENV) pytest -m 'hypothesis and not soak and not ros' --hypothesis-profile=soak

bench: setup
	$(ENV) robot-dynid bench start regressor identify forward rollout derivatives feasible monitor contact

# docs/trust.md from the records of docs/trust, which long tests and benchmarks keep there with
# ROBOT_DYNID_TRUST=docs/trust. test/evaluation/test_trust.py fails where the code of a record has
# changed and it is older than two weeks.
trust: setup
	$(ENV) python docs/trust_page.py

# The tests without ROS under the oldest and the newest Python and NumPy, those with ROS under
# another ROS 2; TESTS=words of pytest, for those without ROS only.
versions:
	@$(PYTHON) tools/versions.py $(TESTS)

docs: setup
	$(ENV) pip install --quiet --requirement requirements/docs.txt
	$(ENV) python docs/tables.py && python docs/picture.py
	$(ENV) sphinx-build -q -W --keep-going -b html docs out/docs

clean:
	rm -rf .venv build install log out .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf robot_dynid/build robot_dynid/*.egg-info
	find robot_dynid test -name __pycache__ -prune -exec rm -rf {} +
