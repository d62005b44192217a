"""Rules of the tests themselves: skips are named, examples are enough and always the same."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import allowed_skips
import pytest
from allowed_skips import ALLOWED, allowed
from hypothesis import settings
from tiers import FAST, FEWEST, LONGEST, RULES, WORTH, Slow, slow_tests, worth_their_time

pytest_plugins = ('pytester',)
TESTS = Path(__file__).parent


@pytest.mark.parametrize(('body', 'code', 'told'), [
    ("def test(): pytest.skip('out of order')", 1, 'test_it.py::test: Skipped: out of order'),
    ("pytest.importorskip('no_such_module')\ndef test(): pass", 1, "import 'no_such_module'"),
    ("@pytest.mark.skipif(True, reason='no time')\ndef test(): pass", 1, 'no time'),
    ("@pytest.mark.parametrize('none', [])\ndef test(none): pass", 1, 'empty parameter set'),
    (f"def test(): pytest.skip({min(ALLOWED)!r} + ' of recordings')", 0, ''),
    ('@pytest.mark.xfail\ndef test(): assert False', 0, ''),
])
def test_a_skip_that_is_not_named_fails_the_run(
    pytester: pytest.Pytester, body: str, code: int, told: str
) -> None:
    pytester.makepyfile(test_it=f'import pytest\n{body}\ndef test_more(): pass\n')
    done = pytester.runpytest_inprocess('-p', 'allowed_skips', '-p', 'no:cacheprovider')
    assert done.ret == code
    assert told in done.stdout.str()
    assert ('put the reason into test/support/allowed_skips.py' in done.stdout.str()) == bool(code)


@pytest.mark.parametrize(('words', 'outcomes'), [
    (('--junit-prefix=robot_dynid',), {'passed': 1, 'skipped': 2}),
    ((), {'passed': 1, 'failed': 1, 'errors': 1})])
def test_absent_oracles_skip_their_tests_and_are_named(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...],
    outcomes: dict[str, int],
) -> None:
    monkeypatch.setattr(allowed_skips, 'OPTIONAL', ['no_such_oracle'])
    monkeypatch.setattr(sys, 'meta_path', [  # this run may be one of `make versions`
        one for one in sys.meta_path if not isinstance(one, allowed_skips.SkipWhereAbsent)])
    pytester.makepyfile(
        test_one='def test(): pass\ndef test_inside(): import no_such_oracle',
        test_two='import no_such_oracle.part\ndef test(): pass')
    done = pytester.runpytest_inprocess(
        '-p', 'allowed_skips', '-p', 'no:cacheprovider', '--continue-on-collection-errors', '-rs',
        *words)
    done.assert_outcomes(**outcomes)
    told = 'optional oracle is not installed: no_such_oracle' in done.stdout.str()
    assert told == bool(words)


def test_reasons_are_told_apart_from_their_beginning() -> None:
    assert allowed('Skipped: figaroh is not installed')
    assert not allowed('Skipped: because figaroh is not installed')


def test_examples_are_always_the_same_and_enough() -> None:
    assert settings.get_current_profile_name() in ('same', 'soak')
    assert settings.get_profile('same').derandomize
    assert not settings.get_profile('soak').derandomize
    for path in sorted(TESTS.rglob('*.py')):
        text = path.read_text()
        if ' settings\n' not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) \
                    and call.func.id == 'settings':
                given = {word.arg: word.value for word in call.keywords}
                where = f'{path.name}:{call.lineno}'
                assert set(given) == {'max_examples'}, f'{where}: the profile says the rest'
                count = given['max_examples']
                assert ast.unparse(count) == 'COSTLY' or int(ast.unparse(count)) >= FEWEST, where


def words_of_make(name: str) -> list[str]:
    """Return what a variable of the Makefile says to pytest."""
    makefile = (TESTS.parent / 'Makefile').read_text('utf-8')
    (words,) = re.findall(rf'^{name} = (.*)$', makefile, re.M)
    return words.split()


def test_absolute_tolerances_stand_alone() -> None:
    """NumPy adds a relative one of 1e-7 unless it is told not to."""
    for path in (path for path in TESTS.rglob('*.py') if 'ros' not in path.parts):
        text = path.read_text()
        for match in re.finditer(r'np\.testing\.assert_allclose\(', text):
            end, depth = match.end(), 1
            while depth:
                depth += {'(': 1, ')': -1}.get(text[end], 0)
                end += 1
            call = text[match.start():end]
            assert 'atol=' not in call or 'rtol=' in call, f'{path}: state rtol=0.0 in {call}'


def test_a_test_that_hangs_in_a_library_is_named(pytester: pytest.Pytester) -> None:
    """Such a call keeps the interpreter to itself, so that no signal handler would run."""
    pytester.makepyfile(test_hanging="""
        import ctypes
        def test_waits(): ctypes.PyDLL(None).sleep(60)""")
    words = [re.sub(r'timeout=\d+', 'timeout=0.5', word) for word in words_of_make('LIMIT')]
    done = pytester.runpytest_subprocess(*words, '-p', 'no:cacheprovider', timeout=30)
    assert done.ret == 1
    done.stderr.fnmatch_lines(['*test_hanging.py*in test_waits*'])


@pytest.mark.always
@pytest.mark.parametrize(('watched', 'most', 'outcomes'), [
    (True, '1', {'passed': 1, 'rerun': 1}),
    (True, '0', {'failed': 1}),
    (False, '1', {'failed': 1})])  # nothing says that processes were held up
def test_only_a_failure_on_a_busy_machine_is_run_again(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, watched: bool, most: str,
    outcomes: dict[str, int]
) -> None:
    monkeypatch.setenv('PYTHONPATH', str(TESTS / 'support'))
    if not watched:
        pytester.makeconftest("import busy_machine; busy_machine.WATCH = ''")
    pytester.makepyfile(f"""
        import os, signal, subprocess, time
        import pytest
        runs = []
        @pytest.mark.ros
        def test_in_time():
            if {watched}:
                (watch,) = subprocess.check_output(
                    ['pgrep', '-P', str(os.getpid()), '-f', 'waited'], text=True).split()
                time.sleep(1.0)  # the watch has begun
                os.kill(int(watch), signal.SIGSTOP)
                time.sleep(0.2)
                os.kill(int(watch), signal.SIGCONT)
                time.sleep(0.2)
            runs.append(1)
            assert len(runs) > 1""")
    done = pytester.runpytest_subprocess(
        '-p', 'no:cacheprovider', '-p', 'busy_machine', '-o', 'markers=ros',
        '--max-suite-reruns', most)
    assert done.parseoutcomes() == outcomes


def test_slow_tests_are_measured_and_exist() -> None:
    """A test that takes longer than its tier allows fails; `make tiers` measures them again."""
    for name, slow in slow_tests().items():
        file, _, test = name.partition('::')
        function = test.partition('[')[0].rpartition('::')[2]
        assert slow.seconds >= FAST, name
        assert not slow.lines or WORTH * slow.seconds <= slow.lines, name
        assert f'def {function}(' in (TESTS.parent / file).read_text('utf-8'), name


@pytest.mark.always
def test_no_test_of_what_moves_a_robot_or_of_a_rule_leaves_make_test() -> None:
    done = subprocess.run(
        [sys.executable, '-m', 'pytest', '--collect-only', '-q', '-m', 'not soak',
         '-p', 'no:cacheprovider', 'test/execution/test_alarms.py',
         *(f'test/{name}' for name in RULES)],
        cwd=TESTS.parent, capture_output=True, text=True, check=True)
    assert all(f'{name}::' in done.stdout for name in ('test_alarms.py', *RULES))
    assert 'deselected' not in done.stdout


@pytest.mark.always
@pytest.mark.parametrize(('marks', 'outcomes'), [
    ('', {'failed': 1}), ('@pytest.mark.slow', {'passed': 1})])
def test_a_test_beyond_its_tier_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, marks: str,
    outcomes: dict[str, int]
) -> None:
    monkeypatch.setenv('PYTHONPATH', str(TESTS / 'support'))
    monkeypatch.delenv('ROBOT_DYNID_TIERS', raising=False)
    pytester.makepyfile(f"""
        import time, pytest, tiers
        tiers.BEYOND = {FAST}
        {marks}
        def test_counts():
            begun = time.process_time()
            while time.process_time() < begun + {FAST} + 0.1: pass""")
    done = pytester.runpytest_subprocess(
        '-p', 'no:cacheprovider', '-p', 'tiers', '-o', 'markers=slow\nalways')
    assert done.parseoutcomes() == outcomes


@pytest.mark.always
def test_slow_tests_run_that_are_worth_their_time_or_run_always(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PYTHONPATH', str(TESTS / 'support'))
    monkeypatch.delenv('ROBOT_DYNID_TIERS', raising=False)
    pytester.makepyfile(test_file="""
        import pytest, tiers
        tiers.slow_tests = lambda: {
            f'test_file.py::test_{name}': tiers.Slow(seconds, lines) for name, seconds, lines in [
                ('worth', 1.0, 9), ('known', 0.5, 0), ('told', 1.0, 0), ('quick', 0.49, 0)]}
        def test_worth(): pass
        def test_quick(): pass
        def test_known(): pass
        @pytest.mark.always
        def test_told(): pass
        def test_fast(): pass
        @pytest.mark.soak
        def test_long(): pass""")
    done = pytester.runpytest_subprocess('-v', '-m', 'not soak', '-p', 'no:cacheprovider', '-p',
                                         'tiers', '-o', 'markers=slow\nalways\nsoak')
    done.assert_outcomes(passed=4, deselected=2)
    for name in ('worth', 'quick', 'told', 'fast'):
        done.stdout.fnmatch_lines(f'*::test_{name} PASSED*')


def test_tests_are_worth_the_lines_that_no_other_reaches() -> None:
    reached = {'fast': set(range(10)), 'wide': set(range(110)), 'narrow': set(range(105, 112)),
               'part': set(range(50)), 'costly': set(range(200, 202))}
    slow = {'wide': Slow(2.0, 1), 'narrow': Slow(0.5), 'part': Slow(1.0), 'costly': Slow(LONGEST)}
    found = worth_their_time(reached, slow)
    # 50 lines of 'wide' per second before 40 of 'part', whose lines are then known
    assert {name: test.lines for name, test in found.items()} == {
        'wide': 100, 'narrow': 2, 'part': 0, 'costly': 0}
    assert found['wide'].seconds == 2.0


def test_a_file_runs_in_one_worker(pytester: pytest.Pytester) -> None:
    """What its tests share is made once: the words of the Makefile do what it says of them."""
    body = 'import os, pathlib\n' + '\n'.join(
        f"def test_{k}():\n    with open(pathlib.Path(__file__).stem, 'a') as file:\n"
        "        print(os.environ['PYTEST_XDIST_WORKER'], file=file)" for k in range(4))
    names = [f'test_in_file_{k}' for k in range(4)]
    pytester.makepyfile(**dict.fromkeys(names, body))
    done = pytester.runpytest_subprocess(
        '-n', '2', *words_of_make('GROUPS'), '-p', 'no:cacheprovider')
    done.assert_outcomes(passed=16)
    workers = [(pytester.path / name).read_text().split() for name in names]
    assert [len(set(one)) for one in workers] == [1] * 4
    assert len(set(map(tuple, workers))) == 2, 'both have work'
