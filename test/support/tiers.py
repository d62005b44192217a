"""The tiers of the tests that need no ROS, by the processor time of each, and their examples.

`make tiers` measures them, and writes those of FAST and more into SLOW. `make test` must not fail
by chance, so the examples that its tests with hypothesis try follow from the test alone. `make
soak` runs the same tests with ``--hypothesis-profile=soak``: other examples every time; what fails
is printed as a line that can be put above the test.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

#: a fast test takes at most this [s]
FAST = 0.5
#: folders of tests of what moves a robot: `make test` runs all of them, however long they take
MOVING = ('execution',)
#: files of rules about every source, which any change may break: `make test` runs all of them, and
#: they read the sources once, which is charged to whichever test comes first
RULES = ('test_architecture.py', 'test_docstrings.py', 'test_packaging.py',
         'test_requirements.py')
#: fixtures below this are not worth a name [s]
LEAST = 0.05
#: a fast test fails beyond this many times FAST: processors are shared, and differ, and the first
#: of the tests that share something cached makes it
BEYOND = 20.0
#: the processor time and the name of each test of FAST and more
SLOW = Path(__file__).parents[1] / 'slow_tests.txt'
#: 'all' measures every test; 'fast' only fast ones, which then pay for what slow ones had cached
MEASURE = os.environ.get('ROBOT_DYNID_TIERS', '')
#: fewest examples of a test; those of one whose examples take a tenth of a second and more
FEWEST, COSTLY = 25, 15
settings.register_profile('same', derandomize=True, deadline=None)
settings.register_profile('soak', derandomize=False, deadline=None, print_blob=True)
settings.load_profile('same')

#: the processor time of each fixture of this process [s], by name and whose it is
fixtures: dict[tuple[str, str], float] = defaultdict(float)
#: that of the fixtures which those being made have asked for, innermost last
asked: list[float] = []


@cache
def slow_tests(file: Path = SLOW) -> dict[str, float]:
    """Return the processor time [s] of the tests of FAST and more, by name."""
    lines = (line.split(maxsplit=1) for line in file.read_text('utf-8').splitlines())
    return {name: float(seconds) for seconds, name in lines}


def processor() -> float:
    """Return the processor time of this process and of those it has ended [s]."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Mark the tests of the slower tiers, and let the files that take longest come first.

    `make test` runs the fast ones, of each other file the quickest, those marked ``always``, and
    those in MOVING and RULES. A file runs in one worker (--dist loadfile): none should be left
    with a long one at the end.
    """
    of_file = defaultdict[Path, list[float]](list)
    for item in items:
        by_hand = float(item.get_closest_marker('slow') is not None)  # tests of processes
        if not item.get_closest_marker('soak'):  # those by hand are not measured
            of_file[item.path].append(slow_tests().get(item.nodeid, by_hand))
    for item in items if MEASURE != 'all' else ():
        seconds = slow_tests().get(item.nodeid, 0.0)
        seen = (item.path.parent.name in MOVING or item.path.name in RULES
                or item.get_closest_marker('always')
                or seconds <= min(of_file[item.path], default=0.0))
        if seconds:
            item.add_marker(pytest.mark.slow if seen else pytest.mark.soak)
    items.sort(key=lambda item: -sum(of_file[item.path]))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
    """Measure a fixture, without those that it asks for."""
    asked.append(0.0)
    before = processor()
    try:
        return (yield)
    finally:
        took = processor() - before
        fixtures[fixturedef.argname, request.node.nodeid] += took - asked.pop()
        if asked:
            asked[-1] += took


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Generator[None, Any, Any]:
    """Measure a test, with all its fixtures, whichever test had them made; fail above its tier."""
    before = processor()
    done = yield
    seconds = processor() - before
    uses = {f'{of}::{name}': took for (name, of), took in fixtures.items() if took > LEAST
            and name in item.fixturenames and item.nodeid.startswith(of)}
    item.user_properties.append(('processor', (seconds, uses)))
    marks = {mark.name for mark in item.iter_markers()}
    if not MEASURE and not marks & {'ros', 'slow', 'soak'} and seconds > BEYOND * FAST:
        pytest.fail(f'{seconds:.1f} s of processor, in the tier of {FAST:g} s: make tiers')
    return done


class Times:
    """Writes the processor time of the slower tests into SLOW."""

    def __init__(self) -> None:
        self.tests: dict[str, tuple[float, dict[str, float]]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test."""
        if report.when == 'call' and report.passed:
            self.tests[report.nodeid] = dict(report.user_properties)['processor']

    def pytest_sessionfinish(self) -> None:
        """Write the file; tests that did not run, or failed, stay as they were.

        The tests that use a fixture share its time.
        """
        users = Counter(name for _, uses in self.tests.values() for name in uses)
        times = slow_tests() | {
            test: seconds + sum(took / users[name] for name, took in uses.items())
            for test, (seconds, uses) in self.tests.items()}
        lines = (f'{times[name]:8.2f} {name}\n' for name in sorted(times)
                 if round(times[name], 2) >= FAST)
        SLOW.write_text(''.join(lines), 'utf-8')


def pytest_configure(config: Any) -> None:
    """Measure where it is asked for."""
    if MEASURE and not hasattr(config, 'workerinput'):
        config.pluginmanager.register(Times())
