"""Rows of a text with comma-separated values."""

from __future__ import annotations


def parse_csv(text: str) -> list[list[str]]:
    """Read fields one after the other."""
    rows: list[list[str]] = []
    row: list[str] = []
    at = 0
    while at < len(text) or row:
        if text[at : at + 1] == '"':
            field, at = "", at + 1
            while True:
                end = text.find('"', at)
                if end < 0:
                    raise ValueError("quote not closed")
                field += text[at:end]
                at = end + 1
                if text[at : at + 1] != '"':
                    break
                field, at = field + '"', at + 1
        else:
            end = at
            while end < len(text) and text[end] not in ",\n":
                end += 1
            field, at = text[at:end], end
            if '"' in field:
                raise ValueError("quote within a field")
        row.append(field)
        follows = text[at : at + 1]
        if follows == ",":
            at += 1
            continue
        if follows not in ("", "\n"):
            raise ValueError("text after a quote")
        rows.append(row)
        row, at = [], at + 1
    return rows
