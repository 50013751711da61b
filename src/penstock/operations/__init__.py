"""Handlers of the operations in the contract, one file per noun: records in, records out.

The HTTP API and the in-process client both call them.
"""
