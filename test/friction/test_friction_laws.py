"""friction/laws.py: friction laws: one contract for all, and each against a computation of its
own."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from friction_formulas import sliding_columns
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from tolerances import FITTED_EXPONENTIAL

from robot_dynid.errors import UsageError
from robot_dynid.friction import ADDITIONS, LAWS, AxisFriction, AxisMotion, Coulomb, law_from
from robot_dynid.friction.laws import LENGTHS, Dahl, Maxwell, Stribeck, TwoSpeed
from robot_dynid.friction.terms import (
    CONSTANT,
    POWER,
    RAMP,
    TANH,
    Term,
    sliding_table,
    words_of,
)
from robot_dynid.kernels.friction import KIND, ROW, SCALE, SECONDS, WEIGHT

NAMES = [*LAWS, *(f'{law}+{added}' for law in LAWS for added in ADDITIONS),
         'maxwell+levelling+load+drift+temperature']


def wandering(seed=0, count=400, size=1e-3, starts=(0,)):
    """Return a motion with many reversals, some within the lengths of presliding."""
    rng = np.random.default_rng(seed)
    steps = size * rng.normal(size=count) * 10.0 ** rng.uniform(-2, 1, count)
    time = 0.01 * np.arange(count)
    return AxisMotion(time, np.cumsum(steps), steps / 0.01, starts, 20.0 * rng.normal(size=count),
                      25.0 + 5.0 * rng.normal(size=count))


def states(seed=0, count=200):
    """Return unrelated states."""
    return replace(wandering(seed, count), starts=tuple(range(count)))


@pytest.mark.parametrize('name', NAMES)
def test_law_is_rebuilt_from_its_settings(name):
    law = law_from(name)
    assert law_from(name, law.settings()) == law
    found = law.columns(wandering())
    assert found.shape == (len(law.parameters), 400) and np.isfinite(found).all()
    assert len(set(law.parameters)) == len(law.parameters)
    for some in (law.holding, law.nonnegative, law.odd):
        assert set(some) <= set(law.parameters)


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('motion', [wandering(), states()], ids=['motion', 'states'])
def test_friction_parameters_have_the_parity_they_state(name, motion):
    law = law_from(name)
    forth = dict(zip(law.parameters, law.columns(motion), strict=True))
    back = dict(zip(law.parameters, law.columns(motion.reversed()), strict=True))
    for parameter, torque in forth.items():
        if parameter in law.odd:
            np.testing.assert_allclose(back[parameter], -torque, rtol=0.0, atol=1e-12)
        elif parameter == 'f0':
            np.testing.assert_array_equal(torque, 1.0)
        else:  # one direction only: forward and backward change places
            twin = parameter[:-1] + {'p': 'n', 'n': 'p'}[parameter[-1]]
            np.testing.assert_allclose(back[twin], -torque, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize('name', NAMES)
@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_nonnegative_parameters_dissipate(name, seed):
    law, rng = law_from(name), np.random.default_rng(seed)
    values = np.array([rng.exponential() if p in law.nonnegative else 0.0
                       for p in law.parameters])
    still = states(seed)
    assert np.all((values @ law.columns(still)) * still.velocity >= -1e-12)
    # with a past friction gives back what it has stored, never more: no work from relaxed (under
    # a constant load; one that changes while the axis sticks does work of its own)
    motion = replace(wandering(seed, starts=(0, 150)), load=np.full(400, 2.0))
    motion.velocity[[0, 150]] = 0.0  # at rest, or it would begin with bent bristles
    power = (values @ law.columns(motion))[1:] * np.diff(motion.position)
    for part in (power[:149], power[150:]):
        assert np.all(np.cumsum(part) >= -1e-12)


@pytest.mark.parametrize('name', NAMES)
def test_friction_laws_at_rest_hold_only_offset_and_state(name):
    law = law_from(name)
    count = 20
    still = AxisMotion(np.arange(count) * 0.1, np.full(count, 0.3), np.zeros(count))
    for parameter, torque in zip(law.parameters, law.columns(still), strict=True):
        np.testing.assert_array_equal(torque, 1.0 if parameter == 'f0' else 0.0)
    # after a motion, what holds an axis stays where it is, and all else goes
    moved = AxisMotion(np.arange(count) * 0.1, np.minimum(np.linspace(0, 1, count), 0.5),
                       np.where(np.arange(count) < count // 2, 0.5, 0.0))
    for parameter, torque in zip(law.parameters, law.columns(moved), strict=True):
        if parameter.startswith(('fv', 'fl', 'fq', 'fk', 'fs', 'fu')):
            assert torque[-1] == 0.0


@pytest.mark.parametrize('name', ['dahl', 'maxwell'])
def test_presliding_keeps_its_torque_at_rest(name):
    position = np.minimum(np.linspace(0.0, 1.0, 50), 0.5)
    velocity = np.gradient(position)
    law = law_from(name)
    torque = law.columns(AxisMotion(np.arange(50.0), position, velocity))
    held = [torque[law.parameters.index(p), -1] for p in law.holding]
    np.testing.assert_allclose(held, 1.0)


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.lists(st.floats(1e-5, 1e-1), min_size=1, max_size=4))
def test_stop_operator_by_brute_force(seed, lengths):
    """The spring is pulled until it slips: its end is dragged along at the stretch ``length``."""
    motion = wandering(seed, 120, starts=(0, 40, 80))
    motion.velocity[[0, 40, 80]] = 0.0
    found = Maxwell(tuple(sorted(set(lengths)))).columns(motion)[1:-1]
    for length, states_ in zip(sorted(set(lengths)), found, strict=True):
        for i, q in enumerate(motion.position):
            if i in motion.starts:
                end = q
            end = min(max(end, q - length), q + length)
            assert states_[i] == pytest.approx((q - end) / length, abs=1e-9)


def dahl_state(position):
    """Return the state (N,) of Dahl's law over 3e-4 rad, from rest."""
    still = np.zeros_like(position)
    return Dahl(length=3e-4).columns(AxisMotion(still, position, still))[1]


