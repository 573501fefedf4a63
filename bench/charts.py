"""The two kinds of charts: lines over a quantity, and points beside names.

Who is who shows in marker and line style, too: the charts are read in grey.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from peers import OURS

Panel = tuple[float, float, float]
Line = list[tuple[float, float, float, float]]
Style = dict[str, object]

ORDER = (
    OURS, "glibc", "jemalloc", "jemalloc-debian", "mimalloc", "mimalloc-next", "mimalloc-debian",
    "rpmalloc", "snmalloc", "tcmalloc-debian",
)  # fmt: skip
LOOKS = (
    ("o", "-", "#000000"), ("s", "--", "#d55e00"), ("^", "-.", "#0072b2"), ("v", ":", "#56b4e9"),
    ("D", "--", "#009e73"), ("<", "-.", "#66c2a5"), (">", ":", "#8fbc8f"), ("P", "--", "#cc79a7"),
    ("X", "-.", "#7f6000"), ("*", ":", "#b8860b"),
)  # fmt: skip
WIDTH, HEIGHT = 7.2, 4.4


@dataclass(frozen=True)
class Lines:
    """One panel: lines by name, each point with its interval."""

    x_label: str
    y_label: str
    series: dict[str, Line]
    log_x: bool = False
    log_y: bool = False
    falling_x: bool = False
    x_ticks: Sequence[int] = ()
    x_names: Sequence[str] = ()
    name: str = ""
    marks: bool = True
    bands: bool = False
    dodge: bool = False
    covers: tuple[float, float] = (0.0, 0.0)  # what the axis shows in any case

    def first_x(self) -> float:
        return next(line[0][0] for line in self.series.values())


@dataclass(frozen=True)
class Points:
    """One panel: for each name the points of each row. Names are allocators, or marks of one."""

    x_label: str
    points: dict[str, dict[str, Panel]]
    name: str = ""
    allocators: bool = False


def in_order(names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def look(name: str, names: Sequence[str]) -> tuple[str, str, str]:
    place = ORDER.index(name) if name in ORDER else list(names).index(name)
    return LOOKS[place % len(LOOKS)]


def plain(value: float, _position: int = 0) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def marked(count: int, place: int) -> tuple[int, int]:
    """Where a line has its markers: long lines here and there, each elsewhere, as equal ones lie on
    each other."""
    every = count // 5 if count > 15 else 1
    return place * every // len(LOOKS), every


def draw_line(axes: Axes, panel: Lines, name: str, shift: float) -> None:
    marker, style, colour = look(name, list(panel.series))
    line = panel.series[name]
    places = [x + shift for x, _, _, _ in line]
    middles = [middle for _, middle, _, _ in line]
    lows = [low for _, _, low, _ in line]
    highs = [high for _, _, _, high in line]
    every = marked(len(line), in_order(list(panel.series)).index(name))
    width = 2.2 if name == OURS else 1.2
    if panel.bands:
        axes.fill_between(places, lows, highs, color=colour, alpha=0.15, linewidth=0)
    elif panel.marks:
        reach = [
            [middle - low for middle, low in zip(middles, lows, strict=True)],
            [high - middle for middle, high in zip(middles, highs, strict=True)],
        ]
        axes.errorbar(places, middles, yerr=reach, fmt="none", ecolor=colour, capsize=2)
    axes.plot(
        places, middles, label=name, color=colour, linestyle=style, linewidth=width,
        marker=marker, markersize=5, markevery=every,
    )  # fmt: skip


def dress_height(axes: Axes, panel: Lines) -> None:
    if panel.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(plain))
        axes.yaxis.set_minor_formatter(FuncFormatter(sparse(plain)))
        axes.tick_params(axis="y", which="minor", labelsize=7)
        return
    axes.update_datalim([(panel.first_x(), y) for y in panel.covers])
    axes.autoscale_view()
    axes.margins(y=0.06)


def dress_width(axes: Axes, panel: Lines) -> None:
    if panel.x_ticks:
        axes.xaxis.set_major_locator(FixedLocator(list(panel.x_ticks)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(plain))
    if panel.x_names:
        axes.set_xticks(range(len(panel.x_names)), list(panel.x_names))
    if panel.falling_x:
        axes.invert_xaxis()
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value * 100:g} %"))


def dress_lines(axes: Axes, panel: Lines) -> None:
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    axes.set_title(panel.name, fontsize=9)
    axes.grid(True, which="major", color="#dddddd")
    if panel.log_x:
        axes.set_xscale("log")
    dress_height(axes, panel)
    dress_width(axes, panel)


def finish(figure: Figure, title: str, axes: Axes) -> Figure:
    """One legend for all panels, beside them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.suptitle(title, fontsize=10)
    figure.legend(handles, labels, loc="outside right center", fontsize=8, handlelength=3.5)
    return figure


