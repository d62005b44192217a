"""robot_dynid_evaluation/bench/node_costs.py: the comparison of service round trips runs and is of
a sane size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from identifier_stage import Data

from robot_dynid.errors import UsageError
from robot_dynid_evaluation.bench.node_costs import round_trips

#: of the round trip of the identifier over that of an echo. Measured: 0.97 to 1.7, beside a dozen
#: busy processes
LARGEST_RATIO = 5.0


@pytest.mark.ros
def test_round_trips(ros_domain: int, tmp_path: Path) -> None:
    rows = round_trips(Data(tmp_path).model_file, (1, 100), calls=40)
    assert [row.states for row in rows] == [1, 100]
    for row in rows:
        assert row.echo.shape == row.identifier.shape == (40,)
        assert np.median(row.messages) < np.median(row.echo)
        assert 0.0 < np.median(row.computing) < np.median(row.identifier)
        assert np.median(row.echo) > 0.0
        ratio = np.median(row.identifier / row.echo)
        assert ratio < LARGEST_RATIO


def test_missing_model_is_named() -> None:
    with pytest.raises(UsageError, match=r'nowhere\.yaml'):
        round_trips('nowhere.yaml')
