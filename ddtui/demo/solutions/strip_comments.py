"""Source text without its comments."""

from __future__ import annotations


def strip_comments(source: str) -> str:
    """Walk through the text with one state: code, string or comment."""
    out, at = [], 0
    while at < len(source):
        char, pair = source[at], source[at : at + 2]
        if pair == "//":
            end = source.find("\n", at)
            at = len(source) if end < 0 else end
        elif pair == "/*":
            end = source.find("*/", at + 2)
            if end < 0:
                raise ValueError("comment not closed")
            out.append(" ")
            at = end + 2
        elif char in "\"'":
            end = at + 1
            while end < len(source) and source[end] not in (char, "\n"):
                end += 2 if source[end] == "\\" else 1
            if end >= len(source) or source[end] != char:
                raise ValueError("string not closed")
            out.append(source[at : end + 1])
            at = end + 1
        else:
            out.append(char)
            at += 1
    return "".join(out)
