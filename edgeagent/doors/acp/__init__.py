"""The door of editors: an agent over ACP, the Agent Client Protocol, on stdin and stdout."""
