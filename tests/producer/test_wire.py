import re
import tracemalloc

import msgpack
import msgpack_numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorq import wire
from tensorq.errors import InputError, WireError

# The contract for writers in other languages: these bytes never change within version 1.
GOLDEN = {
    "float32 of rank 2": (
        {"x": np.arange(6, dtype="<f4").reshape(2, 3)},
        "82a17601a774656e736f727381a17885c4026e64c3c40474797065a33c6634c4046b696e64c400c4057368617065920203"
        "c40464617461c418000000000000803f0000004000004040000080400000a040",
    ),
    "int64 of rank 0": (
        {"x": np.array(7, "<i8")},
        "82a17601a774656e736f727381a17885c4026e64c3c40474797065a33c6938c4046b696e64c400c405736861706590c404"
        "64617461c4080700000000000000",
    ),
    "bool": (
        {"m": np.array([True, False, True])},
        "82a17601a774656e736f727381a16d85c4026e64c3c40474797065a37c6231c4046b696e64c400c40573686170659103c4"
        "0464617461c403010001",
    ),
    "float16": (
        {"h": np.array([[1.5, -2]], "<f2")},
        "82a17601a774656e736f727381a16885c4026e64c3c40474797065a33c6632c4046b696e64c400c4057368617065920102"
        "c40464617461c404003e00c0",
    ),
    "complex64": (
        {"c": np.array([1 + 2j], "<c8")},
        "82a17601a774656e736f727381a16385c4026e64c3c40474797065a33c6338c4046b696e64c400c40573686170659101c4"
        "0464617461c4080000803f00000040",
    ),
    "uint64": (
        {"u": np.array([2**64 - 1], "<u8")},
        "82a17601a774656e736f727381a17585c4026e64c3c40474797065a33c7538c4046b696e64c400c40573686170659101c4"
        "0464617461c408ffffffffffffffff",
    ),
    "no elements": (
        {"z": np.zeros((0, 3), "<i2")},
        "82a17601a774656e736f727381a17a85c4026e64c3c40474797065a33c6932c4046b696e64c400c4057368617065920003"
        "c40464617461c400",
    ),
    "two tensors": (
        {"a": np.array([1], "u1"), "b": np.array([[2.0]], "<f8")},
        "82a17601a774656e736f727382a16185c4026e64c3c40474797065a37c7531c4046b696e64c400c40573686170659101c4"
        "0464617461c40101a16285c4026e64c3c40474797065a33c6638c4046b696e64c400c4057368617065920101c404646174"
        "61c4080000000000000040",
    ),
}
DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
dtypes = st.builds(
    lambda name, order: np.dtype(name).newbyteorder(order), st.sampled_from(DTYPES), st.sampled_from("<>")
)
arrays = dtypes.flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4))
)
payloads = st.dictionaries(st.text(min_size=1, max_size=20), arrays, min_size=1, max_size=4)


def entry(**changes: object) -> dict[bytes, object]:
    """An array's map as msgpack-numpy writes it, with changes."""
    plain: dict[bytes, object] = {
        b"nd": True,
        b"type": "<f4",
        b"kind": b"",
        b"shape": [2],
        b"data": bytes(8),
        **{name.encode(): value for name, value in changes.items()},
    }
    return {key: value for key, value in plain.items() if value is not None}


def message(**changes: object) -> bytes:
    return msgpack.packb({"v": 1, "tensors": {"x": entry(**changes)}})


