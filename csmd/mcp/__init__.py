"""The rim for models: an MCP server that knows the socket and nothing behind it."""
