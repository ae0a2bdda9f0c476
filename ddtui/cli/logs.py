"""ddtui's own log: a file, never the screen."""

from __future__ import annotations

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

from ddtui.cli.output import say
from ddtui.config.paths import log_folder

FILE_NAME = "ddtui.log"
MAX_BYTES = 1_000_000
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def set_up_log(*, debug: bool = False) -> Path | None:
    """Send all logging to the file. Returns it, or None (and says so) if it cannot be written."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, RotatingFileHandler):
            return Path(handler.baseFilename)
    file = log_folder() / FILE_NAME
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = RotatingFileHandler(file, maxBytes=MAX_BYTES, backupCount=2, encoding="utf-8")
        file.chmod(0o600)
    except OSError as error:
        say(f"ddtui's own log cannot be written ({file}: {error.strerror}); going on without it")
        root.addHandler(logging.NullHandler())
        return None
    handler.setFormatter(logging.Formatter(_FORMAT))
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if debug else logging.INFO)
    # At INFO these tell of every channel and request.
    for chatty in ("asyncssh", "httpx", "httpcore", "asyncio", "alembic"):
        logging.getLogger(chatty).setLevel(logging.INFO if debug else logging.WARNING)
    return file


def log_unexpected(error: BaseException) -> str:
    """Write a traceback to the log. Returns a sentence that says where, or an empty string."""
    file = set_up_log()
    if file is None:
        return ""
    logging.getLogger("ddtui").error("unexpected", exc_info=error)
    return f"{file} has the traceback; "
