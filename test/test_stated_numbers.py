"""docs/: the thresholds and bounds that pages state are those of the code."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / 'docs'
WORDS = ('no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten',
         'eleven', 'twelve')
#: what a format stands for: per cent, thousandths, a word, how often, thousands with commas or
#: spaces, millions, binary kilobytes, megabytes and gigabytes, powers of ten
FORMS = {'p': lambda x: f'{100.0 * x:g}', 'm': lambda x: f'{1e3 * x:g}',
         'w': lambda x: WORDS[int(x)], 'times': lambda x: ('never', 'once', 'twice')[int(x)],
         ',': lambda x: f'{x:,}', 's': lambda x: f'{x:,.0f}'.replace(',', ' '),
         'M': lambda x: f'{x / 1e6:g}', 'kB': lambda x: f'{x / 2**10:g}',
         'MB': lambda x: f'{x / 2**20:g}', 'GB': lambda x: f'{x / 2**30:g}',
         'e': lambda x: f'{x:.0e}'.replace('e+0', 'e'), '': lambda x: f'{x:g}'}
#: a name in a sentence: module, constant, index of a tuple if need be, format
NAME = re.compile(r'\{([\w.]+)(?:\[([-\w]+)\])?(?::(\w+|,))?\}')


def number(module: str, name: str, index: str | None) -> Any:
    """Return a constant of a module of the package, or of its extras, or a part of it."""
    package = 'robot_dynid_extras' if module.split('.', maxsplit=1)[0] in (
        'health', 'latent', 'fleet', 'trajectory', 'session') else 'robot_dynid'
    value = getattr(import_module(f'{package}.{module}'), name)
    if index is None:
        return value
    return value[index if isinstance(value, dict) else int(index)]


def written(sentence: str) -> str:
    """Return a sentence with the values of the constants that it names."""
    def value(found: re.Match[str]) -> str:
        path, index, form = found.groups()
        module, _, name = path.rpartition('.')
        return FORMS[form or ''](number(module, name, index))
    return NAME.sub(value, sentence)


@cache
def page(name: str) -> str:
    """Return the text of a page in one line."""
    return ' '.join((DOCS / f'{name}.md').read_text('utf-8').split())


STATED = {
    'elastic': [
        'A warning appears above {identification.gears.ATTENUATED:p} %',
        '(Durbin-Wu-Hausman, {estimation.elastic.BIASED:p} % for all gears together)',
    ],
    'estimators': [
        'Huber weights (${estimation.friction_sweeps.HUBER}$)',
        'smoothed to {estimation.errors_in_variables.instruments.ENERGY_MARGIN:times} the '
        'frequency below which it has {estimation.errors_in_variables.instruments.ENERGY_SHARE:p} '
        '% of its content',
        'a first-stage F below {estimation.errors_in_variables.instrumental.WEAK_F} are left',
        'in stretches of about {latent.stretches.SECONDS} s, at most {latent.stretches.MOST}.',
        'knots every {latent.motion.SPACING:m} ms, or every {latent.motion.SAMPLES:w} samples',
        'above {latent.stretches.KNOWN} deviations of the speed over '
        '{latent.stretches.WINDOW:m} ms',
        'over at most {trajectory.trajectory_fit.INTERVALS} intervals of '
        '{trajectory.simulation.SHORTEST} to {trajectory.simulation.LONGEST} s, short enough that '
        'initial errors grow by less than a factor of {trajectory.simulation.GROWTH:w}',
        'in steps of at most {trajectory.simulation.LONGEST_STEP:m} ms',
        'are added with weight {trajectory.trajectory_fit.WEIGHTS[0]}, '
        '{trajectory.trajectory_fit.WEIGHTS[1]} or {trajectory.trajectory_fit.WEIGHTS[2]}',
        'must improve by {trajectory.trajectory_fit.LEAST_GAIN:p} %, significantly (one-sided '
        '{trajectory.trajectory_fit.LEVEL:p} %; {trajectory.trajectory_fit.LEVEL_OF_ONE:p} % with '
        'a single recording)',
    ],
    'excitation': [
        'out of {excitation.planned.static_poses.POSES_DRAWN} random ones',
        'in each of {collision.scene.RANDOM_CONFIGURATIONS} random configurations',
        'accurate to {collision.clearance.RESOLUTION:m} mm',
        'noise of {excitation.design_criteria.NOISE_SHARE:p} % of the effort limit, '
        '{excitation.score.EFFORT_RATE} independent samples per second',
        'Factors above 1 or between 0 and {execution.pieces.SLOWEST_PACE}',
        'Below {execution.supervisor.SLOWEST_STOP} every stop is immediate',
        '(SCHED_FIFO {ros.common.real_time.WATCHING})',
        '{excitation.families.LONGER} times the period, one period, within the range',
    ],
    'export': ['in {export.written.COMPARED_STATES} random states'],
    'feasible': [
        'within {estimation.feasible.simultaneous.TOLERATED_EXCESS:p} % of its smallest, and its '
        'residual within {estimation.feasible.simultaneous.MAX_RISE:p} % of that of least squares',
    ],
    'files': [
        'above {robot.urdf.LIMITS[lower]:e} rad or m (or their rate) or '
        '{robot.urdf.LIMITS[effort]:e} N m (N)',
        'm, default {robot.surroundings.CLEARANCE}',
    ],
    'fleet': ['at most `--rate` ({fleet.fleet.RATE}) of the arms listed'],
    'friction': [
        'lower the held-out error by {estimation.friction_selection.law_selection.LAW_GAIN:p} %',
        'travel less than {estimation.friction_selection.selection_data.PRESLIDING_TRAVEL} rad',
        'with a ramp of {identification.selection.DEFAULT_WIDTH} rad/s',
        'fewer than {estimation.friction_sweeps.FEWEST_SPEEDS:w} speeds',
    ],
    'identification': [
        'it lowers by {identification.selection.PASSBAND_GAIN:p} %, in most folds and by more',
        'computed {estimation.experiment.CHUNK_SAMPLES} samples at a time',
        'does not exceed {estimation.uncertainty.held_out.PREDICTED_SHARE:p} % (one-sided, '
        '{estimation.uncertainty.held_out.SHARE_LEVEL:p} %)',
        'the ratios 0, {effects.counterbalance.RATIOS[0]} and {effects.counterbalance.RATIOS[1]}',
        'by {plausibility.causes.CONVINCING}, with others within '
        '{plausibility.causes.AS_GOOD_NATS} of it',
        'is within {plausibility.causes.NO_FAULT}.',
        'from {robot.implausible.THINNEST} to {robot.implausible.DENSEST:s} kg/m³, radius of '
        'gyration up to {robot.implausible.WIDEST} lengths of the robot, mass over cubed robot '
        'length up to {robot.implausible.HEAVIEST} kg/m³, centre of mass within '
        '{robot.implausible.OUTSIDE:w} lengths',
        'at a false discovery rate of {identified.comparison.FALSE_SHARE:p} %',
        '({identified.record.USUAL_SPREAD:p} % of viscous',
        '**Rollouts** of {validation.forward_scores.HORIZONS[0]}, '
        '{validation.forward_scores.HORIZONS[1]} and {validation.forward_scores.HORIZONS[2]} s '
        'from up to {validation.rollout_scores.MOST_ROLLOUTS} measured states',
        'cut into stretches of {signals.held_out_motion.SHORTEST_CELL} s',
        'agrees within {signals.held_out_motion.SAME_STATE_SHARE:p} % of its standard deviation',
        'dealt to {signals.held_out_motion.MOTION_FOLDS:w} folds',
        'with a gap of {signals.held_out_motion.GUARD} s',
        'more than {signals.parts.LONGEST_PART:,} rows are processed in overlapping parts',
        'more than {io.findings.MEMORY_NUMBERS:M} million numbers',
        'chosen on {identification.recordings.SELECTION_ROWS:,} rows, from up to '
        '{signals.parts.MAX_STRETCHES:w} stretches',
        'beyond {validation.validate.SCORED:,} rows in `validate`, '
        '{estimation.irls.MEDIAN_SAMPLES:,} samples for the medians of `irls`, and '
        '{identification.residual_fit.RESIDUAL_SAMPLES:,} for residual models',
    ],
    'monitoring': [
        'warn if K dt exceeds {monitoring.monitor.COARSE_GAIN_STEP}',
        'a gap of more than {monitoring.monitor_input.INFORMED_STEP} s',
        'older than {monitoring.motor_states.OLDEST} s',
        'no valid joint states for {ros.identifier.monitoring.SILENCE} s',
        'A watchdog checks every {ros.identifier.monitoring.WATCH_PERIOD:m} ms',
        'by more than {identified.trained.RANGE_MARGIN:p} % are watched with a warning',
        'faster than {monitoring.monitor_input.MOVING_SPEED_SHARE:p} % of its top speed',
        'predict a joint worse by more than {health.updated_model.CHANCE:p} %',
        'for {monitoring.watched_joints.OBSERVER_CONSTANTS:w} time constants',
        '{ros.identifier.messages.ARROW_LENGTH} m for the effort limit',
    ],
    'payload': [
        'or {robot.model.GAINS_STD:p} % for current',
        'standard deviation above {estimation.drive_gains.DETERMINED:p} % is reported',
        'more than {identification.wrist.FARTHEST} m away is refused',
        'from {identification.wrist.REPORTED_OUTLIERS:p} % their share is reported',
    ],
    'recordings': [
        '{files.RATIO} times their size and {files.FLOOR:MB} MB (.csv.gz and other text: '
        '{io.tables.opened.TEXT_FLOOR:MB} MB)',
        '| {io.mcap.CHUNK_BYTES:MB} MB; {io.mcap.RECORD_BYTES:MB} MB; '
        '{io.messages.definitions.DEFINITION_BYTES:kB} kB |',
        '| {io.recording_names.METADATA_BYTES:M} MB; {io.storage.FILES:s}; {io.mcap.TOPICS} |',
        '| {io.messages.kinds.MESSAGE_BYTES:MB} MB; {io.messages.kinds.JOINTS}; '
        '{io.messages.kinds.NAME_BYTES}; {io.cdr.LAYOUTS}; {io.messages.fields.ELEMENTS:s} '
        'elements |',
        '{io.sqlite.STEPS_PER_BYTE} steps per byte and {io.sqlite.STEPS:M} million; values of '
        '{io.sqlite.PART_BYTES:MB} MB',
        '| {io.tables.rows.LINE_BYTES:MB} MB; {io.tables.table.COLUMNS} |',
        'leaves {io.storage.RESERVE:GB} GB of the disk free',
        'is {signals.turns.FASTEST_JOINT} rad/s for joints that never leave one turn, else the '
        'limit, at least {signals.turns.USUAL_FASTEST} rad/s',
    ],
    'report': [
        'in the worst of {validation.evidence.STATIC_POSES} poses',
        'agree within {validation.evidence.AGAIN:p} %',
        'detected in {validation.contact_scores.DETECTED:p} % of the instants',
        'rollouts of {validation.rollout_scores.ROLLOUT_SECONDS} s per recording',
    ],
    'residual': [
        'only if its error falls by {identification.residual_fit.RESIDUAL_GAIN:p} %, in most',
    ],
    'ripple': [
        'orders from {effects.ripple_search.LEAST_ORDER} to {effects.ripple_search.MAX_ORDER}, '
        'for delays from {effects.ripple_search.DELAYS[0]:m} to '
        '{effects.ripple_search.DELAYS[-1]:m} ms',
        'by {effects.ripple_search.LEAST_GAIN:p} % of the variance and by two standard deviations',
        'if {effects.ripple_search.SHOWING:p} % of the rows in motion are slow enough',
    ],
    'safety': [
        'between 0 and {execution.pieces.SLOWEST_PACE}, or if the controller does not report',
        "for {execution.guards.BRIDGED} s more the controller's feedback",
    ],
    'slow_changes': [
        'by more than {effects.slow_changes_search.LEAST_ERROR_SHARE:p} %, and significantly '
        '*within* recordings ({effects.slow_changes_search.BEYOND_CHANCE} standard deviations '
        'over stretches of {effects.slow_changes_search.ERROR_STRETCH} s)',
        'over {effects.slow_changes_search.DRIFTS[0]} to {effects.slow_changes_search.DRIFTS[2]} '
        's',
        'Less than {health.calibration.LEAST_SECONDS} s of motion is refused',
    ],
    'staged': [

        'within `--longest` ({excitation.planned.sine_sequence.DEFAULT_LONGEST} s)',
    ],
}


@pytest.mark.parametrize(('name', 'sentence'), [
    (name, sentence) for name, sentences in STATED.items() for sentence in sentences])
def test_a_stated_number_is_that_of_the_code(name: str, sentence: str) -> None:
    assert written(sentence) in page(name)
