import numpy as np
import pytest
from redis import Redis

from tensorq import (
    InputError,
    Limits,
    ModelInfo,
    Signature,
    TensorSpec,
    UnknownModel,
    catalogue,
    keys,
    models,
)
from tensorq.catalogue import Admission, Catalogue

X = Signature((TensorSpec("x", "float32", ("n", 3)),), ())
PAIR = Signature((TensorSpec("a", "float32", ("n",)), TensorSpec("b", "int64", ("n",))), ())
GOOD = {"x": np.zeros((2, 3), np.float32)}


def publish(redis: Redis, *names: str) -> None:
    for name in names:
        models.publish(redis, ModelInfo(name, X, limits=Limits(7, 8)), ttl_s=60)


def test_any_model_is_trusted_while_none_is_published(redis: Redis) -> None:
    assert Catalogue(redis, False).admission("anything").signature is None


def test_an_unknown_model_is_refused_with_the_known_ones_and_the_nearest(redis: Redis) -> None:
    publish(redis, "ocr-rec", "ocr-det", "cls")
    with pytest.raises(UnknownModel) as caught:
        Catalogue(redis, False).admission("ocr-rek")
    said = str(caught.value)
    assert (
        "no worker serves model 'ocr-rek', did you mean 'ocr-rec'? Published now: cls, ocr-det, ocr-rec"
        in said
    )
    with pytest.raises(UnknownModel, match=r"no worker serves model 'zzz'; Published now: cls"):
        Catalogue(redis, False).admission("zzz")


def test_a_long_list_of_known_models_is_cut(redis: Redis) -> None:
    publish(redis, *[f"net-{n:02}" for n in range(25)])
    with pytest.raises(UnknownModel, match=r"net-19 and 5 more"):
        Catalogue(redis, False).admission("zzz")


@pytest.mark.parametrize("queue", ["mine", "mine@high", "mine@low"])
def test_a_model_that_had_a_queue_is_trusted_its_worker_may_be_away(redis: Redis, queue: str) -> None:
    publish(redis, "other")
    redis.sadd(keys.QUEUES, keys.queue(queue))
    assert Catalogue(redis, False).admission("mine").signature is None


def test_trust_never_looks(redis: Redis) -> None:
    publish(redis, "net")
    assert Catalogue(redis, True).admission("unknown").signature is None
    assert Catalogue(redis, True).admission("net").signature is None


