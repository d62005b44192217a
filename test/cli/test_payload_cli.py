"""cli/payload.py: what a payload, gains and a wrist sensor are as an object, and wrong use."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.cli import payload
from robot_dynid.cli.main import parser
from robot_dynid.errors import UsageError
from robot_dynid.robot.inertia import rotation_from_rpy

OK = SimpleNamespace(name='OK', value='fine')
ESTIMATE = SimpleNamespace(
    status=OK, mass=2.5, mass_std=0.1, centre_of_mass=np.array([0.1, 0.2, 0.3]),
    centre_of_mass_std=np.array([0.01, 0.02, 0.03]), margins=np.array([2.0, 3.0, 4.0, 5.0]),
    inertia=np.diag([1.0, 2.0, 3.0]), inertia_std=np.ones((3, 3)), mass_std_gains=0.05,
    parameters=np.arange(10.0), parameters_std=np.ones(10), not_excited=('joint_3',),
    directions=('mz',), constrained=False, least_eigenvalue=0.125, noise=np.array([0.5, 0.6, 0.7]))
ROBOT = SimpleNamespace(n=3, drive=SimpleNamespace(gain_uncertainty=0.05, gains_std=None,
                                                   gains=None), joints=('a', 'b', 'c'))
RESULT = SimpleNamespace(estimate=ESTIMATE, robot=ROBOT, link='tool0', samples=321,
                         warnings=('w',), matches=[SimpleNamespace(
                             loaded='l', unloaded='u', lag=0.25)])


class Quiet:
    """A terminal that shows no progress."""

    @contextmanager
    def progress(self, title: str) -> Iterator[Callable[..., None]]:
        yield lambda *_: None


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[dict[str, Any], list[Any]]:
    """Return the result of the verb, and what its stages were given."""
    asked: list[Any] = []

    def logs(paths: Any, *_: Any) -> Any:
        return SimpleNamespace(uncut=lambda why: SimpleNamespace(
            findings={path: [why] for path in paths}))

    def taken(result: Any) -> Callable[..., Any]:
        return lambda *given: (asked.append(given), result)[1]

    monkeypatch.setattr('robot_dynid.cli.payload.load_logs', logs)
    wrist = SimpleNamespace(
        **{**vars(RESULT), 'estimate': SimpleNamespace(**{**vars(ESTIMATE), 'noise': np.ones(6)})},
        sensor=SimpleNamespace(bias=np.arange(6.0), sign=-1, rotation=rotation_from_rpy(
            [0.1, 0.2, 0.3]).T), bias_width=0.5 + np.arange(6.0), rotation_width=np.ones(3),
        outliers=7)
    gains = SimpleNamespace(
        gains=SimpleNamespace(
            values=np.array([1.0, 2.0, 3.0]), relative_std=np.array([0.1, 0.2, 0.3]), status=OK,
            determined=np.array([True, False, True]), centre_of_mass=np.ones(3),
            interval=lambda: (np.array([0.5, 1.5, 2.5]), np.array([1.25, 2.25, 3.25]))),
        robot=ROBOT, link='tool0', samples=54, warnings=())
    where = 'robot_dynid.identification'
    for name, result in (('payload.identify_payload', RESULT), ('payload.identify_drive_gains',
                                                                gains),
                         ('wrist.identify_wrist_sensor', wrist)):
        monkeypatch.setattr(f'{where}.{name}', taken(result))
    for name in ('set_payload', 'set_load'):
        monkeypatch.setattr(f'{where}.payload.{name}', lambda one, name=name: (name, one.mass))
    arguments: argparse.Namespace = parser(('payload',)).parse_args(['payload', *words])
    return payload.run(arguments, Quiet()), asked  # type: ignore[arg-type]


def test_a_payload_has_intervals_by_its_margins(monkeypatch: pytest.MonkeyPatch) -> None:
    found, asked = run(monkeypatch, 'l.csv', '--unloaded', 'u.csv', '--robot', 'planar_3r',
                       '--link', 'hand')
    assert found['ok'] and (found['status'], found['advice']) == ('ok', 'fine')
    assert found['interval']['mass'] == pytest.approx([2.3, 2.7])
    np.testing.assert_allclose(found['interval']['centre_of_mass'],
                               [(0.07, 0.13), (0.12, 0.28), (0.15, 0.45)])
    assert found['noise'] == {'joint_1': 0.5, 'joint_2': 0.6, 'joint_3': 0.7}
    assert found['drive_gains_std'].tolist() == 3 * [0.05]
    assert found['drive_gains_std_stated'] is False
    assert found['pairs'] == [{'loaded': 'l', 'unloaded': 'u', 'lag': 0.25}]
    assert (found['set_payload'], found['set_load']) == (('set_payload', 2.5), ('set_load', 2.5))
    assert found['findings'] == {'l.csv': ['payload identification'],
                                 'u.csv': ['payload identification']}
    ((robot, loaded, unloaded, model, link, _),) = asked
    assert (robot.name, model, link) == ('planar_3r', None, 'hand')
    assert (list(loaded.findings), list(unloaded.findings)) == (['l.csv'], ['u.csv'])
    assert 0.0 <= found['seconds'] < 60.0


def test_a_payload_that_has_not_converged_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ESTIMATE, 'status', SimpleNamespace(name='NOT_CONVERGED', value='no'))
    found, _ = run(monkeypatch, 'l.csv', '--robot', 'planar_3r')
    assert (found['ok'], found['status']) == (False, 'not_converged')


def test_drive_gains_are_those_of_the_known_load(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ('l.csv', '--robot', 'planar_3r', '--known-mass', '5.5', '--equal-gains', 'a,b')
    found, asked = run(monkeypatch, *words, '--known-com', '0.1', '0.2', '0.3')
    load, model, equal = asked[0][3:]
    assert (load.mass, load.centre_of_mass, model, equal) == (5.5, (0.1, 0.2, 0.3), None,
                                                              [['a', 'b']])
    assert (found['known_mass'], found['not_determined'], found['samples']) == (5.5, ['b'], 54)
    assert found['gains']['b'] == {'value': 2.0, 'relative_std': 0.2, 'interval': [1.5, 2.25],
                                   'determined': False, 'stated': None}
    assert run(monkeypatch, *words)[1][0][3].centre_of_mass is None


def test_a_wrist_sensor_has_bias_and_the_rotation_of_its_mounting(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    found, asked = run(monkeypatch, 'l.csv', '--robot', 'planar_3r', '--wrench', '/ft',
                       '--known-mass', '2')
    assert found['bias']['fy'] == {'value': 1.0, 'half_width': 1.5}
    np.testing.assert_allclose(found['mounting']['rpy'], [0.1, 0.2, 0.3])
    assert (found['reports'], found['outliers']) == ('reaction of the tool', 7)
    robot, _, link, mass, _ = asked[0]
    assert (robot.wrench_sensor, robot.wrenches, link, mass) == ('/ft', (), '', 2.0)


@pytest.mark.parametrize(('words', 'message'), [
    ((), 'which robot'), (('--robot', 'r', '--known-com', '0', '0', '0'), 'add --known-mass'),
    (('--robot', 'r', '--equal-gains', 'a,b'), 'add --known-mass'),
    *((('--robot', 'r', '--wrench', 't', '--known-mass', '1', *more), 'the sensor alone: omit')
      for more in (('--unloaded', 'u'), ('--known-com', '0', '0', '0'), ('--equal-gains', 'a,b'))),
    (('--robot', 'r', '--out', 's.yaml'), 'add --wrench TOPIC')])
def test_options_that_exclude_each_other_are_named(
    words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=message):
        run(monkeypatch, 'l.csv', *words)