def test_dahl_state_solves_its_equation():
    position = 1e-3 * np.sin(np.linspace(0.0, 9.0, 200_001))
    fine = dahl_state(position)
    slope = np.diff(fine) / np.diff(position)
    middle = 0.5 * (fine[1:] + fine[:-1])
    expected = (1.0 - np.sign(np.diff(position)) * middle) / 3e-4
    smooth = np.abs(np.diff(position)) > 1e-12
    np.testing.assert_allclose(slope[smooth], expected[smooth], rtol=1e-3, atol=5.0)
    # the recursion is exact while the direction holds, however long the steps
    coarse = dahl_state(position[:1000:999])
    assert coarse[1] == pytest.approx(fine[999], rel=1e-9)


@pytest.mark.parametrize('amplitude', [2e-4, 2e-3])
def test_area_of_a_hysteresis_loop(amplitude):
    """Closed forms of the last of many cycles."""
    cycles, count = 10, 20_000
    turn = np.linspace(0.0, 2.0 * np.pi * cycles, cycles * count + 1)
    position = amplitude * np.sin(turn)
    law = Maxwell(lengths=(1e-4, 1e-3))
    motion = AxisMotion(np.arange(float(len(position))), position, np.gradient(position))
    last = slice((cycles - 1) * count, None)
    for length, state in zip(law.lengths, law.columns(motion)[1:-1], strict=True):
        area = trapezoid(state[last], position[last])
        expected = 4.0 * (amplitude - length) if amplitude > length else 0.0
        assert area == pytest.approx(expected, abs=1e-4 * amplitude)
    state = Dahl(length=3e-4).columns(motion)[1]
    top = np.tanh(amplitude / 3e-4)  # where the loop turns
    expected = 4.0 * (amplitude - 3e-4 * top)
    assert trapezoid(state[last], position[last]) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize('name', [*NAMES, 'coulomb+drift+breakaway'])
