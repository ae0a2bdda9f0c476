"""Pure data and rules: no I/O, and nothing of textual, asyncssh, httpx or SQLAlchemy."""
