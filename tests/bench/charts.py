"""Draws charts of lines as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, LEFT, TOP, GAP = 560, 130, 60, 30, 60
#: Room for the names of lines, and the height of one.
NAMES, LINE = 270, 12
COLOURS = ("#1f6feb", "#9a6700", "#1a7f37", "#8250df", "#57606a", "#bf3989", "#0a3069", "#cf5a00")
LIMIT = 'stroke="#cf222e" stroke-dasharray="4 4"'


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over `x`, from 0 up or, with `is_log`, both axes by powers of ten; a line named `limit ...` is a limit."""

    title: str
    x: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    unit: str
    is_log: bool = False


def draw(charts: Sequence[Chart]) -> str:
    """An SVG with charts below one another."""
    parts = [_draw_one(chart, TOP + number * (HEIGHT + GAP)) for number, chart in enumerate(charts)]
    tall = TOP + len(charts) * (HEIGHT + GAP)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + NAMES} {tall}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _draw_one(chart: Chart, top: float) -> str:
    values = [value for line in chart.lines.values() for value in line]
    if chart.is_log:
        least, most = (10.0 ** edge(math.log10(end(values))) for edge, end in ((math.floor, min), (math.ceil, max)))
        first, last = min(chart.x), max(chart.x)
    else:
        least, most, first, last = 0.0, max(values) * 1.1 or 1.0, 0.0, max(*chart.x, 0.001)

    def share(value: float, low: float, high: float) -> float:
        if chart.is_log:
            value, low, high = math.log10(value), math.log10(low), math.log10(high)
        return (value - low) / (high - low)

    def place(x: float, value: float) -> tuple[float, float]:
        return LEFT + WIDTH * share(x, first, last), top + HEIGHT - HEIGHT * share(value, least, most)

    parts = [
        f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{chart.title}</text>',
        f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#ccc"/>',
        f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{most:.3g}</text>',
        f'<text x="{LEFT - 6}" y="{top + HEIGHT}" text-anchor="end">{least:.3g}</text>',
        f'<text x="{LEFT}" y="{top + HEIGHT + 14}">{first:,.0f} {chart.unit}</text>',
        f'<text x="{LEFT + WIDTH}" y="{top + HEIGHT + 14}" text-anchor="end">{last:,.0f} {chart.unit}</text>',
    ]
    ends: list[tuple[float, str, str]] = []
    for number, (name, line) in enumerate(chart.lines.items()):
        is_limit = name.startswith("limit")
        colour = COLOURS[number % len(COLOURS)]
        stroke = LIMIT if is_limit else f'stroke="{colour}" stroke-width="1.5"'
        points = [place(x, value) for x, value in zip(chart.x, line, strict=True)]
        parts.append(f'<polyline fill="none" {stroke} points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>')
        ends.append((points[-1][1] + 4, name, "#cf222e" if is_limit else colour))
    # A name stands where its line ends, or below the name before it.
    lowest = 0.0
    for y, name, colour in sorted(ends):
        lowest = max(y, lowest + LINE)
        parts.append(f'<text x="{LEFT + WIDTH + 6}" y="{lowest:.1f}" fill="{colour}">{name}</text>')
    return "".join(parts)