def test_states_without_a_past_have_the_friction_of_the_formulas(name):
    law = law_from(name, {'drift': {'seconds': 20.0, 'longest': 15.0}} if 'drift' in name else {})
    motion = replace(states(), temperature=None)
    expected = sliding_columns(name, law, motion.velocity, motion.load)
    np.testing.assert_allclose(law.columns(motion), expected, rtol=1e-9, atol=1e-12)
    values = np.random.default_rng(3).normal(size=(2, len(law.parameters)))
    axes = np.array([[1.0, 0.0], [0.5, -1.0]])
    velocity = np.stack([motion.velocity, motion.velocity[::-1]], axis=1)
    load = np.stack([motion.load, motion.load[::-1]], axis=1)
    friction = AxisFriction.of(axes, [law, law], values, (np.eye(2), np.ones((2, 10))))
    by_axis = np.stack([values[i] @ sliding_columns(name, law, velocity @ axes[i], load[:, i])
                        for i in range(2)], axis=1)
    np.testing.assert_allclose(friction.torque(velocity, load), by_axis @ axes,
                               rtol=1e-9, atol=1e-12 * np.abs(by_axis).max())


def test_two_speed_by_hand():
    law = TwoSpeed(steepness=1e-4, threshold=0.1)
    v = np.array([0.05, 0.5, -0.05, -0.5])
    motion = AxisMotion(np.arange(4.0), v, v, (0, 1, 2, 3))
    expected = {'fcp': [1, 1, 0, 0], 'fcn': [0, 0, -1, -1], 'fvp': [0, 0.5, 0, 0],
                'fvn': [0, 0, 0, -0.5], 'fqp': [0, 0.25, 0, 0], 'fqn': [0, 0, 0, -0.25],
                'fkp': [0, 0.125, 0, 0], 'fkn': [0, 0, 0, -0.125]}
    np.testing.assert_allclose(law.columns(motion), [expected[p] for p in law.parameters])


def test_stribeck_peak_lies_between_its_speeds():
    law = Stribeck(width=1e-3, speed=0.1)
    v = np.geomspace(1e-5, 10.0, 2000)
    torque = np.array([0.0, 1.0, 0.5, 0.0]) @ law.columns(AxisMotion(v, v, v))
    assert torque[-1] == pytest.approx(1.0, abs=1e-9)
    assert torque.max() == pytest.approx(1.5, abs=0.05)
    assert 1e-3 < v[np.argmax(torque)] < 0.1


