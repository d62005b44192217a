"""The tiers of the tests that need no ROS, by the processor time of each, and their examples.

`make tiers` measures them, and writes those of FAST and more into SLOW, with the lines of the
product that they alone reach, for which `make test` runs some of them. It must not fail by chance,
so the examples that its tests with hypothesis try follow from the test alone. `make soak` runs the
same tests with ``--hypothesis-profile=soak``: other examples every time; what fails is printed as
a line that can be put above the test.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

#: a fast test takes less than this [s]
FAST = 0.15
#: `make test` runs every test that takes less than this [s]
QUICK = 0.5
#: folders of tests of what moves a robot: `make test` runs all of them, however long they take
MOVING = ('execution',)
#: files of rules about every source, which any change may break: `make test` runs all of them, and
#: they read the sources once, which is charged to whichever test comes first
RULES = ('test_architecture.py', 'test_docstrings.py', 'test_packaging.py',
         'test_requirements.py')
#: fixtures below this are not worth a name [s]
LEAST = 0.05
#: a fast test fails beyond this [s]: processors are shared, and differ, and the first of the tests
#: that share something cached makes it
BEYOND = 10.0
#: `make test` runs a slow test of at most this [s] that reaches so many more lines per second
LONGEST, WORTH = 3.0, 2.0
#: the processor time, the lines it is worth, and the name of each test of FAST and more
SLOW = Path(__file__).parents[1] / 'slow_tests.txt'
#: 'all' measures every test; 'fast' only fast ones, which then pay for what slow ones had cached;
#: 'lines' runs those of at most LONGEST
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


@dataclass(frozen=True)
class Slow:
    """A test of FAST and more.

    seconds: its processor time [s]
    lines: the lines it reaches beside all others of `make test`; 0 where they are not worth it
    """

    seconds: float
    lines: int = 0


@cache
def slow_tests(file: Path = SLOW) -> dict[str, Slow]:
    """Return the tests of FAST and more, by name."""
    lines = (line.split(maxsplit=2) for line in file.read_text('utf-8').splitlines())
    return {name: Slow(float(seconds), int(lines)) for seconds, lines, name in lines}


def write_slow_tests(tests: Mapping[str, Slow]) -> None:
    """Write SLOW."""
    SLOW.write_text(''.join(f'{tests[name].seconds:8.2f} {tests[name].lines:4d} {name}\n'
                            for name in sorted(tests) if tests[name].seconds >= FAST), 'utf-8')


def worth_their_time(
    reached: Mapping[str, set[Any]], tests: Mapping[str, Slow]
) -> dict[str, Slow]:
    """Return the slow tests with the lines each adds, those that add most per second first.

    reached: the lines that each test reaches, slow or not
    """
    rest = {name: lines for name, lines in reached.items() if name in tests}
    known = set[Any]().union(*(lines for name, lines in reached.items() if name not in rest))
    chosen = {name: replace(test, lines=0) for name, test in tests.items()}
    while rest:
        best = max(rest, key=lambda name: len(rest[name] - known) / tests[name].seconds)
        more = rest.pop(best) - known
        if len(more) < WORTH * tests[best].seconds:
            break
        known |= more
        chosen[best] = replace(tests[best], lines=len(more))
    return chosen


def processor() -> float:
    """Return the processor time of this process and of those it has ended [s]."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def runs_always(item: Any) -> bool:
    """Return whether `make test` runs a test however long it takes."""
    return (item.path.parent.name in MOVING or item.path.name in RULES
            or item.get_closest_marker('always') is not None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Mark the tests of the slower tiers, and let the files that take longest come first.

    `make test` runs those of less than QUICK, those that are worth their time, those marked
    ``always``, and those in MOVING and RULES. A file runs in one worker (--dist loadfile): none
    should be left with a long one at the end.
    """
    of_file = defaultdict[Path, float](float)
    for item in items:
        slow = slow_tests().get(item.nodeid)
        if slow and MEASURE != 'all':
            seen = slow.seconds <= LONGEST if MEASURE == 'lines' else (
                slow.lines or slow.seconds < QUICK)
            seen = seen or runs_always(item)
            item.add_marker(pytest.mark.slow if seen else pytest.mark.soak)
        if not item.get_closest_marker('soak'):  # tests of processes are slow by hand
            by_hand = float(item.get_closest_marker('slow') is not None)
            of_file[item.path] += slow.seconds if slow else by_hand
    items.sort(key=lambda item: -of_file[item.path])


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
    item.user_properties += [('processor', (seconds, uses)), ('always', runs_always(item))]
    marks = {mark.name for mark in item.iter_markers()}
    if not MEASURE and not marks & {'ros', 'slow', 'soak'} and seconds > BEYOND:
        pytest.fail(f'{seconds:.1f} s of processor, in the tier of {FAST:g} s: make tiers')
    return done


class Times:
    """Writes the processor time of the slower tests into SLOW, which stay worth their lines."""

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
        write_slow_tests(slow_tests() | {
            test: Slow(round(seconds + sum(took / users[name] for name, took in uses.items()), 2),
                       slow_tests().get(test, Slow(0.0)).lines)
            for test, (seconds, uses) in self.tests.items()})


class Lines:
    """Writes into SLOW the lines that the slower tests are worth, from those that each reaches."""

    def __init__(self) -> None:
        self.always: set[str] = set()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test that runs however long it takes."""
        if dict(report.user_properties).get('always'):
            self.always.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Read what pytest-cov has measured; its contexts are names of tests and their phases."""
        from coverage import Coverage  # for `make tiers` only
        measured = Coverage()
        measured.load()
        reached = defaultdict[str, set[tuple[str, int]]](set)
        for file in measured.get_data().measured_files():
            for line, contexts in measured.get_data().contexts_by_lineno(file).items():
                for context in contexts:
                    reached[context.rpartition('|')[0]].add((file, line))
        slow = {name: replace(test, lines=0) for name, test in slow_tests().items()}
        write_slow_tests(slow | worth_their_time(reached, {
            name: test for name, test in slow.items()
            if QUICK <= test.seconds <= LONGEST and name not in self.always}))


def pytest_configure(config: Any) -> None:
    """Measure where it is asked for."""
    if MEASURE and not hasattr(config, 'workerinput'):
        config.pluginmanager.register(Lines() if MEASURE == 'lines' else Times())
