"""Pure data and rules. Imports nothing of textual, asyncssh, httpx or SQLAlchemy, and does no I/O."""
