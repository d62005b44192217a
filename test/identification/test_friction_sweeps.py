"""Designed sweeps on the simulated robot: the friction it was given comes back, with its band."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robot_dynid import load_robot
from robot_dynid.cli.main import main
from robot_dynid.estimation.friction_sweeps import FrictionCurve
from robot_dynid.excitation.design import design
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.sequential_fit import friction_curves, single_joint_motions_of
from robot_dynid.io.csv import write_csv
from robot_dynid.io.trajectory_file import load_trajectory
from robot_dynid.signals.prepare import Preprocessing, repair
from robot_dynid.simulation.arm import Arm, measured, record
from robot_dynid.simulation.truth import Truth, load_truth
from robot_dynid.trajectories.trajectory import Trajectory
from robot_dynid.types import FloatArray, RawLog

ROBOT = load_robot('planar_3r')
TRUTH = load_truth(ROBOT)
OPTIONS = {'speeds': 5, 'configurations': 1, 'slowest': 0.03}


def sweeps() -> Trajectory:
    request = parse_request('constant-velocity', OPTIONS)
    return design(ROBOT, request, design_criteria(ROBOT)).trajectory


def curves(log: RawLog, seed: int) -> list[FrictionCurve]:
    seen = measured(log, ROBOT, TRUTH.noise, np.random.default_rng(seed))
    settings = Preprocessing(cutoff=10.0)
    found, notes = friction_curves(
        ROBOT, single_joint_motions_of(ROBOT, repair(ROBOT, seen), settings), Recipe()
    )
    assert notes == []
    return found


def true_friction(truth: Truth, joint: str, speed: FloatArray) -> FloatArray:
    i = ROBOT.index(joint)
    dry = [truth.dry(np.full(ROBOT.n, v))[i] for v in speed]
    return np.asarray(truth.viscous[i] * speed + dry)


def covered(truth: Truth, found: list[FrictionCurve]) -> tuple[list[bool], list[bool]]:
    """Return which points are inside their intervals, which places of the laws in their bands."""
    points, band = [], []
    for curve in found:
        speeds = np.array([p.speed for p in curve.points])
        true = true_friction(truth, curve.joint, speeds)
        points += [abs(p.friction - t) <= p.half_width for p, t in zip(curve.points, true)]
        between = np.geomspace(speeds[0], speeds[-1], 25)
        assert curve.fit is not None
        apart = curve.fit.torque(between) - true_friction(truth, curve.joint, between)
        band += (np.abs(apart) <= curve.fit.half_width(between)).tolist()
    return points, band


def told(points: list[bool], band: list[bool], seeds: int) -> tuple[float, float]:
    shares = float(np.mean(points)), float(np.mean(band))
    text = (f'friction of the simulated robot, {seeds} seeds: {100 * shares[0]:.1f} % of '
            f'{len(points)} speeds inside their 95 % interval, {100 * shares[1]:.1f} % of the '
            'curves inside their 95 % band')
    print(f'\n{text}')  # noqa: T201
    return shares


@pytest.mark.parametrize('seeds', [4, pytest.param(10, marks=pytest.mark.soak)])
def test_the_friction_of_the_simulated_robot_is_inside_its_band(seeds: int) -> None:
    log = record(Arm(ROBOT, TRUTH), sweeps())
    points, band = [], []
    for seed in range(seeds):
        more = covered(TRUTH, curves(log, seed))
        points += more[0]
        band += more[1]
    assert len(points) == seeds * 3 * 5
    shares = told(points, band, seeds)
    # 150 intervals of ten seeds: +- 1.8 % by chance; below the noise the recording is the same
    assert shares[0] >= 0.9
    assert shares[1] >= 0.85


@pytest.mark.soak
def test_bands_hold_over_fifty_robots_with_friction_of_their_own() -> None:
    motion, points, band = sweeps(), [], []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        truth = replace(TRUTH, viscous=TRUTH.viscous * rng.uniform(0.5, 2.0, 3),
                        coulomb=TRUTH.coulomb * rng.uniform(0.5, 2.0, 3))
        if seed % 2:
            truth = replace(truth, stribeck=truth.coulomb * rng.uniform(0.2, 0.6, 3),
                            stribeck_speed=rng.uniform(0.1, 0.3, 3))
        more = covered(truth, curves(record(Arm(ROBOT, truth), motion), seed))
        points += more[0]
        band += more[1]
    shares = told(points, band, 50)
    assert 0.93 <= shares[0] <= 0.98  # 750 intervals: +- 0.8 % by chance
    assert shares[1] >= 0.85


def test_the_motors_of_a_coupled_wrist_have_curves_of_their_own() -> None:
    robot = load_robot('tx40')
    truth = load_truth(robot)
    request = parse_request('constant-velocity', {
        'joints': ['joint_5', 'joint_6'], 'configurations': 1,
        'ladder': {'joint_5': [0.7, 1.5, 4.0], 'joint_6': [0.7, 1.5, 4.0]}})
    log = record(Arm(robot, truth), design(robot, request, design_criteria(robot)).trajectory)
    seen = measured(log, robot, truth.noise, np.random.default_rng(0))
    settings = Preprocessing(cutoff=10.0)
    found, _ = friction_curves(
        robot, single_joint_motions_of(robot, repair(robot, seen), settings), Recipe()
    )
    assert [c.joint for c in found] == ['joint_5', 'joint_6']
    for curve in found:
        i = robot.index(curve.joint)
        for p in curve.points:
            # what joint 5 feels of motor 6 besides is 1.95 N m and more
            assert p.friction == pytest.approx(
                truth.viscous[i] * p.speed + truth.coulomb[i], abs=0.03)


@pytest.mark.soak
def test_the_friction_of_motors_behind_harmonic_drives_is_inside_its_band() -> None:
    robot = load_robot('seven_axis')
    truth = load_truth(robot, 'seven_axis_drives')
    request = parse_request('constant-velocity', {
        'joints': ['joint_2', 'joint_4'], 'configurations': 1, 'speeds': 9, 'slowest': 0.005})
    log = record(Arm(robot, truth), design(robot, request, design_criteria(robot)).trajectory)
    inside, settings = [], Preprocessing(cutoff=10.0)
    for seed in range(10):
        seen = measured(log, robot, truth.noise, np.random.default_rng(seed))
        found, notes = friction_curves(
            robot, single_joint_motions_of(robot, repair(robot, seen), settings), Recipe())
        assert not any('jerks' in note for note in notes)
        assert [c.name for c in found] == ['stribeck', 'stribeck']
        for curve in found:
            i = robot.index(curve.joint)
            for p in curve.points:
                true = truth.viscous[i] * p.speed + truth.dry(np.full(robot.n, p.speed))[i]
                inside.append(abs(p.friction - true) <= p.half_width)
    text = f'behind harmonic drives: {100 * np.mean(inside):.1f} % of {len(inside)} speeds inside'
    print(f'\n{text}')  # noqa: T201
    assert len(inside) == 180
    assert np.mean(inside) >= 0.9


def test_designed_run_identified_the_known_law_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, data, model = (str(tmp_path / n) for n in ('plan.yaml', 'run.csv', 'model.yaml'))
    assert main(['design', 'planar_3r', '--type', 'constant-velocity', '--options',
                 json.dumps(OPTIONS), '--out', plan, '--json']) == 0
    log = record(Arm(ROBOT, TRUTH), load_trajectory(plan))
    write_csv(data, measured(log, ROBOT, TRUTH.noise, np.random.default_rng(0)))
    capsys.readouterr()
    report = str(tmp_path / 'report.html')
    assert main(['identify', data, '--robot', 'planar_3r', '--out', model, '--report', report,
                 '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert [c['joint'] for c in found['friction_curves']] == list(ROBOT.joints)
    for i, curve in enumerate(found['friction_curves']):
        assert curve['law'] == 'coulomb'
        values = {p['name']: p['value'] for p in curve['parameters']}
        assert values['fv'] == pytest.approx(TRUTH.viscous[i], rel=0.03)
        assert values['fc'] == pytest.approx(TRUTH.coulomb[i], rel=0.03)
        assert len(curve['points']) == 5
    text = Path(report).read_text()
    assert 'Friction over speed' in text
    assert 'friction_curves:' in Path(model).read_text()
