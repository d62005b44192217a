"""identified/uses.py: findings that were accepted when a model was identified are accepted
wherever it is used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from recordings import recording

from robot_dynid.cli.main import main
from robot_dynid.errors import DataError
from robot_dynid.identification.by_recording import Recorded
from robot_dynid.identification.identify import identify, identify_with
from robot_dynid.identification.payload import identify_payload
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recordings import accepted_kinds
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.uses import recordings_for
from robot_dynid.io.csv import write_csv
from robot_dynid.monitoring.contact_events import contact_events
from robot_dynid.report.provenance import data
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.parts import Parts
from robot_dynid.types import RawLog
from robot_dynid.validation.forward_scores import validate_forward
from robot_dynid.validation.validate import validate
from robot_dynid.validation.verdict import judged
from robot_dynid.workers import ThisProcess

ARM = load_robot('planar_3r')
KIND = 'effort_scale'
#: nothing is chosen from the data, for time
PLAIN = Recipe(cutoff=8.0, effort_lag=0.0, friction='coulomb', ramp_width=0.01, ripple='none',
               adaptation='none')
ACCEPTING = replace(PLAIN, accept=(KIND,))
THEN = ', accepted when the model was identified (accepted)'


def in_kilo(seed: int) -> RawLog:
    """Return a recording with efforts in kN m, which the gate refuses."""
    log = recording(ARM, seed, 10.0)
    assert log.effort is not None
    return replace(log, effort=1e-3 * log.effort)


@pytest.fixture(scope='module')
def logs() -> list[RawLog]:
    return [in_kilo(seed) for seed in (1, 2)]


@pytest.fixture(scope='module')
def model(logs: list[RawLog]) -> IdentifiedModel:
    """Return a model that was saved and loaded."""
    return IdentifiedModel.from_yaml(identify(ARM, logs[:1], recipe=ACCEPTING).model.to_yaml())


def test_the_model_is_validated_as_it_was_identified(
    model: IdentifiedModel, logs: list[RawLog],
) -> None:
    with pytest.raises(DataError, match=KIND):
        validate(replace(model, record=replace(model.record, accepted=())), logs[1:])
    found = validate(model, logs[1:])
    told = [text for text in found.warnings if f': {KIND}' in text]
    assert told and all(text.endswith(THEN) for text in told)
    assert 'contradict' not in judged(model, found).words


@pytest.mark.parametrize('use', [validate_forward, contact_events])
def test_model_with_accepted_findings_is_used_with_such_recordings(
    use, model: IdentifiedModel, logs: list[RawLog]
) -> None:
    refusing = replace(model, record=replace(model.record, accepted=()))
    with pytest.raises(DataError, match=KIND):
        use(refusing, logs[1:])
    use(model, logs[1:])


def test_a_payload_is_identified_from_such_recordings(
    model: IdentifiedModel, logs: list[RawLog],
) -> None:
    found = identify_payload(ARM, logs[1:], model=model)
    assert any(text.endswith(THEN) for text in found.warnings)


def test_identify_keeps_findings_accepted_of_single_recordings(logs: list[RawLog]) -> None:
    own = [replace(logs[0], accepted=(KIND,))]
    for given in (own, Parts(tuple(logs[:1]), accepted=(KIND,))):
        assert identify(ARM, given, recipe=PLAIN).model.record.accepted == (KIND,)
    found = identify_with(Recorded(ThisProcess()), ARM, logs[:1], recipe=ACCEPTING)
    assert found.model.record.accepted == (KIND,)


def test_kinds_accepted_by_the_recipe_for_all_and_of_single_recordings_are_recorded_once(
    logs: list[RawLog],
) -> None:
    single = replace(logs[0], accepted=(KIND, 'clock'))
    parts = Parts((single, logs[1]), accepted=('joint_order', KIND))
    recipe = replace(PLAIN, accept=('gravity', 'joint_order'))
    assert accepted_kinds(recipe, parts) == (
        'gravity', 'joint_order', KIND, 'clock')
    assert accepted_kinds(PLAIN, Parts((single,))) == (KIND, 'clock')
    assert accepted_kinds(PLAIN, Parts(tuple(logs))) == ()


def test_kinds_that_there_are_no_longer_are_ignored(
    model: IdentifiedModel, logs: list[RawLog],
) -> None:
    old = replace(model, record=replace(model.record, accepted=(KIND, 'an old one')))
    recordings_for(old, ARM, logs[1:])


def test_model_files_without_accepted_findings_are_read(model: IdentifiedModel) -> None:
    content = yaml.safe_load(model.to_yaml())
    assert content['record'].pop('accepted') == [KIND]
    del content['digest' if 'digest' in content else 'end_of_model']
    older = yaml.safe_dump({**content, 'end_of_model': True}, sort_keys=False)
    assert IdentifiedModel.from_yaml(older).record.accepted == ()


def test_the_report_says_so(model: IdentifiedModel, logs: list[RawLog]) -> None:
    rows = [row.cells for table in data(logs, model).tables for row in table.rows]
    assert ('findings accepted', KIND) in rows


def test_commands_take_such_recordings(
    tmp_path: Path, logs: list[RawLog], capsys: pytest.CaptureFixture[str],
) -> None:
    paths = [str(tmp_path / f'{name}.csv') for name in ('fit', 'test')]
    for path, log in zip(paths, logs):
        write_csv(Path(path), log)
    out, recipe = str(tmp_path / 'm.yaml'), tmp_path / 'recipe.yaml'
    recipe.write_text('{cutoff: 8.0, effort_lag: 0.0, friction: coulomb, ramp_width: 0.01, '
                      'ripple: none, adaptation: none}')
    options = ['--robot', 'planar_3r', '--recipe', str(recipe), '--out', out, '--quiet', '--json']
    assert main(['identify', paths[0], *options]) == 1
    assert main(['identify', paths[0], *options, '--accept', KIND]) == 0
    capsys.readouterr()
    assert main(['validate', out, paths[1], '--quiet', '--json']) == 0
    told = json.loads(capsys.readouterr().out)['warnings']
    assert any(text.endswith(THEN) for text in told)
