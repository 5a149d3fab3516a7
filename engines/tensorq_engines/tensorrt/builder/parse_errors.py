"""The parser's errors as people read them. Pure, but for reading the parser's error objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

SILENT_WORDS = ("", "false")


def describe_errors(errors: Iterable[Any], nodes: Sequence[Any]) -> list[str]:
    """Returns one line for each ``IParserError``: the node, its operator, the parser's words.

    Args:
        errors: as the parser gives them.
        nodes: the nodes of the graph that was parsed, for parsers that tell the index alone.
    """
    return list(dict.fromkeys(_describe(error, nodes) for error in errors))


def _describe(error: Any, nodes: Sequence[Any]) -> str:
    index = error.node()
    node = nodes[index] if 0 <= index < len(nodes) else None
    name = _call(error, "node_name") or (node.name if node is not None else "")
    operator = _call(error, "node_operator") or (node.op_type if node is not None else "")
    code = _code(error.code())
    words = error.desc().strip()
    said = code if words in SILENT_WORDS else f"{code}: {words}"
    if not operator:
        return said
    made = f" -> {', '.join(map(repr, node.output))}" if node is not None and not name else ""
    return f"node {index} {operator}{f' {name!r}' if name else made}: {said}"


def _call(error: Any, method: str) -> str:
    # TensorRT 8.6 has neither name nor operator.
    return str(getattr(error, method)()) if hasattr(error, method) else ""


def _code(code: Any) -> str:
    # In 8.6 the enumeration's `name` is a method.
    name = getattr(code, "name", code)
    text = str(name() if callable(name) else name)
    return text.rpartition(".")[2].lower().replace("_", " ")
