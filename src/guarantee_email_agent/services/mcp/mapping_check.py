"""What of a mapping does not fit the tools that a server offers, by the schemas that it declares for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from guarantee_email_agent.config.mcp_server import AnswerForm, OwnTool, ToolMapping
from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.services.mcp.mcp_connection import OfferedTool
from guarantee_email_agent.utils.field_path import Step, parse_field_path, put_at
from guarantee_email_agent.utils.text import printable, truncate

MAX_NAMES: Final = 20
MAX_COMPARED: Final = 500
_WITH_FIELDS: Final = ("properties", "$ref", "anyOf", "oneOf", "allOf")
MAX_SCHEMAS: Final = 200
"""That one step may lead to: a hostile schema refers to itself, and from there to itself again."""

_Schema: TypeAlias = Mapping[str, Any]
_FORMS: Final = {
    "text": frozenset({"string", "integer"}),
    "text_or_number": frozenset({"string", "number", "integer"}),
    "list": frozenset({"array"}),
}
_WRITTEN: Final = {"number": "integer", "text": "string"}


@dataclass(frozen=True, slots=True)
class Misfit:
    """path: of the key in `tools` that does not fit."""

    path: tuple[str, ...]
    message: str


def find_misfits(
    mappings: Mapping[str, ToolMapping], own_tools: Mapping[str, OwnTool], offered: Mapping[str, OfferedTool]
) -> list[Misfit]:
    """All of them, in the order of the mapping."""
    found: list[Misfit] = []
    for name, mapping in mappings.items():
        tool = offered.get(mapping.tool)
        if tool is None:
            hint = suggestion(mapping.tool, list(offered)[:MAX_COMPARED])
            others = f"{' It' if hint else '; it'} offers {_listed(offered) or 'nothing'}"
            found.append(Misfit((name, "tool"), f"the server offers no tool {mapping.tool!r}{hint}{others}"))
            continue
        found += (Misfit((name, *misfit.path), misfit.message) for misfit in _arguments(mapping, own_tools[name], tool))
        found += (Misfit((name, *misfit.path), misfit.message) for misfit in _answer(mapping, own_tools[name], tool))
    return found


def _arguments(mapping: ToolMapping, own: OwnTool, tool: OfferedTool) -> Iterator[Misfit]:
    root = tool.input_schema
    skeleton: dict[str, Any] = {}
    placed: set[str] = set()
    for name, target in mapping.targets.items():
        for path in target.paths:
            where, what, steps = ("arguments", name), f"{path} of {tool.name}", parse_field_path(path)
            if path not in placed:
                placed.add(path)
                put_at(skeleton, steps, None)
            schemas = _schemas_at(root, steps)
            if not schemas:
                yield Misfit(where, _unknown(tool, root, steps, path))
            elif target.values and path not in mapping.joined_paths:
                for value in target.values.values():
                    yield from _value_misfit((*where, "values"), what, schemas, value)
            else:
                written = own.arguments.get(name, "string") if target.form is None else _WRITTEN[target.form]
                written = "string" if path in mapping.joined_paths else written
                yield from _type_misfit(where, what, schemas, {written}, "; `as` or `values` may translate it")
    for path, value in mapping.constants.items():
        steps = parse_field_path(path)
        put_at(skeleton, steps, value)
        if schemas := _schemas_at(root, steps):
            yield from _value_misfit(("constants", path), f"{path} of {tool.name}", schemas, value)
        else:
            yield Misfit(("constants", path), _unknown(tool, root, steps, path))
    yield from _missing(tool, root, skeleton)


def _missing(tool: OfferedTool, root: _Schema, skeleton: Mapping[str, Any]) -> Iterator[Misfit]:
    """Arguments that the tool needs and nothing provides, in the objects that we build, too."""
    waiting: list[tuple[tuple[Step, ...], Any]] = [((), skeleton)]
    while waiting:
        path, built = waiting.pop()
        if isinstance(built, list):
            waiting += [((*path, index), item) for index, item in enumerate(built)]
        if not isinstance(built, Mapping):
            continue
        schemas = _schemas_at(root, path)
        # Of alternatives it is enough to fit one.
        lacks = [
            [name for name in schema.get("required", ()) if isinstance(name, str) and name not in built]
            for schema in schemas
            if isinstance(schema.get("required", ()), list | tuple)
        ]
        if lacks and all(lacks):
            prefix = "".join(f"[{step}]" if isinstance(step, int) else f"{step}." for step in path)
            names = ", ".join(_shown(f"{prefix}{name}") for name in min(lacks, key=len)[:MAX_NAMES])
            yield Misfit(("arguments",), f"{tool.name} needs {names}, which nothing is passed for")
        waiting += [((*path, name), item) for name, item in built.items()]


def _answer(mapping: ToolMapping, own: OwnTool, tool: OfferedTool) -> Iterator[Misfit]:
    root = tool.output_schema
    if root is None:
        return
    paths: list[tuple[tuple[str, ...], str, AnswerForm | None]] = []
    for name, source in mapping.sources.items():
        paths.append((("result", name), source.path, None if source.values else own.answer[name]))
        for item, path in source.each.items():
            below = "" if path == "." else path if path.startswith("[") else f".{path}"
            paths.append((("result", name, "each", item), f"{source.path.rstrip('.')}[0]{below}", own.items[item]))
    for where, path, form in paths:
        schemas = _schemas_at(root, parse_field_path(path))
        if not schemas:
            yield Misfit(where, f"the answer of {tool.name} has no {path}, by what it declares")
        elif form is not None:
            yield from _type_misfit(where, f"{path} in the answer of {tool.name}", schemas, _FORMS[form])
    if mapping.not_found and (empty := mapping.not_found.empty) and not _schemas_at(root, parse_field_path(empty)):
        yield Misfit(("not_found", "empty"), f"the answer of {tool.name} has no {empty}, by what it declares")


def _type_misfit(
    where: tuple[str, ...], what: str, schemas: Sequence[_Schema], ours: AbstractSet[str], remedy: str = ""
) -> Iterator[Misfit]:
    types = _types(schemas)
    if types and types.isdisjoint(ours | ({"number"} if "integer" in ours else set())):
        declared = " or ".join(sorted(map(_shown, types)))
        yield Misfit(where, f"{what} is {declared}, and not {' or '.join(sorted(ours))}{remedy}")


def _value_misfit(where: tuple[str, ...], what: str, schemas: Sequence[_Schema], value: Any) -> Iterator[Misfit]:
    if misfits := list(_type_misfit(where, what, schemas, {_kind(value)})):
        yield from misfits
        return
    choices = [schema["enum"] for schema in schemas if isinstance(schema.get("enum"), list)]
    choices += [[schema["const"]] for schema in schemas if "const" in schema]
    if choices and len(choices) == len(schemas) and not any(value in each for each in choices):
        listed = _listed(str(choice) for each in choices for choice in each)
        yield Misfit(where, f"{what} is none of its values; they are {listed}")


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case None:
            return "null"
    return "array" if isinstance(value, list | tuple) else "object"


def _types(schemas: Sequence[_Schema]) -> set[str]:
    """Those declared; none where one of the schemas takes anything."""
    found: set[str] = set()
    for schema in schemas:
        match schema.get("type"):
            case str(one):
                found.add(one)
            case [*several] if all(isinstance(each, str) for each in several):
                found.update(several)
            case _ if isinstance(schema.get("enum"), list):
                found.update(map(_kind, schema["enum"]))
            case _ if "const" in schema:
                found.add(_kind(schema["const"]))
            case _:
                return set()
    return found


def _unknown(tool: OfferedTool, root: _Schema, path: Sequence[Step], shown: str) -> str:
    """That the tool has no such argument, and which it has where the path goes wrong."""
    for length in range(len(path)):
        if not _schemas_at(root, path[: length + 1]):
            names = [name for schema in _schemas_at(root, path[:length]) for name in _properties(schema)]
            hint = suggestion(path[length], names[:MAX_COMPARED]) or f"; it takes {_listed(names) or 'none'}"
            return f"{tool.name} has no argument {shown}{hint}"
    return f"{tool.name} has no argument {shown}"


def _schemas_at(root: _Schema, path: Sequence[Step]) -> list[_Schema]:
    """What a value at a path may be, as alternatives; empty where the schema has no room for it."""
    found = _alternatives(root, root)
    for step in path:
        following: list[_Schema] = []
        for schema in found:
            following += _below_schema(schema, step)
        found = [each for schema in following[:MAX_SCHEMAS] for each in _alternatives(schema, root)][:MAX_SCHEMAS]
    return found


def _below_schema(schema: _Schema, step: Step) -> list[_Schema]:
    types = _types([schema])
    if isinstance(step, int):
        if types and types.isdisjoint({"array", "string"}):  # a text may be JSON
            return []
        items = schema.get("items", {})
        return [items if isinstance(items, Mapping) else {}]
    if types and types.isdisjoint({"object", "string"}):
        return []
    properties = _properties(schema)
    if step in properties:
        below = properties[step]
        return [below if isinstance(below, Mapping) else {}]
    if schema.get("patternProperties"):
        return [{}]
    further = schema.get("additionalProperties")
    if isinstance(further, Mapping):
        return [further]
    # What a schema with properties does not name is most likely a mistake, even where it is not forbidden.
    return [{}] if further is True or "properties" not in schema else []


def _properties(schema: _Schema) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _alternatives(schema: _Schema, root: _Schema) -> list[_Schema]:
    """A schema and those that it refers to or is made of (`anyOf`, `oneOf`, `allOf`); nulls are left out."""
    found: list[_Schema] = []
    waiting: list[Any] = [schema]
    for _ in range(MAX_SCHEMAS):
        if not waiting:
            break
        one = waiting.pop(0)
        if not isinstance(one, Mapping) or one.get("type") == "null":
            continue
        parts = [part for key in ("anyOf", "oneOf", "allOf") if isinstance(one.get(key), list) for part in one[key]]
        if isinstance(reference := one.get("$ref"), str):
            parts.append(_referred(reference, root))
        if "properties" in one:
            found.append(one)
            # A part without fields, such as another list of what is required, does not allow every field.
            parts = [part for part in parts if isinstance(part, Mapping) and not part.keys().isdisjoint(_WITH_FIELDS)]
        elif not parts:
            found.append(one)
        waiting += parts
    return found


def _referred(reference: str, root: _Schema) -> Any:
    """What a reference within the document means; anything for one that leads out of it."""
    place: Any = root
    if reference != "#" and not reference.startswith("#/"):
        return {}
    for part in reference[1:].split("/")[1:20]:
        place = place.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
    return place if isinstance(place, Mapping) else {}


def _listed(names: Any) -> str:
    listed = list(dict.fromkeys(names))
    shown = ", ".join(map(_shown, listed[:MAX_NAMES]))
    return f"{shown}, …" if len(listed) > MAX_NAMES else shown


def _shown(name: object) -> str:
    return truncate(printable(str(name)), 60)
