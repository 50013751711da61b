"""The OpenAPI document as one HTML page, without scripts or external files."""
