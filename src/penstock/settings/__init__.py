"""The settings of a process: one frozen value, and the origin of each part."""

from penstock.settings.load import Flag, Loaded, Origin, Place, check_given, load
from penstock.settings.values import Settings, is_loopback

__all__ = ["Settings", "Flag", "Loaded", "Origin", "Place", "check_given", "is_loopback", "load"]
