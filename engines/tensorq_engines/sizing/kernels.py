"""Kernels: which nodes of a graph TensorRT runs as one, so that no tensor passes between them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_POINTWISE = """
    Abs Add And BatchNormalization Cast Ceil Clip Cos DequantizeLinear Div Elu Equal Erf Exp Floor Gelu
    Greater HardSigmoid HardSwish LeakyRelu Less Log Max Min Mish Mul Neg Not Or PRelu Pow QuantizeLinear
    Reciprocal Relu Selu Sigmoid Sin Softplus Sqrt Sub Tanh Where
"""
POINTWISE = frozenset(_POINTWISE.split())
DYNAMIC_LEVEL = 3
"""From this optimization level on TensorRT compiles kernels for chains of pointwise nodes."""


@dataclass(frozen=True, slots=True)
class Step:
    """A node, or several that run as one kernel.

    Attributes:
        kind: the operator; of a kernel, its first node's.
        reads: tensors that it reads, constants apart.
        makes: tensors that it writes and that are read elsewhere.
    """

    kind: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]


def fuse(nodes: Sequence[Step], kept: Collection[str], *, chains: bool) -> list[Step]:
    """Returns the kernels for ``nodes``, each where its last node stood.

    A pointwise node joins the kernel that makes its latest input, unless something else reads that input
    too. So a convolution with its normalisation, activation and residual is one kernel, and so is a chain
    of pointwise nodes.

    Args:
        nodes: in an order in which they can run.
        kept: tensors that stay whatever reads them: the graph's outputs.
        chains: whether a pointwise node of several tensors joins any kernel; else it joins a product only,
            as a residual, which is all that TensorRT has ready-made kernels for.
    """
    maker = {name: index for index, node in enumerate(nodes) for name in node.makes}
    readers: dict[str, set[int]] = defaultdict(set)
    for index, node in enumerate(nodes):
        for name in node.reads:
            readers[name].add(index)
    kernel_of: list[int] = []
    kernels: list[list[int]] = []
    for index, node in enumerate(nodes):
        kernel = len(kernels)
        # In a graph with a cycle, which nothing can run, some are made later.
        made = [name for name in node.reads if maker.get(name, index) < index]
        if node.kind in POINTWISE and made:
            latest = max(kernel_of[maker[name]] for name in made)
            first = nodes[kernels[latest][0]].kind
            fits = first in POINTWISE or first in PRODUCTS
            if not chains and len(node.reads) > 1:
                fits = first in PRODUCTS and node.kind == "Add"
            links = [name for name in made if kernel_of[maker[name]] == latest]
            own = {index, *kernels[latest]}
            if fits and all(name not in kept and readers[name] <= own for name in links):
                kernel = latest
        if kernel == len(kernels):
            kernels.append([])
        kernels[kernel].append(index)
        kernel_of.append(kernel)
    return [
        _join([nodes[index] for index in kernel], set(kernel), readers, kept)
        for kernel in sorted(kernels, key=lambda kernel: kernel[-1])
    ]


def _join(nodes: Sequence[Step], own: set[int], readers: dict[str, set[int]], kept: Collection[str]) -> Step:
    inside = {name for node in nodes for name in node.makes}
    reads = dict.fromkeys(name for node in nodes for name in node.reads if name not in inside)
    makes = (name for node in nodes for name in node.makes if name in kept or readers[name] - own)
    return Step(nodes[0].kind, tuple(reads), tuple(makes))
