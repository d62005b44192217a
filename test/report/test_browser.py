"""Reports in a browser: drawn without an error, linked, on paper and phones, light and dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import NO_BROWSER, Page, browser, browser_path

from robot_dynid.document import Chapter, Figure, Report, Section
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.io.log import load_log
from robot_dynid.report import figures
from robot_dynid.report.html import write_report
from robot_dynid.report.identification import identification_report
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import RawLog

DESK, PHONE = (1280, 900), (390, 844)
#: all that is chosen from the data otherwise
PRESCRIBED = {'friction': 'coulomb', 'ramp_width': 0.02, 'effort_lag': 0.0, 'ripple': 'none',
              'adaptation': 'none', 'residual': 'none'}
PLOTS = "[...document.querySelectorAll('.plot')]"
DRAWN = f"{PLOTS}.every((p) => p.querySelector('.main-svg') && p.data.length)"
OPEN = "document.querySelectorAll('details').forEach((d) => { d.open = true; })"
THEME = 'document.documentElement.dataset.theme'
#: elements that reach over the right edge; what a plot clips is not seen
OVER = """[...document.querySelectorAll('header *, main *')].filter((e) => !e.closest('.plot > *')
  && e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.outerHTML.slice(0, 120))"""
COLOURS = """(() => { const p = document.querySelector('.plot'); return [
  getComputedStyle(document.body).backgroundColor, p.layout.paper_bgcolor, p.layout.font.color,
  p.data[0].marker.color] })()"""


def fitted(name: str, log: RawLog, cutoff: float, method: str) -> Report:
    found = identify(load_robot(name), [log], method, Recipe(cutoff=cutoff, **PRESCRIBED))
    return identification_report(found, [log])


def ur10e(data: Path) -> Report:
    """Return the report of a UR10e, from part of a recording."""
    path = data / 'ur10e' / 'train' / '20_02_10-30sec_12harm.csv.gz'
    return fitted('ur10e', load_log(f'{path}[5:17]', load_robot('ur10e')), 8.0, 'wls')


def tx40(data: Path) -> Report:
    """Return that of a TX40 with its coupled wrist, and links that can exist."""
    path = data / 'tx40' / 'exciting.csv.gz'
    return fitted('tx40', load_log(f'{path}[1:4]', load_robot('tx40')), 40.0, 'feasible')


def elastic(data: Path) -> Report:
    """Return that of a simulated arm with elastic joints."""
    from robot_dynid.simulation.arm import Arm, measured, record

    robot, rng = load_robot('elastic_2r'), np.random.default_rng(0)
    truth = load_truth(robot)
    motion = random_fourier(motion_limits(robot).scaled(0.8), FourierOptions(6.0, 8), rng)
    log = measured(record(Arm(robot, truth), motion), robot, truth.noise, rng)
    return fitted('elastic_2r', log, 12.0, 'elastic')


REPORTS: dict[str, Callable[[Path], Report]] = {'ur10e': ur10e, 'tx40': tx40, 'elastic': elastic}


@pytest.fixture(scope='module')
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    program = browser_path()
    if program is None:
        pytest.skip(NO_BROWSER)
    with browser(program, tmp_path_factory.mktemp('profile')) as found:
        yield found


@pytest.fixture(scope='module', params=[
    'tx40', *(pytest.param(name, marks=pytest.mark.soak) for name in ('ur10e', 'elastic'))])
def path(request: pytest.FixtureRequest, page: Page, tmp_path_factory: pytest.TempPathFactory
         ) -> Path:
    data = None if request.param == 'elastic' else request.getfixturevalue('shared_data')
    written = tmp_path_factory.mktemp('report') / f'{request.param}.html'
    write_report(REPORTS[request.param](data), written)
    return written


def opened(page: Page, path: Path, scheme: str) -> None:
    """Open a report on a desk with everything that is folded, and wait until all is drawn."""
    page.errors.clear()
    page.requests.clear()
    page.size(*DESK)
    page.prefer(scheme)
    page.open(path)
    page.run(OPEN)
    page.until(DRAWN)


def test_a_report_is_drawn_linked_and_fits_a_phone(page: Page, path: Path) -> None:
    opened(page, path, 'dark')
    assert {url.partition(':')[0] for url in page.requests} <= {'file', 'data', 'blob'}
    assert page.run(THEME) == 'dark'
    assert page.run(COLOURS)[1] == '#161b23'

    linked = f"{PLOTS}.filter((p) => p.dataset.link === 'time')"
    assert page.run(f'{linked}.length') >= 3  # two joints or more, and the error over time
    page.run(f"Plotly.relayout({linked}[0], {{'xaxis.range': [1.25, 2.5]}}).then(() => null)")
    page.until(f"{linked}.every((p) => p.layout.xaxis.range.join() === '1.25,2.5')")
    first = f'{linked}[0].layout'
    assert page.run(f'Boolean({first}.yaxis2) && !{first}.xaxis2')  # residual: the same axis
    page.run(f"Plotly.relayout({linked}[1], {{'xaxis.autorange': true}}).then(() => null)")
    page.until(f'{linked}.every((p) => p.layout.xaxis.range[1] > 2.6)')

    page.size(*PHONE, phone=True)
    page.until(f'innerWidth === {PHONE[0]} && {PLOTS}.every((p) => p.layout.dragmode === false)')
    assert page.run('document.documentElement.scrollWidth <= innerWidth')
    assert page.run(OVER) == []
    assert page.errors == []


def test_the_theme_is_switched_kept_and_left_for_paper(page: Page, tmp_path: Path) -> None:
    path = tmp_path / 'report.html'
    curve = figures.bars(['a', 'b'], [1.0, 2.0], 'bars', figures.MODEL)
    drawn = Figure(figures.figure([curve], figures.axis(), figures.axis('size [m]')))
    write_report(Report('title', '', (Chapter('c', (Section('s', figures=(drawn,)),)),)), path)
    opened(page, path, 'light')
    assert page.run(THEME) == 'light'
    before = page.run(COLOURS)
    page.run("document.getElementById('theme').click()")
    assert page.run(THEME) == 'dark'
    assert all(a != b for a, b in zip(before, page.run(COLOURS), strict=True))
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.run(COLOURS)[1:] == before[1:]
    page.run("window.dispatchEvent(new Event('afterprint'))")
    opened(page, path, 'light')
    assert page.run(THEME) == 'dark'  # as it was left
    page.run('localStorage.clear()')
    assert page.errors == []
