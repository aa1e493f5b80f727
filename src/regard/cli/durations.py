"""Durations, ages and rates as a reader takes them in at a glance."""

UNITS = (("days", 86_400), ("h", 3_600), ("min", 60))


def format_clock(seconds: float) -> str:
    """Hours, minutes and seconds; days where there are any.

    >>> format_clock(3725.2), format_clock(65.0), format_clock(200_000.0)
    ('1:02:05', '1:05', '2 days 7:33:20')
    """
    whole = max(0, round(seconds))
    days, hours, minutes = whole // 86_400, whole % 86_400 // 3600, whole % 3600 // 60
    said = f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours or days else f"{minutes}:{whole % 60:02d}"
    return f"{days} day{'' if days == 1 else 's'} {said}" if days else said


def format_age(seconds: float) -> str:
    """How long ago something was, in its largest unit.

    >>> format_age(3.0), format_age(61.0), format_age(7300.0), format_age(200_000.0)
    ('just now', '1 min ago', '2 h ago', '2 days ago')
    """
    for name, size in UNITS:
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {'day' if (name, count) == ('days', 1) else name} ago"
    return "just now"


def format_rate(rate: float) -> str:
    """A number per second in at most five characters.

    >>> [format_rate(rate) for rate in (0.0417, 3.14159, 87.2, 812.4, 8213.0, 99_960.0, 4_200_000.0)]
    ['0.042', '3.14', '87.2', '812', '8.2k', '100k', '4.2M']
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if rate >= 0.9995 * size:
            return f"{rate / size:.1f}{letter}" if rate < 99.95 * size else f"{rate / size:.0f}{letter}"
    return f"{rate:.0f}" if rate >= 99.95 else f"{rate:.3g}" if rate >= 0.1 else f"{rate:.2g}"
