"""The door of programs that are hosts: ACP's messages, and ours for their tools, events, budgets, state and replay."""
