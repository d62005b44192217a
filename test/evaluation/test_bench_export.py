"""robot_dynid_evaluation/bench/export.py: the benchmark of exports: every form loads, and its
error is rounding."""

from __future__ import annotations

import pytest
from tolerances import MUJOCO_ACCELERATION

from robot_dynid.errors import MissingDependency, ModelError
from robot_dynid_evaluation.bench.arms import true_model
from robot_dynid_evaluation.bench.export import FORMS, tree_model


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('name', ['elastic_2r', 'tree'])
def test_forms_load_in_their_tools(form: str, name: str) -> None:
    model = tree_model() if name == 'tree' else true_model(name, feasible=True)
    if (form, name) == ('inverse_dynamics_solver', 'tree'):
        with pytest.raises(ModelError):
            FORMS[form](model)
        return
    try:
        facts = FORMS[form](model)
    except MissingDependency as error:
        assert form in ('to_drake', 'to_jax'), error
        return
    assert facts['error'] is not None or 'Drake' in facts['tool']
    assert (facts['error'] or 0.0) <= MUJOCO_ACCELERATION
