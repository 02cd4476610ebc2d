"""Servers that speak MCP: other people's tools, run beside the agent, believed in nothing."""
