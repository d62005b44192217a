"""Names that mean something to the formats they are written into, for the fuzzer.

A robot with such names is written in every form; each must hold the names as they are, and be
apart from them what it is with harmless names. A form that cannot hold a name refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree.ElementTree import fromstring

import numpy as np
from fuzzing import fault_of
from identified_models import feasible_model
from recordings import recording
from text_inputs import NAMES
from uses import command, one_in, require_page

from robot_dynid.cli.evaluation import write_rows
from robot_dynid.dynamics.wrist import WristSensor
from robot_dynid.errors import DynIdError, printable
from robot_dynid.export.description import Description
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.csv import read_csv, read_states, write_csv
from robot_dynid.io.log import load_log
from robot_dynid.io.trajectory_file import load_trajectory, save_trajectory
from robot_dynid.report.html import write_report
from robot_dynid.report.identification import model_report
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.trajectories.trajectory import QuinticMove
from robot_dynid.types import RawLog
from robot_dynid.validation.validate import validate
from robot_dynid.yaml_text import yaml_text

#: what XML cannot hold, or is not read as a name
NOT_IN_XML = re.compile('[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]|\\$[({]')
#: what the header of a table cannot hold
NOT_IN_TABLE = re.compile('[\0\n\ufffd]|\\s\\Z')
#: what a name of a file cannot hold
NOT_IN_PATH = re.compile('[\0/]')
#: comments and literals of C
NO_CODE = re.compile(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
#: characters from which a name may be too long for a file
LONGEST = 240
#: a recording to report on [s]
SECONDS = 5.0


def name_mutated(rng: np.random.Generator, data: bytes) -> bytes:
    """Return a name with another one in it, or before or behind it."""
    other = NAMES[int(rng.integers(len(NAMES)))].encode()
    at = int(rng.integers(len(data) + 1))
    return (data[:at] + other + data[at:], data + other, other + data, data)[int(rng.integers(4))]


def arm(joints: tuple[str, str], links: tuple[str, str], folder: Path) -> RobotModel:
    """Return an arm of two joints, read from a robot YAML."""
    body = {'mass': 2, 'com': [0.0, 0.01, 0.1], 'inertia': {'ixx': 0.1, 'iyy': 0.1, 'izz': 0.1}}
    screws = [{'name': joint, 'link': link, 'axis': [1 - k, k, 0], 'origin': [0.3 * k, 0, 0.4],
               'collision': [{'sphere': {'radius': 0.1}}], **body}
              for k, (joint, link) in enumerate(zip(joints, links, strict=True))]
    limits = {'position': [-2.0, 2.0], 'velocity': 2.0, 'acceleration': 8.0, 'effort': 60.0}
    path = folder / 'arm.yaml'
    path.write_text(yaml_text({'effort_kind': 'torque', 'screws': screws,
                               'limits': dict.fromkeys(joints, limits)}), 'utf-8')
    return load_robot(path)


def model_of(robot: RobotModel, name: str, words: str) -> IdentifiedModel:
    """Return a feasible model of an arm as it is described, whose texts are ``words``."""
    named = replace(robot, name=name)
    model = feasible_model(named, named.nominal, np.random.default_rng(0))
    return replace(model, status=words, warnings=(words,),
                   record=replace(model.record, recordings=(words,)))


@contextmanager
def refused_if(unfit: bool) -> Iterator[None]:
    """Let a block end; it may be refused only where a form cannot hold a name."""
    try:
        yield
    except DynIdError as error:
        assert not fault_of(error), fault_of(error)
        assert unfit, f'refused: {error}'


def use_names(path: Path) -> None:
    """Write a robot, a model, tables, plans and reports with the name in a file."""
    name = path.read_bytes().decode('utf-8', 'replace')
    with TemporaryDirectory(dir=path.parent) as place:
        folder = Path(place)
        robot = arm((name, f'other {name}'), (f'{name} link', f'{name}*/link'), folder)
        model = model_of(robot, name, name)
        plain = model_of(arm(('a', 'b'), ('c', 'd'), folder), name, 'words')
        again = IdentifiedModel.from_yaml(model.to_yaml())
        assert (again.joints, again.robot.name, again.status) == (model.joints, name, name)
        written_in_xml(model, folder)
        written_in_tables(model, folder)
        written_in_plans(model, folder)
        written_in_paths(model, folder)
        if one_in(2, path):
            written_in_c(model, plain, folder)
        else:
            written_in_report(model, plain, folder)


def sensor_of(model: IdentifiedModel) -> WristSensor:
    """Return a wrist sensor at the last link of a model."""
    return WristSensor(model.robot.name, model.robot.hash(), model.robot.bodies[-1], np.zeros(10),
                       np.zeros(6), np.eye(3), 1)


def written_in_c(model: IdentifiedModel, plain: IdentifiedModel, folder: Path) -> None:
    """Require that C code compiles, holds the names, and is otherwise that of ``plain`` ones."""
    code, other = (one.to_c(sensor_of(one)) for one in (model, plain))
    for text, expected in ((code.header, other.header), (code.source, other.source)):
        assert ''.join(NO_CODE.sub(' ', text).split()) == ''.join(
            NO_CODE.sub(' ', expected).split()), 'a name is code'
    literals = LITERAL.findall(code.source[code.source.index('joint_names[JOINTS]'):])
    names = tuple(decoded(text) for text in literals[:model.robot.n])
    assert names == model.joints, f'the names are {names}'
    with refused_if(len(code.name) > LONGEST):
        code.save(folder / 'code')


def decoded(literal: str) -> str:
    """Return the text of a literal of C with octal escapes."""
    plain = re.sub(r'\\([0-7]{3})', lambda octal: chr(int(octal[1], 8)), literal)
    return plain.encode('latin-1').decode('utf-8')


def written_in_xml(model: IdentifiedModel, folder: Path) -> None:
    """Require that URDF, MJCF, SDF and the parameters of a solver hold the names."""
    unfit = NOT_IN_XML.search(model.robot.name) is not None
    for make in (model.to_urdf, Description(model.robot).to_urdf):
        with refused_if(unfit):
            urdf = make()
            urdf.save(folder / 'arm.urdf')
            read = robot_from_urdf((folder / 'arm.urdf').read_text('utf-8'))
            assert (read.joints, read.bodies) == (model.joints, model.robot.bodies)
            assert read.name == model.robot.name
            (folder / 'arm.urdf').unlink()
    for make in (model.to_mjcf, Description(model.robot).to_mjcf):
        with refused_if(unfit):
            root = fromstring(make().content)
            assert root.get('model') == model.robot.name
            assert [e.get('name') for e in root.iter('joint')] == [*model.joints]
            make().facts()
    for make in (model.to_sdf, model.to_solver_parameters):
        with refused_if(unfit):
            make().facts()


def written_in_tables(model: IdentifiedModel, folder: Path) -> None:
    """Require that tables with the names are read back."""
    values = 0.1 * np.arange(10.0 * model.robot.n).reshape(10, -1)
    log = RawLog('x', model.joints, 0.01 * np.arange(10), values, 2.0 * values, 3.0 * values)
    with refused_if(any(NOT_IN_TABLE.search(joint) for joint in model.joints)):
        for file in (folder / 'log.csv', folder / 'log.csv.gz'):
            for _ in range(2):  # its own file is replaced
                write_csv(file, log)
            read = read_csv(file, model.joints, model.robot)
            assert np.array_equal(read.effort, log.effort)
            assert not any('not used' in text for text in read.findings)
        for _ in range(2):
            write_rows(str(folder / 'rows.csv'), model.joints, {'position': values})
        (rows,) = read_states(folder / 'rows.csv', model.joints, ('position',))
        assert np.array_equal(rows, values)


def written_in_plans(model: IdentifiedModel, folder: Path) -> None:
    """Require that a trajectory file holds the names."""
    n = model.robot.n
    save_trajectory(QuinticMove(model.joints, np.zeros(n), np.ones(n), 2.0),
                    folder / 'plan.yaml', model.robot.name)
    assert load_trajectory(folder / 'plan.yaml').joints == model.joints


def written_in_paths(model: IdentifiedModel, folder: Path) -> None:
    """Require that files may have the name."""
    name = NOT_IN_PATH.sub('_', model.robot.name)
    file = folder / f'{name}.yaml'
    with refused_if(len(file.name.encode()) > LONGEST):
        model.save(file)
        xml = folder / f'{name}.xml'
        with refused_if(NOT_IN_XML.search(model.robot.name) is not None):
            command('export', file, '--mjcf', xml)
        table = folder / f'{name}.csv'
        states = RawLog(name, ('a', 'b'), 0.01 * np.arange(9), np.ones((9, 2)))
        write_csv(table, states)
        assert np.array_equal(load_log(table, states).position, states.position)


def written_in_report(model: IdentifiedModel, plain: IdentifiedModel, folder: Path) -> None:
    """Require that a report shows the names, and has the elements of one of ``plain`` names."""
    pages = []
    for k, one in enumerate((model, plain)):
        log = replace(recording(one.robot, 0, SECONDS), source=one.status)
        report = folder / f'{k}.html'
        write_report(model_report(one, validate(one, [log]), [log]), report)
        pages.append(require_page(report, names=True))
    page, other = pages
    assert set(page.tags) <= set(other.tags), f'{set(page.tags) - set(other.tags)}'
    assert printable(model.joints[0]) in '\n'.join(page.words), 'no joint is named'
