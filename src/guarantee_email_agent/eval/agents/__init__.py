"""Agents that `eval --agent` judges: a program, an HTTP service, a Python function, or our own through MCP."""
