"""Install robot_dynid as a ROS 2 package (ament_python)."""

import platform
import sys
from copy import copy
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

PACKAGE = 'robot_dynid'
#: methods, verbs and a part of a node, which the package finds by the entry points below
ADDED = 'robot_dynid_extras'
SHARE = f'share/{PACKAGE}'
SHARED_FOLDERS = ('config', 'launch', 'urdf')

# Every verb that needs no ROS runs with these. Lower bounds: the oldest ROS distribution; upper
# ones: the next release that may break. The same packages are in requirements/ and package.xml.
REQUIRED = [
    'numpy>=1.21,<3',
    'scipy>=1.8,<2',
    'threadpoolctl>=3.0,<4',
    'PyYAML>=5.4,<7',
    'rosbags>=0.9.16,<1',
    'mcap>=1.1,<2',
    'scikit-learn>=1.0,<2',
    'clarabel>=0.7,<1',
    'coal>=3.0,<4',
    'rich>=11.2,<16',
    'argcomplete>=1.12,<4',
]
EXTRAS = {
    'report': ['Jinja2>=3.0,<4', 'plotly>=5.4,<8'],
    # recordings in Parquet files
    'tables': ['pyarrow>=8,<27'],
    'simulation': ['mujoco>=3.16,<5'],
    # wheels of ROS 2 Jazzy and Kilted; a sourced ROS 2 has them
    'ros': ['ros-rclpy[fastrtps]>=7.1,<10', 'ros-sensor-msgs>=5.3,<6',
            'ros-trajectory-msgs>=5.3,<6', 'ros-std-srvs>=5.3,<6', 'ros-diagnostic-msgs>=5.3,<6',
            'ros-visualization-msgs>=5.3,<6'],
    # recordings shared out over a Dask cluster, and read from object stores
    'fleet': ['distributed>=2022.2,<2027', 'fsspec>=2022.1,<2027'],
    # `colcon test` runs pytest where it finds it here
    'test': ['pytest>=6.2,<10', 'hypothesis>=6.36,<7'],
}

#: sums keep their order, products stay as written: one state by itself gives the bits of many
FLAGS = ['-std=c++20', '-O3', '-fno-math-errno', '-fno-trapping-math', '-fno-signed-zeros',
         '-ffp-contract=off', '-fopenmp-simd', '-fvisibility=hidden', '-g0']
#: instructions of each build of the kernels; robot_dynid.kernels takes the newer where it runs
BUILDS = ({'_portable': ['-march=x86-64-v2'], '_newer': ['-march=x86-64-v3']}
          if platform.machine() in ('x86_64', 'AMD64') else {'_portable': []})


def kernels() -> list[Extension]:
    """Return the numerical kernels, which need a C++ compiler."""
    folder = Path(PACKAGE, 'kernels')
    return [
        Extension(f'{PACKAGE}.kernels.{name}', [f'{folder}/kernels.cpp'],
                  depends=[str(path) for path in sorted(folder.glob('*.hpp'))],
                  define_macros=[('MODULE', name)], extra_compile_args=[*FLAGS, *instructions])
        for name, instructions in BUILDS.items()]


class BuildKernels(build_ext):
    """Compiles all builds of the kernels at once, each into an object file of its own.

    Without it, compilers that run at the same time write the same file.
    """

    def build_extension(self, extension: Extension) -> None:
        one = copy(self)
        one.build_temp = str(Path(self.build_temp, extension.name))
        build_ext.build_extension(one, extension)


def shared_files() -> list[tuple[str, list[str]]]:
    """Return (destination, files) for every folder of shared data, at any depth."""
    folders: dict[str, list[str]] = {}
    for top in SHARED_FOLDERS:
        for path in sorted(Path(top).rglob('*')):
            if path.is_file() and path.suffix != '.pyc':
                folders.setdefault(f'{SHARE}/{path.parent.as_posix()}', []).append(str(path))
    return list(folders.items())


def command_on_path() -> list[tuple[str, list[str]]]:
    """Return the file colcon puts on PATH beside the nodes, which `ros2 run` finds in lib.

    None for wheels: installers write the command themselves, for the Python they install into.
    """
    return [] if 'bdist_wheel' in sys.argv else [('bin', ['scripts/robot-dynid'])]


setup(
    name=PACKAGE,
    version='0.1.0',
    packages=find_packages(include=[PACKAGE, f'{PACKAGE}.*', ADDED, f'{ADDED}.*']),
    package_data={PACKAGE: ['*.pyi', 'py.typed', 'report/templates/*', 'setting_up/*.yaml',
                            'robot/*.yaml']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{PACKAGE}']),
        (SHARE, ['package.xml']),
        *command_on_path(),
        *shared_files(),
    ],
    ext_modules=kernels(),
    cmdclass={'build_ext': BuildKernels},
    options={'build_ext': {'parallel': True}},
    python_requires='>=3.10',
    install_requires=REQUIRED,
    extras_require=EXTRAS,
    zip_safe=False,
    maintainer='robot_dynid maintainers',
    maintainer_email='maintainers@users.noreply.a-seed-02419c51.example',
    description='Identification of the dynamics of robot arms, served in ROS 2.',
    license='Apache-2.0',
    entry_points={
        'console_scripts': [
            'robot-dynid = robot_dynid.cli.main:main',
            'identifier = robot_dynid.ros.identifier.node:main',
            'excitation = robot_dynid.ros.excitation.node:main',
            'simulated_robot = robot_dynid.ros.simulated_robot.node:main',
        ],
        'robot_dynid.verbs': [
            f'calibrate = {ADDED}.health.verb',
            f'fleet = {ADDED}.fleet.verb',
            f'resonance = {ADDED}.resonance.verb',
            f'session = {ADDED}.session.verb',
        ],
        'robot_dynid.estimators': [
            f'latent = {ADDED}.latent.latent:LATENT',
            f'trajectory = {ADDED}.trajectory.trajectory_fit:TRAJECTORY',
        ],
        'robot_dynid.adaptive_planners': [
            f'adaptive = {ADDED}.session.adaptive_swings:adaptive_swings',
        ],
        'robot_dynid.identifier_parts': [
            f'health = {ADDED}.health.node_part:HealthMonitoring',
        ],
    },
)
