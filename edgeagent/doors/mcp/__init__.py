"""Door of programs that speak MCP: the agent's tools under its rules, and the agent itself, as tools."""
