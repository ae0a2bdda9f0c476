"""What every test of this folder has."""

from tests.support.own_folders import folders

__all__ = ["folders"]
