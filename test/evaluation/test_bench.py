"""The benchmarks compare like with like; their speed is measured by `make bench`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from robot_dynid.errors import DynIdError
from robot_dynid.identified.structure import Structure
from robot_dynid.reduction.numeric import full_regressor
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import load_truth
from robot_dynid_evaluation.bench import Target, forward, identify, regressor, rollout, row
from robot_dynid_evaluation.bench.synthetic import write_recording
from robot_dynid_evaluation.bench.timing import ROBOT, in_turns, random_motion


def test_rows_say_whether_the_target_is_kept() -> None:
    fast = row('x', 's', 1.0, 3.0, Target(2.0))
    assert (fast['ratio'], fast['kept'], fast['target']) == (3.0, True, '>= 2')
    slow = row('x', 's', 2.0, 1.0, Target(1.3, faster=False))
    assert (slow['ratio'], slow['kept'], slow['target']) == (2.0, False, '<= 1.3')


def test_contenders_take_turns() -> None:
    seen: list[str] = []
    found = in_turns({'a': lambda: seen.append('a'), 'b': lambda: seen.append('b')},
                     lambda *_: None, rounds=2)
    assert seen == ['a', 'b'] * 3
    assert set(found) == {'a', 'b'}


def test_peer_of_the_regressor_computes_the_same() -> None:
    pytest.importorskip('pinocchio')
    robot = load_robot(ROBOT)
    structure = Structure.uniform(robot, True, 'coulomb', {'width': 1e-9})
    samples = random_motion(robot, 20)
    tall = regressor.peers(robot, samples)[1]()
    ours = full_regressor(robot, structure.blocks(robot), samples)
    np.testing.assert_allclose(tall.reshape(robot.n, 20, -1), ours.transpose(0, 2, 1), atol=1e-12)


def test_peer_of_forward_dynamics_computes_the_same() -> None:
    pytest.importorskip('pinocchio')
    model = forward.true_model()
    ours, aba = forward.peers(model)
    samples = random_motion(model.robot, forward.STATES)
    np.testing.assert_allclose(ours(), samples.acceleration, rtol=1e-9, atol=1e-9)
    # ABA knows neither friction nor rotors: the same work, not the same numbers
    assert aba().shape == samples.acceleration.shape


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


@pytest.mark.slow
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
