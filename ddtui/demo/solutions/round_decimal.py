"""Decimal numbers in text, rounded half to even."""

from __future__ import annotations


def round_decimal(text: str, places: int) -> str:
    """Round without ever leaving decimal digits."""
    negative = text.startswith("-")
    whole, _, fraction = text.lstrip("+-").partition(".")
    fraction = fraction.ljust(places + 1, "0")
    kept, rest = int((whole or "0") + fraction[:places]), fraction[places:]
    half = "5".ljust(len(rest), "0")
    if rest > half or (rest == half and kept % 2):
        kept += 1
    digits = str(kept).rjust(places + 1, "0")
    shown = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{shown}" if negative and kept else shown
