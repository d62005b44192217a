"""Lets pip install the ROS 2 package from the root of the repository.

The package and its interfaces are sibling folders, so that colcon, rosdep and bloom find both.
This backend of PEP 517 builds the folder of the package.
"""

import os
from pathlib import Path

os.chdir(Path(__file__).resolve().parents[1] / 'robot_dynid')

from setuptools.build_meta import *  # noqa: E402, F403 - the hooks of the package's own build
