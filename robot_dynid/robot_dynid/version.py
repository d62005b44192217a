"""The version of the software, written into every model file."""

VERSION = '0.1.0'