def assert_same(got: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> None:
    assert list(got) == list(want)
    for name, array in want.items():
        assert got[name].shape == array.shape
        assert got[name].dtype == array.dtype.newbyteorder("<")
        np.testing.assert_array_equal(got[name], array)


@pytest.mark.parametrize("case", GOLDEN)
def test_the_bytes_are_the_documented_ones(case: str) -> None:
    tensors, golden = GOLDEN[case]
    assert wire.pack(tensors).hex() == golden
    assert_same(wire.unpack(bytes.fromhex(golden)), tensors)


@pytest.mark.parametrize("case", GOLDEN)
def test_msgpack_numpy_writes_the_same_bytes_and_reads_ours(case: str) -> None:
    tensors, golden = GOLDEN[case]
    theirs = msgpack.packb({"v": 1, "tensors": tensors}, default=msgpack_numpy.encode)
    assert theirs.hex() == golden
    read = msgpack.unpackb(wire.pack(tensors), object_hook=msgpack_numpy.decode)
    assert_same(read["tensors"], tensors)


@given(payloads)
def test_any_arrays_survive_the_round_trip(tensors: dict[str, np.ndarray]) -> None:
    packed = wire.pack(tensors)
    for _ in range(2):  # the second time over the remembered layout
        got = wire.unpack(packed)
        assert list(got) == list(tensors)
        for name, array in tensors.items():
            assert (got[name].shape, got[name].dtype) == (array.shape, array.dtype.newbyteorder("<"))
            assert got[name].tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()


@given(arrays)
def test_msgpack_numpys_bytes_of_any_array_are_read(array: np.ndarray) -> None:
    array = array.astype(array.dtype.newbyteorder("<"))
    packed = msgpack.packb({"v": 1, "tensors": {"x": array}}, default=msgpack_numpy.encode)
    assert wire.unpack(packed)["x"].tobytes() == array.tobytes()


def test_views_are_packed_by_their_values() -> None:
    base = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    views = {
        "t": base.T,
        "s": base[:, ::-2],
        "f": np.asfortranarray(base[0]),
        "b": np.broadcast_to(base[0], (2, 3, 4)),
    }
    assert_same(wire.unpack(wire.pack(views)), views)


def test_results_are_read_only_even_over_a_writable_buffer() -> None:
    packed = wire.pack({"x": np.ones(3, np.float32)})
    for payload in (packed, bytearray(packed), memoryview(bytearray(packed))):
        for _ in range(2):
            assert not wire.unpack(payload)["x"].flags.writeable  # type: ignore[arg-type]


def test_a_payload_of_another_layout_and_the_same_length_is_not_taken_for_the_remembered_one() -> None:
    first, second = {"x": np.arange(4, dtype="<i4")}, {"y": np.arange(4, dtype="<u4")}
    assert len(wire.pack(first)) == len(wire.pack(second))
    for tensors in (first, second, first):
        assert_same(wire.unpack(wire.pack(tensors)), tensors)


def test_the_length_limit_holds_for_remembered_layouts_too() -> None:
    packed = wire.pack({"x": np.zeros(100, np.float32)})
    wire.unpack(packed)
    with pytest.raises(WireError, match=f"payload of {len(packed)} bytes: at most 99"):
        wire.unpack(packed, max_bytes=99)


@pytest.mark.parametrize(
    "array",
    [
        np.array([None]),
        np.array(["text"]),
        np.array([b"bytes"]),
        np.zeros(2, "i4,f4"),
        np.zeros(2, "V8"),
        np.array(["2026-01-01"], "datetime64[D]"),
        np.array([1], "timedelta64[s]"),
        np.zeros(2, np.longdouble),
        np.zeros(2, np.clongdouble),
        np.array(["text"], np.dtypes.StringDType()),
    ],
    ids=lambda array: str(array.dtype),
)
def test_dtypes_without_a_place_on_the_wire_are_refused(array: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"tensor 'x': dtype .* cannot be sent; expected bool, int"):
        wire.pack({"x": array})


@pytest.mark.parametrize("rows", [3, 10_000], ids=["small", "large"])
def test_masked_values_are_refused(rows: int) -> None:
    array = np.ma.masked_equal(np.arange(rows, dtype="<f4"), 1)
    with pytest.raises(InputError, match=r"tensor 'x': masked values cannot be sent; .*filled\(VALUE\)"):
        wire.pack({"x": array})
    unmasked = np.ma.array(np.arange(rows, dtype="<f4"))
    np.testing.assert_array_equal(wire.unpack(wire.pack({"x": unmasked}))["x"], unmasked.data)


@pytest.mark.parametrize("name", ["", "x" * 513, 7, "\ud800"], ids=["empty", "long", "number", "surrogate"])
def test_names_that_are_not_short_text_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="expected text of 1 to 512 bytes"):
        wire.pack({name: np.zeros(1)})


