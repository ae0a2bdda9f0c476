"""Value of an arithmetic expression."""

from __future__ import annotations

import re


class _Parser:
    def __init__(self, text: str) -> None:
        if re.search(r"[^0-9+\-*/() ]", text):
            raise ValueError(text)
        self.tokens = re.findall(r"[0-9]+|\*\*|[+\-*/()]", text)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        word = self.peek()
        self.at += 1
        return word

    def total(self) -> int:
        value = self.product()
        while self.peek() in ("+", "-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def product(self) -> int:
        value = self.signed()
        while self.peek() in ("*", "/"):
            if self.take() == "*":
                value *= self.signed()
            else:
                divisor = self.signed()
                quotient = abs(value) // abs(divisor)
                value = quotient if (value < 0) == (divisor < 0) else -quotient
        return value

    def signed(self) -> int:
        if self.peek() == "-":
            self.take()
            return -self.signed()
        return self.power()

    def power(self) -> int:
        base = self.atom()
        if self.peek() != "**":
            return base
        self.take()
        exponent = self.signed()
        if exponent < 0:
            raise ValueError("negative exponent")
        return int(base**exponent)

    def atom(self) -> int:
        word = self.take()
        if word.isdigit():
            return int(word)
        if word != "(":
            raise ValueError("operand expected")
        value = self.total()
        if self.take() != ")":
            raise ValueError("parenthesis not closed")
        return value


def evaluate(text: str) -> int:
    """Evaluate an expression of integers."""
    parser = _Parser(text)
    value = parser.total()
    if parser.peek():
        raise ValueError(text)
    return value
