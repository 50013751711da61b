"""A server of the Model Context Protocol: a broker as tools for language models; docs/mcp.md."""
