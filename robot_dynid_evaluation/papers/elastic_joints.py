"""Robots with elastic joints: Zollo, Lopez et al. 2014, 10.1155/2014/843186.

A planar arm and the PUMA 560 are simulated; the normalised mean error is the mean over the base
parameters (those that are independently identifiable, true value not zero) of |found - true| /
|true|. Beside the paper's figures stand those of its method on our simulation, and ours: motion
and parameters estimated at once, given the noise of the sensors, and what `identify` finds from a
recording alone. Offsets and damping of the gears, which the paper has not, are left out of
the former two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from robot_dynid.effects import axes_of
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.identified.structure import Structure
from robot_dynid.reduction.identifiability import (
    CATEGORIES,
    DEPENDENT,
    INDEPENDENT,
    UNIDENTIFIABLE,
    categories,
)
from robot_dynid.reduction.numeric import full_regressor, random_states
from robot_dynid.types import FloatArray, Progress, Samples
from robot_dynid_evaluation.papers import Entry, Row, claimed, compared, known, matched, shown
from robot_dynid_evaluation.papers.elastic_joints_arm import (
    COUNTED,
    CREEP,
    STEP,
    ElasticArm,
    Logged,
    Motion,
    excitation,
    logged,
    noise_of,
    planar,
    puma,
    record,
)
from robot_dynid_extras.latent.motion import (
    EXACT,
    SPEEDS,
    Channel,
    LatentFit,
    LatentProblem,
    LatentState,
    Searched,
    Stretch,
)
from robot_dynid_extras.latent.stretches import Cut

#: normalised mean errors of the paper: planar arm, without static friction, PUMA 560
PAPER, PAPER_MOVING, PAPER_PUMA = 0.103, 0.00862, 0.123
#: what ours shall be in terms of the paper's
WANTED, WANTED_PUMA, WANTED_MOVING = 0.1, 0.2, 1.0
#: how far its method on our simulation may be from its figure, relative
LIKE = 0.1
WHY_MOVING = (
    'known: friction, rotors and motion are not printed, and ours are others; the error is that '
    'of the friction law, which viscous friction takes up: from exact signals it is as large')
WHY_STATIC = (
    'known: friction at rest of one joint is 6 % off, and makes most of the error; without static '
    'friction the target is reached')
WHY_PUMA = (
    'known, and no statement about their method: their friction, gears, rotors and motion are not '
    'printed. Friction at rest, assumed twice that in motion, makes a third of it by itself, from '
    'exact signals, since their law has none; the rest is made by low-pass and one-sided '
    'differences, in parameters of the wrist that make little torque; counts make nothing. No '
    'friction brings it near: see the rows without excess')
#: by how much errors rise where they become "very high", and by how much ours are known to
VERY_HIGH, RISE = 3.0, 1.0
WHY_NO_THRESHOLD = (
    'known: the threshold of the paper at SN = 80 does not appear. It gives no unit; that SN '
    'means dB is our assumption, and noise at 70 dB is nothing beside the friction law here')
REFUSED = 'refused: stretches left out do not favour it, so the parameters of elastic are kept; '
#: those at which `identify` is looked at, which sees noisy positions only
LOGGED_RATIOS = (40.0, 50.0, 60.0, 80.0)
#: ratios at which latent shall halve the error of elastic, with static friction and without: below
#: them that is told by too few noisy instants, and noise at 40 dB is as large as deflections
HALVED = {True: (60.0, 80.0), False: (50.0, 60.0, 80.0)}
#: errors of latent with static friction that are known to be more, by ratio
KNOWN_LATENT = {60.0: 0.0852, 80.0: 0.0213}
WHY_LATENT = (
    'known: at 60 dB Coulomb friction is kept, so its excess at rest is missing; at 80 dB '
    "Stribeck's law is taken, with friction at rest 12 % off")
#: seeds of draws of the noise, and by ratio the largest error that is wanted of them, if any
LATENT_DRAWS, WANTED_DRAWS = (1, 2, 3), {40.0: 0.222, 50.0: None, 60.0: 0.0064}
#: largest deflections of the planar arm [deg], mean over the joints of the PUMA [rad]
DEFLECTION, DEFLECTION_PUMA, SAME = (0.39, 0.10), 0.09, 0.02
#: signal-to-noise ratios; the paper gives no unit, dB is assumed
RATIOS = (20.0, 70.0, 80.0, 100.0, 200.0, np.inf)
#: filter of the paper: order, cut-off [Hz]
ORDER, CUTOFF = 5, 20.0
#: what a spline leaves of a motion without noise [rad, rad/s, rad/s^2]: noise below is taken as
#: this
FINEST = (COUNTED / np.sqrt(12.0), 5e-3, 0.2)
#: speed [rad/s] over which friction falls, to begin with; that over which it builds up at rest,
#: any below those of the equations that count
FALLEN, BUILT = 0.1, 0.01
#: between these [rad/s]
FALLS = (0.02, 1.0)
SEED = 1
#: parameters per joint in the paper: link, rotor, two of friction, stiffness
PER_JOINT = 14
#: random states that show the categories, and the largest share of a column that is rounding
STATES, ROUNDING = 60, 1e-9
#: degree of the excitation of the paper, those that are tried, and points of an interval of knots
DEGREE, DEGREES, POINTS = 5.0, range(1, 9), 20


def rows(progress: Progress) -> Iterator[Entry]:
    """Yield the paper's figures beside ours."""
    arm = planar()
    yield from model_rows('2R', arm)
    yield spline_row(arm)
    motion = record(arm, lambda stage, share: progress(stage, 0.2 * share))
    yield from planar_rows(arm, motion)
    progress('signal-to-noise ratios', 0.25)
    yield from noise_rows(arm, motion, RATIOS)
    for ratio in LOGGED_RATIOS:
        yield from logged_noise_rows(arm, motion, ratio)
    progress('draws of the noise', 0.4)
    arm = replace(arm, excess=1.0)
    motion = record(arm, lambda *_: None)
    yield from bound_rows(arm, motion)
    yield from wanted_draw_rows(arm, motion)
    arm = puma()
    yield from model_rows('PUMA 560', arm)
    motion = record(arm, lambda stage, share: progress(stage, 0.5 + 0.2 * share))
    progress('identifying the PUMA 560', 0.7)
    yield from puma_rows(arm, motion)
    yield from friction_rows(lambda stage, share: progress(stage, 0.9 + 0.1 * share))


