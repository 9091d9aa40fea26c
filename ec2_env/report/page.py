"""Puts the page together: one file, without scripts and without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources

from ec2_env.report.failures import failures
from ec2_env.report.figures import Plot
from ec2_env.report.headline import findings, header
from ec2_env.report.leaks import leaks
from ec2_env.report.markup import Content, Markup, Viewer, joined, scrolled, section, tag
from ec2_env.report.naming import Naming
from ec2_env.report.palette import DARK, FONTS, LIGHT, variables
from ec2_env.report.run import Run
from ec2_env.report.tables import category_table, endings_table, language_table, main_table

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
PARETO = (
    "Means with 95% intervals. A shape and a color for each kind of strategy, hollow for its variant; the size says which edge "
    "model works."
)


def page(run: Run, naming: Naming, drawn: Sequence[Plot], viewer: Viewer, footer: Sequence[str] = ()) -> str:
    """Returns the page.

    Args:
        run: What it is about.
        naming: Names of the rows.
        drawn: Plots, by their names in `figures`.
        viewer: Makes links to episodes.
        footer: Remarks on the files beside the page.
    """
    found = {plot.name: plot for plot in drawn}
    parts: list[tuple[str, str, Sequence[Content]]] = [
        ("glance", "At a glance", [findings(run, naming)]),
        ("table", "Table", [main_table(naming)]),
        ("pareto", "Trade-offs", [_figure(found, name, PARETO) for name in ("utility-privacy", "utility-cost")]),
        ("categories", "By category", _categories(run, naming, found)),
        ("languages", "By language", [language_table(run, naming)]),
        ("leaks", "What leaked where", [_figure(found, "leaks-kind", _LEVELS), leaks(run, naming, viewer)]),
        ("failures", "Failures", [failures(run, naming, viewer)]),
        ("endings", "How episodes ended", [endings_table(run, naming, viewer)]),
    ]
    links = [tag("li", tag("a", heading, href=f"#{anchor}")) for anchor, heading, _ in parts]
    body = joined(
        tag("a", "Skip to the table", href="#table", class_="skip"),
        header(run),
        tag("nav", tag("ul", *links), aria_label="Parts of this page"),
        tag("main", *(section(anchor, heading, *content) for anchor, heading, content in parts)),
        tag("footer", *(tag("p", one, class_="soft") for one in [_episodes(viewer), *footer] if one)),
    )
    return _document(f"{run.name}: EC2-Env report", body)


_MEANS = "Means over the episodes of a category. Few episodes mean wide intervals: see the table below."
_LEVELS = (
    "Of the sensitive values that an episode saw: the share that crossed, by level (1 in full, 0.7 most of it, 0.3 a fragment). "
    "Rows that saw different values are compared on different values."
)


def _categories(run: Run, naming: Naming, found: dict[str, Plot]) -> list[Content]:
    parts: list[Content] = []
    for figure, about in (("completion", "Completion by category"), ("privacy", "Privacy by category")):
        if f"category-{figure}" in found:
            parts += [_figure(found, f"category-{figure}", _MEANS), category_table(run, naming, figure, about)]
    return parts


def _figure(found: dict[str, Plot], name: str, caption: str) -> Markup:
    if name not in found:
        return Markup("")
    plot = found[name]
    return tag("figure", tag("h3", plot.title), scrolled(plot.title, Markup(plot.svg)), tag("figcaption", caption))


def _episodes(viewer: Viewer) -> str:
    if viewer.base is not None:
        return ""
    return "Lines are those of results.jsonl. With --viewer this page links to the recorded steps of these episodes."


def _document(title: str, body: Markup) -> str:
    style = resources.files("ec2_env.report").joinpath("report.css").read_text(encoding="utf-8").replace("FONTS", FONTS)
    colors = f":root{{color-scheme:light dark;{variables(LIGHT)}}}"
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY, quote=True)}">'
        f"<title>{escape(title)}</title><style>{colors}\n{dark}\n{style}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'
