# SPDX-License-Identifier: GPL-2.0-only
"""Sentences of headers and tables as mdoc. This knows no header, table or page."""

import re

MACROS = {
    "Fa": r"@(\w+)",
    "Ar": r"\$([A-Z]+)",
    "Er": r"%(E[A-Z0-9]+)",
    "Vt": r"((?:struct|enum)~timewheel_\w+)",
    "Xr": r"([\w-]+)\((\d)\)",
    "Ic": r"(sizeof)\(\)",
    "Pa": r"(/dev/[\w/]+)",
    "Fl": r"\\-((?:\\-)?[A-Za-z][a-z-]*)",    # -J or --json
    "Ql": r"'([\w-]+)'",
    "Dv": r"((?:TIMEWHEEL|CLOCK|CAP|O|RWF)_[A-Z_]+|EPOLL[A-Z]+)",
}


def marked(word: str) -> str:
    """A word as a line with its macro, or as it was."""
    for macro, pattern in MACROS.items():
        found = re.fullmatch(rf"([(]*){pattern}([.,:;)]*)((?<!\W)'s?[.,:;)]*)?", word)
        if found:
            before, *core, after, rest = found.groups()
            name = " ".join(core).replace("~", " ")
            name = f'"{name}"' if macro == "Vt" else name
            rest = f"Ns {rest}" if rest else ""
            return " ".join([f".{macro}", *before, name, *after, rest]).strip()
    return word.replace("~", " ")


def mdoc(text: str) -> list[str]:
    """Sentences, each on lines of its own."""
    text = re.sub(r"(struct|enum)\s+(?=timewheel_)", r"\1~", " ".join(text.split()))
    text = re.sub(r"(?<![\w\"])-", r"\\-", text)
    lines: list[str] = []
    for sentence in re.split(r"(?<=\.) ", text):
        plain: list[str] = []
        for word in [*map(marked, sentence.split(" ")), "."]:
            if not word.startswith("."):
                plain.append(word)
                continue
            while plain:
                length = len(plain)
                while length > 1 and len(" ".join(plain[:length])) > 79:
                    length -= 1
                lines.append(" ".join(plain[:length]))
                del plain[:length]
            lines.append(word)
        del lines[-1]
    return lines


def sentence(text: str) -> list[str]:
    """As mdoc, with a capital and a full stop."""
    text = text.strip().rstrip(".") + "."
    return mdoc(text if text.startswith("sizeof") else text[:1].upper() + text[1:])
