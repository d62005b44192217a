"""estimation/friction_selection/law_selection.py: the search along axes and shapes, with errors
that are known for every law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.estimation.friction_selection import law_selection
from robot_dynid.estimation.friction_selection.law_request import LawRequest
from robot_dynid.estimation.friction_selection.law_selection import Search
from robot_dynid.friction import Coulomb, FrictionLaw, law_from
from robot_dynid.types import FloatArray

SIMPLE = (Coulomb(0.02), Coulomb(0.03))
Error = Callable[[FrictionLaw], float]


class Data:
    """Data of two axes, with the reasons why their laws cannot be chosen."""

    axes = SimpleNamespace(labels=('1', '2'))

    def __init__(self, *reasons: str) -> None:
        self.known, self.reduced = list(reasons), list[Any]()

    def reasons(self) -> list[str]:
        return self.known

    def alone(self) -> list[bool]:
        return [True, True]

    def factors(self, candidates: Sequence[Sequence[Any]], load: Any) -> SimpleNamespace:
        self.reduced.append((candidates, load))
        return SimpleNamespace(active=(0, 1))

    def additions(self, request: LawRequest, load: bool) -> dict[str, dict[str, Any]]:
        return {'load': {}} if load else {}

    def load(self, links: Any) -> Any:
        return links


class Scores:
    """Scores of one axis by a function of the law."""

    def __init__(self, error: Error) -> None:
        self.residual = error

    def settled(self, law: FrictionLaw) -> FrictionLaw:
        return law

    def errors(self, laws: Sequence[FrictionLaw]) -> FloatArray:
        return np.array([5 * [self.residual(law)] for law in laws])

    def score(self, errors: FloatArray) -> float:
        return float(errors.mean())

    def excited(self, laws: Sequence[FrictionLaw]) -> list[bool]:
        return [True for _ in laws]


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Search, list[Any]]]:
    """Return a search from data, requests and the errors of laws, and the calls that it makes."""
    def begin(data: Data, requests: str, error: Error) -> tuple[Search, list[Any]]:
        calls: list[Any] = []

        def scores(factors: Any, axis: int, laws: Any, noise: FloatArray) -> Scores:
            calls.append((axis, noise.tolist()))
            return Scores(error)

        monkeypatch.setattr(law_selection, 'LawScores', SimpleNamespace(of=scores))
        monkeypatch.setattr(
            law_selection, 'noise_of', lambda factors, laws, noise: np.add(noise, (1.0, 2.0)))
        return Search.of(data, tuple(map(LawRequest.of, requests.split(','))),  # type: ignore[arg-type]
                         SIMPLE), calls
    return begin


def test_reasons_count_for_axes_whose_laws_are_searched(search) -> None:  # type: ignore[no-untyped-def]
    found, _ = search(Data('stands still', 'stands still'), 'coulomb,dahl', lambda law: 1.0)
    assert found.reasons == ('', 'stands still')
    assert found.laws == list(SIMPLE) and found.tried == [{}, {}]
    assert [(c.axis, c.law, c.note) for c in found.choices()] == [
        ('1', 'coulomb', ''), ('2', 'coulomb', 'stands still')]


def dahl_is_worse(law: FrictionLaw) -> float:
    """Return an error of 2 for Coulomb friction, above that for others."""
    return 2.0 if law in SIMPLE else 3.0 + len(law.parameters)


def test_a_law_that_is_named_is_taken_and_auto_takes_the_best(search) -> None:  # type: ignore[no-untyped-def]
    found, calls = search(Data('', ''), 'dahl,auto', dahl_is_worse)
    factors, starts = found.plain_laws()
    assert [name for name, _ in found.current] == ['dahl', 'coulomb']
    assert [[name for name, _ in laws] for laws in starts] == [['dahl'], ['coulomb']]
    assert found.tried[0] == {'coulomb': 1.0, 'dahl': 3.0}
    assert found.tried[1]['coulomb'] == 1.0 and found.tried[1]['asymmetric'] == 3.5
    # two rounds through the axes, with the noise of each joint refined twice before each
    assert calls == [(0, [3.0, 5.0]), (1, [3.0, 5.0]), (0, [5.0, 9.0]), (1, [5.0, 9.0])]
    assert factors.active == (0, 1)
    still, _ = search(Data('short', ''), 'dahl,dahl', dahl_is_worse)
    still.plain_laws()
    assert [name for name, _ in still.current] == ['coulomb', 'dahl']


def load_helps(law: FrictionLaw) -> float:
    """Return errors that friction growing with load makes lower."""
    return 1.0 if 'fw' in law.parameters else 2.0


def test_additions_are_tried_on_axes_whose_law_may_be_chosen(search) -> None:  # type: ignore[no-untyped-def]
    data, links = Data('short', ''), np.ones((2, 10))
    found, _ = search(data, 'auto,auto', load_helps)
    starts = [[('coulomb', law)] for law in SIMPLE]
    assert found.with_additions(starts, None) is None and not data.reduced
    found.with_additions(starts, links)
    assert [name for name, _ in found.current] == ['coulomb', 'coulomb+load']
    assert found.tried == [{'coulomb': 1.0}, {'coulomb': 1.0, 'coulomb+load': 0.5}]
    (candidates, load), = data.reduced
    assert load is links
    assert [[name for name, _ in of_axis] for of_axis in candidates] == [
        ['coulomb', 'coulomb'], ['coulomb', 'coulomb', 'coulomb+load']]


@pytest.mark.parametrize(('gain', 'moves'), [(3.8, False), (4.2, True)])
def test_shapes_beyond_the_grid_must_reduce_the_residual_by_more_than_chance(
    search, gain: float, moves: bool  # type: ignore[no-untyped-def]
) -> None:
    found, _ = search(Data('', ''), 'dahl,coulomb', lambda law: 10.0 - gain * (
        getattr(law, 'length', 1e-3) > 1.2e-3))
    found.current[0] = 'dahl', law_from('dahl', {'length': 1e-3})
    found.shape(None)
    assert (found.laws[0].length > 1e-3) is moves
    assert found.laws[1] == SIMPLE[1]


@pytest.mark.parametrize('share', [0.28, -0.52, 0.12, 0.04])
def test_shapes_are_searched_to_a_fiftieth_of_the_grid_step(search, share: float) -> None:  # type: ignore[no-untyped-def]
    """Steps of 0.36, 0.12 and 0.04 of it, each either way or none."""
    target = 1e-3 * 10.0 ** (share / 3.0)  # Dahl's lengths are a factor of 10^(1/3) apart
    found, _ = search(Data('', ''), 'dahl,dahl', lambda law: 1e8 * np.log(law.length / target)**2)
    found.current[:] = [('dahl', law_from('dahl', {'length': 1e-3}))] * 2
    found.shape(None)
    assert [law.length for law in found.laws] == pytest.approx(2 * [target], rel=1e-3)
