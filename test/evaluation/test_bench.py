"""robot_dynid_evaluation/bench/: the benchmarks compare like with like; their speed is measured by
`make bench`."""

from __future__ import annotations

import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from robot_dynid.cli.main import main
from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.effects.ripple_search import MAX_WAVES
from robot_dynid.errors import DynIdError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.monitoring.monitor import Monitor
from robot_dynid.reduction.numeric import full_regressor
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import load_truth
from robot_dynid_evaluation.bench import (
    BENCHES,
    Target,
    arms,
    derivatives,
    forward,
    identify,
    monitor,
    pinocchio_cpp,
    regressor,
    regressor_peers,
    rollout,
    row,
    start,
)
from robot_dynid_evaluation.bench.long_recordings import write_recording
from robot_dynid_evaluation.bench.timing import ROBOT, in_turns, random_motion


def test_rows_say_whether_the_target_is_kept() -> None:
    fast = row('x', 's', 1.0, 3.0, Target(2.0))
    assert (fast['ratio'], fast['kept'], fast['target']) == (3.0, True, '>= 2')
    slow = row('x', 's', 2.0, 1.0, Target(1.3, faster=False))
    assert (slow['ratio'], slow['kept'], slow['target']) == (2.0, False, '<= 1.3')
    share = row('x', 's', 2.0, 4.0, None)
    assert (share['ratio'], share['kept'], share['target']) == (0.5, None, '-')


def test_ratios_are_medians_of_rounds() -> None:
    """In the second round the machine was busy, which says nothing of either side."""
    ours, peer = np.array([1.0, 9.0, 2.0]), np.array([3.0, 18.0, 8.0])
    found = row('x', 's', ours, peer, Target(2.0))
    assert (found['ours'], found['peer'], found['ratio']) == (2.0, 8.0, 3.0)
    assert row('x', 's', ours, 4.0, Target(1.3, faster=False))['ratio'] == 0.5


def test_several_make_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['bench', 'start', 'nothing']) == 2
    assert 'which benchmark? One of regressor, ' in capsys.readouterr().err
    assert main(['bench', 'start', 'regressor', '--load', '0']) == 2
    assert 'benchmark start has no option --load' in capsys.readouterr().err


def test_bench_start_commands_exit_with_the_expected_codes(tmp_path: Path) -> None:
    """A command that ends early with a fault would be measured as a fast one."""
    path = tmp_path / 'model.yaml'
    arms.true_model().save(path)
    started = start.commands(path)
    some = {what: start.run(started[what][1]) for what in (
        start.IMPORTING, 'robot-dynid --help', *start.MISTYPED, 'first rollout of a saved model')}
    assert some == {what: 2 if what in start.MISTYPED else 0 for what in some}


def test_contenders_take_turns() -> None:
    seen: list[str] = []
    found = in_turns({'a': lambda: seen.append('a'), 'b': lambda: seen.append('b')},
                     lambda *_: None, rounds=2)
    assert seen == ['a', 'b'] * 3
    assert set(found) == {'a', 'b'}


def test_in_turns_times_the_processor_and_not_the_clock() -> None:
    count = [sys.executable, '-S', '-c', 'sum(range(10_000_000))']
    found = in_turns({'waits': lambda: time.sleep(0.1),
                      'computes': lambda: sum(range(10_000_000)),
                      'child computes': lambda: subprocess.run(count, check=True)},
                     lambda *_: None, rounds=1)
    assert found['waits'][0] < 0.02 < min(found['computes'][0], found['child computes'][0])


def test_peer_of_the_regressor_computes_the_same() -> None:
    pytest.importorskip('pinocchio')
    robot = load_robot(ROBOT)
    structure = Structure.uniform(robot, True, 'coulomb', {'width': 1e-9})
    samples = random_motion(robot, 20)
    tall = regressor.peers(robot, samples)[1]()
    ours = full_regressor(robot, structure.blocks(robot), samples)
    np.testing.assert_allclose(tall.reshape(robot.n, 20, -1), ours.transpose(0, 2, 1),
                               rtol=0.0, atol=1e-12)


