"""YAML 1.2 to plain data and back, with errors that a person can act on.

`ryaml` parses (it refuses duplicate keys, alias bombs and deep nesting, and keeps dates as text). PyYAML, 35 ms to
import, writes, and finds the line of an error where `ryaml` does not tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import ryaml

# A file may grow by its aliases to this many characters; ryaml counts repetitions, but not how long each one is.
MAX_EXPANDED_CHARACTERS: Final = 32_000_000
# A text with more is looked at first: ryaml goes through all of it before it finds it too deep, in a time that is the
# product of length and depth. Indentation has no such price.
_MANY_BRACKETS: Final = 500

_ANCHOR: Final = re.compile(r"(?<![^\s\[{,:-])&(?=[^\s&])([\w-]*)")
_ALIAS: Final = re.compile(r"(?<![^\s\[{,:-])\*(?=[^\s*])([\w-]*)")
_TAG: Final = re.compile(r"(?<![^\s\[{,])![\w<]")
_PLAIN_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # PyYAML quotes those that YAML takes for a boolean or null


def load_documents(text: str) -> list[object]:
    """All YAML documents of a text, as plain dicts, lists and scalars; an empty text holds none.

    Dates stay text. Raises InputFileError with line and column for whatever is not YAML, and for what we refuse:
    duplicate keys, tags of an application, merge keys, and aliases that blow up.
    """
    if _may_expand(text) or text.count("[") + text.count("{") > _MANY_BRACKETS:
        from guarantee_email_agent.files import yaml_errors  # only for the rare file with aliases or many brackets

        yaml_errors.refuse_huge_expansion_and_depth(text, MAX_EXPANDED_CHARACTERS)
    try:
        documents: list[object] | None = ryaml.loads_all(text)  # type: ignore[attr-defined]  # its stubs forget to re-export
    except ValueError as error:
        from guarantee_email_agent.files import yaml_errors  # only when something is wrong

        raise yaml_errors.explain(text, error) from None
    if documents is None or documents == [None]:
        return []
    if ("<<" in text or ("!" in text and _TAG.search(text))) and _has_merge_or_tag(documents):
        from guarantee_email_agent.files import yaml_errors  # only when something is wrong

        yaml_errors.refuse_merges_and_tags(text)
    return documents


def dump(data: Mapping[str, Any]) -> str:
    """One YAML document that `load_documents` reads back to the same data; a text of several lines is a literal block.

    Texts with tabs, trailing blanks or other white space that a block could lose are quoted. Raises yaml.YAMLError for
    what is neither a scalar, a list nor a dict.
    """
    import yaml  # 35 ms, and only what is recorded is written

    class Dumper(yaml.SafeDumper):  # not libyaml's, which writes an emoji as an escape
        def ignore_aliases(self, _data: object) -> bool:
            return True

    def represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = None if _PLAIN_WORD.fullmatch(text) else "|" if _is_block(text) else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    Dumper.add_representer(str, represent_text)
    return yaml.dump(data, Dumper=Dumper, allow_unicode=True, sort_keys=False, width=float("inf"))


def locate(text: str, path: tuple[str | int, ...]) -> int | None:
    """The line (from 1) of the key or list item at a path, in the first document that has one. Slow."""
    from guarantee_email_agent.files import yaml_errors

    return next((node.line for node in yaml_errors.nodes(text) if node.path == path), None)


def _may_expand(text: str) -> bool:
    """Whether an alias may name an anchor of the text. `&nbsp;` and `/* … */` of HTML do not name each other."""
    return "&" in text and "*" in text and not set(_ANCHOR.findall(text)).isdisjoint(_ALIAS.findall(text))


def _is_block(text: str) -> bool:
    # PyYAML ends lines at these, YAML 1.2 does not.
    return "\n" in text.strip("\n") and not any(sign in text for sign in "\x85\u2028\u2029")


def _has_merge_or_tag(documents: list[object]) -> bool:
    waiting: list[object] = [documents]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "<<" in value or (len(value) == 1 and str(next(iter(value))).startswith("!")):
                return True
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return False
