"""The plugin as users have it; where the package is not installed anew it is named here."""

pytest_plugins = ["pytester"]