def model_rows(what: str, arm: ElasticArm) -> Iterator[Row]:
    """Yield the number of parameters, and their categories by the definitions of section 1.

    A parameter is unidentifiable if its column is zero, linearly dependent if other columns make
    it, and else independent; those of our reduction are read off its matrix.
    """
    model = model_of(arm, 'coulomb', {'width': CREEP})
    names = np.array(model.reduction.standard)
    paper = np.array([name[0] not in 'Ds' and name[:2] != 'f0' for name in names])
    yield claimed(compared(f'{what}: parameters per joint', float(PER_JOINT),
                           paper.sum() / arm.robot.n, 0.0, 'without damping and offsets'),
                  f'fourteen parameters per elastic joint ({what})')
    states = random_states(arm.robot, STATES, np.random.default_rng(SEED))
    columns = full_regressor(arm.robot, model.blocks, states)
    defined = categories_by_rank(columns.transpose(2, 0, 1).reshape(-1, len(names)))
    ours = [one.category for one in categories(model.reduction).values()]
    same = sum(a == b for a, b in zip(ours, defined, strict=True))
    counts = ', '.join(f'{ours.count(category)} {category}' for category in CATEGORIES)
    yield claimed(compared(f'{what}: parameters in the category of the definition',
                           float(len(names)), float(same), 0.0, f'ours: {counts}'),
                  f'parameters are unidentifiable, linearly dependent or independent ({what})')


def categories_by_rank(columns: FloatArray) -> list[str]:
    """Return the category of every column (k,) of ``columns`` (m, k) by its definition."""
    size = np.linalg.norm(columns, axis=0)
    there = size > ROUNDING * size.max()
    unit = columns / np.where(there, size, 1.0)
    found = []
    for i, seen in enumerate(there):
        others = np.delete(np.where(there, unit, 0.0), i, axis=1)
        left = unit[:, i] - others @ np.linalg.lstsq(others, unit[:, i], rcond=ROUNDING)[0]
        found.append(UNIDENTIFIABLE if not seen else DEPENDENT if
                     np.linalg.norm(left) <= np.sqrt(ROUNDING) else INDEPENDENT)
    return found


