"""Which setting is drawn where: panels by the figure's rows and columns, one line per remaining combination.

Plain data only; nothing here draws. A line keeps its slot (and so its colour) in every panel.
"""

from typing import Any, NamedTuple

from foltr.lab.records import Data, FigureRecord, Manifest, Published, SettingRecord
from foltr.lab.reporting.labels import described, figure_of, plain, spoken, swept_keys, value_of

COLOURS, STYLES = 6, 4  # that a reader can distinguish
MOST_LINES = 12  # of a panel, where a key can make panels
USUAL_COLUMNS, USUAL_ROWS = "users.clicks", "data.name"


class Look(NamedTuple):
    colour: int  # position in the palette
    style: int  # solid, dashed, ...


class Line(NamedTuple):
    setting: int  # as in the rows
    slot: int  # position in the legend


class Point(NamedTuple):
    """One published value."""

    series: str
    round: int
    value: float
    setting: int  # whose x axis it shares
    colour: int | None  # of the line or lines it belongs to; None where they differ


class Panel(NamedTuple):
    row: str  # panels of one row share their y axis
    column: str
    lines: list[Line]
    points: list[Point]


class Layout(NamedTuple):
    panels: list[Panel]  # row by row; a combination that did not run has no lines
    names: list[str]  # of the lines, by slot
    looks: list[Look]  # by slot
    columns: int  # distinct values of the column key


def layout(manifest: Manifest, metric: str | None = None) -> Layout:
    """Panels for one metric; the figure's own keys where it names them, else a sensible choice."""
    settings, figure = manifest.settings, figure_of(manifest)
    row_keys, column_keys, line_keys = _keys(settings, figure)
    slots, names, looks = _slots(settings, line_keys)
    colours = {index: looks[slot].colour for index, slot in slots.items()}
    cells: dict[tuple[str, str], list[SettingRecord]] = {}
    rows = list(dict.fromkeys(_heading(s, row_keys) for s in settings))
    columns = list(dict.fromkeys(_heading(s, column_keys) for s in settings))
    for setting in settings:
        cells.setdefault((_heading(setting, row_keys), _heading(setting, column_keys)), []).append(setting)
    published = [p for p in figure.published if (p.metric or figure.metric) == metric]
    panels = [
        Panel(
            row,
            column,
            [Line(s.index, slots[s.index]) for s in cells.get((row, column), [])],
            _points(published, cells.get((row, column), []), colours),
        )
        for row in rows
        for column in columns
    ]
    return Layout(panels, names, looks, len(columns))


def baseline_groups(manifest: Manifest) -> list[list[int]]:
    """Settings to compare: those of one panel and one data set; all of a data set if panels hold one each."""
    settings = {s.index: s for s in manifest.settings}
    panels = [[line.setting for line in panel.lines] for panel in layout(manifest).panels]
    if all(len(panel) < 2 for panel in panels):
        panels = [list(settings)]
    groups: dict[tuple[int, str, str], list[int]] = {}
    for place, panel in enumerate(panels):
        for index in panel:
            data = settings[index].data or Data()
            groups.setdefault((place, data.name, data.checksum), []).append(index)
    return list(groups.values())


def baselines(manifest: Manifest) -> dict[int, int | None]:
    """setting -> the setting that it is tested against, or None; baselines themselves are left out.

    With chosen values (`baseline`), every other setting is tested against the one that has these values, is on the
    same data and in the same panel (panels of a chosen key aside), and shares most of the remaining values. Without,
    against the first setting of its panel.
    """
    chosen = manifest.baseline or figure_of(manifest).baseline
    if not chosen:
        return {index: group[0] for group in baseline_groups(manifest) for index in group[1:]}
    settings = manifest.settings
    matching = [setting for setting in settings if has_values(setting, chosen)]
    indices = {setting.index for setting in matching}
    return {s.index: _nearest(s, matching, manifest, chosen) for s in settings if s.index not in indices}


def has_values(setting: SettingRecord, values: dict[str, Any]) -> bool:
    return all(plain(value_of(setting, key)) == plain(value) for key, value in values.items())


def _nearest(
    setting: SettingRecord, candidates: list[SettingRecord], manifest: Manifest, chosen: dict[str, Any]
) -> int | None:
    rows, columns, lines = _keys(manifest.settings, figure_of(manifest))
    fixed = [key for key in (*rows, *columns) if key not in chosen]

    def shared(other: SettingRecord, keys: list[str]) -> int:
        return sum(plain(value_of(setting, key)) == plain(value_of(other, key)) for key in keys)

    mine = setting.data or Data()
    near = [
        other
        for other in candidates
        if (mine.name, mine.checksum) == ((other.data or Data()).name, (other.data or Data()).checksum)
        and shared(other, fixed) == len(fixed)
    ]
    rest = [key for key in lines if key not in chosen]
    return max(near, key=lambda other: shared(other, rest)).index if near else None