def test_breakaway_fades_with_the_speed():
    law = law_from('coulomb+breakaway', {'width': 0.01, 'breakaway': {'speed': 0.1}})
    v = np.array([0.1, -0.1, 0.005, 10.0])
    found = law.columns(AxisMotion(v, v, v))[-1]
    faded = 1.0 - np.tanh([1.0, 1.0, 0.05, 100.0])
    np.testing.assert_allclose(found, faded * [1.0, -1.0, 0.5, 1.0], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize('name', ['dahl', 'maxwell'])
def test_a_recording_that_begins_in_motion_begins_sliding(name):
    law = law_from(name)
    time = 0.01 * np.arange(50)
    for speed, begin in ((-0.5, -1.0), (0.0, 0.0)):
        motion = AxisMotion(time, speed * time, np.full(50, speed))
        held = [law.parameters.index(p) for p in law.holding]
        np.testing.assert_allclose(law.columns(motion)[held, 0], begin)


def test_additions_by_hand():
    law = law_from('coulomb+load+drift+temperature', {
        'width': 0.1, 'drift': {'seconds': 2.0}, 'temperature': {'reference': 20.0}})
    v = np.array([0.2, -0.2, 0.05])
    motion = AxisMotion(np.array([5.0, 7.0, 9.0]), v, v, (0,), np.array([3.0, -4.0, 5.0]),
                        np.array([20.0, 30.0, 25.0]))
    ramp = np.array([1.0, -1.0, 0.5])
    np.testing.assert_allclose(law.columns(motion)[3:], [
        np.array([3.0, 4.0, 5.0]) * ramp, np.exp([0.0, -1.0, -2.0]) * ramp,
        np.array([0.0, 10.0, 5.0]) * ramp, np.array([0.0, 10.0, 5.0]) * v])
    unknown = replace(motion, load=None, temperature=None)
    assert not law.columns(unknown)[[3, 5, 6]].any()


@pytest.mark.parametrize(('name', 'given', 'message'), [
    ('coulumb', {}, 'choose one of coulomb'), ('coulomb+glue', {}, 'may be added'),
    ('coulomb+load+load', {}, 'may be added'), (None, {}, 'choose one of'),
    ('coulomb', {'width': 0.0}, 'width must be positive'),
    ('coulomb', {'width': np.nan}, 'width must be a finite'),
    ('coulomb', {'length': 1.0}, 'length'),
    ('dahl', {'length': -1e-3}, 'length must be positive'),
    ('maxwell', {'lengths': []}, 'at least one'),
    ('maxwell', {'lengths': [1e-3, 1e-4]}, 'must increase'),
    ('maxwell', {'lengths': 1e-3}, 'must be a list'),
    ('maxwell', {'lengths': ['a']}, 'must be a finite'),
    ('stribeck', {'width': 0.2, 'speed': 0.1}, 'above width'),
    ('two-speed', {'threshold': 1e-3, 'steepness': 0.1}, 'below'),
    ('coulomb+drift', {'drift': {'seconds': 0.0}}, 'seconds must be positive'),
    ('coulomb+levelling', {'levelling': {'speed': True}}, 'speed must be a finite'),
])
def test_wrong_laws_are_refused(name, given, message):
    with pytest.raises(UsageError, match=message):
        law_from(name, given)


def test_grids_lie_within_their_ranges():
    for made in (*LAWS.values(), *ADDITIONS.values()):
        for shape in made().shapes if callable(made) else ():
            assert len(shape.grid) == shape.count
            assert all(a < b for a, b in combinations(shape.grid, 2))
    assert Coulomb().shapes[0].grid[0] == 1e-3


@pytest.mark.parametrize('exponent', [1.0, 1.5, 2.0])
def test_textbook_friction_falls_as_the_exponential(exponent: float) -> None:
    law = law_from('exponential', {'width': 1e-6, 'speed': 0.2, 'exponent': exponent})
    v = np.linspace(-2.0, 2.0, 2002)
    still = np.zeros_like(v)
    static = law.columns(AxisMotion(still, still, v, tuple(range(len(v)))))[2]
    np.testing.assert_allclose(
        static, np.sign(v) * np.exp(-np.abs(v / 0.2)**exponent), rtol=0.0, atol=FITTED_EXPONENTIAL)


@pytest.mark.parametrize(('term', 'viscous'), [
    (Term(POWER), True), (Term(POWER, side=-1.0), True), (Term(POWER, 1.5), False),
    (Term(RAMP, 1.0), False), (Term(POWER, reference=25.0), False)])
def test_viscous_terms_are_proportional_to_velocity(term: Term, viscous: bool) -> None:
    assert term.viscous is viscous


#: settings [rad/s, m/s; rad, m; s; deg C] of laws and additions that name none
DEFAULTS = {
    'coulomb': {'width': 0.01}, 'asymmetric': {'width': 0.01},
    'two-speed': {'steepness': 0.01, 'threshold': 0.05},
    'stribeck': {'width': 0.01, 'speed': 0.1}, 'dahl': {'length': 3e-4, 'width': 0.01},
    'exponential': {'width': 0.01, 'speed': 0.1, 'exponent': 2.0},
    'maxwell': {'lengths': [1e-4, 1e-3], 'width': 0.01}, 'none': {},
    'levelling': {'speed': 0.3}, 'breakaway': {'speed': 0.1}, 'load': {},
    'drift': {'seconds': 30.0}, 'temperature': {'reference': 25.0}}


def test_laws_that_name_no_settings_have_those_of_usual_joints() -> None:
    found = {name: law_from(name).settings() for name in LAWS}
    found |= {name: law_from(f'none+{name}').settings()[name] for name in ADDITIONS}
    assert {name: {key: list(value) if isinstance(value, tuple) else value
                   for key, value in settings.items() if value is not None}
            for name, settings in found.items()} == DEFAULTS


def test_a_power_below_one_is_refused() -> None:
    """Its slope at rest is infinite, and dynamics would be NaN there."""
    with pytest.raises(UsageError, match=r'power 0\.5 of the speed has an infinite slope at rest'):
        Term(POWER, 0.5)


def test_friction_for_simulators_is_that_of_warm_steady_sliding_with_ramps_they_can_take():
    laws = [law_from('stribeck+temperature', {'width': 0.01, 'speed': 0.2}),
            law_from('dahl+drift', {'width': 0.003, 'drift': {'seconds': 10.0, 'longest': 20.0}})]
    found = sliding_table([law.table for law in laws], np.array([0.05, 0.002]))
    assert found[:, ROW].tolist() == [0, 1, 2, 2, 3, 6, 7, 8, 9]  # of 6 and 4 parameters
    kinds = [POWER, TANH, TANH, TANH, CONSTANT, POWER, RAMP, CONSTANT, RAMP]
    assert found[:, KIND].tolist() == kinds
    assert found[:, SCALE].tolist() == [1.0, 0.05, 0.05, 0.2, 1.0, 1.0, 0.003, 1.0, 0.003]
    assert found[:, WEIGHT].tolist() == [1, 1, 1, -1, 1, 1, 1, 1, np.exp(-2.0)]
    assert not found[:, SECONDS].any()


#: searched settings [rad, m, rad/s, m/s, s]: first and last of the values tried, and their number
GRIDS = {
    ('coulomb', 'width'): (1e-3, 0.1, 7), ('asymmetric', 'width'): (1e-3, 0.1, 7),
    ('two-speed', 'steepness'): (3e-3, 0.03, 2), ('two-speed', 'threshold'): (0.02, 0.2, 3),
    ('stribeck', 'width'): (1e-3, 0.03, 4), ('stribeck', 'speed'): (0.01, 0.5, 5),
    ('exponential', 'width'): (1e-3, 0.03, 4), ('exponential', 'speed'): (0.01, 0.5, 5),
    ('dahl', 'length'): (2e-5, 0.02, 10), ('levelling', 'speed'): (0.0125, 1.6, 8),
    ('breakaway', 'speed'): (5e-3, 0.2, 4), ('drift', 'seconds'): (5.0, 500.0, 5)}


def test_values_that_are_tried_are_log_spaced_over_the_range_of_robots():
    found = {(kind.name, s.name): s.grid for kind in (*LAWS.values(), *ADDITIONS.values())
             for s in kind.shapes}
    assert {key: (grid[0], grid[-1], len(grid)) for key, grid in found.items()} == GRIDS
    for grid in found.values():
        np.testing.assert_allclose(grid, np.geomspace(grid[0], grid[-1], len(grid)), rtol=5e-3)
    # of two speeds the first is lower
    assert len(Stribeck.candidates()) == 4 * 5 - 2 and len(TwoSpeed.candidates()) == 5
    assert all(law.width < law.speed for law in Stribeck.candidates())
    assert [law.lengths for law in Maxwell.candidates()] == [LENGTHS]
    np.testing.assert_allclose(LENGTHS, 2e-5 * 10.0 ** (0.5 * np.arange(7)), rtol=0.06)


#: parameters that may be negative on a passive axis, of all laws and additions
EITHER_SIGN = {'f0', 'fvp', 'fvn', 'fqp', 'fqn', 'fkp', 'fkn', 'fd', 'ft', 'fu'}
#: parameters that hold an axis at rest
HOLDING = {'fc', 'fcp', 'fcn', 'fs', 'fca', 'fcb'}


@pytest.mark.parametrize('name', [*LAWS, *(f'coulomb+{added}' for added in ADDITIONS)])
def test_parameters_know_their_sign_and_whether_they_hold(name):
    law = law_from(name)
    either = EITHER_SIGN - ({'fvp', 'fvn'} if name == 'asymmetric' else set())
    assert set(law.nonnegative) == set(law.parameters) - either
    assert set(law.holding) == set(law.parameters) & HOLDING


def test_directions_are_in_words():
    for name in ('asymmetric', 'two-speed'):
        for parameter in law_from(name).table:
            way = {'p': ' forward', 'n': ' backward'}[parameter.name[-1]]
            assert way in words_of(parameter)


def test_additions_to_presliding_have_a_state_of_their_own():
    """Over 6e-5 rad, whatever lengths the law has; one length is not pruned."""
    motion = wandering(3, 60, size=2e-5)
    motion.velocity[0] = 0.0
    state = Maxwell((6e-5,)).columns(motion)[1]
    law = law_from('maxwell+load', {'lengths': [1e-3, 1e-2]})
    np.testing.assert_allclose(law.columns(motion)[-1], np.abs(motion.load) * state, rtol=1e-12)
    assert law.prunable == ('fca', 'fcb') and Maxwell((1e-3,)).prunable == ()
    assert law.without(['fca']).base.lengths == (1e-2,)
    assert law.without(['fca', 'fcb']).base.lengths == (1e-3,)
    assert law.unpruned().base.lengths == LENGTHS


def test_shapes_of_a_law_and_of_its_additions_are_searched_by_their_paths():
    law = law_from('dahl+breakaway+load+drift', {'length': 1e-3, 'drift': {'longest': 50.0}})
    assert [(path, shape.name) for path, shape in law.searched] == [
        (('length',), 'length'), (('breakaway', 'speed'), 'speed'),
        (('drift', 'seconds'), 'seconds')]
    found = law.reshaped({('length',): 2e-3, ('drift', 'seconds'): 7.0})
    assert found.settings() == {
        'length': 2e-3, 'width': 0.01, 'breakaway': {'speed': 0.1}, 'load': {},
        'drift': {'seconds': 7.0, 'longest': 50.0}}
    assert law.reshaped({('breakaway', 'speed'): 0.03}).settings()['breakaway'] == {'speed': 0.03}
    assert Coulomb().searched == ()  # its width is one for all axes
    with pytest.raises(UsageError, match=r'speed 0\.005 must be above width 0\.01$'):
        Stribeck().reshaped({('speed',): 0.005})


@pytest.mark.parametrize(('ends', 'message'), [
    ([-2.0, -2.0], None), ([-0.9e6, 1e6], None), ([-1.1e6, 0.0], 'at least -1e'),
    ([0.0, 1.1e6], 'at most 1e'),
    ([2.0, 1.5], r'stribeck: speeds must be the lowest and the highest value, is \[2.0, 1.5\]$')])
def test_ranges_of_a_fit_are_the_lowest_and_the_highest_value(ends, message):
    if message is None:
        assert law_from('stribeck', {'speeds': ends}).speeds == tuple(ends)
    else:
        with pytest.raises(UsageError, match=message):
            law_from('stribeck', {'speeds': ends})


def test_a_list_of_lengths_is_at_most_the_alphabet():
    lengths = np.geomspace(1e-5, 1e-2, 27).tolist()
    assert Maxwell(tuple(lengths[:26])).parameters[-2:] == ('fcz', 'f0')
    with pytest.raises(UsageError, match=r'^friction law maxwell: lengths must be a list of at '
                                         r'most 26 numbers, is '):
        Maxwell(tuple(lengths))
    with pytest.raises(UsageError, match=r'maxwell: lengths must increase, are \[0.1, 0.1\]$'):
        Maxwell((0.1, 0.1))
