"""Colors, for light and dark, and fonts.

Colors of series have the hues of Okabe and Ito ("Color Universal Design", 2008), which people with any of the common color
deficiencies can tell apart, darkened for white and lightened for dark paper; shapes say the same again.
"""

from __future__ import annotations

FONTS = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', Arial, 'Noto Sans CJK SC', 'Noto Sans SC', "
    "'PingFang SC', 'Hiragino Sans GB', 'Microsoft YaHei', 'WenQuanYi Micro Hei', sans-serif"
)
_SERIES_LIGHT = ("#0072b2", "#d55e00", "#00795c", "#b0468a", "#976200", "#6b4fbb", "#5c5c5c", "#2b83b3")
_SERIES_DARK = ("#56b4e9", "#ff8c4a", "#3fd0a4", "#e59bc8", "#f0b840", "#b7a3ff", "#c4c4c4", "#a5daff")
COLORS = len(_SERIES_LIGHT)
LIGHT = {
    "paper": "#ffffff",
    "ink": "#1b1f24",
    "soft": "#57606a",
    "rule": "#d8dee4",
    "band": "#f3f5f8",
    "accent": "#0b5cad",
    "warn": "#8a4600",
    **{f"s{number}": color for number, color in enumerate(_SERIES_LIGHT)},
}
DARK = {
    "paper": "#14171b",
    "ink": "#e8eaed",
    "soft": "#a3abb4",
    "rule": "#39414a",
    "band": "#1d2228",
    "accent": "#7db8f5",
    "warn": "#f0b070",
    **{f"s{number}": color for number, color in enumerate(_SERIES_DARK)},
}
EVEN = 0.179
"""Luminance on which black and white can be read equally well."""
SCALE = ("#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b")
"""From low to high, one hue (ColorBrewer's "Blues")."""


def variables(colors: dict[str, str]) -> str:
    """Returns the colors as declarations of CSS variables."""
    return "".join(f"--{name}:{color};" for name, color in colors.items())


def shade(share: float) -> tuple[str, str]:
    """Returns the color for a share of the scale, 0 to 1, and black or white, whichever can be read on it."""
    place = min(max(share, 0.0), 1.0) * (len(SCALE) - 1)
    low = min(int(place), len(SCALE) - 2)
    one, other = (_channels(SCALE[low + step]) for step in (0, 1))
    mixed = [round(a + (b - a) * (place - low)) for a, b in zip(one, other, strict=True)]
    return "#" + "".join(f"{value:02x}" for value in mixed), "#000000" if _luminance(mixed) > EVEN else "#ffffff"


def _channels(color: str) -> list[int]:
    return [int(color[start : start + 2], 16) for start in (1, 3, 5)]


def _luminance(channels: list[int]) -> float:
    """Returns relative luminance, 0 to 1, as WCAG 2.2 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (value / 255 for value in channels)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