def test_a_publication_is_remembered_for_a_while_and_then_read_again(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(redis, "net")
    known = Catalogue(redis, False)
    first = known.admission("net")
    assert first.signature == X
    assert first.limits == Limits(7, 8)
    models.publish(redis, ModelInfo("net", PAIR), ttl_s=60)
    assert known.admission("net") is first
    monkeypatch.setattr(catalogue.time, "monotonic", lambda: float("inf"))
    assert known.admission("net").signature == PAIR


def test_what_is_unchanged_keeps_the_layouts_that_it_has_seen(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(redis, "net")
    known = Catalogue(redis, False)
    first = known.admission("net")
    monkeypatch.setattr(catalogue, "FRESH_S", -1.0)
    known._known.clear()
    again = known.admission("net")
    assert known.admission("net") is again is not first


def test_an_unknown_name_is_looked_up_each_time(redis: Redis) -> None:
    publish(redis, "other")
    known = Catalogue(redis, False)
    with pytest.raises(UnknownModel):
        known.admission("net")
    publish(redis, "net")
    assert known.admission("net").signature == X


def count_conforms(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    calls: list[object] = []
    conform = Signature.conform

    def counted(self, tensors, *, cast=False):  # type: ignore[no-untyped-def]
        calls.append(tensors)
        return conform(self, tensors, cast=cast)

    monkeypatch.setattr(Signature, "conform", counted)
    return calls


def test_the_second_job_of_a_layout_skips_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    admission, calls = Admission("net", X, Limits()), count_conforms(monkeypatch)
    for _ in range(3):
        tensors, rows = admission.admit(GOOD, cast=False)
        assert tensors["x"] is GOOD["x"]
        assert rows == 2
    assert len(calls) == 1
    admission.admit({"x": np.zeros((5, 3), np.float32)}, cast=False)
    assert len(calls) == 2


def test_inputs_in_another_order_are_put_in_the_signatures_each_time() -> None:
    admission = Admission("net", PAIR, Limits())
    for _ in range(2):
        tensors, _ = admission.admit({"b": np.zeros(2, np.int64), "a": np.zeros(2, np.float32)}, cast=False)
        assert list(tensors) == ["a", "b"]


def test_a_cast_depends_on_the_values_and_is_checked_each_time() -> None:
    admission = Admission("net", X, Limits())
    assert admission.admit({"x": np.ones((1, 3))}, cast=True)[0]["x"].dtype == np.float32
    with pytest.raises(InputError, match="do not survive"):
        admission.admit({"x": np.full((1, 3), 0.1)}, cast=True)
    with pytest.raises(InputError, match="pass cast=True"):
        admission.admit({"x": np.ones((1, 3))}, cast=False)


def test_remembered_layouts_are_bounded() -> None:
    admission = Admission("net", X, Limits())
    for rows in range(1, catalogue._KEPT_LAYOUTS + 50):
        admission.admit({"x": np.zeros((rows, 3), np.float32)}, cast=False)
    assert len(admission._accepted) <= catalogue._KEPT_LAYOUTS


def test_what_only_looks_like_a_remembered_array_is_refused() -> None:
    class Duck:
        dtype, shape = GOOD["x"].dtype, GOOD["x"].shape

    admission = Admission("net", X, Limits())
    admission.admit(GOOD, cast=False)
    with pytest.raises(InputError, match="got Duck, expected a numpy array"):
        list(admission.pack([{"x": Duck()}], cast=False))  # type: ignore[dict-item]


def test_one_array_stands_for_the_only_input() -> None:
    assert list(Admission("net", X, Limits()).admit(GOOD["x"], cast=False)[0]) == ["x"]
    with pytest.raises(InputError, match="got one array, but model 'net' has inputs a, b: pass a dict"):
        Admission("net", PAIR, Limits()).admit(GOOD["x"], cast=False)
    with pytest.raises(
        InputError, match=r"names of its inputs are not known: pass a dict, \{'name': array\}"
    ):
        Admission("net", None, Limits()).admit(GOOD["x"], cast=False)


@pytest.mark.parametrize("tensors", [[1, 2], "text", 7, None, [np.zeros(3)]], ids=repr)
@pytest.mark.parametrize("signature", [X, None], ids=["known", "trusted"])
def test_what_is_not_a_dict_is_refused(tensors: object, signature: Signature | None) -> None:
    with pytest.raises(InputError, match="expected a dict of numpy arrays"):
        Admission("net", signature, Limits()).admit(tensors, cast=False)  # type: ignore[arg-type]


def test_on_trust_the_first_axis_is_a_hint_at_the_rows() -> None:
    admission = Admission("net", None, Limits())
    rows = [admission.admit({"x": np.zeros(shape)}, cast=False)[1] for shape in ((4, 2), (), (0, 2))]
    assert rows == [4, 1, 1]
    with pytest.raises(InputError, match="got no tensors: expected at least one named array"):
        admission.admit({}, cast=False)


def test_an_error_tells_the_position_where_there_are_several() -> None:
    admission = Admission("net", X, Limits())
    bad = {"x": np.zeros((1, 4), np.float32)}
    with pytest.raises(InputError, match=r"^tensors\[1\]: input 'x': got shape"):
        list(admission.pack([GOOD, bad], cast=False))
    with pytest.raises(InputError, match=r"^tensors\[0\]: "):
        list(admission.pack(iter([bad]), cast=False))
    with pytest.raises(InputError, match=r"^input 'x': got shape"):
        list(admission.pack([bad], cast=False))