def test_things_that_are_not_arrays_are_refused() -> None:
    with pytest.raises(InputError, match="tensor 'x': got list, expected a numpy array"):
        wire.pack({"x": [1, 2]})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (b"", "not a payload"),
        (b"\xc1", "not a payload"),
        (b"\x00", "not a payload of version 1"),
        (msgpack.packb({"v": 2, "tensors": {}}), "not a payload of version 1"),
        (msgpack.packb({"v": 1, "tensors": {}}), "at least one tensor"),
        (msgpack.packb({"v": 1, "tensors": []}), "expected a map"),
        (msgpack.packb({"v": 1, "tensors": {1: entry()}}), "tensor name 1"),
        (msgpack.packb({"v": 1, "tensors": {"": entry()}}), "tensor name ''"),
        (msgpack.packb({"v": 1, "tensors": {"x": 5}}), "expected a map with b'data', got 5"),
        (msgpack.packb({"v": 1, "tensors": {str(n): entry() for n in range(65)}}), "not a payload"),
        (message(data=None), "expected a map with b'data'"),
        (message(data="text"), "data is str, expected bytes"),
        (message(data=bytes(7)), re.escape("7 bytes of data, shape [2] needs 8")),
        (message(data=bytes(9)), re.escape("9 bytes of data, shape [2] needs 8")),
        (message(nd=False), "only plain arrays"),
        (message(nd=1), "only plain arrays"),
        (message(kind=b"O"), "only plain arrays"),
        (message(kind=b"V", type=[["a", "<f4"]]), "only plain arrays"),
        (message(type="|O"), "little-endian"),
        (message(type="|V4"), "little-endian"),
        (message(type="<U1"), "little-endian"),
        (message(type="|S4"), "little-endian"),
        (message(type="<M8[s]"), "little-endian"),
        (message(type=">f4"), "little-endian"),
        (message(type="f4"), "little-endian"),
        (message(type="float32"), "little-endian"),
        (message(type="<f16", shape=[1], data=bytes(16)), "little-endian"),
        (message(type="f4,f4"), "little-endian"),
        (message(type="(2,)f4"), "little-endian"),
        (message(type="a4"), "little-endian"),
        (message(type="nonsense " * 50), "little-endian"),
        (message(type=7), "only plain arrays"),
        (message(shape=None), "expected a list of lengths"),
        (message(shape=2), "expected a list of lengths"),
        (message(shape=[-1]), "expected a list of lengths"),
        (message(shape=[True, 2]), "expected a list of lengths"),
        (message(shape=[2.0]), "expected a list of lengths"),
        (message(shape=["2"]), "expected a list of lengths"),
        (message(shape=[2**63, 2**63]), "exceeds 536870912 bytes"),
        (message(shape=[2**32, 2**32]), "exceeds 536870912 bytes"),
        (message(shape=[0, 2**64 - 1], data=b""), "exceeds|expected"),
        (message(shape=[2**62, 2**62, 0], data=b""), "exceeds|expected"),
        (message(shape=[1] * 33), "not a payload"),
        (message(shape=[1] * 32, data=bytes(8)), "needs 4"),
        (b"\x91" * 900 + b"\x00", "not a payload"),
        (b"\x91" * 100_000, "not a payload"),
        (b"\x81\xa1v" * 900 + b"\x00", "not a payload"),
        (b"\xdf\xff\xff\xff\xff", "not a payload"),
        (b"\xdd\xff\xff\xff\xff", "not a payload"),
        (b"\xc6\xff\xff\xff\xff" + bytes(9), "not a payload"),
        (b"\xc9\xff\xff\xff\xff\x01" + bytes(9), "not a payload"),
        (msgpack.packb({"v": 1, "tensors": {"x": msgpack.ExtType(1, b"x")}}), "not a payload"),
        (b"\x81\x90\x01", "not a payload"),
        (wire.pack({"x": np.zeros(2)}) + b"\x00", "not a payload"),
    ],
)
def test_what_is_not_a_payload_raises_a_wire_error(payload: bytes, says: str) -> None:
    with pytest.raises(WireError, match=says) as caught:
        wire.unpack(payload)
    assert len(str(caught.value)) < 500


def test_every_truncation_raises_a_wire_error() -> None:
    packed = wire.pack({"a": np.arange(5, dtype="<i2"), "b": np.zeros((2, 2), "<f4")})
    wire.unpack(packed)
    for length in range(len(packed)):
        with pytest.raises(WireError):
            wire.unpack(packed[:length])


@settings(max_examples=300)
@given(st.binary(max_size=300))
def test_random_bytes_give_a_wire_error_or_arrays(payload: bytes) -> None:
    check_hostile(payload)


@settings(max_examples=400)
@given(payloads, st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6))
def test_mutated_payloads_give_a_wire_error_or_arrays(
    tensors: dict[str, np.ndarray], changes: list[tuple[int, int]]
) -> None:
    mutated = bytearray(wire.pack(tensors))
    for position, value in changes:
        mutated[position % len(mutated)] = value
    check_hostile(bytes(mutated))


messages = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.binary(), inner, max_size=4),
)


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(["nd", "type", "kind", "shape", "data"]), messages, max_size=5))
def test_well_formed_messages_of_any_content_give_a_wire_error_or_arrays(changes: dict[str, object]) -> None:
    check_hostile(message(**changes))


def check_hostile(payload: bytes) -> None:
    try:
        tensors = wire.unpack(payload)
    except WireError:
        return
    for array in tensors.values():
        assert array.dtype.kind in "biufc"
        assert array.nbytes <= len(payload)
        assert not array.flags.writeable
    wire.unpack(wire.pack(tensors))


def test_a_long_hostile_payload_is_refused_without_much_memory() -> None:
    payload = msgpack.packb(bytes(20_000_000))
    tracemalloc.start()
    with pytest.raises(WireError):
        wire.unpack(payload)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * len(payload)


@pytest.mark.parametrize("filler", [b"\x80", b"\x90", b"\x81\x01\x90"])
def test_a_payload_of_a_great_many_small_maps_and_arrays_is_refused_at_once(filler: bytes) -> None:
    nested = filler
    for _ in range(4):
        nested = b"\xdc\x00\x20" + 32 * nested  # an array of 32
    payload = b"\x82\xa1v\x01\xa7tensors" + nested
    tracemalloc.start()
    with pytest.raises(WireError, match="not a payload: more than 512 maps and arrays"):
        wire.unpack(payload)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * len(payload)


def test_limits_are_checked_before_packing() -> None:
    with pytest.raises(WireError, match="65 tensors in one payload: at most 64"):
        wire.pack({str(n): np.zeros(1) for n in range(65)})
    with pytest.raises(WireError, match="exceeds 536870912 bytes"):
        wire.layout_of((("x", "<f8", (2**20, 2**10)),))
