"""Terminal UI for live operation of GPU inference hosts."""

__version__ = "0.1.0"
