"""The API contract: every request and answer record, and every operation, declared once.

The server's routes, the OpenAPI document, `/docs`, the remote client, the in-process client and the
flags of the command line are derived from what is declared here.  One file per resource.
"""
