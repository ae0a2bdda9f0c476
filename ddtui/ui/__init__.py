"""The terminal UI: the only package, beside the commands that start it, that imports Textual."""
