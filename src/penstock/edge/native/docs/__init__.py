"""The OpenAPI document as a page to read: one file, no scripts, nothing from elsewhere."""
