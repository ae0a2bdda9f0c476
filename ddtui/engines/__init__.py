"""Engine adapters: everything that is one inference server's own. Pure functions over text, no I/O."""