def _keys(settings: list[SettingRecord], figure: FigureRecord) -> tuple[list[str], list[str], list[str]]:
    """Keys of rows, columns and lines. By themselves users and data make panels, since one does not compare across
    them, and all methods are lines of one panel; with too many lines, a key that is crossed with the others too.
    """
    swept = swept_keys(settings)
    rows, columns = _listed(figure.rows), _listed(figure.columns)
    named = list(figure.lines)
    if not rows and not columns and len(swept) > 1:  # with a single key, lines in one panel compare best
        free = [key for key in swept if key not in named]
        columns = [key for key in free if key == USUAL_COLUMNS]
        rows = [key for key in free if key == USUAL_ROWS]
        if not columns:
            methods = [key for key in swept if key not in rows]
            crowded = len({_values(s, methods) for s in settings}) > MOST_LINES
            crossed = [key for key in free if key not in rows and _is_crossed(settings, key, swept)]
            columns, rows = (crossed[:1], rows) if crowded and crossed else (rows, [])
    rest = [key for key in swept if key not in {*rows, *columns, *named}]
    return rows, columns, [*named, *rest]  # a key left out would merge lines that differ


def _is_crossed(settings: list[SettingRecord], key: str, swept: list[str]) -> bool:
    """Whether every value of the key occurs with the same values of all other keys."""
    others: dict[str, set[tuple[str, ...]]] = {}
    for setting in settings:
        rest = _values(setting, [other for other in swept if other != key])
        others.setdefault(plain(value_of(setting, key)), set()).add(rest)
    return len(set(map(frozenset, others.values()))) == 1


def _values(setting: SettingRecord, keys: list[str]) -> tuple[str, ...]:
    return tuple(plain(value_of(setting, key)) for key in keys)


def _listed(keys: str | list[str]) -> list[str]:
    return [keys] if isinstance(keys, str) else keys


def _slots(settings: list[SettingRecord], keys: list[str]) -> tuple[dict[int, int], list[str], list[Look]]:
    """setting -> slot; then by slot its name (the settings' common title, else the keys' values) and look."""
    combinations = {s.index: tuple(plain(value_of(s, key)) for key in keys) for s in settings}
    order = list(dict.fromkeys(combinations.values()))
    members = [[s for s in settings if combinations[s.index] == combination] for combination in order]
    titles = [{s.title for s in group} for group in members]
    common = [next(iter(found)) if len(found) == 1 else "" for found in titles]
    if not all(common) or len(set(common)) < len(common):
        common = [described(group[0], keys) or "mean over runs" for group in members]
    slots = {index: order.index(combination) for index, combination in combinations.items()}
    return slots, common, _looks(order)


def _looks(combinations: list[tuple[str, ...]]) -> list[Look]:
    """With several keys the one with the fewest values sets the style and the others the colour.

    Lines that differ in that key only then share a colour; else colours are used up first, then styles.
    """
    values = [list(dict.fromkeys(column)) for column in zip(*combinations, strict=True)]
    varied = [key for key, found in enumerate(values) if len(found) > 1]
    key = min(varied, key=lambda key: len(values[key]), default=-1)
    if len(varied) > 1 and len(values[key]) <= STYLES:
        rest = [combination[:key] + combination[key + 1 :] for combination in combinations]
        order = list(dict.fromkeys(rest))
        if len(order) <= COLOURS:
            return [Look(order.index(r), values[key].index(c[key])) for r, c in zip(rest, combinations, strict=True)]
    return [Look(slot % COLOURS, slot // COLOURS % STYLES) for slot in range(len(combinations))]


def _heading(setting: SettingRecord, keys: list[str]) -> str:
    values = {key: value_of(setting, key) for key in keys}
    return " · ".join(spoken(key, value) for key, value in values.items() if value is not None)


def _points(published: list[Published], settings: list[SettingRecord], colours: dict[int, int]) -> list[Point]:
    points = []
    for point in published:
        owners = [s for s in settings if _belongs(point.label, s)]
        if owners:
            found = {colours[owner.index] for owner in owners}
            colour = found.pop() if len(found) == 1 else None
            points.append(Point(point.series, point.round, point.value, owners[0].index, colour))
    return points


def _belongs(label: dict[str, Any], setting: SettingRecord) -> bool:
    """All keys of the setting must match; keys that it lacks are ignored."""
    found = {key: value_of(setting, key) for key in label}
    return all(plain(label[key]) == plain(value) for key, value in found.items() if value is not None)