def panels_of(count: int, columns: int, height: float) -> tuple[Figure, list[Axes]]:
    lines = -(-count // columns)
    figure = Figure(figsize=(WIDTH * (1.5 if columns > 1 else 1.2), height), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False)
    return figure, list(grid.flat)


def draw_lines(title: str, panels: Sequence[Lines]) -> Figure:
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    figure, grid = panels_of(len(panels), columns, HEIGHT * (1 if rows == 1 else 0.8 * rows))
    for axes, panel in zip(grid, panels, strict=False):
        names = in_order(list(panel.series))
        for place, name in enumerate(names):
            shift = (place - (len(names) - 1) / 2) * 0.06 if panel.dodge else 0.0
            draw_line(axes, panel, name, shift)
        dress_lines(axes, panel)
    return finish(figure, title, grid[0])


def draw_point_set(axes: Axes, panel: Points, order: list[str], name: str, shift: float) -> None:
    marker, _, colour = look(name, list(panel.points))
    own = panel.points[name]
    rows = [row for row in order if row in own]
    middles = [own[row][0] for row in rows]
    reach = [
        [own[row][0] - own[row][1] for row in rows],
        [own[row][2] - own[row][0] for row in rows],
    ]
    axes.errorbar(
        middles, [order.index(row) + shift for row in rows], xerr=reach, fmt=marker,
        color=colour, markersize=6 if name == OURS else 4.5, capsize=2, linewidth=1, label=name,
        markerfacecolor=colour if not panel.allocators or name == OURS else "none",
    )  # fmt: skip


def draw_points(title: str, panels: Sequence[Points], columns: int) -> Figure:
    count = len({row for own in panels[0].points.values() for row in own})
    height = 0.36 * count * -(-len(panels) // columns) + 1.6
    figure, grid = panels_of(len(panels), columns, height)
    for axes, panel in zip(grid, panels, strict=True):
        rows = list(dict.fromkeys(row for own in panel.points.values() for row in own))
        order = rows if panel.allocators else in_order(rows)
        names = in_order(list(panel.points)) if panel.allocators else list(panel.points)
        for place, name in enumerate(names):
            # Each on a level of its own: equal figures would hide each other.
            shift = (place - (len(names) - 1) / 2) * 0.76 / len(names)
            draw_point_set(axes, panel, order, name, shift)
        dress_points(axes, panel, order)
    return finish(figure, title, grid[0])


def dress_points(axes: Axes, panel: Points, order: list[str]) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    axes.xaxis.set_minor_formatter(FuncFormatter(sparse(plain)))
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.set_xlabel(panel.x_label)
    axes.set_title(panel.name, fontsize=9)
    axes.grid(True, axis="x", which="both", color="#e4e4e4")
    for place in range(1, len(order)):
        axes.axhline(place - 0.5, color="#e4e4e4", linewidth=0.8)
    axes.tick_params(axis="x", which="minor", labelsize=7)


def sparse(write: Callable[[float, int], str]) -> Callable[[float, int], str]:
    """Between powers of ten only 2 and 5 are named."""

    def written(value: float, position: int) -> str:
        return write(value, position) if f"{value:e}"[0] in "25" else ""

    return written
