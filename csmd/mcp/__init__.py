"""The MCP server for models."""
