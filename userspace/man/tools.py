# SPDX-License-Identifier: GPL-2.0-only
"""The pages of the command-line tools, and of the daemons' configurations: a frame, and the
tables in the source.

A line "@VERB@" of a frame becomes the verb's heading, its synopsis and what help says of it.
The options and columns of the verb follow the text behind that line. More about one of these
stands behind a line "@--OPTION@" or "@COLUMN@", and what comes after all of them behind
"@below@". A line "@tables@" or "@server@" makes the list of options that many verbs have.

In the frame of a configuration a line "@KEY@" begins what is said of a key. The key's default
stands at its end, or at a line "@default@".
"""

import ast
import glob
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from mdoc import mdoc, sentence

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
QUOTED = r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\''
GROUPS = {"server": ["server", "password-file"],
          "tables": ["json", "output", "no-headings", "bytes"]}


#
# The tables
#
class Option(NamedTuple):
    letter: str                 # "" for none
    name: str
    arg: str                    # "" for none
    help: str


class Column(NamedTuple):
    name: str
    kind: str                   # string, number or boolean, and maybe on demand
    help: str


class Verb(NamedTuple):
    name: str
    args: str
    help: str
    options: list[Option]
    tables: list[str]           # names of arrays of columns


class Tool(NamedTuple):
    name: str
    options: dict[str, Option]
    columns: dict[str, list[Column]]
    json: dict[str, str]        # the word that JSON has for an array of columns
    verbs: dict[str, Verb]


def contents(path: str) -> str:
    with open(path) as file:
        return file.read()


def tokens(text: str, macros: dict[str, str]) -> Iterator[str]:
    """The tokens of C source, with each macro replaced by its text."""
    text = re.sub(r"\bBIT\((\w+)\)", r"OPT_\1", text)
    for token in re.findall(rf"{QUOTED}|\w+|\S", text):
        if token in macros:
            yield from tokens(macros[token], macros)
        else:
            yield token


def initializer(found: Iterator[str]) -> list[Any]:
    """The values behind a brace, up to its end. A value is a list of tokens, or, if it has braces
    itself, a pair of its index and its initializer."""
    values: list[Any] = []
    value: list[str] = []
    for token in found:
        if token == "{":
            values.append((value[1] if value else "", initializer(found)))
            value = []
        elif token in (",", "}"):
            values += [value] if value else []
            value = []
            if token == "}":
                break
        else:
            value.append(token)
    return values


def rows(text: str, array: str, macros: dict[str, str]) -> list[tuple[str, list[Any]]]:
    """The index and the fields of each structure in an array."""
    found = re.search(rf"\b{array}\[\w*\] = \{{", text)
    assert found, array
    return [row for row in initializer(tokens(text[found.end():], macros)) if row[1]]


def string(value: list[str]) -> str:
    return "".join(ast.literal_eval(token) for token in value if token[0] in "\"'")


def column_of(name: list[str], flags: list[str], told: list[str]) -> Column:
    kind = "number" if "COL_NUMBER" in flags else \
        "boolean" if "COL_BOOL" in flags else "string"
    return Column(string(name), kind + (", on demand" if "COL_HIDDEN" in flags else ""),
                  string(told))


def read_tool(name: str) -> Tool:
    text = "\n".join(map(contents, [f"{SOURCE}/tool/tool.h",
                                    *sorted(glob.glob(f"{SOURCE}/{name}/*.[ch]"))]))
    text = re.sub(rf"({QUOTED})|/\*.*?\*/", r"\1", text.replace("\\\n", " "), flags=re.S)
    macros = dict(re.findall(r"^#define (\w+)[ \t]+(.+)$", text, re.M))
    options = {index: Option(*map(string, row))
               for index, row in rows(text, "option_texts", macros)}
    columns = {array: [column_of(*row) for _, row in rows(text, array, macros)]
               for array in re.findall(r"^const struct column (\w+)\[\] = ", text, re.M)}
    json = {array: word for call in re.findall(r"\bout_begin\(args, ([^)]*)\)", text)
            for array, word in zip(re.findall(r"\b\w+_columns", call),
                                   re.findall(r'"(\w+)"', call))}
    verbs = {}
    for _, (verb, args, told, bits, table, *_) in rows(text, "verbs", macros):
        tables = [word for word in table if word in columns]
        verbs[string(verb)] = Verb(string(verb), string(args), string(told),
                                   [options[bit] for bit in bits
                                    if bit.startswith("OPT_") and bit != "OPT_HELP"], tables)
    return Tool(name, options, columns, json, verbs)


#
# The page
#
def told(text: str, args: str) -> list[str]:
    """A help text as a sentence. What it ends with in parentheses is a default."""
    names = "|".join(re.findall(r"[A-Z]+", args))
    text = re.sub(rf"(?<![\w/+])({names})(?![\w/])", r"$\1", text) if names else text
    return sentence(re.sub(r" \(([^()]*)\)$", r"; by default \1", text))


def synopsis(tool: Tool, verb: Verb) -> list[str]:
    lines = [f".Ss {verb.name}", f".Nm {tool.name} {verb.name}",
             *([".Op Ar OPTION ..."] if verb.options else [])]
    for word in re.findall(r"\[.*?\](?=$| )|\S+", verb.args.replace("-- ", "--~")):
        inner = word.strip("[]").replace("...", " ...")
        macro = ".Op " if word.startswith("[") else "."
        lines.append(macro + (inner.replace("--~", "Fl - Ar ") if "~" in inner else
                              f"Ar {inner}"))
    return lines


