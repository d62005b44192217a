"""Parameter file of the ROS 2 packages inverse_dynamics_solver and kdl_inverse_dynamics_solver.

The solver uses the chain from ``root`` to ``tip`` of ``robot_description``, and ``gravity`` in the
frame of the root. It has neither rotors nor friction, and ignores links fixed off the chain: the
description written here has one link per body, including all links fixed to it. Source:
kdl_inverse_dynamics_solver, version 1.0.0, README and kdl_inverse_dynamics_solver.cpp.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_dynid.errors import ModelError
from robot_dynid.export.identified_arm import IdentifiedArm
from robot_dynid.export.text_file import TextFile
from robot_dynid.export.written import Form, Written
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.robot.urdf_text import generate_urdf
from robot_dynid.version import VERSION
from robot_dynid.yaml_text import load_yaml, yaml_text

#: header of every file
MARK = b'# inverse_dynamics_solver parameters of a robot_dynid model'
FORM = Form('inverse_dynamics_solver')
#: solver plugin for a URDF, and the namespace of its ``initialize``
PLUGIN, NAMESPACE = 'kdl_inverse_dynamics_solver/InverseDynamicsSolverKDL', 'kdl'


@dataclass(frozen=True, eq=False)
class SolverParameters(TextFile):
    """Parameter file of an arm, and the ``description`` in it."""

    description: str = field(kw_only=True)
    written: Written = field(kw_only=True)
    mark = MARK

    def parse(self) -> None:
        """Read the text as YAML with a URDF in it; raises DynIdError."""
        node = load_yaml(self.text, FORM.name, ModelError)['/**']['ros__parameters']
        robot_from_urdf(node['robot_description'], source=FORM.name)

    def load(self) -> dict[str, Any]:
        """Return MuJoCo's error with the description.

        Raises MissingDependency without MuJoCo, ModelError if MuJoCo refuses the description.
        """
        from robot_dynid.export.mujoco import check, urdf_model

        return check(self.written, urdf_model(self.written.arm.robot, self.description))


def solver_parameters(arm: IdentifiedArm) -> SolverParameters:
    """Return the parameter file of ``arm``; raises ModelError for a tree."""
    robot, written = arm.robot, Written(arm, FORM)
    if not np.array_equal(robot.parents, np.arange(-1, robot.n - 1)):
        raise ModelError(f'{robot.name} is a tree, and inverse_dynamics_solver supports chains '
                         'only: set tip_link in the robot YAML and identify that chain')
    description = generate_urdf(robot, arm.mechanism.bodies)
    content = {'/**': {'ros__parameters': {
        'inverse_dynamics_solver_plugin_name': PLUGIN,
        NAMESPACE: {'root': robot.base_link, 'tip': robot.bodies[-1],
                    'gravity': [float(g) for g in robot.gravity]},
        'robot_description': description}}}
    return SolverParameters(f'{MARK.decode()} {VERSION}\n{yaml_text(content)}', tuple(
        written.warnings()), description=description, written=written)
