"""Shows an episode: as coloured text for a terminal, or as one HTML page without scripts."""

from __future__ import annotations

from html import escape

from ec2_env.session import Session
from ec2_env.trace import CloudCall, Decided, EdgeTurn, Ended, Event, Exposed, ToolRan

DECISION_NAMES = ("edge", "plan", "advise", "advise, redacted", "act", "act, redacted")
_RESET, _BOLD, _DIM = "\x1b[0m", "\x1b[1m", "\x1b[2m"
_RED, _GREEN, _YELLOW, _BLUE = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"


def render_ansi(session: Session) -> str:
    """Returns the episode so far, with what crossed to the cloud in colour: exposed values in red."""
    lines = [f"{_BOLD}{session.episode.task.title}{_RESET} ({session.episode.key})", session.episode.instruction, ""]
    for event in session.events:
        lines += ansi_lines(event)
    return "\n".join(lines)


def inert(text: str) -> str:
    """Returns text without control characters, which could move the cursor or rewrite what a terminal shows."""
    return "".join(c if c >= " " and c != "\x7f" and not "\x80" <= c < "\xa0" else "?" for c in text)


def ansi_lines(event: Event, width: int = 160) -> list[str]:
    """Returns the lines that show one event."""
    match event:
        case Decided():
            return [f"{_DIM}step {event.step}: {DECISION_NAMES[event.decision]}{_RESET}"]
        case ToolRan():
            mark = f"{_GREEN}ok{_RESET}" if event.ok else f"{_RED}refused{_RESET}"
            arguments = ", ".join(f"{name}={value!r}" for name, value in event.arguments.items())
            called = f"  {event.by} calls {_BOLD}{inert(event.name)}{_RESET}({cut(arguments, width)}) {mark}"
            return [called, f"    {_DIM}{cut(event.result, width)}{_RESET}"]
        case CloudCall():
            return _cloud_lines(event, width)
        case EdgeTurn():
            return []
        case Ended():
            colour = _GREEN if event.status == "pass" else _RED
            checks = ", ".join(f"{name} {score:g}" for name, score in event.checks.items())
            return [f"{colour}{event.status}{_RESET}: completion {event.completion:.2f} ({checks}; {event.strays} stray changes)"]


def _cloud_lines(event: CloudCall, width: int) -> list[str]:
    kind = f"{event.mode}, shares {event.share}{', redacted' if event.redact else ''}"
    if event.status != "ok":
        return [f"  {_YELLOW}cloud: {kind}: {event.status}: {cut(event.problem, width)}{_RESET}"]
    tokens = f"{event.tokens_raw} raw + {event.tokens_cached} cached + {event.tokens_out} out tokens, ${float(event.usd):.4f}"
    lines = [f"  {_YELLOW}cloud: {kind}{_RESET} {_DIM}({tokens}){_RESET}"]
    for position, text in event.sent:
        spans = [(e.start, e.end) for e in event.exposures if e.text == position]
        if spans:
            lines.append(f"    {_BLUE}crossed:{_RESET} {_around(text, spans, width)}")
    lines += [f"    {_RED}exposed {e.unit} at {e.level} ({e.form}){_RESET}" for e in event.exposures]
    lines.append(f"    {_YELLOW}reply:{_RESET} {cut(event.reply, width)}")
    return lines


def _around(text: str, spans: list[tuple[int, int]], width: int) -> str:
    """Returns the neighborhood of each exposed span, the span itself in red."""
    pieces = []
    for start, end in sorted(spans):
        left, right = max(0, start - 30), min(len(text), end + 30)
        pieces.append(f"…{inert(text[left:start])}{_RED}{inert(text[start:end])}{_RESET}{inert(text[end:right])}…")
    return " ".join(pieces)[: width * 4]


def cut(text: str, width: int) -> str:
    """Returns one line of at most `width` characters."""
    flat = inert(" ".join(text.split()))
    return flat if len(flat) <= width else flat[: width - 1] + "…"


_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2733;background:#fff}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f4f6f8;padding:.6rem;border-radius:6px;margin:.3rem 0}
.cloud{border-left:4px solid #d08700;padding-left:.8rem}.edge{border-left:4px solid #2b7a78;padding-left:.8rem}
mark{background:#ffd0d0;color:#8a0f0f}.bad{color:#a11}.good{color:#17692c}section{margin:1rem 0}
"""


def render_html(session: Session) -> str:
    """Returns the episode so far as a self-contained page."""
    parts = [html_part(event) for event in session.events]
    episode = session.episode
    return (
        f'<!doctype html><html lang="{episode.language}"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width">'
        f"<title>{escape(episode.key)}</title><style>{_STYLE}</style></head><body><h1>{escape(episode.task.title)}</h1>"
        f"<p>{escape(episode.key)}</p><pre>{escape(episode.instruction)}</pre>{''.join(parts)}</body></html>"
    )


def html_part(event: Event) -> str:
    """Returns the HTML that shows one event."""
    match event:
        case Decided():
            return f"<h3>Step {event.step}: {DECISION_NAMES[event.decision]}</h3>"
        case ToolRan():
            side = "cloud" if event.by == "cloud" else "edge"
            mark = '<span class="good">ok</span>' if event.ok else '<span class="bad">refused</span>'
            arguments = escape(", ".join(f"{name}={value!r}" for name, value in event.arguments.items()))
            called = f"{event.by} calls <b>{escape(event.name)}</b>({arguments}) {mark}"
            return f'<section class="{side}">{called}<pre>{escape(event.result)}</pre></section>'
        case CloudCall():
            return _cloud_part(event)
        case EdgeTurn():
            return ""
        case Ended():
            style = "good" if event.status == "pass" else "bad"
            rows = "".join(f"<li>{escape(name)}: {score:g}</li>" for name, score in event.checks.items())
            head = f'<h2 class="{style}">{event.status}: completion {event.completion:.2f}</h2>'
            return f"{head}<ul>{rows}<li>stray changes: {event.strays}</li></ul>"


def _cloud_part(event: CloudCall) -> str:
    kind = escape(f"{event.mode}, shares {event.share}{', redacted' if event.redact else ''}, {event.status}")
    sent = "".join(f"<pre>{_marked(text, [e for e in event.exposures if e.text == i])}</pre>" for i, text in event.sent)
    return (
        f'<section class="cloud"><b>cloud</b>: {kind}; {event.tokens_raw} raw + {event.tokens_cached} cached + '
        f"{event.tokens_out} out tokens, ${float(event.usd):.4f}<details><summary>{len(event.sent)} new texts crossed, "
        f"{len(event.exposures)} exposures</summary>{sent}</details>"
        f"<pre>{escape(event.reply or event.problem)}</pre></section>"
    )


def _marked(text: str, exposures: list[Exposed]) -> str:
    spans = sorted((e.start, e.end) for e in exposures)
    shown, position = "", 0
    for start, end in spans:
        if start < position:
            continue
        shown += escape(text[position:start]) + f"<mark>{escape(text[start:end])}</mark>"
        position = end
    return shown + escape(text[position:])
