"""The operations of the native API, one file per noun."""
