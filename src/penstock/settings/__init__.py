"""One frozen value that says how a process runs, and where each part of it came from."""

from penstock.settings.load import Flag, Loaded, Place, Source, check_given, load
from penstock.settings.values import Settings, is_loopback

__all__ = ["Settings", "Flag", "Loaded", "Place", "Source", "check_given", "is_loopback", "load"]
