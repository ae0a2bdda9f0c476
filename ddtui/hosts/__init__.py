"""How to reach a machine. Knows nothing of engines."""
