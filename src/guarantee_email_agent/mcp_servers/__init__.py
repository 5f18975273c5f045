"""The MCP servers that are built in: mail, warranty, ticketing. Each is a program of its own, for any MCP client."""
