"""Parts of staged identification (`estimation.staged`): states, stages, single fits, places."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from motions import torque_model, truth_of, with_effort

from robot_dynid.document import number
from robot_dynid.effects import JointFriction
from robot_dynid.errors import DataError
from robot_dynid.estimation import StagedLeastSquares, Status
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import Accumulator
from robot_dynid.estimation.least_squares import (
    batch_covariance,
    joint_weights,
    residual_noise,
    solve,
    unknown_columns,
)
from robot_dynid.estimation.staged.joint_effort import (
    JointEffort,
    LockedPlace,
    joint_efforts,
    joint_motions,
    locked_motions,
    single_joint_data,
    single_joint_errors,
    single_joint_mask,
)
from robot_dynid.estimation.staged.least_squares import (
    Combination,
    StagedDetails,
    StageSummary,
    fit_stage,
    fit_stages,
    nominal_parameters,
)
from robot_dynid.estimation.staged.procedure import (
    LockedJointsMotion,
    Stage,
    body_by_body,
    centred_rows,
    decompose,
    distal_to_proximal,
    excitation_of,
    moving_joint_stages,
    names_from,
    owners,
    single_joint_states,
    stage_regressor,
)
from robot_dynid.estimation.staged.stage_fit import Knowledge, coherent, stage_fit
from robot_dynid.estimation.uncertainty.held_out import explained_share, held_out
from robot_dynid.reduction.numeric import SEED
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import Samples

MODEL = torque_model('planar_3r')
ROBOT, NAMES = MODEL.robot, MODEL.reduction.names
PLACE = np.array([0.4, -0.7, 1.1])
MOTIONS = tuple(LockedJointsMotion(j, PLACE + 0.1 * j, 0.5 + 0.2 * j) for j in range(3))


def swing(moving, position=PLACE, count=800, seed=0, robot=ROBOT):
    """Return samples in which one joint swings, the others rest."""
    rng, time = np.random.default_rng(seed), 0.01 * np.arange(count)
    q, qd, qdd = np.zeros((3, count, robot.n))
    q[:] = position
    for rate in rng.uniform(2.0, 7.0, 4):
        size, phase = rng.uniform(0.2, 0.5), rng.uniform(0.0, 6.0)
        q[:, moving] += size * np.sin(rate * time + phase)
        qd[:, moving] += size * rate * np.cos(rate * time + phase)
        qdd[:, moving] -= size * rate**2 * np.sin(rate * time + phase)
    return Samples(robot.joints, time, q, qd, qdd)


def experiment(noise=0.01, truth=None, motions=(2, 1, 0), count=800):
    """Return an experiment of swings, with effort noise [N m]."""
    truth, rng, recordings = truth_of(MODEL) if truth is None else truth, \
        np.random.default_rng(3), []
    for k, moving in enumerate(motions):
        samples = swing(moving, count=count, seed=k)
        effort = MODEL.effort(samples, truth)
        recordings.append(with_effort(samples, effort + noise * rng.normal(size=effort.shape)))
    return Experiment.of(MODEL, recordings)


def test_states_of_a_motion_are_random_for_one_joint_and_at_rest_for_the_others():
    states = single_joint_states(ROBOT, MOTIONS[1:])
    rng = np.random.default_rng(SEED)
    assert len(states) == 48 and states.starts == tuple(range(48))
    for k, motion in enumerate(MOTIONS[1:]):
        rows, (angle, speed, rate) = slice(24 * k, 24 * k + 24), rng.uniform(-1.0, 1.0, (3, 24))
        moves = np.arange(3) == motion.moving
        assert states.position[rows] == pytest.approx(
            motion.position + np.outer(motion.amplitude * angle, moves))
        assert states.velocity[rows] == pytest.approx(np.outer(3.0 * speed, moves))
        assert states.acceleration[rows] == pytest.approx(np.outer(10.0 * rate, moves))


def test_of_resting_joints_that_friction_holds_only_variations_count():
    stage = Stage('s', MOTIONS[1:], (0, 2, 1), ())
    assert centred_rows(MODEL, stage) == [0]
    assert centred_rows(SimpleNamespace(held=np.zeros(3, dtype=bool)), stage) == []
    stage = Stage('s', (MOTIONS[2], MOTIONS[2]), (0, 2), ())
    columns = stage_regressor(MODEL, stage)
    plain = MODEL.columns(single_joint_states(ROBOT, stage.motions))
    assert not columns[1].any()
    assert columns[2] == pytest.approx(plain[2])
    for half in (slice(0, 24), slice(24, 48)):
        assert columns[0, :, half] == pytest.approx(
            plain[0, :, half] - plain[0, :, half].mean(axis=1, keepdims=True))
        assert columns[0, :, half].any()


def test_excitation_of_a_stage_is_the_condition_of_its_columns():
    stage = Stage('joint_3', (MOTIONS[2],), (2,), names_from(MODEL, 2))
    rows = MODEL.columns(single_joint_states(ROBOT, stage.motions))[2]
    last = [i for i, name in enumerate(NAMES) if name.endswith('3') and name != 'Ia3']
    rows = rows[last]
    expected = np.linalg.cond((rows / np.linalg.norm(rows, axis=1)[:, None]).T)
    assert excitation_of(MODEL, stage) == (6, pytest.approx(expected))


def test_stages_of_procedures_go_from_the_last_joint_to_the_first():
    numbers = [int(name[-1]) - 1 for name in NAMES]
    assert owners(MODEL).tolist() == numbers
    assert names_from(MODEL, 1) == tuple(n for n, k in zip(NAMES, numbers, strict=True) if k >= 1)
    again = (*MOTIONS, LockedJointsMotion(1, PLACE, 0.3))
    stages = moving_joint_stages(MODEL, again)
    assert [(s.name, s.rows, s.motions) for s in stages] == [
        ('joint_3', (2,), (MOTIONS[2],)), ('joint_2', (1,), (MOTIONS[1], again[3])),
        ('joint_1', (0,), (MOTIONS[0],))]
    assert [s.parameters for s in stages] == [names_from(MODEL, j) for j in (2, 1, 0)]
    assert [(s.name, s.rows) for s in distal_to_proximal(MODEL, again)] == [
        ('joint_3', (2,)), ('joint_3, locked rows', (0, 1)), ('joint_2', (1,)),
        ('joint_2, locked rows', (0, 2)), ('joint_1', (0,)), ('joint_1, locked rows', (1, 2))]
    assert [(s.name, s.rows, s.motions) for s in body_by_body(MODEL, again)[:4]] == [
        ('joint_3', (2,), (MOTIONS[2],)),
        ('body joint_3', (2,), (MOTIONS[0], MOTIONS[1], again[3])),
        ('joint_2', (1,), (MOTIONS[1], again[3])), ('body joint_2', (1,), (MOTIONS[0],))]
    assert len(body_by_body(MODEL, again)) == 5
    with pytest.raises(DataError) as caught:
        moving_joint_stages(MODEL, MOTIONS[::2])
    assert str(caught.value) == (
        "stage 'joint_2': joint joint_2 never moves alone while all others rest; add such a "
        'recording, or use another method')


def test_knowledge_begins_with_everything_free():
    start = Knowledge.none(4, np.array([3.0, 7.0]))
    assert start.values.tolist() == [0.0] * 4 and start.covariance.tolist() == [[0.0] * 4] * 4
    assert start.free.directions.tolist() == np.eye(4).tolist()
    assert start.held.tolist() == [0.0, 0.0] and start.sizes.tolist() == [3.0, 7.0]
    assert Knowledge.none(4, start.sizes, np.array([0.1, 0.2])).held.tolist() == [0.1, 0.2]


def test_the_coherent_part_of_a_residual_is_what_batches_explain_beyond_noise():
    rng, values = np.random.default_rng(0), np.array([0.7, -1.2, 2.0])
    columns = rng.normal(size=(2, 3, 200))
    wave = 3.0 * columns[0, 1] * np.repeat(rng.normal(size=4), 50)
    effort = np.column_stack([columns[0].T @ values + wave, columns[1].T @ values])
    effort += rng.normal(size=effort.shape)
    accumulator = Accumulator(('a', 'b', 'c'), np.ones((2, 3), dtype=bool), 50)
    accumulator.add(columns, effort, 2.0 * effort)
    expected = []
    for joint in range(2):
        explained = rest = 0.0
        for rows in np.split(np.arange(200), 4):
            residual = effort[rows, joint] - columns[joint][:, rows].T @ values
            inside = columns[joint][:, rows].T @ np.linalg.lstsq(
                columns[joint][:, rows].T, residual, rcond=None)[0]
            explained += inside @ inside
            rest += residual @ residual - inside @ inside
        expected.append(np.sqrt(max(explained - 12 * rest / (200 - 12), 0.0) / 200))
    assert coherent(accumulator.information(), values) == pytest.approx(expected)
    assert expected[0] > 1.0


def stage_of(rows=(2,), about=None, noise=0.01):
    """Return stage, decomposition, information and knowledge of swings of joint 3."""
    about = about or experiment(noise)
    data = {motion.moving: (motion, info) for motion, info in single_joint_data(about)}
    motion, information = data[2]
    state = Knowledge.none(len(NAMES), information.size())
    stage = Stage('joint_3', (motion,), rows, names_from(MODEL, 2))
    return stage, decompose(MODEL, stage, state.free), information, state


def test_a_stage_of_a_moving_joint_is_least_squares_with_known_parameters_taken_off():
    stage, parts, information, state = stage_of()
    fit = stage_fit(MODEL, (stage, parts), information, state)
    reduced = information.projected((2,), parts.present, state.free.directions[:, parts.fitted],
                                    state.values)
    weights = joint_weights(reduced)
    solution = solve(reduced, weights)
    covariance, degrees = batch_covariance(reduced, weights, solution)
    assert fit.values == pytest.approx(solution.values) and fit.degrees == degrees
    assert fit.covariance == pytest.approx(covariance, rel=1e-9)
    shift = np.random.default_rng(1).normal(size=len(NAMES))
    moved = stage_fit(MODEL, (stage, parts), information, replace(state, values=shift))
    assert moved.values - fit.values == pytest.approx(-fit.sensitivity @ shift, rel=1e-6)
    assert np.abs(fit.sensitivity @ shift).min() > 0.0


def test_friction_of_locked_joints_widens_the_deviations_and_lowers_the_weights():
    about = Experiment.of(MODEL, [with_effort(
        s, s.effort + np.sin(3.0 * s.position[:, 2:]) * [0.3, 0.2, 0.0])
        for s in experiment(0.05).recordings])
    stage, _, information, state = stage_of((0, 1), about)
    parts = decompose(MODEL, stage, state.free)
    rng, held = np.random.default_rng(5), np.array([3e-3, 8.0, 1.0])
    state = replace(state, held=held, values=0.05 * rng.normal(size=len(NAMES)))
    fit = stage_fit(MODEL, (stage, parts), information, state)
    reduced = information.projected((0, 1), parts.present, state.free.directions[:, parts.fitted],
                                    state.values, [0, 1])
    trusted = joint_weights(reduced)
    part = coherent(reduced, solve(reduced, trusted).values)
    least = np.minimum(held[:2] / np.sqrt(3.0), part)
    assert least[0] < part[0] and least[1] == part[1]
    weights = 1.0 / np.sqrt(1.0 / trusted**2 + least**2 * information.samples)
    solution = solve(reduced, weights)
    covariance, _ = batch_covariance(reduced, weights, solution)
    inverse, count = solution.root @ solution.root.T, len(solution.values)
    for row in range(2):
        tall = reduced.expanded(row)[:, :count]
        covariance += information.samples * (weights[row]**2 * least[row])**2 * (
            inverse @ tall.T @ tall @ inverse)
    solved = slice(len(parts.nuisance), None)
    assert fit.values == pytest.approx(solution.values[solved])
    assert fit.covariance == pytest.approx(covariance[solved, solved], rel=1e-7)


def test_covariance_of_a_stage_adds_that_of_what_it_takes_as_known():
    about = experiment()
    stages = moving_joint_stages(MODEL, [m for m, _ in single_joint_data(about)])
    data = {motion.moving: info for motion, info in single_joint_data(about)}
    start = Knowledge.none(len(NAMES), np.max([d.size() for d in data.values()], axis=0))
    _, _, first = fit_stage(MODEL, stages[0], data[2], start)
    summary, _, second = fit_stage(MODEL, stages[1], data[1], first)
    exact = replace(first, covariance=np.zeros_like(first.covariance))
    alone = fit_stage(MODEL, stages[1], data[1], exact)[2].covariance
    transfer = np.array([fit_stage(MODEL, stages[1], data[1], replace(
        exact, values=first.values + shift))[2].values - second.values
        for shift in np.eye(len(NAMES))]).T
    expected = alone + transfer @ first.covariance @ transfer.T
    assert second.covariance == pytest.approx(expected, abs=1e-6 * np.abs(expected).max())
    assert np.trace(expected) > 1.1 * np.trace(alone)
    assert summary.stage == 'joint_2' and summary.motions == 1 and summary.samples > 700
    stds = [one.std for one in summary.found]
    fit = stage_fit(MODEL, (stages[1], decompose(MODEL, stages[1], first.free)), data[1], first)
    assert stds == pytest.approx(np.sqrt(np.diag(fit.covariance)))
    assert [one.value for one in summary.found] == pytest.approx(fit.values)
    assert (summary.condition_number, summary.condition_number_raw) == (
        fit.solution.condition, fit.solution.condition_raw)


@pytest.mark.parametrize('ratio', [0.95, 1.05])
def test_combinations_that_noise_hides_beyond_a_tenth_of_the_effort_stay_free(ratio):
    level = 1.0
    for _ in range(7):
        stage, parts, information, state = stage_of(about=experiment(level, count=200))
        fit = stage_fit(MODEL, (stage, parts), information, state)
        deviation = np.sqrt(np.diag(fit.covariance))
        reach = MODEL.moderate_effort[:, parts.solved]
        share = np.max(deviation * reach / state.sizes[:, None], axis=0)
        nominal = parts.combination @ nominal_parameters(MODEL)
        apart = np.abs(fit.values - nominal) / deviation
        hidden = max(np.flatnonzero(apart < 1.9), key=lambda i: share[i])
        level *= (ratio * 0.1 / share[hidden]) ** 1.7
    refused = (share > 0.1) & (apart < 2.0)
    assert share[hidden] == pytest.approx(0.1 * ratio, rel=0.03)
    assert refused[hidden] == (ratio > 1.0)
    _, _, after = fit_stage(MODEL, stage, information, state)
    kept = np.setdiff1d(np.arange(len(NAMES)), parts.solved[~refused])
    assert after.free.owners.tolist() == kept.tolist()


@pytest.mark.parametrize(('apart', 'kept'), [(1.9, False), (2.1, True)])
def test_a_hidden_combination_that_contradicts_its_nominal_value_is_kept(apart, kept):
    truth, place = truth_of(MODEL), NAMES.index('mx3')
    for _ in range(3):
        stage, parts, information, state = stage_of(about=experiment(9.0, truth, count=200))
        fit = stage_fit(MODEL, (stage, parts), information, state)
        here = parts.solved.tolist().index(place)
        nominal = (parts.combination @ nominal_parameters(MODEL))[here]
        deviation = np.sqrt(fit.covariance[here, here])
        truth[place] += nominal + apart * deviation - fit.values[here]
    reach = MODEL.moderate_effort[:, place]
    assert np.any(deviation * reach > 0.1 * state.sizes)
    after = fit_stage(MODEL, stage, information, state)[2]
    assert (place not in after.free.owners) == kept


def test_nominal_parameters_are_those_of_the_links_alone():
    standard = np.zeros(len(MODEL.reduction.standard))
    standard[:30] = ROBOT.nominal.ravel()
    assert nominal_parameters(MODEL) == pytest.approx(MODEL.reduction.base(standard))


def test_results_of_stages_make_a_section():
    stages = (StageSummary('joint_3', 2, 900, 7.25, 31.0, (
        Combination('mx3', 0.51234, 0.0123), Combination('Izz3 + Ia3', -4.5, 0.6))),
        StageSummary('joint_2', 3, 800, 12.5, 90.0, (Combination('my2', 1.5, 0.25),)))
    section, = StagedDetails(stages).sections('staged', ())
    table, = section.tables
    assert section.title == 'Stages' and 'One joint moves at a time' in section.text
    assert table.columns == ('stage', 'motions', 'condition', 'combination', 'value', 'std')
    assert table.words and [row.cells for row in table.rows] == [
        ('joint_3', '2', number(7.25), 'mx3', number(0.51234), number(0.0123, 2)),
        ('', '', '', 'Izz3 + Ia3', number(-4.5), number(0.6, 2)),
        ('joint_2', '3', number(12.5), 'my2', number(1.5), number(0.25, 2))]
    assert StagedDetails(()).sections('staged', ()) == ()


@pytest.mark.parametrize(('robot', 'joint', 'near'), [
    (ROBOT, 0, 0.05), (load_robot('stanford_arm'), 2, 0.01)])
@pytest.mark.parametrize('side', [1.0, -1.0])
def test_stretches_in_nearly_the_same_configuration_are_one_motion(robot, joint, near, side):
    rest = np.linspace(0.3, 0.6, robot.n)
    first = swing(1, rest, seed=1, robot=robot)
    for factor, count in ((0.97, 1), (1.03, 2)):
        other = rest.copy()
        other[joint] += side * factor * near
        other[1] += 0.9
        second = swing(1, other, seed=2, robot=robot)
        motions = locked_motions(robot, [first, second])
        assert len(motions) == count and all(m.moving == 1 for m in motions)
        angles = [s.position[:, 1] for s in (first, second)]
        both = np.concatenate(angles) if count == 1 else angles[0]
        assert motions[0].position[1] == pytest.approx(0.5 * (both.min() + both.max()), abs=0.02)
        assert motions[0].amplitude == pytest.approx(0.5 * np.ptp(both), abs=0.02)
        assert np.delete(motions[0].position, 1) == pytest.approx(np.delete(rest, 1))


def test_the_motion_of_a_place_is_centred_between_its_ends():
    place = LockedPlace(1, np.array([0.3, 7.0, -0.2]), -0.4, 1.0)
    assert place.motion.moving == 1 and place.motion.amplitude == pytest.approx(0.7)
    assert place.motion.position == pytest.approx([0.3, 0.3, -0.2])
    assert place.position.tolist() == [0.3, 7.0, -0.2]


@pytest.mark.parametrize(('count', 'long'), [(49, False), (50, True)])
def test_stretches_of_half_a_second_count(count, long):
    samples = swing(1, count=count)
    mask = single_joint_mask(ROBOT, samples)
    assert mask[:, 1].all() == mask.any() == long and not mask[:, [0, 2]].any()
    both = replace(swing(1, count=100), starts=(0, 60))
    assert np.flatnonzero(single_joint_mask(ROBOT, both)[:, 1]).tolist() == list(range(60))


def test_efforts_of_joints_are_those_while_they_move_alone():
    about = experiment(motions=(2, 1, 2, 0))
    found = joint_efforts(about)
    counts = 0
    for joint in range(3):
        expected = 0.0
        for samples in about.recordings:
            rows = single_joint_mask(ROBOT, samples)[:, joint]
            counts += rows.sum()
            columns = MODEL.columns(samples)[joint][MODEL.structure[joint]][:, rows]
            effort = samples.effort[rows, joint]
            tall = np.vstack([columns, np.ones(rows.sum()), effort, effort])
            expected = expected + tall @ tall.T
        factor = found.total.factors[joint]
        assert factor.T @ factor == pytest.approx(expected, abs=1e-8 * np.abs(expected).max())
    assert found.samples == counts and len(found.batches) == 1
    motions = joint_motions(ROBOT, about.recordings)
    assert [m.joint for m in motions] == [0, 1, 2]
    assert [len(m.recordings) for m in motions] == [1, 1, 2]
    assert [[one.moving for one in m.motions] for m in motions] == [[0], [1], [2]]
    idle = joint_efforts(experiment(motions=(2,)))
    assert not idle.total.factors[0].any() and len(idle.total.factors[0]) == 3 + int(
        MODEL.structure[0].sum())


def test_what_no_stage_determines_is_nominal_and_open():
    """Of links; rotors and friction have no nominal values and a thousandth of the weight."""
    longer = experiment(motions=(2,)).recordings
    about = Experiment.of(MODEL, [*longer, *experiment(motions=(1,), count=400).recordings])
    motions, data = zip(*single_joint_data(about), strict=True)
    stages = [Stage('last', motions[:1], (2,), names_from(MODEL, 2)),
              Stage('middle', motions[1:], (1,), names_from(MODEL, 1))]
    state = Knowledge.none(len(NAMES), np.max([d.size() for d in data], axis=0))
    summaries, degrees = [], []
    for stage, information in zip(stages, data, strict=True):
        summary, freedom, state = fit_stage(MODEL, stage, information, state)
        summaries.append(summary)
        degrees.append(freedom)
    found = fit_stages(about, stages, data)
    directions, reach = state.free.directions, MODEL.moderate_effort
    faint = np.any(MODEL.reduction.matrix[:, 30:] != 0.0, axis=1)
    assert faint.any() and not faint.all()
    weight = reach.max(axis=0) * np.where(faint, 1e-3, 1.0)
    away = weight * (nominal_parameters(MODEL) - state.values)
    free = np.linalg.lstsq(weight[:, None] * directions, away, rcond=None)[0]
    assert found.values == pytest.approx(state.values + directions @ free, rel=1e-9, abs=1e-12)
    share = np.max(reach / state.sizes[:, None], axis=0)
    moved = directions / share[state.free.owners]
    too_much = (np.abs(moved) * share[:, None] > 0.1) & (np.abs(directions) > 1e-9)
    rows = too_much.any(axis=1)
    slight = np.where(rows[:, None], 0.0, moved)
    assert found.covariance == pytest.approx(state.covariance + slight @ slight.T)
    left = {*np.flatnonzero(rows), *unknown_columns(about, np.diag(state.covariance))}
    assert found.not_excited == tuple(NAMES[i] for i in sorted(left)) and 5 < len(left) < 15
    assert found.status is Status.NOT_EXCITED and found.method == 'staged'
    assert found.rank == sum(len(s.found) for s in summaries) == len(NAMES) - directions.shape[1]
    assert found.degrees_of_freedom == min(degrees) < max(degrees)
    assert found.condition == max(s.condition_number for s in summaries)
    assert found.condition_raw == max(s.condition_number_raw for s in summaries)
    assert found.noise == pytest.approx(residual_noise(about.information, found.values))
    assert found.directions.tolist() == np.where(rows[:, None], directions, 0.0).tolist()
    assert found.details.stages == tuple(summaries) and found.shares is None


def test_staged_least_squares_predicts_a_share_of_every_joint_while_it_moves():
    about = experiment(1.0)
    found = StagedLeastSquares().fit(about)
    data = {motion.moving: information for motion, information in single_joint_data(about)}
    assert found.shares == pytest.approx([
        explained_share(data[j], found.values)[j] for j in range(3)])
    assert len(set(found.shares.round(6))) == 3
    assert (found.remedy != '') == (found.not_excited != ())
    exact = StagedLeastSquares().fit(experiment(0.0))
    assert exact.status is Status.OK and exact.remedy == '' and exact.not_excited == ()


@pytest.mark.parametrize('joint', [0, 1, 2])
def test_the_effort_of_a_joint_has_the_sums_that_it_shows(joint):
    about = experiment(0.0)
    motion = joint_motions(ROBOT, about.recordings)[joint]
    part = JointEffort.during(MODEL, motion)
    (samples,) = motion.recordings
    effort = part.effort(samples, part.combination @ truth_of(MODEL))[:, joint]
    assert effort == pytest.approx(samples.effort[:, joint], rel=1e-8, abs=1e-8)
    assert part.structure[joint].all() and not np.delete(part.structure, joint, axis=0).any()
    friction = next(b for b in MODEL.blocks if isinstance(b, JointFriction))
    more, count = part.with_friction(friction), len(friction.names)
    assert more.blocks == (*part.blocks, friction) and more.joint == joint
    assert more.reduction.standard == (*part.reduction.standard, *friction.names)
    rows, columns = part.reduction.matrix.shape
    assert more.reduction.pivots.tolist() == [
        *part.reduction.pivots.tolist(), *range(columns, columns + count)]
    expected = np.zeros((rows + count, columns + count))
    expected[:rows, :columns], expected[rows:, columns:] = part.reduction.matrix, np.eye(count)
    assert more.reduction.matrix.tolist() == expected.tolist()


def test_errors_of_single_joints_are_mean_logarithms_of_held_out_ones():
    about = experiment(0.3)
    found = single_joint_errors(MODEL, about.recordings)
    for joint, motion in enumerate(joint_motions(ROBOT, about.recordings)):
        part = Experiment.of(JointEffort.during(MODEL, motion), motion.recordings)
        folds = held_out(part.information).folds[:, joint]
        assert found[joint] == pytest.approx(np.mean(np.log(np.sqrt(folds))))
        assert found[joint] == pytest.approx(np.log(0.3), abs=0.1)
    still = replace(about.recordings[0], position=np.tile(PLACE, (800, 1)))
    assert single_joint_errors(MODEL, [still]).tolist() == [np.inf]
