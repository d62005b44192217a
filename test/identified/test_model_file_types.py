"""identified/model_file.py: model files with one value of another type or size: refused by the
key, or of use."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from fuzzing import fault_of, may_refuse
from identified_models import model_named, nominal_model, unprotected

from robot_dynid.effects.deflection import GearModel, MixtureModel, RadialModel
from robot_dynid.effects.ripple import TorqueRipple
from robot_dynid.effects.slow_changes import Adaptation, SlowCoefficients, Warming
from robot_dynid.errors import ModelError
from robot_dynid.identified.error_law import ErrorLaw
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.trained import Trained
from robot_dynid.report.identification import model_report
from robot_dynid.types import RawLog
from robot_dynid.validation.validate import validate
from robot_dynid.yaml_text import parsed, yaml_text

#: what stands in place of a value
OTHERS: tuple[Any, ...] = (
    'x', '1.5', '', 1.5, 0, -1, 2, -1.5, 1e300, -1e300, 10**30, math.nan, math.inf, True, None,
    [], [1.5], ['x'], [[1.5]], {}, {'a': 1.5}, {'a': {'b': []}})
#: damages per model in one run; `pytest -m soak` makes them all
TRIED = 80
Path = tuple[str | int, ...]


def example(hint: Any) -> Any:
    """Return a value of a type, every field of dataclasses filled."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return example(inner[0])
    if origin is tuple:
        kinds = inner[:1] if inner[-1] is Ellipsis else inner
        return tuple(example(kind) for kind in kinds)
    if origin is not None and issubclass(origin, Mapping):
        return {'joint_1': example(inner[1])}
    if is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        return hint(**{f.name: example(hints[f.name]) for f in fields(hint)})
    return {float: 0.5, int: 3, bool: True, str: 'joint_1', Any: 1.0}[hint]


@cache
def planar() -> IdentifiedModel:
    """Return a rigid arm with all that a model may hold beside its parameters."""
    rows = np.array([0.5, 1.0, 2.0])
    ripple = TorqueRipple(np.array([50.0]), np.array([1e-3]), 1e-5, 0.1, 1.0, np.arange(6.0))
    one, two = np.array([100.0]), np.array([0.1, 0.2])
    warming = Warming(one, 2.0, two, two[:, None], two, two[:, None], one)
    slow = Adaptation(warming, SlowCoefficients(0.1, 0.1, 0.1, 100.0, 200.0, 0.1))
    mixture = MixtureModel(np.array([1.0]), np.zeros((1, 3)), np.eye(3)[None], np.zeros(3),
                           np.ones(3), 1.0, 1.0)
    radial = RadialModel(np.zeros(2), np.ones(2), 2, np.ones(4), np.ones(4), 1.0)
    model, record = nominal_model('planar_3r'), example(FitRecord)
    noise = {'position_noise': (0.1, 0.2, 0.3), 'effort_noise': (1.0, 2.0, 3.0)}
    return replace(
        model, record=replace(
            record, averaging=(replace(record.averaging[0], **noise),),
            friction=(replace(record.friction[0], axis='1'),), passbands=(20.0, 20.0, 30.0),
            error_law=ErrorLaw((0.1, 0.2, 0.3), (0.0, 0.1, 0.2), (0.3, 0.0, 0.1), 0.2, 7.0),
            friction_curves=(replace(record.friction_curves[0], shapes=('joint_1',)),)),
        learnt={'residual': (mixture, radial, None), 'ripple': (ripple, None, ripple),
                'adaptation': (slow, None, None)},
        trained=Trained({name: np.stack([-rows, rows], axis=1) for name in (
            'position', 'velocity', 'acceleration', 'effort')}),
        noise_levels=NoiseLevels(rows, rows, rows, 30.0, NoiseLevels(
            rows, rows, rows, variance=rows)),
        correlation_factor=np.eye(len(model.values)))


@cache
def elastic() -> IdentifiedModel:
    """Return an arm with elastic gears and feasible parameters."""
    gear = GearModel(np.array([1.0, 2.0, -1.0]), 0.1, -1.0, 1.0, 0.1, 1.0)
    return model_named('elastic_2r').with_learnt('residual', (gear, None))


@cache
def screws() -> IdentifiedModel:
    """Return an arm with shapes and with coupled motors."""
    return model_named('tx40')


MODELS: dict[str, Callable[[], IdentifiedModel]] = {
    'planar_3r': planar, 'elastic_2r': elastic, 'tx40': screws}


@cache
def content_of(name: str) -> Any:
    """Return what the file of a model holds."""
    return parsed(unprotected(MODELS[name]().to_yaml()))


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield where the values of a file stand, lists and mappings among them."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) \
        if isinstance(value, list) else ()
    for key, item in inside:
        yield from leaves(item, (*path, key))


def changed(value: Any, path: Path, other: Any) -> Any:
    """Return a copy of a content with ``other`` in one place."""
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], other) if path[1:] else other
    return copy


@cache
def recording(name: str) -> RawLog:
    """Return a recording of the arm that a model describes, with slow and with fast motion."""
    model = MODELS[name]()
    time = np.arange(0.0, 12.0, 0.01)
    rate = 1.0 + 0.3 * np.arange(len(model.joints))
    phase = np.outer(time, rate)
    q, qd, qdd = np.sin(phase), rate * np.cos(phase), -rate**2 * np.sin(phase)
    effort = model.inverse(q, qd, qdd) + 0.05 * np.random.default_rng(0).normal(size=q.shape)
    motors = {'motor_position': q + 1e-3 * np.sin(3.0 * phase),
              'motor_velocity': qd} if model.elastic_joints else {}
    # some of the models are of no arm that could be
    return RawLog('run.csv', model.joints, time, q, qd, effort, accepted=('description',),
                  **motors)


