"""Support for tests: external servers and other machinery that is not itself under test."""
