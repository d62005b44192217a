"""identification/learnt.py: which slow changes are fitted, refitted with links, and recorded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError
from robot_dynid.identification import learnt
from robot_dynid.identification.gathered import Fit
from robot_dynid.identification.learnt import LEAST_SLOW_SAMPLES, learn_slow_changes
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.record import FitRecord, SlowChange

JOINTS = ('a', 'b', 'c')


@dataclass(frozen=True)
class Model:
    """Stands for a model, of a number that a refit changes."""

    number: int = 1
    record: FitRecord = field(default_factory=FitRecord)
    learnt: Any = field(default_factory=dict)
    elastic_joints: tuple[str, ...] = ()
    joints: tuple[str, ...] = JOINTS
    robot: Any = field(default_factory=lambda: SimpleNamespace(n=3))
    preprocessing: str = 'settings'

    def without_ripple(self, samples: Any) -> str:
        return f'smooth {samples}'

    def with_learnt(self, key: str, parts: Any) -> Model:
        return replace(self, learnt={**self.learnt, key: tuple(parts)})


class Remainder:
    """What is left along a recording, by joint, of a model."""

    def __init__(self, name: str, rows: int, number: int) -> None:
        self.name, self.rows, self.number = name, np.arange(rows), number

    def of_joint(self, j: int) -> str:
        return f'{self.name} {j} of {self.number} with waves'

    def without_waves(self, j: int) -> str:
        return f'{self.name} {j} of {self.number}'


#: usable rows of recordings; the second is at rest, the third has too few rows
RECORDINGS = {'r': 3, 's': -1, 't': 2, 'u': 9}


@dataclass
class Steps:
    """What takes the place of the search; ``warm`` are the joints that warm up."""

    warm: tuple[int, ...] = (1,)
    calls: list[Any] = field(default_factory=list)

    def prepare(self, robot: Any, recording: Any, settings: Any) -> Any:
        assert settings == 'settings'
        if RECORDINGS[recording.name] < 0:
            raise DataError('at rest')
        return recording.name

    def course(self, model: Model) -> Any:
        def follow(recording: Any, samples: Any, smooth: Any) -> Remainder:
            assert smooth == f'smooth {recording.name}'
            return Remainder(samples, RECORDINGS[samples], model.number)
        return follow

    def fit_warming(self, residuals: Any) -> Any:
        self.calls.append(('warming', residuals))
        j = int(residuals[0].split()[1])
        return (f'warming {j}' if j in self.warm else None, f'gained {j}')

    def refit(self, model: Any, data: Any, warmings: Any, weights: Any) -> Any:
        used, residuals = data
        self.calls.append(('refit', [one.name for one in used], residuals[0], warmings, weights))
        return [None if one is None else SimpleNamespace(warming=f're{one}') for one in warmings]

    def apply(self, model: Model, estimate: Any, fits: Any) -> Any:
        self.calls.append(('apply', [one.warming for one in fits]))
        return replace(model, number=2), f'changed {estimate}'

    def add_drift(self, remainders: Any, warming: Any, gained: Any) -> Any:
        self.calls.append(('drift', remainders, warming, gained))
        j = int(gained.split()[1])
        return SimpleNamespace(
            used=f'adapts {j}', warming=SimpleNamespace(share=0.1 * j, deviations=2.0 * j),
            slow=SimpleNamespace(share=0.2 * j, deviations=3.0 * j))

    def fakes(self) -> dict[str, Any]:
        return {'prepare': self.prepare, 'Course': self.course, 'fit_warming': self.fit_warming,
                'refit_with_links': self.refit, 'apply_changes': self.apply,
                'rescale_warming': lambda warming, old, new: (warming, old[0], new[0]),
                'add_drift': self.add_drift}


PLAIN = Model()


def learn(monkeypatch: pytest.MonkeyPatch, steps: Steps, model: Model = PLAIN, names: str = 'rstu',
          recipe: Recipe | None = None, **estimator: Any) -> Fit:
    for name, fake in steps.fakes().items():
        monkeypatch.setattr(learnt, name, fake)
    method: Any = SimpleNamespace(**{
        'single_joint_motions': False, 'linear': True,
        'joint_weights': lambda experiment: f'weights of {experiment.name}', **estimator})
    gathered: Any = SimpleNamespace(
        excerpt=[SimpleNamespace(name=name, averaging=None) for name in names],
        experiment=SimpleNamespace(name='experiment', reversal_weights='reversals'))
    fake: Any = model
    estimate: Any = 'estimate'
    return learn_slow_changes(Fit(fake, estimate, ('note',)), gathered, method,
                              recipe or Recipe())


def residuals(j: int, number: int = 1, waves: str = '') -> list[str]:
    return [f'{name} {j} of {number}{waves}' for name in 'ru']


def test_joints_that_warm_up_are_fitted_with_the_links(monkeypatch) -> None:
    """Of recordings with three rows or more; what is left then may drift."""
    assert LEAST_SLOW_SAMPLES == 3
    steps, model = Steps(), Model(record=FitRecord(refused={'c': 'noise'}))
    found: Any = learn(monkeypatch, steps, model)
    assert steps.calls[:3] == [('warming', residuals(j)) for j in range(3)]
    _, used, first, warmings, weights = steps.calls[3]
    assert (used, first, warmings) == (['r', 'u'], residuals(0), [None, 'warming 1', None])
    assert (weights.joints, weights.reversals) == ('weights of experiment', 'reversals')
    assert steps.calls[4] == ('apply', ['rewarming 1'])
    rescaled = ('rewarming 1', 'r 1 of 1', 'r 1 of 2')
    assert steps.calls[5:] == [('drift', residuals(j, 2, ' with waves'), warming, f'gained {j}')
                               for j, warming in enumerate((None, rescaled, None))]
    assert (found.model.number, found.estimate, found.notes) == (2, 'changed estimate', ('note',))
    assert found.model.learnt == {'adaptation': ('adapts 0', 'adapts 1', None)}
    assert found.model.record.slow_changes == tuple(
        SlowChange(joint, 0.1 * j, 2.0 * j, 0.2 * j, 3.0 * j) for j, joint in enumerate(JOINTS))


@pytest.mark.parametrize(('warm', 'model', 'recipe', 'linear'), [
    ((), Model(), Recipe(), True), ((1,), Model(), Recipe(), False),
    ((1,), Model(learnt={'residual': 'model'}), Recipe(), True),
    ((1,), Model(), SimpleNamespace(loops='three', adaptation='auto'), True)])
def test_links_stay_where_the_fit_is_not_linear_or_nothing_warms_up(
    monkeypatch, warm, model, recipe, linear
) -> None:
    steps = Steps(warm)
    found: Any = learn(monkeypatch, steps, model, recipe=recipe, linear=linear)
    assert steps.calls[3:] == [
        ('drift', residuals(j, 1, ' with waves'), f'warming {j}' if j in warm else None,
         f'gained {j}') for j in range(3)]
    assert (found.model.number, found.estimate) == (1, 'estimate')


def test_recordings_without_rows_show_no_slow_changes(monkeypatch) -> None:
    steps = Steps()
    fit = learn(monkeypatch, steps, names='st')
    assert steps.calls == [] and fit.model.record.slow_changes == ()
    assert learn(monkeypatch, steps, recipe=Recipe(adaptation='none')).model.learnt == {}
    assert learn(monkeypatch, steps, Model(elastic_joints=('a',))).model.learnt == {}
    assert learn(monkeypatch, steps, single_joint_motions=True).model.learnt == {}
    assert steps.calls == []
