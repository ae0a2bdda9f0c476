"""Dates a number of working days away."""

from __future__ import annotations

import datetime


def add_business_days(date: str, days: int, holidays: list[str]) -> str:
    """Step day by day over weekends and holidays."""
    day, step = datetime.date.fromisoformat(date), datetime.timedelta(1 if days >= 0 else -1)
    closed = set(holidays)

    def works(day: datetime.date) -> bool:
        return day.weekday() < 5 and day.isoformat() not in closed

    if days == 0:
        while not works(day):
            day += step
    for _ in range(abs(days)):
        day += step
        while not works(day):
            day += step
    return day.isoformat()