def use(model: IdentifiedModel, log: RawLog) -> None:
    """Predict, save, score, report and export, each of which may be refused with a reason."""
    rows = np.full((2, len(model.joints)), 0.1)
    ways: tuple[Callable[[], object], ...] = (
        lambda: model.inverse(rows, rows, rows), lambda: model.forward(rows, rows, rows),
        lambda: IdentifiedModel.from_yaml(model.to_yaml()), model.to_urdf, model.to_mjcf,
        model.to_sdf, model.to_solver_parameters, model.to_c,
        lambda: model_report(model, validate(model, [log]), [log]))
    for way in ways:
        with may_refuse():
            way()


def damage(name: str, path: Path, other: Any) -> str:
    """Load and use a model with another value in one place; return why it is refused."""
    text = yaml_text(changed(content_of(name), path, other))
    try:
        model = IdentifiedModel.from_yaml(text, 'm.yaml')
    except ModelError as error:
        assert not fault_of(error), error
        return str(error)
    use(model, recording(name))
    return ''


def test_the_models_are_of_use_as_they_are() -> None:
    for name, model in MODELS.items():
        model_report(model(), validate(model(), [recording(name)]), [recording(name)])
        assert IdentifiedModel.from_yaml(model().to_yaml()).to_yaml() == model().to_yaml()
        assert damage(name, ('software',), 'another') == ''


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', MODELS)
def test_a_wrong_value_in_a_model_file_is_refused_or_harmless(name: str) -> None:
    places, rng = list(leaves(content_of(name))), np.random.default_rng(0)
    for _ in range(TRIED):
        path = places[int(rng.integers(len(places)))]
        other = OTHERS[int(rng.integers(len(OTHERS)))]
        try:
            said = damage(name, path, other)
        except Exception as error:
            raise AssertionError(f'{path}: {other!r}') from error
        assert not said or said.startswith('m.yaml: '), said


@pytest.mark.soak
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', MODELS)
def test_model_file_with_any_other_value_is_refused_or_of_use(name: str) -> None:
    faults = []
    for path in leaves(content_of(name)):
        for other in OTHERS:
            try:
                damage(name, path, other)
            except Exception as error:
                faults.append(f'{path}: {other!r}: {type(error).__name__} {error}')
    assert not faults, '\n'.join(faults)


@pytest.mark.parametrize(('path', 'other', 'key'), [
    (('preprocessing', 'cutoff'), 'x', 'preprocessing.cutoff must be a number up to 1e.100'),
    (('preprocessing', 'cutoff'), -1.0, 'preprocessing.cutoff must be positive, is -1'),
    (('preprocessing', 'decimate'), 1, 'preprocessing.decimate must be true or false, is 1'),
    (('method',), 1.5, 'method must be text, is 1.5'),
    (('not_identified',), [1.5], r'not_identified\[0\] must be text, is 1.5'),
    (('not_identified',), ['elbow'], 'not_identified: .*elbow'),
    (('warnings',), 'no list', "warnings must be a list, is 'no list'"),
    (('parameters', 0, 'value'), '1.5', r'parameters\[0\].value must be a number up to 1e.100'),
    (('parameters', 0), {}, r'parameters\[0\] lacks name, label'),
    (('blocks', 'rotor_inertia'), 'no', "blocks.rotor_inertia must be true or false, is 'no'"),
    (('robot', 'joints', 1, 'axis'), ['z', 0, 1], r'robot.joints\[1\].axis must be lists of num'),
    (('robot', 'links', 0, 'has_inertial'), 'x', r'robot.links\[0\].has_inertial must be true'),
    (('robot', 'colour'), 'red', 'robot has no colour'),
    (('reduction', 'gap'), None, 'reduction.gap must be a number up to 1e.100'),
    (('trained', 'joint_1', 'effort'), [1, 'x'], 'trained.joint_1.effort must be lists of num'),
    (('noise_levels', 'gain'), 0, 'noise_levels.gain must be positive, is 0'),
    (('record', 'samples'), 'many', "record.samples must be a whole number, is 'many'"),
    (('ripple', 'joint_1', 'slow'), 'x', 'ripple.joint_1.slow must be a number up to 1e.100'),
])
def test_refusals_name_file_key_and_value(path: Path, other: Any, key: str) -> None:
    with pytest.raises(ModelError, match=f'^m.yaml: .*{key}'):
        IdentifiedModel.from_yaml(
            yaml_text(changed(content_of('planar_3r'), path, other)), 'm.yaml')


@pytest.mark.parametrize('mass', [0, -1.0])
def test_feasible_links_have_a_mass(mass: float) -> None:
    """Also one that no effort shows, so that nothing contradicts it."""
    content = changed(content_of('elastic_2r'), ('feasible', 'm1'), mass)
    with pytest.raises(ModelError, match=f'^m.yaml: feasible.m1 must be positive, is {mass:g};'):
        IdentifiedModel.from_yaml(yaml_text(content), 'm.yaml')
