from hypothesis import given
from hypothesis import strategies as st

from tensorq_engines.sizing.kernels import Step, fuse
from tensorq_engines.sizing.liveness import peak_bytes


def steps(text):
    """Reads lines of ``out = Kind a b``."""
    found = []
    for line in text.strip().splitlines():
        made, _, call = line.partition(" = ")
        kind, *reads = call.split()
        found.append(Step(kind, tuple(reads), (made.strip(),)))
    return found


RESIDUAL = """
    a = Conv x
    b = Relu a
    c = Conv b
    d = BatchNormalization c
    e = Add d x
    y = Relu e
"""
HARDSWISH = """
    a = Conv x
    b = Add a
    c = Clip b
    d = Mul a c
    y = Div d
"""


def test_a_convolution_with_norm_residual_and_activation_is_one_kernel():
    for chains in (True, False):
        kernels = fuse(steps(RESIDUAL), {"y"}, chains=chains)
        assert kernels == [Step("Conv", ("x",), ("b",)), Step("Conv", ("b", "x"), ("y",))]


def test_a_tensor_that_is_read_twice_is_made_and_a_chain_over_it_is_one_kernel():
    kernels = fuse(steps(HARDSWISH), {"y"}, chains=True)
    assert kernels == [Step("Conv", ("x",), ("a",)), Step("Add", ("a",), ("y",))]


def test_without_chains_a_product_of_two_tensors_is_a_kernel_of_its_own():
    kernels = fuse(steps(HARDSWISH), {"y"}, chains=False)
    assert [kernel.makes for kernel in kernels] == [("a",), ("c",), ("y",)]


def test_an_output_stays_though_only_one_reads_it():
    kernels = fuse(steps("a = Conv x\ny = Relu a"), {"a", "y"}, chains=True)
    assert [kernel.makes for kernel in kernels] == [("a",), ("y",)]


def test_what_is_no_product_takes_nothing_in():
    kernels = fuse(steps("a = MaxPool x\ny = Relu a"), {"y"}, chains=True)
    assert [kernel.makes for kernel in kernels] == [("a",), ("y",)]


def test_a_node_before_its_producer_is_taken_as_it_stands():
    kernels = fuse(steps("y = Relu a\na = Conv x"), {"y"}, chains=True)
    assert [kernel.makes for kernel in kernels] == [("y",), ("a",)]


def test_a_tensor_lives_from_its_maker_to_its_last_reader():
    chain = steps("a = Conv x\nb = Conv a\nc = Conv b a\nd = Conv c")
    sizes = {"a": 1, "b": 10, "c": 100, "d": 1000, "x": 10_000}
    assert peak_bytes(chain, sizes) == 1100
    assert peak_bytes(chain[:3], sizes) == 111
    assert peak_bytes(chain, sizes, copied={"x"}) == 10_001


@st.composite
def graphs(draw):
    names = ["x"]
    nodes = []
    for index in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["Conv", "Relu", "Add", "Mul", "MaxPool"]))
        reads = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        names.append(f"t{index}")
        nodes.append(Step(kind, tuple(reads), (names[-1],)))
    return nodes


@given(graphs(), st.booleans())
def test_kernels_run_in_their_order_and_never_need_more_than_nodes_do(nodes, chains):
    kept = {nodes[-1].makes[0]}
    kernels = fuse(nodes, kept, chains=chains)
    there = {"x"}
    for kernel in kernels:
        assert set(kernel.reads) <= there
        there |= set(kernel.makes)
    assert kept <= there
    read = {name for node in nodes for name in node.reads}
    assert {name for kernel in kernels for name in kernel.makes} <= {node.makes[0] for node in nodes}
    assert {name for kernel in kernels for name in kernel.reads} <= read
    assert len(kernels) <= len(nodes)
