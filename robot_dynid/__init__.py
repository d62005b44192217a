"""Identification of the dynamics of robot manipulators, and the models that come out of it."""

from robot_dynid.model.robot_file import load_robot

__version__ = '0.1.0'

__all__ = ['load_robot']
