"""report/contact.py: contacts, blind times and thresholds stand where the monitor has them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model
from report_pages import unpacked

from robot_dynid.document import Card
from robot_dynid.monitoring.contact_events import Contact, ContactEvents
from robot_dynid.monitoring.watched_joints import BlindTime
from robot_dynid.report.contact import TEXT, contact_report

MODEL = nominal_model('planar_3r')
TORQUE = np.zeros((5, 3))
TORQUE[1:4] = [[1.0, 5.0, 0.0], [-2.0, -7.1234, 0.5], [0.0, 6.0, 0.0]]
EVENTS = ContactEvents(
    '/data/run.csv', 10.0 + 1.0031 * np.arange(5.0), TORQUE, np.full((5, 3), 0.25),
    np.full((5, 3), 3.0),
    (Contact('joint_2', 11.1234, 11.5678, 5.0), Contact('joint_2', 12.3456, 13.25, -7.1234)),
    np.array([1.2345, 2.0, np.nan]), np.array([4.1234, 5.0, 6.0]), np.zeros(3),
    ('/data/run.csv: a gap',),
    (BlindTime('joint_3', 10.0, 10.5124, 'settling', True),
     BlindTime('joint_3', 11.125, 12.625, 'slow')))


def test_numbers_of_contacts_are_those_of_the_monitor() -> None:
    report = contact_report(MODEL, [EVENTS])
    assert report.subtitle == '1 recording, model by wls'
    assert contact_report(MODEL, 2 * [EVENTS]).subtitle.startswith('2 recordings,')
    (chapter,) = report.chapters
    assert chapter.title == 'run.csv'
    summary, touched, others = chapter.sections
    by_joint, contacts, blind = summary.tables
    assert by_joint.columns[2:] == (
        'largest external torque [N m]', 'largest without contact [N m]',
        'hidden by static friction [N m]', 'blind [s]')
    assert [row.cells for row in by_joint.rows] == [
        ('joint_1', '0', '2', '1.23', '4.12', '0'), ('joint_2', '2', '7.12', '2', '5', '0'),
        ('joint_3', '0', '0.5', '–', '6', '2.01')]
    assert [row.cells for row in contacts.rows] == [
        ('joint_2', '11.12', '11.57', '5'), ('joint_2', '12.35', '13.25', '-7.12')]
    assert [row.cells for row in blind.rows] == [('joint_3', '11.1', '12.6', 'slow')]
    assert (by_joint.detail, contacts.detail, blind.detail, blind.folded, blind.words) == (
        True, False, True, False, True)
    assert summary.warnings == ('run.csv: a gap',)
    assert summary.cards == (Card('contacts', '2'), Card('joints touched', '1 of 3'),
                             Card('length', '4.01', 's'))
    assert summary.status is not None and summary.status.kind == 'fair'
    assert (summary.status.word, summary.status.advice) == (
        'Contact at joint_2:', 'the strongest at joint_2, 12.35 to 13.25 s, peak -7.12 N m.')
    for section, joints, folded, text in ((touched, ['joint_2'], False, TEXT),
                                          (others, ['joint_1', 'joint_3'], True, '')):
        assert [figure.title for figure in section.figures] == joints
        assert (section.folded, section.text, section.beside) == (folded, text, True)
        assert {figure.link for figure in section.figures} == {'run.csv'}


@pytest.mark.parametrize(('count', 'folded'), [(12, False), (13, True)])
def test_many_blind_times_are_folded_and_no_contact_is_good(count: int, folded: bool) -> None:
    blind = count * (BlindTime('joint_1', 11.0, 12.0, 'slow'),)
    (chapter,) = contact_report(MODEL, [replace(EVENTS, contacts=(), blind=blind)]).chapters
    summary, others = chapter.sections
    assert [table.title for table in summary.tables] == ['', 'Blind']
    assert summary.tables[1].folded is folded
    assert summary.status is not None and summary.status.kind == 'good'
    assert len(others.figures) == 3 and others.folded


def test_thresholds_lie_about_what_is_claimed_and_contacts_are_shaded() -> None:
    (chapter,) = contact_report(MODEL, [EVENTS]).chapters
    figures = {one.title: one.spec for section in chapter.sections for one in section.figures}
    curves = figures['joint_2']['data']
    assert [curve['name'] for curve in curves] == [
        'threshold', 'threshold', 'external torque', 'contact']
    assert [unpacked(curve['y'])[0] for curve in curves[:2]] == [3.25, -2.75]
    assert unpacked(curves[2]['y']).tolist() == pytest.approx(TORQUE[:, 1])
    assert unpacked(curves[2]['x']) == pytest.approx(EVENTS.time)
    assert [curve.get('showlegend', True) for curve in curves] == [True, False, True, True]
    shapes = figures['joint_2']['layout']['shapes']
    assert [(one['x0'], one['x1'], one['y0'], one['y1']) for one in shapes] == [
        (11.1234, 11.5678, 0, 1), (12.3456, 13.25, 0, 1)]
    blind = figures['joint_3']
    assert [curve['name'] for curve in blind['data']][3:] == ['blind']
    (shape,) = blind['layout']['shapes']
    assert (shape['x0'], shape['x1']) == (11.125, 12.625)
    assert shape['fillcolor'] != shapes[0]['fillcolor']
    assert blind['layout']['yaxis']['title']['text'] == 'external torque [N m]'
    assert not figures['joint_1']['layout']['shapes']
