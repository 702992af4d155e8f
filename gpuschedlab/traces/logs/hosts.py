"""Lists of nodes with ranges, as managers write them."""

import re

from gpuschedlab.errors import TraceError

MOST_NODES = 100_000


def hosts(text: str, source: str = "nodes") -> tuple[str, ...]:
    """Return a tuple of the names of nodes in a list with ranges."""
    wrong = TraceError(f"{source}: found {text[:80]!r}; expected nodes such as node[01-16,20],login.")
    host_names: list[str] = []
    for host_word in re.findall(r"(?:\[[^\]]*\]|[^,\[\]])+|[\[\]]", text):
        range_names = [""]
        for name_part in re.findall(r"\[[^\]]*\]|[^\[\]]+|[\[\]]", host_word.strip()):
            if name_part in "[]":
                raise wrong
            choices = [name_part]
            if name_part[0] == "[":
                choices = _ranges(name_part[1:-1], wrong)
            range_names = [a + b for a in range_names for b in choices]
            if len(range_names) > MOST_NODES:
                raise wrong
        host_names += [host_name for host_name in range_names if host_name]
    return tuple(host_names)


def _ranges(text: str, wrong: TraceError) -> list[str]:
    """Return a list of the numbers (texts) of ranges with commas between them; `wrong` is raised if one of them is no range."""
    numbers: list[str] = []
    for range_text in text.split(","):
        numbers += _range(range_text.strip(), wrong)
    return numbers


def _range(text: str, wrong: TraceError) -> list[str]:
    match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", text)
    first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
    if not 0 <= int(last) - int(first) < MOST_NODES:
        raise wrong
    return [str(i).zfill(len(first)) for i in range(int(first), int(last) + 1)]