def spline_row(arm: ElasticArm) -> Row:
    """Return the degree of the excitation between two knots."""
    spline = excitation(arm)
    length = spline.duration / (spline.points.shape[1] + 1)
    share = np.linspace(0.0, 1.0, POINTS)
    q = spline.sample(length * (spline.points.shape[1] // 2 + share)).position[:, 0]
    degree = next(k for k in DEGREES if np.abs(np.polynomial.Polynomial.fit(share, q, k)(
        share) - q).max() <= ROUNDING * np.ptp(q))
    return claimed(compared('2R: degree of the excitation between two knots', DEGREE,
                            float(degree), 0.0),
                   'the excitation is a B-spline of fifth order')


def planar_rows(arm: ElasticArm, motion: Motion) -> list[Row]:
    """Return deflections and errors of the planar arm, from encoders that count."""
    found = [compared(f'2R: largest deflection of joint {j + 1} [deg]', paper, float(ours), SAME,
                      'stiffness, rotors and inertia about the centre are not printed: assumed')
             for j, (paper, ours) in enumerate(zip(DEFLECTION, np.rad2deg(motion.deflection),
                                                   strict=True))]
    theirs, exact = (paper_errors(arm, seen) for seen in (counted(motion), motion))
    ours, fallen = our_errors(arm, positions(motion))
    moving = compared('2R, method of the paper: without static friction', PAPER_MOVING,
                      mean(theirs, static=False), LIKE * PAPER_MOVING)
    return [
        *found,
        claimed(compared(
            '2R, method of the paper: normalised mean error', PAPER, mean(theirs),
            LIKE * PAPER, 'static friction: the torque at which a motor breaks away, twice '
            'that in motion: assumed'), 'normalised mean error of the planar arm'),
        claimed(known(moving, WHY_MOVING, 0.031),
                'normalised mean error of the planar arm without static friction'),
        shown('2R, method of the paper: from exact signals; without static friction', None,
              f'{mean(exact):.3g} {mean(exact, static=False):.3g}', 'counts, low-pass and '
              'one-sided differences make the difference to the rows above'),
        claimed(reached('2R, ours: normalised mean error', PAPER, mean(ours), WANTED,
                        _fallen(arm, fallen)), 'the same by ours, given the noise of sensors'),
        reached('2R, ours: without static friction', PAPER_MOVING, mean(ours, static=False),
                WANTED, ''),
        *logged_rows(arm, motion),
    ]


def reached(quantity: str, paper: float, ours: float, wanted: float, note: str) -> Row:
    """Return whether our error is at most a ``wanted`` share of the paper's."""
    told = f'wanted: at most {wanted:g} of the paper'
    return matched(quantity, paper, ours, ours <= wanted * paper,
                   f'{told}; {note}' if note else told)


def logged_rows(arm: ElasticArm, motion: Motion) -> list[Row]:
    """Return the errors of what `identify` finds from a recording of the planar arm."""
    found = logged(arm, motion)
    static = [e for name, e in found.errors.items() if name[:2] == 'fc']
    return [
        claimed(known(reached(
            '2R, identify: normalised mean error', PAPER, mean(found.errors), WANTED,
            found.choices), WHY_STATIC, 0.011), 'the same by identify, from a recording alone'),
        reached('2R, identify: without static friction', PAPER_MOVING,
                mean(found.errors, static=False), WANTED_MOVING, ''),
        shown('2R, identify: static friction, dry friction in motion; worst joint', None,
              f'{max(static):.2g} {found.moving.max():.2g}',
              'no figure of the paper; the greatest dry friction at any speed, found and '
              'simulated'),
    ]


def logged_noise_rows(arm: ElasticArm, motion: Motion, ratio: float) -> list[Row]:
    """Return the errors of what `identify` finds from positions with noise.

    By the method elastic and by the method latent, which shall halve them at the ratios HALVED.
    """
    found, ours = (logged(arm, motion, ratio, method) for method in ('elastic', 'latent'))
    refused = REFUSED if ours.errors == found.errors else ''
    return [
        shown(f'2R, identify at {ratio:g} dB: normalised mean error', None, mean(found.errors),
              'the paper has no such ratio, or filters noisy speeds and accelerations, which '
              f'recordings have not; {found.choices}; worst {_worst(found.errors)}'),
        *(halved(f'2R, {what}, beside elastic', (found, ours), ratio, static,
                 f'{refused}{ours.choices}; worst {_worst(ours.errors)}')
          for what, static in (
              (f'identify --method latent at {ratio:g} dB: mean error', True),
              (f'latent at {ratio:g} dB: without static friction', False)))]


def bound_rows(arm: ElasticArm, motion: Motion) -> list[Row]:
    """Return the errors that noise leaves to the best unbiased estimate from positions."""
    what = 'by the information of motion and parameters at once (Cramer, Rao), the law known'
    return [shown(f'2R, least error that noise of {ratio:g} dB leaves, no excess at rest; '
                  'without damping and offsets of gears', None,
                  ' '.join(f'{least_error(arm, motion, ratio, only):.2g}' for only in (
                      False, True)), what) for ratio in LOGGED_RATIOS]


def least_error(arm: ElasticArm, motion: Motion, ratio: float, only: bool) -> float:
    """Return the mean relative error that positions with noise at a ``ratio`` [dB] leave.

    ``only`` the parameters of the paper are sought, or all that `identify` seeks.
    """
    problem, state = at_truth(arm, motion, ratio, motion.position)
    if only:
        problem = replace(problem, chosen=chosen_of(problem.model))
    information, true = problem.condensed(state)[0].normal, state.values[problem.chosen]
    deviation, size = np.sqrt(np.diag(np.linalg.inv(information))), np.abs(true)
    there = size > 0.0
    return float(np.sqrt(2.0 / np.pi) * np.mean(deviation[there] / size[there]))


def at_truth(
    arm: ElasticArm, motion: Motion, ratio: float, position: FloatArray
) -> tuple[LatentProblem, LatentState]:
    """Return the problem of one stretch with the friction of the arm, at its solution."""
    falls = {'levelling': {'speed': arm.fallen}} if arm.excess != 1.0 else {}
    model = model_of(arm, '+'.join(['coulomb', *falls]), {'width': CREEP, **falls})
    spread = noise_of(motion, ratio)
    stretch = Stretch(motion.time, (Channel(0, position, spread),), motion.time,
                      np.hstack([motion.effort, motion.effort]))
    problem = LatentProblem(
        model, (stretch,), np.ones(len(model.reduction.names), dtype=bool),
        slowest=Cut((stretch,), spread).slowest(axes_of(model.robot).matrix))
    return problem, LatentState(
        (stretch.splines[0].fitted(motion.position),), arm.base(model), np.zeros(0),
        EXACT * stretch.effort.std(axis=0), SPEEDS[-1])


def wanted_draw_rows(arm: ElasticArm, motion: Motion) -> list[Row]:
    """Return the errors of all draws by the method latent, none too large where that is wanted."""
    found = []
    for ratio, wanted in WANTED_DRAWS.items():
        errors = [mean(logged(arm, motion, ratio, 'latent', seed).errors) for seed in LATENT_DRAWS]
        what = (f'2R, identify --method latent at {ratio:g} dB, no excess at rest: '
                f'{len(LATENT_DRAWS)} draws')
        told = ' '.join(f'{error:.3g}' for error in errors)
        found.append(shown(what, None, told, 'normalised mean errors') if wanted is None else
                     matched(what, None, told, max(errors) <= wanted,
                             f'wanted: none above {wanted:g}'))
    return found


def halved(
    quantity: str, both: tuple[Logged, Logged], ratio: float, static: bool, note: str
) -> Row:
    """Return whether latent has at most half of the error of elastic, where that is wanted."""
    theirs, ours = (mean(one.errors, static=static) for one in both)
    if ratio not in HALVED[static]:
        return shown(quantity, theirs, ours, note)
    row = matched(quantity, theirs, ours, ours <= 0.5 * theirs,
                  f'wanted: at most half of elastic; {note}')
    pinned = KNOWN_LATENT.get(ratio) if static else None
    return row if pinned is None else known(row, WHY_LATENT, pinned)


def noise_rows(arm: ElasticArm, motion: Motion, ratios: Sequence[float]) -> list[Row]:
    """Return errors by signal-to-noise ratio, by the filter of the paper and by ours."""
    found, theirs, ours = [], {}, {}
    for ratio in ratios:
        channels = noisy(motion, ratio)
        theirs[ratio] = mean(paper_errors(arm, low_passed(motion, channels)))
        errors, fallen = our_errors(arm, (motion.time, channels, motion.effort))
        ours[ratio] = mean(errors)
        noise = f'{ratio:g} dB' if np.isfinite(ratio) else 'no noise'
        found.append(shown(
            f'2R, {noise}: filter of the paper and ours', None,
            f'{theirs[ratio]:.3g} {ours[ratio]:.3g}',
            f'its table is not legible; {_fallen(arm, fallen)}' + (
                '; noise on position, velocity and acceleration, each by its own deviation'
                if ratio == ratios[0] else '')))
    found.append(matched('2R, ours at 20 dB; the filter of the paper at 80 dB', theirs[80.0],
                         ours[20.0], ours[20.0] <= theirs[80.0], 'wanted: not above'))
    rise = theirs[70.0] / theirs[80.0]
    threshold = matched('2R, method of the paper: error at 70 over that at 80', 'very high',
                        rise, rise >= VERY_HIGH)
    return [*found, claimed(known(threshold, WHY_NO_THRESHOLD, RISE),
                            'errors become very high below SN = 80')]


def puma_rows(arm: ElasticArm, motion: Motion) -> list[Row]:
    """Return deflection and errors of the PUMA 560, from encoders that count."""
    ours, fallen = our_errors(arm, positions(motion))
    theirs = compared('PUMA 560, method of the paper: normalised mean error', PAPER_PUMA,
                      mean(paper_errors(arm, counted(motion))), LIKE * PAPER_PUMA)
    found = logged(arm, motion)
    return [
        shown('PUMA 560: largest deflection, mean over the joints [rad]', DEFLECTION_PUMA,
              float(motion.deflection.mean()), 'the motion of the paper is not printed'),
        claimed(known(theirs, WHY_PUMA, 4.63), 'normalised mean error of the PUMA 560'),
        shown('PUMA 560, method of the paper: from exact signals', None,
              mean(paper_errors(arm, motion)), 'what friction at rest makes by itself'),
        claimed(reached(
            'PUMA 560, ours: normalised mean error', PAPER_PUMA, mean(ours), WANTED_PUMA,
            f'{_fallen(arm, fallen)}; worst {_worst(ours)}'),
            'the same by ours, given the noise of sensors'),
        claimed(reached(
            'PUMA 560, identify: normalised mean error', PAPER_PUMA, mean(found.errors),
            WANTED_PUMA, f'{found.choices}; worst {_worst(found.errors)}'),
            'the same by identify, from a recording alone'),
        shown('PUMA 560, identify: without static friction', None,
              mean(found.errors, static=False), 'the paper has no such figure'),
    ]


def friction_rows(progress: Progress) -> list[Row]:
    """Return the errors of the paper's method on the PUMA 560 with Coulomb friction alone."""
    arm = replace(puma(), excess=1.0)
    motion = record(arm, progress)
    signals = {'signals counted and filtered': counted(motion),
               'filtered, not counted': filtered(motion), 'exact signals': motion}
    return [shown(f'PUMA 560, method of the paper, no excess at rest: {what}', PAPER_PUMA,
                  mean(paper_errors(arm, seen)), 'the friction of the paper is not printed')
            for what, seen in signals.items()]


def _fallen(arm: ElasticArm, speed: float) -> str:
    return f'friction falls over {speed:.3f} rad/s (simulated: {arm.fallen:g})'


def _worst(errors: dict[str, float]) -> str:
    """Name the three worst."""
    worst = sorted(errors, key=lambda name: -errors[name])[:3]
    return ', '.join(f'{name} {errors[name]:.2g}' for name in worst)


def mean(errors: dict[str, float], static: bool = True) -> float:
    """Return the mean of relative errors, with or without static friction."""
    return float(np.mean([e for name, e in errors.items() if static or name[:2] != 'fc']))


def model_of(arm: ElasticArm, friction: str, settings: dict[str, object]) -> TorqueModel:
    """Return the model of the arm with one law of friction."""
    return Structure.uniform(arm.robot, True, friction, settings).torque_model(arm.robot)


def errors_of(arm: ElasticArm, model: TorqueModel, values: FloatArray) -> dict[str, float]:
    """Return the relative errors of parameters (b,), by name."""
    return {name: float(abs(value / true - 1.0)) for name, value, true in zip(
        model.reduction.names, values, arm.base(model), strict=True)
        if abs(true) > 1e-9 and not name.startswith('fl')}


def chosen_of(model: TorqueModel) -> NDArray[np.bool_]:
    """Return a mask (b,) of the base parameters of the paper's model: no damping, no offsets."""
    return np.array([name[0] not in 'Ds' and name[:2] != 'f0' for name in model.reduction.names])


def our_errors(
    arm: ElasticArm, seen: tuple[FloatArray, Sequence[Channel], FloatArray]
) -> tuple[dict[str, float], float]:
    """Return the errors of the fit of motion and parameters, and the speed over which friction
    falls [rad/s]; ``seen`` time, channels, effort.
    """
    found = latent_fit(arm, seen)
    return errors_of(arm, falling(arm, FALLEN), found.state.values), float(
        found.state.shapes[0])


def latent_fit(
    arm: ElasticArm, seen: tuple[FloatArray, Sequence[Channel], FloatArray]
) -> LatentFit:
    """Return the fit of motion and parameters, all of the motion being one stretch."""
    time, channels, effort = seen
    stretch = Stretch(time, tuple(channels), time, np.hstack([effort, effort]))
    model = falling(arm, FALLEN)
    searched = (Searched(tuple(range(arm.robot.n)), ('levelling', 'speed'), *FALLS),)
    problem = LatentProblem(model, (stretch,), chosen_of(model), searched)
    return problem.fit(problem.guess(np.array([FALLEN])))


def falling(arm: ElasticArm, speed: float) -> TorqueModel:
    """Return the model whose dry friction falls from rest to ``speed`` [rad/s]."""
    return model_of(arm, 'coulomb+levelling', {'width': BUILT, 'levelling': {'speed': speed}})


def positions(motion: Motion) -> tuple[FloatArray, list[Channel], FloatArray]:
    """Return the measured positions, and the effort."""
    values = _counts(motion)
    spread = np.full(values.shape[1], FINEST[0])
    return motion.time, [Channel(0, values, spread)], motion.effort


def noisy(motion: Motion, ratio: float) -> list[Channel]:
    """Return position, velocity and acceleration with noise at a ratio [dB]."""
    generator, channels = np.random.default_rng(SEED), []
    signals = (motion.position, motion.velocity, motion.acceleration)
    for order, (values, least) in enumerate(zip(signals, FINEST, strict=True)):
        spread = values.std(axis=0) * 10.0 ** (-ratio / 20.0)
        seen = values + spread * generator.standard_normal(values.shape)
        channels.append(Channel(order, seen, np.maximum(spread, least)))
    return channels


def _counts(motion: Motion) -> FloatArray:
    return np.asarray(np.round(motion.position / COUNTED) * COUNTED)


def counted(motion: Motion) -> Motion:
    """Return the signals of the paper: counted, filtered, differentiated once and twice."""
    return filtered(replace(motion, position=_counts(motion)))


def filtered(motion: Motion) -> Motion:
    """Return positions and efforts through the filter of the paper, differentiated."""
    position = butterworth(motion.position)
    velocity = _difference(position)
    return replace(motion, position=position, velocity=velocity,
                   acceleration=_difference(velocity), effort=butterworth(motion.effort))


def low_passed(motion: Motion, channels: Sequence[Channel]) -> Motion:
    """Return noisy signals, each through the filter of the paper."""
    position, velocity, acceleration = (butterworth(c.values) for c in channels)
    return replace(motion, position=position, velocity=velocity, acceleration=acceleration,
                   effort=butterworth(motion.effort))


def butterworth(values: FloatArray) -> FloatArray:
    """Return (N, k) through the low-pass of the paper, begun at rest; delays all alike."""
    sections = signal.butter(ORDER, CUTOFF, fs=1.0 / STEP, output='sos')
    start = signal.sosfilt_zi(sections)[:, :, None] * values[0]
    return np.asarray(signal.sosfilt(sections, values, axis=0, zi=start)[0])


def _difference(values: FloatArray) -> FloatArray:
    """Return the first-order difference (N, k)."""
    return np.asarray(np.diff(values, axis=0, prepend=values[:1]) / STEP)


def paper_errors(arm: ElasticArm, motion: Motion) -> dict[str, float]:
    """Return the errors of ordinary least squares with Coulomb and viscous friction."""
    model = model_of(arm, 'coulomb', {'width': CREEP})
    chosen = chosen_of(model)
    samples = Samples(arm.robot.joints, motion.time, motion.position, motion.velocity,
                      motion.acceleration)
    columns = model.columns(samples)[:, chosen].transpose(0, 2, 1)
    design = columns.reshape(-1, columns.shape[2])
    target = np.hstack([motion.effort, motion.effort]).T.ravel()
    scale = np.linalg.norm(design, axis=0)
    values = np.zeros(len(chosen))
    values[chosen] = np.linalg.lstsq(design / scale, target, rcond=None)[0] / scale
    return errors_of(arm, model, values)
