"""AgentDojo without a model: its ground truths are replayed through our guard, with injected calls put in between."""