def test_the_loop_of_cpp_is_left_out_by_name_where_it_cannot_be_compiled(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it computes the same, the benchmark holds: compiling takes half a minute."""
    pytest.importorskip('pinocchio')
    for source in (pinocchio_cpp.REGRESSOR_SOURCE, pinocchio_cpp.RNEA_SOURCE):
        assert (pinocchio_cpp.SOURCES / source).is_file()
    monkeypatch.setattr(pinocchio_cpp, 'COMPILERS', ('no-such-compiler',))
    with pytest.raises(DynIdError, match=r'loop of C.*no C.* compiler.*no-such-compiler'), \
            pinocchio_cpp.compiled(pinocchio_cpp.REGRESSOR_SOURCE):
        pass
    found = regressor.skipped('no compiler')
    assert 'no compiler' in found['what'] and found['kept'] is None


def test_another_regressor_of_a_peer_is_refused() -> None:
    ours = np.ones((2, 3))
    regressor.compare('peer', ours * (1.0 + 1e-12), ours)
    with pytest.raises(DynIdError, match='peer computes another regressor'):
        regressor.compare('peer', ours * (1.0 + 1e-6), ours)


@pytest.mark.parametrize('name', ['seven_axis', 'stanford_arm'])
def test_newton_euler_of_the_peer_is_ours(name: str) -> None:
    robot, samples = load_robot(name), random_motion(load_robot(name), 3)
    effort = regressor_peers.newton_euler(robot, np)
    motion = (samples.position, samples.velocity, samples.acceleration)
    found = [effort(robot.nominal, *state) for state in zip(*motion, strict=True)]
    np.testing.assert_allclose(found, inverse_dynamics(robot, *motion), rtol=0.0, atol=1e-10)


def test_the_true_model_moves_as_it_was_asked_to() -> None:
    model = arms.true_model()
    motion = random_motion(model.robot, forward.BATCH)
    np.testing.assert_allclose(model.forward(*forward.inputs(model)['forward']),
                               motion.acceleration, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('friction', arms.FRICTION)
def test_calls_of_one_state_and_of_many_compute_the_same(friction: str) -> None:
    model = arms.ur10e_model(friction)
    assert model.axis_friction.needs_load == (friction == 'auto')
    q, qd, effort = forward.inputs(model, 20)['forward']
    motion = forward.inputs(model, 20)['inverse']
    many = model.forward(q, qd, effort)
    np.testing.assert_allclose(many, motion[2], rtol=1e-9, atol=1e-9)
    one = [model.forward(*state) for state in zip(q, qd, effort, strict=True)]
    np.testing.assert_array_equal(one, many)
    np.testing.assert_allclose(model.inverse(*motion), effort, rtol=1e-12)


def test_peer_of_the_rollout_moves_the_same() -> None:
    pytest.importorskip('mujoco')
    rough, smooth = rollout.rough_and_smooth()
    assert rough.coulomb.min() > 0.0
    assert not smooth.coulomb.any()
    model = rollout.rollout_model(smooth)
    inputs = tuple(a[:2] for a in rollout.smooth_inputs(model))
    found = model.rollout(*inputs, rollout.STEP).position
    exact = rollout.Peer(smooth, 'RK4', rollout.FINE).batch(*inputs)
    assert exact.shape == found.shape
    assert np.abs(found - exact).max() < rollout.MOST_ERROR
    assert np.ptp(found, axis=1).max() > 1.0
    # of first order: near enough to see that it is given the same efforts
    euler = rollout.Peer(smooth, 'EULER')
    few = tuple(inputs[i][:, :100] if i == 2 else inputs[i] for i in range(3))
    assert np.abs(euler.batch(*few) - exact[:, :100]).max() < 10.0 * rollout.MOST_ERROR
    np.testing.assert_array_equal(euler.loop(*few), euler.batch(*few))


def test_minutes_from_mapped_arrays_in_a_process_of_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    robot = load_robot(ROBOT)
    write_recording(tmp_path, robot, load_truth(robot), (130.0, 500.0))
    found = identify.in_a_process_of_its_own(str(tmp_path))
    assert found['error'] < identify.MOST_ERROR
    assert 50.0 < found['megabytes'] < identify.MOST_MEGABYTES
    with pytest.raises(DynIdError, match='exit code'):
        identify.in_a_process_of_its_own(str(tmp_path / 'absent'))
    assert 'absent' in capfd.readouterr().err


def test_peer_of_derivatives_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only links are compared: Pinocchio's derivatives know neither friction nor rotors."""
    pytest.importorskip('pinocchio')
    monkeypatch.setattr(derivatives, 'COMPARED', 5)
    robot = load_robot(ROBOT)
    samples, links = random_motion(robot, 5), derivatives.links_alone(robot)
    states = samples.position, samples.velocity, samples.acceleration
    effort = links.effort(*states)
    assert derivatives.difference(links, robot, states, effort) < derivatives.ALIKE


def test_the_monitor_is_measured_with_all_slow_effects(tmp_path: Path) -> None:
    model = arms.true_model()
    slow = monitor.with_slow_effects(model)
    slow.save(tmp_path / 'model.yaml')
    again = IdentifiedModel.load(tmp_path / 'model.yaml')
    assert all(one and len(one.orders) == MAX_WAVES for one in again.parts_of('ripple'))
    assert all(one and one.warming and one.slow for one in again.parts_of('adaptation'))
    assert len(again.parts_of('ripple')) == len(again.parts_of('adaptation')) == model.robot.n == 7
    q, qd = np.full((2, 7), 0.3)
    ours, other = (Monitor(one)(0.0, q, qd, np.zeros(7)) for one in (model, again))
    assert ours is not None and other is not None


@pytest.mark.parametrize('name', BENCHES)
def test_every_benchmark_can_be_measured_and_shown(name: str) -> None:
    """What it measures, and its columns, where they are not those of a comparison."""
    module = import_module(f'robot_dynid_evaluation.bench.{name}')
    assert callable(module.measure)
    assert all(isinstance(one, str) for one in getattr(module, 'COLUMNS', ()))
