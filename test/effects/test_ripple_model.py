"""effects/ripple.py: torque ripple as waves over position: columns, phase, file, report."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tolerances
from report_pages import unpacked

from robot_dynid.document import Section
from robot_dynid.effects.ripple import ALIASED, RIPPLE, STIFFNESS, RippleTorque, TorqueRipple
from robot_dynid.effects.ripple_search import Wave
from robot_dynid.identified.record import JointRipple
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, Samples, frozen

GENERATOR = np.random.default_rng(3)
STATES = tuple(GENERATOR.normal(size=(3, 40, 3)) * np.array([1.0, 0.8, 30.0])[:, None, None])


def a_ripple(waves: int = 2, seed: int = 1) -> TorqueRipple:
    generator = np.random.default_rng(seed)
    return TorqueRipple(
        frozen(generator.integers(100, 1300, waves)), frozen(generator.uniform(-8e-3, 0.0, waves)),
        2e-5, 0.05, 0.9, frozen(generator.normal(size=6 * waves)))


def by_hand(ripple: TorqueRipple, q: float, qd: float, tau: float) -> float:
    """Return the formula of the docstring, for one state."""
    shares = (1.0, min(abs(qd) / ripple.fast, 1.0), np.exp(-abs(qd) / ripple.slow))
    torque = 0.0
    for k, (order, delay) in enumerate(zip(ripple.orders, ripple.delays, strict=True)):
        phase = order * (q + ripple.compliance * tau + delay * qd)
        for s, share in enumerate(shares):
            a, b = ripple.coefficients[6 * k + 2 * s:6 * k + 2 * s + 2]
            torque += share * (a * np.sin(phase) + b * np.cos(phase))
    return torque


def test_columns_times_coefficients_are_the_formula() -> None:
    ripple = a_ripple()
    q, qd, tau = (x[:, 0] for x in STATES)
    expected = [by_hand(ripple, *state) for state in zip(q, qd, tau, strict=True)]
    np.testing.assert_allclose(ripple.columns(q, qd, tau) @ ripple.coefficients, expected,
                               rtol=0.0, atol=tolerances.SAME_FORMULA)
    np.testing.assert_allclose(ripple.effort(q, qd, tau), expected,
                               rtol=0.0, atol=tolerances.SAME_FORMULA)


def test_ripple_torque_of_all_joints_equals_that_of_each_joint() -> None:
    ripples = (a_ripple(), None, a_ripple(3, seed=2))
    together = RippleTorque(ripples)(*STATES)
    alone: FloatArray = np.stack([
        np.zeros(40) if one is None else one.effort(*(x[:, j] for x in STATES))
        for j, one in enumerate(ripples)], axis=1)
    np.testing.assert_allclose(together, alone, rtol=0.0, atol=tolerances.SAME_FORMULA)
    second = RippleTorque((None, ripples[0], None))(*STATES)
    np.testing.assert_allclose(second[:, 1], ripples[0].effort(*(x[:, 1] for x in STATES)),
                               rtol=0.0, atol=tolerances.SAME_FORMULA)
    assert not second[:, [0, 2]].any()
    assert not RippleTorque((None, None, None))(*STATES).any()


def test_waves_of_a_ripple_add_up_to_its_effort() -> None:
    ripple = a_ripple(3)
    states = tuple(x[:, 0] for x in STATES)
    found = [ripple.wave(order + 0.1, *states) for order in ripple.orders]
    np.testing.assert_allclose(sum(torque for _, torque in found), ripple.effort(*states),
                               rtol=0.0, atol=tolerances.SAME_FORMULA)
    np.testing.assert_array_equal(np.stack([phase for phase, _ in found], axis=1),
                                  ripple.phases(*states))


def test_ripple_torque_round_trips_through_plain_types() -> None:
    ripple = a_ripple()
    again = RippleTorque.read(ripple.plain())
    assert again.plain() == ripple.plain()


@pytest.mark.parametrize('change', [
    {'orders': [0.0, 5.0]}, {'delays': [0.0]}, {'slow': 0.0}, {'coefficients': [1.0] * 6},
    {'compliance': float('nan')}, {'orders': [], 'delays': [], 'coefficients': []}])
def test_a_damaged_one_is_refused(change: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        RippleTorque.read({**a_ripple().plain(), **change})


WAVE = Wave(200.0, 0.25, -0.0012, 0.0004, 2e-4)
RIPPLES = (JointRipple('joint_1', 2.0, 1.6, (WAVE, replace(WAVE, order=101.0, chance=1.2e-9))),
           JointRipple('joint_2', 3.0, 3.0),
           JointRipple('joint_3', 4.0, 3.9, aliased=(
               Wave(77.0, 0.5, 0.0, 0.0, 0.0, (91.0, 92.5)),
               Wave(55.0, 0.5, 0.0, 0.0, 0.0, (9.0,)))))


def sections(*ripples: JointRipple) -> tuple[Section, ...]:
    return RippleTorque.sections(SimpleNamespace(record=SimpleNamespace(ripple=ripples)))


def test_sections_of_ripple_tell_errors_waves_and_what_was_not_used() -> None:
    assert sections() == ()
    (section,) = sections(*RIPPLES)
    assert section.title == 'Torque ripple'
    assert section.text == (
        f'{RIPPLE} None beyond chance at joint_2. {ALIASED} 77 at joint_3, which looks like 91, '
        '92.5; 55 at joint_3, which looks like 9.')
    errors, waves = section.tables
    assert [row.cells for row in errors.rows] == [('joint_1', '2', '1.6', '36.0', '2', '')]
    assert (waves.title, waves.folded) == ('Waves', False)
    assert [row.cells for row in waves.rows] == [
        ('joint_1', '200', '0.25', '-1.20 ± 0.40', '2e-04'),
        ('joint_1', '101', '0.25', '-1.20 ± 0.40', '1e-09')]
    (unlikely,) = sections(replace(RIPPLES[0], waves=(replace(WAVE, chance=0.9e-9),)))
    assert unlikely.text == RIPPLE
    assert unlikely.tables[1].rows[0].cells[-1] == '< 1e-09'


def test_sections_of_ripple_have_no_tables_without_a_wave() -> None:
    (section,) = sections(RIPPLES[1])
    assert (section.text, section.tables) == (f'{RIPPLE} None beyond chance at joint_2.', ())


def test_sections_of_ripple_give_the_stiffness_with_its_interval() -> None:
    soft = replace(RIPPLES[0], compliance=1e-4, compliance_std=2e-5)
    (section,) = sections(soft, RIPPLES[0])
    assert section.text == f'{RIPPLE} {STIFFNESS}'
    assert [row.cells[-1] for row in section.tables[0].rows] == ['10 (7.18 to 16.4)', '']


@pytest.mark.parametrize(('count', 'title'), [(12, 'Waves'), (13, 'All 13 waves')])
def test_sections_of_ripple_fold_more_than_twelve_waves(count: int, title: str) -> None:
    (section,) = sections(replace(RIPPLES[0], waves=(WAVE,) * count))
    assert (section.tables[1].title, section.tables[1].folded) == (title, count > 12)


def test_figures_show_the_largest_wave_over_its_phase_in_motion() -> None:
    robot = load_robot('stanford_arm')  # its third joint slides
    ripples = [JointRipple(robot.joints[2], 2.0, 1.0, (replace(WAVE, order=250.0), WAVE)),
               JointRipple(robot.joints[1], 2.0, 2.0)]
    model = SimpleNamespace(robot=robot, record=SimpleNamespace(ripple=ripples))
    middle = (np.arange(36) + 0.5) * np.pi / 18.0
    phase = np.repeat(middle, 12) + 2.0 * np.pi * np.tile(np.arange(12), 36)
    traces = []
    for half in (slice(0, 200), slice(200, 432)):
        waves = np.zeros((2, len(phase[half]), robot.n))
        waves[0, :, 2], waves[1, :, 2] = phase[half], 3.0 * np.sin(phase[half])
        measured, predicted, velocity = np.zeros((3, len(phase[half]), robot.n))
        measured[:, 2], predicted[:, 2], velocity[:, 2] = 5.0, 4.5, -1.0
        traces.append(SimpleNamespace(
            waves=waves, measured=measured, predicted=predicted, velocity=velocity))
    drawn = RippleTorque.figures(model, traces)
    assert list(drawn) == [2]
    (figure,) = drawn[2]
    assert figure.title == 'Torque ripple over position, 250 waves per turn'
    curves = {curve['name']: curve for curve in figure.spec['data']}
    torque = 3.0 * np.sin(middle)
    for name, expected in (('measured, median', torque + 0.5), ('model', torque)):
        assert unpacked(curves[name]['x']) == pytest.approx(1e3 / 250.0 * middle, rel=1e-5)
        assert unpacked(curves[name]['y']) == pytest.approx(expected, abs=1e-5)
    there_and_back = 1e3 / 250.0 * np.append(middle, middle[::-1])
    assert unpacked(curves['quartiles']['x']) == pytest.approx(there_and_back, rel=1e-5)
    assert figure.spec['layout']['xaxis']['title']['text'] == 'position within a wave [mm]'
    assert figure.spec['layout']['yaxis']['title']['text'] == 'torque [N]'
    for lacking in ('waves', 'velocity'):
        lame = SimpleNamespace(**{**vars(traces[1]), lacking: None})
        assert not RippleTorque.figures(model, [traces[0], lame])


@pytest.mark.parametrize(('share', 'moves'), [(0.045, False), (0.055, True)])
def test_figures_of_ripple_leave_out_creep_below_a_twentieth_of_the_rms(
    share: float, moves: bool
) -> None:
    robot = load_robot('planar_3r')
    model = SimpleNamespace(robot=robot, record=SimpleNamespace(
        ripple=[JointRipple(robot.joints[1], 2.0, 1.0, (WAVE,))]))
    creep = np.arange(400) < 20
    waves = np.zeros((2, 400, 3))
    waves[0, :, 1] = np.where(creep, 1.0, 4.0)
    velocity = np.zeros((400, 3))
    velocity[:, 1] = np.where(creep, share * np.sqrt(0.95), 1.0) * -3.0
    trace = SimpleNamespace(waves=waves, velocity=velocity, measured=velocity, predicted=velocity)
    (figure,) = RippleTorque.figures(model, [trace])[1]
    assert len(unpacked(figure.spec['data'][1]['x'])) == 1 + moves


def test_effort_of_samples_takes_positions_as_measured_and_velocity_at_stamps() -> None:
    ripple = a_ripple()
    torque = RippleTorque((ripple, None, None))
    q, qd, tau = (np.ascontiguousarray(x) for x in STATES)
    samples = Samples(('a', 'b', 'c'), 0.01 * np.arange(40.0), q + 1.0, qd, np.zeros_like(q))
    assert not torque.along(None, np.empty(0), samples, tau).any()  # type: ignore[arg-type]
    raw = replace(samples, raw_position=q)
    expected = np.zeros_like(q)
    expected[:, 0] = ripple.effort(q[:, 0], qd[:, 0], tau[:, 0])
    assert expected.any()
    np.testing.assert_allclose(torque.along(None, np.empty(0), raw, tau),  # type: ignore[arg-type]
                               expected, rtol=0.0, atol=tolerances.SAME_FORMULA)
