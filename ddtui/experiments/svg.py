"""A small writer of SVG 1.1: shapes and texts, every value escaped. No scripts, no links."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from ddtui.core.text import clean

_LONGEST = 200
"""Characters of one text."""


class Svg:
    """One picture, built from top to bottom. Sizes are pixels, measured from the upper left."""

    def __init__(self, width: float, height: float, title: str, style: str = "") -> None:
        self.width = width
        self.height = height
        self._title = title
        self._style = style
        self._parts: list[str] = []

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """A straight line."""
        self._add("line", kind, x1=x1, y1=y1, x2=x2, y2=y2)

    def path(self, points: list[tuple[float, float]], kind: str) -> None:
        """A line through points."""
        way = " L".join(f"{_number(x)},{_number(y)}" for x, y in points)
        self._add("path", kind, d=f"M{way}")

    def polygon(self, points: list[tuple[float, float]], kind: str, tip: str = "") -> None:
        """A closed shape."""
        corners = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        self._add("polygon", kind, tip, points=corners)

    def circle(self, x: float, y: float, radius: float, kind: str, tip: str = "") -> None:
        """A circle; `tip` is shown under the pointer."""
        self._add("circle", kind, tip, cx=x, cy=y, r=radius)

    def box(
        self, corner: tuple[float, float], size: tuple[float, float], kind: str, **more: str | float
    ) -> None:
        """A rectangle."""
        (x, y), (width, height) = corner, size
        self._add("rect", kind, x=x, y=y, width=width, height=height, **more)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        kind: str,
        *,
        anchor: str = "start",
        turned: float = 0.0,
    ) -> None:
        """One line of text; `anchor` is start, middle or end; `turned` in degrees."""
        more: dict[str, str | float] = {"text-anchor": anchor}
        if turned:
            more["transform"] = f"rotate({_number(turned)} {_number(x)} {_number(y)})"
        attributes = _attributes({"class": kind, "x": x, "y": y, **more})
        self._parts.append(f"<text{attributes}>{safe(words)}</text>")

    def embed(self, inner: Svg, x: float, y: float) -> None:
        """Another picture, as it is, at a place of this one."""
        self._parts.append(inner.markup({"x": x, "y": y}))

    def markup(self, more: dict[str, str | float] | None = None) -> str:
        """The element `svg`."""
        attributes = _attributes(
            {
                "xmlns": "http://www.w3.org/2000/svg",
                **(more or {}),
                "width": self.width,
                "height": self.height,
                "viewBox": f"0 0 {_number(self.width)} {_number(self.height)}",
                "role": "img",
            }
        )
        style = f"<style>{self._style}</style>\n" if self._style else ""
        inside = "\n".join(self._parts)
        return f"<svg{attributes}>\n<title>{safe(self._title)}</title>\n{style}{inside}\n</svg>"

    def document(self) -> str:
        """The whole file."""
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{self.markup()}\n'

    def _add(self, element: str, kind: str, tip: str = "", /, **more: str | float) -> None:
        attributes = _attributes({"class": kind, **more})
        inside = f"><title>{safe(tip)}</title></{element}>" if tip else "/>"
        self._parts.append(f"<{element}{attributes}{inside}")


def safe(words: str) -> str:
    """Text that is nothing but text, in XML."""
    return escape(clean(words, _LONGEST))


def _attributes(values: dict[str, str | float]) -> str:
    return "".join(
        f" {name}={quoteattr(value if isinstance(value, str) else _number(value))}"
        for name, value in values.items()
    )


def _number(value: float) -> str:
    """At most two decimals, and no -0."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
