"""cli/contact.py: `robot-dynid contact` looks for contacts with the gain and the margin it is
given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from identified_models import nominal_model
from recordings import write_recording

from robot_dynid.cli.main import main
from robot_dynid.monitoring import contact_events as contact_search
from robot_dynid.monitoring.monitor import MonitorSettings
from robot_dynid.monitoring.observer import ContactSettings


def test_gain_and_margin_reach_the_observer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[Any] = []
    monkeypatch.setattr(contact_search, 'contact_events',
                        lambda *given: used.append(given[-1]) or [])
    model = nominal_model('planar_3r')
    model.save(tmp_path / 'm.yaml')
    data = write_recording(tmp_path, 'run', model.robot, 1)
    words = ['contact', str(tmp_path / 'm.yaml'), str(data), '--gain', '12', '--margin', '3',
             '--accept-partial']  # one joint of the model is refused
    assert main(words) == 0
    assert used == [MonitorSettings(12.0, ContactSettings(margin=3.0))]
