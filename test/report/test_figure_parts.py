"""figures.py: panes, bands, shapes and quartiles, by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest
from report_pages import unpacked

from robot_dynid import figures
from robot_dynid.report.html import TEMPLATES


def test_colours_of_sets_are_those_of_the_page_in_turn() -> None:
    palette = set(re.findall(r'--series(\d+):', (TEMPLATES / 'report.css').read_text()))
    assert palette == set('01234567')
    assert [figures.series(k) for k in (0, 7, 8, 17)] == [
        '@series0', '@series7', '@series0', '@series1']


def test_what_no_page_can_draw_is_a_gap() -> None:
    """32-bit numbers end at 3.4028e38."""
    drawn = unpacked(figures.packed([1.5, np.inf, -np.inf, 3.4e38, -3.5e38]))
    np.testing.assert_allclose(drawn, [1.5, np.nan, np.nan, 3.4e38, np.nan], rtol=1e-6)


def test_a_band_goes_there_along_its_lower_end_and_back_along_its_upper_one() -> None:
    band = figures.band(np.array([1.0, 2.0, 4.0]), np.array([0.0, -1.0, -2.0]),
                        np.array([3.0, 5.0, 9.0]), 'name', '@model')
    assert unpacked(band['x']).tolist() == [1.0, 2.0, 4.0, 4.0, 2.0, 1.0]
    assert unpacked(band['y']).tolist() == [0.0, -1.0, -2.0, 9.0, 5.0, 3.0]
    assert (band['fill'], band['fillcolor'], band['line']) == ('toself', '@model/18', {'width': 0})


def test_shapes_reach_over_the_whole_height() -> None:
    whole = {'y0': 0, 'y1': 1, 'yref': 'paper'}
    assert figures.shade(1.5, 2.5, '@fair') == {
        'type': 'rect', 'x0': 1.5, 'x1': 2.5, **whole, 'fillcolor': '@fair', 'line': {'width': 0}}
    assert figures.mark(1.5, '@fair', 'dot') == {
        'type': 'line', 'x0': 1.5, 'x1': 1.5, **whole, 'line': {'color': '@fair', 'dash': 'dot'}}


def test_panes_share_the_height_but_for_six_per_cent_between_them() -> None:
    curve = figures.line([0.0], [0.0], 'name', '@ink')
    spec = figures.stacked([curve, figures.on(curve, 2)], figures.axis('x'), [
        (figures.axis('a'), 2.0), (figures.axis('b'), 1.0), (figures.axis('c'), 1.0)],
        {'height': 9})
    assert [one.get('yaxis') for one in spec['data']] == [None, 'y2']
    layout = spec['layout']
    assert {name: axis['domain'] for name, axis in layout.items() if name.startswith('y')} == {
        'yaxis': pytest.approx([0.56, 1.0]), 'yaxis2': pytest.approx([0.28, 0.5]),
        'yaxis3': pytest.approx([0.0, 0.22])}
    assert (layout['xaxis']['anchor'], layout['height']) == ('y3', 9)


def test_quartiles_are_those_of_bins_of_twelve_samples_the_outer_ones_open() -> None:
    """Twelve from below the first edge, eleven in the middle, twelve up to beyond the last."""
    x = np.concatenate([np.linspace(-3.0, 0.9, 12), np.full(11, 1.5), np.linspace(2.1, 7.0, 12)])
    y = np.concatenate([np.arange(12.0)**2, np.ones(11), 100.0 - np.arange(12.0)])
    rows = np.random.default_rng(0).permutation(len(x))
    middle, *quartiles = figures.quartiles(x[rows], y[rows], np.array([0.0, 1.0, 2.0, 3.0]))
    assert middle == pytest.approx([-1.05, 4.55])
    assert [one.tolist() for one in quartiles] == [
        pytest.approx([7.75, 91.75]), pytest.approx([30.5, 94.5]), pytest.approx([68.25, 97.25])]
