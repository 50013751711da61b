"""Handlers of the contract's operations, one file per resource: records in, records out.

The HTTP API and the in-process client both call them.
"""
