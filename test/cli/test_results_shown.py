"""cli/: what is printed of results made by hand: base, contact, design, doctor, export, identify,
information, payload, repair, topics, validate."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest

from robot_dynid.cli import (
    base,
    contact,
    design,
    doctor,
    export,
    identify,
    payload,
    recordings,
    validate,
)
from robot_dynid.cli.terminal import Terminal
from robot_dynid.document import Chapter, Section, Table


def shown(
    verb: Any, result: dict[str, Any], verbose: bool = False, quiet: bool = False
) -> list[str]:
    """Return the words of every line that a verb, or its function, prints."""
    show: Callable[..., None] = getattr(verb, 'show', verb)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        patch.setenv('COLUMNS', '400')
        show(result, Terminal(quiet, verbose))
    return [' '.join(line.split()) for line in out.getvalue().splitlines()]


BASE = {
    'robot': 'arm', 'joints': ['a', 'b'], 'standard': 20, 'base': 7, 'gap': float('inf'),
    'constants': [], 'kept': ['m2', 'mx2'], 'labels': ['m2 + m3', 'mx2 - 0.5 m3'],
    'categories': {'m1': {'category': 'unidentifiable'}, 'm2': {
        'category': 'in combinations', 'in': ['m2', 'mx2'], 'advice': 'wrist sensor'}},
    'further': [{'words': 'wrist sensor', 'tells_apart': ['m2', 'm3'], 'shows_combined': []}],
    'warnings': ['no limits']}


def test_base_parameters_are_shown_with_their_combinations() -> None:
    lines = ['arm: 2 joints, 20 standard parameters, 7 base parameters',
             'rank counted from the axes', 'base parameter combination', 'm2 m2 + m3',
             'mx2 mx2 - 0.5 m3']
    assert shown(base, BASE) == [
        *lines, 'which parameters the motion can identify, and with which sensors: --verbose',
        '! no limits']
    categories = ['parameter category in sensor configuration', 'm1 unidentifiable',
                  'm2 in combinations m2, mx2 wrist sensor']
    assert shown(base, BASE, verbose=True) == [
        *lines, *categories, 'sensor configuration identifiable alone in combinations',
        'wrist sensor m2, m3 none', '! no limits']
    other = [{'words': 'base sensor', 'tells_apart': [], 'shows_combined': ['m1', 'm4']}]
    assert shown(base, {**BASE, 'further': other}, verbose=True)[-2] == 'base sensor none m1, m4'
    assert shown(base, {**BASE, 'further': []}, verbose=True) == [
        *lines, *categories, '! no limits']
    assert shown(base, {**BASE, 'gap': 2.7e9})[1] == \
        'the singular values drop at the rank by a factor of 3e+09'
    constants = [{'name': 'm^2', 'body': 'b', 'nominal': 4.5, 'combination': 'm2 + m3'}]
    assert shown(base, {**BASE, 'constants': constants})[2:5] == [
        'inertia constants of composite bodies: a link with all that it carries',
        'constant body from nominal combination', 'm^2 b 4.5 m2 + m3']


@pytest.mark.parametrize('ok', [True, False])
def test_joints_that_were_not_watched_to_the_end_are_told(ok: bool) -> None:
    """Those that were blind at the beginning only are no reason for exit code 1."""
    def blind(joint: str, reason: str, begins: bool) -> dict[str, Any]:
        return {'joint': joint, 'reason': reason, 'begins': begins}

    recordings = {'a.csv': {'blind': [blind('j1', 'warming', True),
                                      blind('j2', 'no data', False)]},
                  'b.csv': {'blind': [blind('j3', 'no data', False)]}}
    text = shown(contact, {'recordings': recordings, 'ok': ok, 'chapters': [], 'report': 'r.html'})
    assert text == ([] if ok else [
        'exit code 1: j2 and j3 were blind for a while, so contacts there may be missed '
        '(--accept-partial accepts refused joints): no data']) + ['report r.html']


def test_joints_above_their_limit_of_error_are_told_with_both_figures() -> None:
    result: dict[str, Any] = {
        'chapters': [], 'findings': {}, 'report': None, 'max_nrmse': {'a': 0.1, 'b': 0.25},
        'joints': {'a': {'nrmse': 0.05}, 'b': {'nrmse': 0.31234}}}
    assert shown(validate, {**result, 'above_max_nrmse': ['b']}) == [
        'exit code 1, RMSE / std is above --max-nrmse: b 0.312 (limit 0.25)']
    assert shown(validate, {**result, 'above_max_nrmse': []}) == []


def test_designs_are_shown_with_their_files_or_why_none_is_needed() -> None:
    made = {'out': 't.yaml', 'report': None, 'chapters': [], 'warnings': ['slow'], 'validation': {
        'out': 'v.yaml', 'report': 'v.html', 'warnings': ['slow', 'short']}}
    assert shown(design, made) == ['! validation motion: short',
                                   'fit motion t.yaml, validation motion v.yaml, report v.html']
    assert shown(design, {**made, 'validation': None}) == ['fit motion t.yaml']
    over = {'out': None, 'session': {'accuracy': 0.1}, 'largest_deviation': 0.05,
            'least_known': 'm2'}
    assert shown(design, over) == [
        'the accuracy 10.0 % is met: m2, deviation 5.0 %; no further recording is needed']


@pytest.mark.parametrize(('verb', 'result', 'rows'), [
    (identify, {'ok': True, 'seconds': 1.25, 'out': 'm.yaml', 'report': None}, 14),
    (identify, {'ok': False, 'seconds': 1.25, 'out': 'm.yaml', 'report': None}, 13),
    (design, {'out': 't.yaml', 'report': None, 'warnings': [], 'validation': None}, 14),
    (contact, {'ok': True, 'report': None, 'recordings': {}}, 15),
    (contact, {'ok': False, 'report': None, 'recordings': {}}, 14),
    (contact, {'ok': True, 'report': 'r.html', 'recordings': {}}, 14)])
def test_lines_that_follow_a_document_are_left_to_it(
    verb: Any, result: dict[str, Any], rows: int
) -> None:
    """Of fifteen lines: the warnings of a document get what is free."""
    tables = tuple(Table((), [(f'row {k}',)]) for k in range(rows - 1))
    document = (Chapter('', (Section('', tables=tables, warnings=('one', 'two')),)),)
    lines = shown(verb, {'findings': {}, 'advice': 'refused: b', **result, 'chapters': document})
    assert '! one (and 1 more: --verbose)' in lines
    more = (Chapter('', (Section('', tables=(*tables, tables[0]), warnings=('one', 'two')),)),)
    lines = shown(verb, {'findings': {}, 'advice': 'refused: b', **result, 'chapters': more})
    assert '! 2 warnings: --verbose' in lines


def test_identify_prints_why_joints_are_refused_and_its_files() -> None:
    result = {'ok': True, 'seconds': 12.345, 'out': 'm.yaml', 'report': 'r.html', 'chapters': [],
              'advice': 'b: too little motion', 'findings': {'x.csv': ['a gap']}}
    assert shown(identify, {**result, 'urdf': 'o.urdf'}) == [
        '! x.csv: a gap', 'model m.yaml, report r.html, URDF o.urdf (12.3 s)']
    assert shown(identify, {**result, 'ok': False, 'report': None}) == [
        'b: too little motion', '! x.csv: a gap',
        'model m.yaml (12.3 s, exit code 1: joints are refused; --accept-partial accepts the '
        'model of the others)']


def test_exports_are_shown_with_their_errors_and_if_verbose_with_bodies_and_friction() -> None:
    row = {'axis': 'a', 'damping': 1.23456, 'friction': 0.5, 'offset': -0.25, 'rms': 1e-3,
           'most': 2e-3, 'speed': 3.0}
    files = [{'target': 'mjcf', 'path': 'a.xml', 'error': 1.5e-12, 'tool': 'MuJoCo',
              'digest': None, 'friction': [row]},
             {'target': 'c', 'path': 'code', 'digest': 'ab12'}]
    result = {'bodies': [{'link': 'l', 'mass': 2.34567, 'nominal_mass': 2.0,
                          'center_of_mass': [0.123456, 0.0, -0.5]}], 'files': files,
              'samples': {'count': 3}, 'out': 'o.urdf', 'changed_links': ['l', 'k'],
              'warnings': ['rotors']}
    told = ['mjcf a.xml', 'error 1.5e-12', 'tool MuJoCo']
    last = ['samples 3', 'changed l, k', '! rotors']
    assert shown(export, result) == [*told, 'c code', 'digest ab12', *last]
    assert shown(export, result, verbose=True) == [
        'identified bodies', 'link kg nominal kg centre of mass m', 'l 2.346 2 0.1235 0 -0.5',
        *told, 'mjcf: friction as written', 'axis damping friction offset rms most speed',
        'a 1.235 0.5 -0.25 0.001 0.002 3', 'c code', 'digest ab12', *last]
    bare = {**result, 'bodies': [], 'samples': {}, 'changed_links': [], 'warnings': []}
    assert shown(export, bare, verbose=True) == [*told, 'c code', 'digest ab12',
                                                 'changed no link']
    assert shown(export, {**bare, 'out': None}) == [*told, 'c code', 'digest ab12']


PAYLOAD: dict[str, Any] = {
    'status': 'ok', 'advice': 'fine', 'frame': 'tool0', 'mass': 2.345678, 'mass_std': 0.0456,
    'interval': {'mass': [2.25, 2.4375], 'centre_of_mass': [(0.1, 0.2), (-0.4, 0.0), (0.5, 1.1)]},
    'centre_of_mass': [0.15, -0.2, 0.8], 'inertia': [[1.1, 0.12, 0.13], [9.0, 2.2, 0.23],
                                                     [9.0, 9.0, 3.3]],
    'inertia_std': [[0.011, 0.012, 0.013], [9.0, 0.022, 0.023], [9.0, 9.0, 0.033]],
    'not_excited': [], 'directions': [], 'findings': {}, 'warnings': [],
    'drive_gains_std': np.array([0.05, 0.02, 0.05]), 'drive_gains_std_stated': True,
    'mass_std_gains': 0.0123, 'pairs': [
        {'loaded': 'l.csv', 'unloaded': 'u.csv', 'lag': -1.234e-3},
        {'loaded': 'm.csv', 'unloaded': '', 'lag': 0.0}]}
PAYLOAD_LINES = [
    'mass 2.346 kg on tool0, 95 % from 2.25 to 2.438 kg',
    'centre of mass x 0.15 ± 0.05, y -0.2 ± 0.2, z 0.8 ± 0.3 m (95 %)',
    'inertia about it xx 1.1 ± 0.011, xy 0.12 ± 0.012, xz 0.13 ± 0.013, yy 2.2 ± 0.022, '
    'yz 0.23 ± 0.023, zz 3.3 ± 0.033 kg m² (± std)', 'status ok: fine']
GAINS_LINE = ('drive gains uncertain by 2.0 to 5.0 % (stated): 0.012 kg of the deviation of the '
              'mass, 0.046 kg')


def test_a_payload_is_shown_with_its_intervals_and_the_share_of_the_gains() -> None:
    assert shown(payload, PAYLOAD) == [*PAYLOAD_LINES, GAINS_LINE]
    assert shown(payload, PAYLOAD, verbose=True) == [
        *PAYLOAD_LINES, GAINS_LINE, 'l.csv less u.csv clocks 1.23 ms apart']
    same = {**PAYLOAD, 'drive_gains_std': np.array([0.05]), 'drive_gains_std_stated': False}
    assert shown(payload, same)[-1].startswith(
        'drive gains uncertain by 5.0 % (assumed; state drive_gains_std in the robot YAML): ')
    exact = {**PAYLOAD, 'drive_gains_std': np.zeros(3), 'findings': {'l.csv': ['a gap']}}
    assert shown(payload, exact)[-2:] == [
        'drive gains taken as exact; state drive_gains_std in the robot YAML if they are not',
        '! l.csv: a gap']
    lost = {**PAYLOAD, 'not_excited': ['a', 'b', 'c'], 'directions': ['mz'], 'warnings': ['warm']}
    assert shown(payload, lost)[-3:] == [
        '! not excited by the motion: a, b and c', '! mz: not determined', '! warm']


def test_a_wrist_sensor_is_shown_with_bias_and_mounting() -> None:
    bias = {name: {'value': 1.23456 + k, 'half_width': 0.0123 * (k + 1)}
            for k, name in enumerate(('fx', 'fy', 'fz', 'tx', 'ty', 'tz'))}
    mounting = {'rpy': np.radians([10.0, -20.123, 30.0]),
                'half_width': np.radians([0.1, 0.2, 0.3])}
    result = {**PAYLOAD, 'bias': bias, 'mounting': mounting, 'reports': 'reaction of the tool'}
    assert shown(payload, result) == [
        *PAYLOAD_LINES, 'bias fx 1.235 ± 0.012, fy 2.235 ± 0.025, fz 3.235 ± 0.037 N, '
        'tx 4.235 ± 0.049, ty 5.235 ± 0.061, tz 6.235 ± 0.074 N m (95 %)',
        'mounting rpy 10.00, -20.12, 30.00° ± 0.10, 0.20, 0.30° (95 %); reports the reaction of '
        'the tool']


def test_drive_gains_are_shown_beside_those_that_are_stated() -> None:
    gains = {'a': {'value': 10.5, 'interval': [10.0, 11.0], 'relative_std': 0.0234,
                   'stated': 12.0},
             'b': {'value': 7.25, 'interval': [7.0, 7.5], 'relative_std': 0.012, 'stated': None}}
    result = {'status': 'ok', 'advice': 'fine', 'gains': gains, 'known_mass': 5.12345,
              'frame': 'tool0', 'findings': {}, 'warnings': ['few poses']}
    assert shown(payload, result) == [
        'drive gains from 5.123 kg on tool0', 'joint gain 95 % from to std % stated',
        'a 10.5 10 11 2.3 12', 'b 7.25 7 7.5 1.2 –', 'status ok: fine', '! few poses']


def test_information_and_repairs_are_shown_by_their_numbers() -> None:
    assert shown(recordings.show_information, {
        'recordings': ['a', 'b', 'c'], 'samples': 1234, 'base': 17, 'cutoff': 7.54321,
        'friction_laws': ['a: dahl', 'b: coulomb'], 'out': 'x.info', 'megabytes': 1.23456,
        'seconds': 3.14159, 'warnings': ['late']}) == [
        'recordings 3', 'samples 1234 (after preprocessing)', 'base parameters 17',
        'cut-off 7.543 Hz', 'friction a: dahl; b: coulomb', 'information x.info', 'size 1.23 MB',
        'seconds 3.1', '! late']
    repair = {'path': 'bag', 'topics': {'/a': 5, '/b': 7}, 'written': [], 'kept': ['m.yaml'],
              'lost': ['3 bytes']}
    assert shown(recordings.show_repair, repair) == [
        'bag', 'topic messages', '/a 5', '/b 7', 'as it was m.yaml', 'nothing had to be repaired',
        '! 3 bytes']
    assert shown(recordings.show_repair, {**repair, 'written': ['x.db3']})[4:] == [
        'written x.db3', 'as it was m.yaml', '! 3 bytes']


def test_topics_are_shown_with_their_uses_or_if_verbose_with_their_fields() -> None:
    topic = {'name': '/a', 'type': 'T', 'messages': 12, 'rate': 123.456, 'uses': ['joint states'],
             'fields': {'position': 6, 'effort': 3}, 'texts': {'name': ['j1', 'j2'], 'frame': []},
             'problem': ''}
    other = {**topic, 'name': '/b', 'rate': None, 'uses': [], 'problem': 'cut', 'fields': {}}
    result = {'path': 'bag', 'topics': [topic, other]}
    table = ['bag', 'topic type messages Hz', '/a T 12 123', '/b T 12']
    assert shown(recordings.show_topics, result) == [
        *table, '/a joint states', 'fields of all topics: --verbose']
    assert shown(recordings.show_topics, result, verbose=True) == [
        *table, '/a position (6), effort (3), name: j1 j2', 'use joint states',
        '/b name: j1 j2, cut']


def test_init_shows_what_was_written_or_the_questions_as_a_file() -> None:
    diagnosis = {'level': 'warning', 'name': 'n1', 'where': 'here', 'what': 'w1', 'remedy': ''}
    result = {'robot': 'a.yaml', 'recipe': 'a.recipe.yaml', 'joints': ['a', 'b'],
              'diagnoses': [diagnosis], 'warnings': ['no limits'], 'next': ['one', 'two']}
    assert shown(doctor.show_init, result) == [
        'robot a.yaml', 'recipe a.recipe.yaml', 'joints a, b', 'warning n1 (here): w1',
        '! no limits', 'next:', 'one', 'two']
    question = {'text': 'Which driver?', 'why': 'it decides', 'choices': ['x', 'y'],
                'key': 'driver', 'suggestion': None, 'required': True}
    other = {'text': 'A topic.', 'why': 'to listen', 'choices': [], 'key': 'topic',
             'suggestion': 'joint_states', 'required': False}
    assert shown(doctor.show_init, {'questions': [question, other]}) == [
        '# Which driver. One of: x, y.', '# it decides', 'driver: # MUST be answered',
        '# A topic.', '# to listen', 'topic: joint_states']
