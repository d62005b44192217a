"""dynamics/elastic.py: elastic 2R against Lagrange's equations by SymPy, from energies written
down anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import SAME_FORMULA

from robot_dynid.identified.structure import Structure
from robot_dynid.reduction.numeric import full_regressor, random_states
from robot_dynid.robot.model import Drive, RobotModel
from robot_dynid.robot.urdf import robot_from_urdf

sympy = pytest.importorskip('sympy')

#: lengths [m] of the upper arm and between base and first axis; gravity [m/s^2]; gear ratios
A1, HEIGHT, GRAVITY, RATIOS = 0.5, 0.3, 9.81, (60.0, 40.0)
#: axis of the rotor of joint 2 in the frame of link 1
ROTOR_AXIS = (0.36, 0.48, 0.8)
#: masses, centres of mass (x, y), moments about them, rotors, stiffness, damping, offsets,
#: viscous friction, each of two joints
NAMES = ('m', 'x', 'y', 'i', 'j', 'k', 'd', 's', 'v')
URDF = f"""<robot name="two"><link name="base"/>
<joint name="a" type="revolute"><parent link="base"/><child link="l1"/>
<origin xyz="0 0 {HEIGHT}" rpy="1.5707963267948966 0 0"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" velocity="3" effort="100"/></joint><link name="l1"/>
<joint name="b" type="revolute"><parent link="l1"/><child link="l2"/><origin xyz="{A1} 0 0"/>
<axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="3" effort="100"/></joint>
<link name="l2"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


def robot_of(spins: bool, sensors: tuple[int, ...] = ()) -> RobotModel:
    """Return the 2R in a vertical plane, both joints elastic."""
    axes = np.array([[0.0, 0.0, 1.0], ROTOR_AXIS]) if spins else None
    drive = Drive('torque', gear_ratios=np.array(RATIOS), elastic=(0, 1), torque_sensors=sensors,
                  rotor_axes=axes)
    return replace(robot_from_urdf(URDF), drive=drive)


@cache
def lagrange(spins: bool) -> Callable[..., Any]:
    """Return the equations of (q1, q2, theta1, theta2): effort on each, as a function.

    Kinetic and potential energy are those of point masses with moments about their centres, in
    the plane; dampers and viscous friction come from Rayleigh's function.
    """
    t = sympy.symbols('t')
    q = [sympy.Function(name)(t) for name in ('q1', 'q2', 'theta1', 'theta2')]
    rates = [c.diff(t) for c in q]
    values = {f'{name}{j}': sympy.symbols(f'{name}{j}') for name in NAMES for j in (1, 2)}
    of = values.__getitem__
    angles = (q[0], q[0] + q[1])
    elbow = (A1 * sympy.cos(q[0]), A1 * sympy.sin(q[0]))
    kinetic, potential, dissipation = sympy.Integer(0), sympy.Integer(0), sympy.Integer(0)
    for j, angle, start in ((1, angles[0], (0, 0)), (2, angles[1], elbow)):
        cos, sin = sympy.cos(angle), sympy.sin(angle)
        place = (start[0] + cos * of(f'x{j}') - sin * of(f'y{j}'),
                 start[1] + sin * of(f'x{j}') + cos * of(f'y{j}'))
        speed = sum(c.diff(t)**2 for c in place)
        twist, slip = q[j + 1] - q[j - 1], rates[j + 1] - rates[j - 1]
        kinetic += of(f'm{j}') * speed / 2 + of(f'i{j}') * angle.diff(t)**2 / 2
        kinetic += of(f'j{j}') * rates[j + 1]**2 / 2
        potential += of(f'm{j}') * GRAVITY * place[1] + of(f'k{j}') * twist**2 / 2
        potential += of(f's{j}') * twist
        dissipation += of(f'd{j}') * slip**2 / 2 + of(f'v{j}') * rates[j + 1]**2 / 2
    if spins:  # the second rotor sits on link 1, which turns about z at the rate of joint 1
        spin = RATIOS[1] * rates[3]
        rotor = of('j2') / RATIOS[1]**2
        relative = rotor * (spin + ROTOR_AXIS[2] * rates[0])**2 / 2
        kinetic += relative - rotor * spin**2 / 2 - rotor * (ROTOR_AXIS[2] * rates[0])**2 / 2
    difference = kinetic - potential
    equations = [difference.diff(r).diff(t) - difference.diff(c) + dissipation.diff(r)
                 for c, r in zip(q, rates, strict=True)]
    plain = [sympy.symbols(f'state_{c}{i}') for c in 'pva' for i in range(4)]
    swap: dict[Any, Any] = {}
    for order in (2, 1, 0):  # the highest derivatives first: they contain the lower ones
        for i, c in enumerate(q):
            swap[c.diff(t, order) if order else c] = plain[4 * order + i]
    found = [e.doit().subs(list(swap.items())) for e in equations]
    return sympy.lambdify([plain, list(values.values())], found, 'numpy')


def standard_of(values: dict[str, float], names: tuple[str, ...]) -> np.ndarray:
    """Return the standard parameters of masses, centres, moments, motors and gears."""
    found = dict.fromkeys(names, 0.0)
    for j in (1, 2):
        m, x, y = (values[f'{name}{j}'] for name in 'mxy')
        found |= {f'm{j}': m, f'mx{j}': m * x, f'my{j}': m * y,
                  f'Izz{j}': values[f'i{j}'] + m * (x * x + y * y), f'Ia{j}': values[f'j{j}'],
                  f'K{j}': values[f'k{j}'], f'D{j}': values[f'd{j}'], f's{j}': values[f's{j}'],
                  f'fv{j}': values[f'v{j}']}
    assert set(found) == set(names)
    return np.array([found[name] for name in names])



@pytest.mark.always
@pytest.mark.parametrize('spins', [False, True], ids=['Spong', 'rotors on links'])
@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_regressor_times_parameters_is_lagranges_equation(spins: bool, seed: int) -> None:
    """All parameters at random, ours by rows: whole effort of a joint, then its motor."""
    rng = np.random.default_rng(seed)
    values = {f'{name}{j}': float(v) for (name, j), v in zip(
        ((n, j) for n in NAMES for j in (1, 2)), rng.uniform(0.1, 3.0, 18))}
    values |= {f'{n}{j}': 1e3 * values[f'{n}{j}'] for n in 'k' for j in (1, 2)}
    robot = robot_of(spins)
    blocks = Structure.uniform(robot, True, 'coulomb', {}).blocks(robot)
    states = random_states(robot, 4, rng)
    parameters = standard_of(values, tuple(n for block in blocks for n in block.names))
    ours = np.einsum('rpn,p->rn', full_regressor(robot, blocks, states), parameters)
    order = [f'{name}{j}' for name in NAMES for j in (1, 2)]
    for k in range(len(states)):
        motion = [*states.position[k], *states.velocity[k], *states.acceleration[k]]
        theirs = np.array(lagrange(spins)(motion, [values[n] for n in order]))
        expected = [*(theirs[:2] + theirs[2:]), *theirs[2:]]
        np.testing.assert_allclose(ours[:, k], expected,
                                   rtol=0.0, atol=SAME_FORMULA * np.abs(theirs).max())