def option_lines(options: list[Option], more: dict[str, str]) -> list[str]:
    lines = [".Bl -tag -width Ds"]
    for option in options:
        letter = f"{option.letter} , Fl " if option.letter else ""
        lines += [f".It Fl {letter}-{option.name}" + (f" Ar {option.arg}" if option.arg else ""),
                  *told(option.help, option.arg),
                  *more.pop(f"--{option.name}", "").splitlines()]
    return [*lines, ".El"]


def verb_options(tool: Tool, verb: Verb, more: dict[str, str]) -> list[str]:
    names = {option.name for option in verb.options}
    groups = [group for group, words in GROUPS.items() if names.issuperset(words)]
    own = [option for option in verb.options
           if not any(option.name in GROUPS[group] for group in groups)]
    if not groups:
        return option_lines(own, more) if own else []
    lines = [".Pp", "Options are those of"]
    for group in groups:
        lines += [f".Sx {group.upper()}", "and"]
    if own:
        return [*lines[:-1], "and these:", *option_lines(own, more)]
    lines[-2] += " ."
    return lines[:-1]


def table(tool: Tool, verb: Verb, array: str, more: dict[str, str]) -> list[str]:
    """A table that a verb above has is only named, and so are the columns that this one has
    from the table of such a verb."""
    columns, its = tool.columns[array], ["Its columns:"]
    names = list(tool.verbs)
    for other in names[:names.index(verb.name)]:
        above = tool.verbs[other].tables[:1]
        if above == [array]:
            return [".Pp", "The table is that of", f".Ic {other} ."]
        if above and columns[:len(tool.columns[above[0]])] == tool.columns[above[0]]:
            its = ["Its columns are those of", f".Ic {other}", "and:"]
            columns = columns[len(tool.columns[above[0]]):]
    lines = [".Pp", "JSON has the table as", f".Ql {tool.json[array]} .", *its,
             ".Bl -tag -width REGISTEREDx -compact"]
    for column in columns:
        lines += [f".It Cm {column.name}", *mdoc(f"{column.kind}: {column.help}")]
        if column.name in more:
            lines[-1] += " ;" if lines[-1].startswith(".") else ";"
            lines += more.pop(column.name).splitlines()
    return [*lines, ".El"]


def part(tool: Tool, name: str, more: dict[str, str]) -> list[str]:
    """The part of the page about a verb or a group of options. @more: the frame's texts for it."""
    prose, below = more.pop(name).splitlines(), more.pop("below", "").splitlines()
    verb = tool.verbs.get(name)
    if verb:
        lines = [*synopsis(tool, verb), ".Pp", *told(verb.help, verb.args), *prose,
                 *verb_options(tool, verb, more)]
        for array in verb.tables:
            lines += table(tool, verb, array, more)
    else:
        lines = [*prose, *option_lines([option for option in tool.options.values()
                                        if option.name in GROUPS[name]], more)]
    assert not more, f"{tool.name} {name} has no {' '.join(more)}"
    return [*lines, *([".Pp", *below] if below else [])]


def page(name: str, frame: str) -> str:
    tool = read_tool(name)
    lines: list[str] = []
    seen: list[str] = []
    for section in re.split(r"^(?=\.Sh )", frame, flags=re.M):
        head, *marked = re.split(r"^@([\w-]+)@\n", section, flags=re.M)
        lines += head.splitlines()
        parts: list[dict[str, str]] = []
        for marker, text in zip(marked[::2], marked[1::2]):
            if marker in tool.verbs or marker in GROUPS:
                parts.append({})
                seen.append(marker)
            parts[-1][marker] = text
        for texts in parts:
            lines += part(tool, next(iter(texts)), texts)
    assert [name for name in seen if name in tool.verbs] == list(tool.verbs), \
        f"the verbs of {tool.name} are {' '.join(tool.verbs)}"
    return "\n".join(lines) + "\n"


def configuration(daemon: str, frame: str) -> str:
    keys = {string(key): fields for _, (key, *fields) in
            rows(contents(f"{SOURCE}/daemons/{daemon}/main.c"), "keys", {})}
    seen = []

    def item(found: re.Match[str]) -> str:
        name, text = found.groups()
        seen.append(name)
        defaults = [string(value) for field in keys[name] if isinstance(field, tuple)
                    for value in field[1]]
        default = "".join(f"Default\n.{'Pa' if value.startswith('/') else 'Li'} {value} .\n"
                          for value in defaults)
        text = re.sub("@default@\n|\\Z", default, text, count=1)
        live = any("CONFIG_LIVE" in field for field in keys[name])
        if live and "Reloaded" not in text:
            text += "Reloaded.\n"
        return f".It Cm {name}\n{text}"

    text = re.sub(r"^@([\w-]+)@\n((?:(?!@(?!default@)|\.Sh ).*\n)*)", item, frame, flags=re.M)
    assert sorted(seen) == sorted(keys), f"the keys of {daemon} are {' '.join(keys)}"
    return re.sub(r"^(The keys:\n)(.*?)(?=^\.Sh )", r"\1.Bl -tag -width Ds\n\2.El\n", text,
                  flags=re.M | re.S)
