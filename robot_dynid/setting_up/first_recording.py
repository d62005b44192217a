"""A first recording against a robot YAML: names, units, effort, encoders; and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.errors import DataError, DynIdError
from robot_dynid.io.log import load_log
from robot_dynid.plausibility.excerpt import excerpt
from robot_dynid.plausibility.finding import Severity
from robot_dynid.plausibility.score import Explained
from robot_dynid.robot.model import EFFORT_KINDS, RobotModel
from robot_dynid.setting_up.diagnosis import ERROR, OK, WARN, Diagnosis, of_finding
from robot_dynid.setting_up.live import gate_findings
from robot_dynid.signals.alignment import without_holes
from robot_dynid.signals.encoders import encoders_of
from robot_dynid.signals.plausible import plausible
from robot_dynid.types import RawLog


def recording_diagnoses(robot: RobotModel, paths: Sequence[str]) -> list[Diagnosis]:
    """Return diagnoses of the description of a robot from recordings."""
    found = []
    for path in paths:
        try:
            log = load_log(path, robot)
            findings = gate_findings(robot, log)
        except DataError as error:
            what, _, remedy = str(error).removeprefix(f'{path}: ').partition('; ')
            found.append(Diagnosis('recording', ERROR, path, what, remedy or 'name the joints of '
                                   'the recording as those of the URDF'))
            continue
        found += [of_finding(one, path) for one in findings]
        found += [kind_diagnosis(robot, log), *encoder_diagnoses(robot, log)]
    return found


def encoder_diagnoses(robot: RobotModel, log: RawLog) -> list[Diagnosis]:
    """Return whether motor and link encoders of elastic joints fit: there, ratio, sign, slip.

    Of a robot without elastic joints: whether others have such encoders in the recording.
    """
    name, elastic = 'motor encoders', [robot.joints[j] for j in robot.drive.elastic]
    if log.motor_position is None:
        return [] if not elastic else [Diagnosis(
            name, ERROR, log.source, f'no motor positions of {", ".join(elastic)}', 'record the '
            'topic motor_states (columns motor_position.<joint>), or leave out elastic_joints')]
    encoders = dict(zip(robot.joints, encoders_of(
        robot, without_holes(plausible(robot, log)[0])[0]), strict=True))
    fitting = [joint for joint, one in encoders.items() if not one.refused]
    found = [Diagnosis(name, ERROR, f'{log.source} of {joint}', encoders[joint].refused, 'correct '
                       'it, or leave the joint out of elastic_joints')
             for joint in elastic if joint not in fitting]
    notes = [f'{joint}: {encoders[joint].note}' for joint in elastic if encoders[joint].note]
    if any(encoders[joint].factor == 1.0 for joint in elastic):
        notes.append('motor states on the joint side do not show whether gear_ratios are right')
    if elastic and not found:
        found.append(Diagnosis(name, OK, log.source, '; '.join(
            [f'those of {", ".join(elastic)} follow their joints in size and sign', *notes])))
    rigid = [joint for joint in fitting if joint not in elastic]
    if rigid:
        found.append(Diagnosis(name, WARN, log.source, f'{", ".join(rigid)} have motor positions, '
                               'too', 'name them in elastic_joints where gears give'))
    return found


def kind_diagnosis(robot: RobotModel, log: RawLog) -> Diagnosis:
    """Return whether the effort is of the kind that is stated, or which other one fits."""
    own = robot.drive.kind
    refused = _refused(robot, log)
    where = log.source
    if not refused:
        return Diagnosis('effort kind', OK, where, f'{own}: nothing in the efforts contradicts it')
    fitting = [kind for kind in EFFORT_KINDS if kind != own and (
        kind != 'current' or robot.drive.gains is not None) and not _refused(
            replace(robot, drive=replace(robot.drive, kind=kind)), log)]
    if not fitting:
        return Diagnosis('effort kind', ERROR, where, f'neither {own} nor another kind fits: '
                         f'{", ".join(refused)}', 'correct what is named above first')
    return Diagnosis('effort kind', ERROR, where, f'{own} is contradicted, '
                     f'{" or ".join(fitting)} is not', f'state effort_kind: {fitting[0]} in the '
                     'robot YAML')


def _refused(robot: RobotModel, log: RawLog) -> list[str]:
    return [one.kind for one in gate_findings(robot, log) if one.severity is Severity.REFUSE]


def gains_of_size(robot: RobotModel, paths: Sequence[str]) -> dict[str, float] | None:
    """Return drive gains [N m/A] by which currents have the size of the nominal links' torque.

    Of joints that the links do not explain, the median of the others. None where no joint says
    anything, or no recording can be read.
    """
    scales = []
    for path in paths:
        try:
            rows = excerpt(robot.rigid, load_log(path, robot))
        except DynIdError:
            continue
        if len(rows) > 40:
            scales.append(robot.torque_factors / Explained(robot.rigid, rows).free_sizes)
    if not scales or not np.isfinite(scales).any():
        return None
    with np.errstate(all='ignore'):
        table = np.array(scales)
        known = np.isfinite(table).any(axis=0)
        gains = np.full(robot.n, float(np.nanmedian(table)))
        gains[known] = np.nanmedian(table[:, known], axis=0)
    return {joint: float(f'{gain:.3g}') for joint, gain in zip(robot.joints, gains)}
