"""Draws lines of a terminal as SVG: standing still, or scrolling as they came.

A moving picture is one tall sheet of text behind a window. The sheet moves up a line at a time; while the window
isn't full yet, a curtain covers what has not been printed. A viewer that doesn't move it shows the last screen.
"""

import re
from html import escape

SIZE, LINE, CHARACTER, MARGIN = 13, 18, 7.83, 14
BACKGROUND, INK = "#0d1117", "#c9d1d9"
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff", "36": "#76e3ea", "37": INK, "90": "#8b949e"}
SHORTEST, LONGEST, LAST = 0.12, 1.2, 8.0
"""Seconds: a line stays at least so long before the next, a silence is cut to so much, the end stays so long."""


def spans(text: str) -> str:
    """A line's text with its colours."""
    drawn, style = [], {}
    for index, part in enumerate(re.split(r"\x1b\[([0-9;]*)m", text)):
        if index % 2:
            style = styled(style, part.split(";"))
        elif part:
            attributes = "".join(f' {name}="{value}"' for name, value in style.items())
            drawn.append(f"<tspan{attributes}>{escape(part, quote=False)}</tspan>" if attributes else escape(part, quote=False))
    return "".join(drawn)


def styled(style: dict[str, str], codes: list[str]) -> dict[str, str]:
    for code in codes:
        if code in ("", "0"):
            style = {}
        elif code == "1":
            style = {**style, "font-weight": "bold"}
        elif code == "2":
            style = {**style, "fill": COLOURS["90"]}
        elif code in COLOURS or code in ("91", "92", "93", "94", "95", "96"):
            style = {**style, "fill": COLOURS.get(code) or COLOURS[str(int(code) - 60)]}
    return style


def sheet(lines: list) -> str:
    texts = [f'<text y="{MARGIN + SIZE + row * LINE}">{spans(line.text)}</text>' for row, line in enumerate(lines) if line.text.strip()]
    return "\n".join(texts)


def frame(columns: int, rows: int, style: str, content: str, title: str) -> str:
    width, height = round(columns * CHARACTER + 2 * MARGIN), rows * LINE + 2 * MARGIN
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<title>{escape(title)}</title>
<style>
text {{ font: {SIZE}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: {INK}; white-space: pre; }}
{style}</style>
<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>
{content}
</svg>
"""


def title(lines: list) -> str:
    return "Terminal: " + re.sub(r"\x1b\[[0-9;]*m", "", lines[0].text).lstrip("$ ")


def still(lines: list, columns: int) -> str:
    """All of it, as tall as it is."""
    texts = f'<g transform="translate({MARGIN} 0)" xml:space="preserve">\n{sheet(lines)}\n</g>'
    return frame(columns, len(lines), "", texts, title(lines))


def schedule(lines: list) -> list[float]:
    """When each line appears: as recorded, with silences cut and bursts slowed down so that they can be read."""
    times, before = [0.0], lines[0].at
    for line in lines[1:]:
        times.append(times[-1] + min(max(line.at - before, SHORTEST), LONGEST))
        before = line.at
    return times


def keyframes(name: str, steps: list[tuple[float, int]]) -> str:
    """An animation that stands still between steps; `steps` are (share of the whole, offset in lines)."""
    frames = "".join(f"{share:.2%}{{transform:translateY({offset * LINE}px)}}" for share, offset in steps)
    return f"@keyframes {name} {{{frames}}}\n"


def moving(lines: list, columns: int, rows: int) -> str:
    """As it came, in a window of `rows` lines, over and over."""
    times = schedule(lines)
    whole = times[-1] + LAST
    count = len(lines)
    scrolled = [(times[n] / whole, -max(0, n + 1 - rows)) for n in range(count)]
    curtain = [(times[n] / whole, min(n + 1, rows)) for n in range(count)]
    changes = lambda steps: [step for n, step in enumerate(steps) if n == 0 or step[1] != steps[n - 1][1]]
    ends = [(1.0, scrolled[-1][1])], [(1.0, curtain[-1][1])]
    style = keyframes("scroll", changes(scrolled) + ends[0]) + keyframes("fall", changes(curtain) + ends[1])
    style += f".sheet {{ animation: scroll {whole:.1f}s step-end infinite; }}\n.curtain {{ animation: fall {whole:.1f}s step-end infinite; }}\n"
    style += "@media (prefers-reduced-motion: reduce) { .sheet, .curtain { animation: none; } }\n"
    width, height = columns * CHARACTER + MARGIN, rows * LINE
    content = f"""<svg x="{MARGIN}" y="{MARGIN - 4}" width="{width:.0f}" height="{height + 4}">
<g class="sheet" transform="translate(0 {-max(0, count - rows) * LINE})"><g transform="translate(0 {1 - MARGIN})" xml:space="preserve">
{sheet(lines)}
</g></g>
<rect class="curtain" transform="translate(0 {rows * LINE + 8})" width="{width:.0f}" height="{height + 8}" fill="{BACKGROUND}"/>
</svg>"""
    return frame(columns, rows, style, content, title(lines))
