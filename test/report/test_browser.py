"""report/html.py: reports in a browser: drawn without an error, linked, on paper and phones, light
and dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from recordings import recording
from report_pages import NO_BROWSER, Page, PageError, browser, browser_path

from robot_dynid import figures
from robot_dynid.collision.scene import build_scene
from robot_dynid.document import Chapter, Figure, Report, Row, Section, Table
from robot_dynid.excitation.design import design
from robot_dynid.excitation.design_criteria import design_criteria, keeping_clear
from robot_dynid.excitation.families import parse_request
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.comparison import differences
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.log import load_log
from robot_dynid.monitoring.contact_events import contact_events
from robot_dynid.report.comparison import comparison_report
from robot_dynid.report.contact import contact_report
from robot_dynid.report.html import write_report
from robot_dynid.report.identification import identification_report, validation_report
from robot_dynid.report.plan import Plan, plan_report
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import RawLog
from robot_dynid.validation.forward_scores import validate_forward
from robot_dynid.validation.validate import validate

DESK, PHONE = (1280, 900), (390, 844)
#: all that is chosen from the data otherwise
PRESCRIBED = {'friction': 'coulomb', 'ramp_width': 0.02, 'effort_lag': 0.0, 'ripple': 'none',
              'adaptation': 'none', 'residual': 'none'}
PLOTS = "[...document.querySelectorAll('div.plot')]"
DRAWN = f"{PLOTS}.every((p) => p.querySelector('.main-svg') && p.data.length)"
OPEN = "document.querySelectorAll('details').forEach((d) => { d.open = true; })"
THEME = 'document.documentElement.dataset.theme'
#: elements that reach over the right edge; what a plot clips is not seen
OVER = """[...document.querySelectorAll('header *, main *')].filter((e) => !e.closest('.plot > *')
  && e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.outerHTML.slice(0, 120))"""
#: titles of axes that lie on each other, and values of sheets that are broken into lines
SMALL = """(() => { const found = [];
  for (const plot of document.querySelectorAll('div.plot')) {
    const boxes = [...plot.querySelectorAll('[class^=g-y] text')].map(
      (e) => e.getBoundingClientRect()).filter((b) => b.height).sort((a, b) => a.top - b.top);
    boxes.forEach((b, i) => { if (i && b.top < boxes[i - 1].bottom - 1 &&
      b.left < boxes[i - 1].right && boxes[i - 1].left < b.right) found.push('axis titles'); });
  }
  for (const value of document.querySelectorAll('.sheet dd:not(.note)')) {
    const text = document.createRange();
    text.selectNodeContents(value);
    if (text.getBoundingClientRect().height > 32) found.push(value.textContent);
  }
  return found; })()"""
COLOURS = """(() => { const p = document.querySelector('div.plot'); return [
  getComputedStyle(document.body).backgroundColor, p.layout.paper_bgcolor, p.layout.font.color,
  p.data[0].marker?.color] })()"""


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


@cache
def beside() -> tuple[IdentifiedModel, IdentifiedModel, RawLog]:
    """Return two models of an arm, each from one recording, and a third recording."""
    robot = load_robot('planar_3r')
    logs = [recording(robot, seed, 6.0) for seed in (1, 2, 3)]
    first, second = (identify(robot, [log], 'wls', Recipe(cutoff=8.0, **PRESCRIBED)).model
                     for log in logs[:2])
    return first, second, logs[2]


def validated(data: Path) -> Report:
    """Return the report of a validation, with forward dynamics."""
    model, _, log = beside()
    return validation_report(model, validate(model, [log]), [log], validate_forward(model, [log]))


def contact(data: Path) -> Report:
    """Return the report of a push that was simulated."""
    model, _, log = beside()
    pushed = replace(log, effort=log.effort + np.outer(np.abs(log.time - 3.0) < 0.3, [0, 8.0, 0]))
    (found,) = events = contact_events(model, [pushed])
    (push,) = found.contacts
    report = contact_report(model, events)
    status = report.chapters[0].sections[0].status
    assert status is not None
    assert status.advice == (f'the strongest at {push.joint}, {push.start:.4g} to {push.stop:.4g} '
                             f's, peak {push.peak:.3g} N m.')
    return report


def compared(data: Path) -> Report:
    """Return the comparison of two models on a recording."""
    first, second, log = beside()
    return comparison_report(
        {'a.yaml': first, 'b.yaml': second}, {'b.yaml': differences(first, second)},
        {'a.yaml': validate(first, [log]), 'b.yaml': validate(second, [log])})


def planned(data: Path) -> Report:
    """Return the report of a motion that keeps clear of the floor."""
    robot = load_robot('tx40')
    request = parse_request('fourier', {'duration': 5, 'harmonics': 2, 'time_limit': 0.0})
    scene = build_scene(robot, request.common.surroundings(robot.surroundings))
    judge = keeping_clear(design_criteria(robot, elapsed=lambda: 1.0), scene)
    return plan_report(Plan('fourier', robot, design(robot, request, judge), judge, scene))


REPORTS: dict[str, Callable[[Path], Report]] = {
    'ur10e': ur10e, 'tx40': tx40, 'elastic': elastic, 'validate': validated, 'contact': contact,
    'compare': compared, 'design': planned}
#: figures over time, or over another quantity, that are zoomed together
LINKED = {'compare': ('', 0), 'design': ('time', 6), 'contact': ('seed 3', 3)}
#: opened in `make test`; the others take longer or show what these do
QUICK = 'elastic', 'contact', 'compare', 'design'


@pytest.fixture(scope='module')
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(program(), tmp_path_factory.mktemp('profile')) as found:
        yield found


def program() -> str:
    """Return the path of the browser; skips where there is none."""
    path = browser_path()
    if path is None:
        pytest.skip(NO_BROWSER)
    return path


@pytest.fixture(scope='module', params=[
    name if name in QUICK else pytest.param(name, marks=pytest.mark.soak) for name in REPORTS])
def path(request: pytest.FixtureRequest, page: Page, tmp_path_factory: pytest.TempPathFactory
         ) -> Path:
    measured = request.param in ('ur10e', 'tx40')
    data = request.getfixturevalue('shared_data') if measured else None
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

    link, least = LINKED.get(path.stem, ('time', 3))  # two joints or more, and the error over time
    linked = f"{PLOTS}.filter((p) => p.dataset.link === '{link}')"
    assert page.run(f'{linked}.length') >= least
    if link:
        zoomed_together(page, linked, path.stem != 'contact')
    assert page.run(SMALL) == []

    page.size(*PHONE, phone=True)
    page.until(f'innerWidth === {PHONE[0]} && {PLOTS}.every((p) => p.layout.dragmode === false)')
    assert page.run('document.documentElement.scrollWidth <= innerWidth')
    assert page.run(OVER) == []
    assert page.errors == []


def test_words_at_the_end_of_a_wide_table_stay_words(page: Page, tmp_path: Path) -> None:
    path = tmp_path / 'report.html'
    combination = ' + '.join(f'0.0749{k}*m{k}' for k in range(20))
    table = Table(('link', 'parameter', 'combination', 'measurement'), tuple(
        Row((f'link_{k}', f'Ixx{k}', combination, f'swing arm_left_{k}_link as a pendulum'))
        for k in range(3)), words=True)
    write_report(Report('title', '', (Chapter('c', (Section('s', tables=(table,)),)),)), path)
    opened(page, path, 'light')
    assert page.run("Math.min(...[...document.querySelectorAll('td:last-child')].map("
                    "(cell) => cell.offsetWidth))") > 120.0
    assert page.run('document.documentElement.scrollWidth <= innerWidth')


def zoomed_together(page: Page, linked: str, panes: bool) -> None:
    """Zoom one of the linked figures, and look whether all follow there and back."""
    page.run(f"Plotly.relayout({linked}[0], {{'xaxis.range': [1.25, 2.5]}}).then(() => null)")
    page.until(f"{linked}.every((p) => p.layout.xaxis.range.join() === '1.25,2.5')")
    first = f'{linked}[0].layout'
    if panes:
        assert page.run(f'Boolean({first}.yaxis2) && !{first}.xaxis2')  # residual: the same axis
    page.run(f"Plotly.relayout({linked}[1], {{'xaxis.autorange': true}}).then(() => null)")
    page.until(f'{linked}.every((p) => p.layout.xaxis.range[1] > 2.6)')


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


def test_a_page_whose_process_dies_is_not_waited_for(tmp_path: Path) -> None:
    with (browser(program(), tmp_path) as dying,
          pytest.raises(PageError, match='the process of the page has died')):
        dying.call('Page.navigate', url='chrome://crash')
        dying.run('1')
