from types import SimpleNamespace

from models import catalogue
from tensorq_engines.tensorrt.builder.parse_errors import describe_errors


def error(node, words, code="UNSUPPORTED_NODE", **more):
    methods = {"node": node, "desc": words, "code": SimpleNamespace(name=code), **more}
    return SimpleNamespace(**{name: (lambda value=value: value) for name, value in methods.items()})


def test_new_parsers_tell_name_and_operator():
    text = describe_errors([error(3, "no plugin", node_name="odd", node_operator="Mystery")], [])
    assert text == ["node 3 Mystery 'odd': unsupported node: no plugin"]


def test_old_parsers_tell_the_index_alone_and_the_graph_tells_the_rest():
    nodes = catalogue.mlp().graph.node
    assert describe_errors([error(1, "false")], nodes) == ["node 1 Add -> 'h2': unsupported node"]


def test_errors_without_a_node_and_repetitions():
    errors = [error(-1, "bad file", "MODEL_DESERIALIZE_FAILED")] * 2
    assert describe_errors(errors, []) == ["model deserialize failed: bad file"]
