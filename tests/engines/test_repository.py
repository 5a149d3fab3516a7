import math
import os
import tempfile
from pathlib import Path

import pytest

from models import catalogue
from tensorq_engines import Buckets, Crop, Repository, RepositoryError
from tensorq_engines.repository.check import check_folder

PROFILE = "[[profile]]\nx = {{ min = {}, opt = {}, max = {} }}\n"


@pytest.fixture
def write(tmp_path):
    def one(settings, model=None, name="m"):
        catalogue.write_repository(tmp_path, {name: (model or catalogue.affine(), settings)})
        return Repository(tmp_path)

    return one


def only(problems):
    assert len(problems) == 1, [str(problem) for problem in problems]
    return problems[0]


FULL = """
source = "model.onnx"
engine = "auto"
precision = "fp16"
batch_axis = 0
[[profile]]
x = { min = [1, 8], opt = [8, 16], max = [32, 16] }
[buckets]
W = [8, 16]
[batching]
max_delay_ms = 7
[residency]
load = "lru"
pin = true
[graphs]
sizes = [8, 1]
[queue]
max_jobs = 10
max_bytes = 1000
[outputs]
finite = true
"""


def test_every_key_is_read(write, tmp_path):
    repository = write(FULL)
    assert repository.check() == []
    entry = repository.get("m")
    settings = entry.settings
    assert (entry.name, entry.folder, entry.source) == ("m", tmp_path / "m", tmp_path / "m" / "model.onnx")
    assert (settings.engine, settings.precision, settings.batch_axis) == ("auto", "fp16", 0)
    assert (settings.batching.max_delay_ms, settings.residency.load, settings.residency.pin) == (
        7,
        "lru",
        True,
    )
    assert (settings.graphs.sizes, settings.queue.max_jobs, settings.queue.max_bytes) == ((1, 8), 10, 1000)
    assert settings.outputs.finite
    assert entry.profiles[0].ranges[0].opt == (8, 16)
    assert settings.bucketed == (Buckets("W", (8, 16)),)


def test_buckets_may_be_written_at_length(write):
    repository = write(
        "[buckets.'x.1']\nlengths = [4]\nfill = { x = -inf }\n"
        "crop = { y = { axis = 1, scale = 2, offset = -0.5, round = 'floor' } }\n"
    )
    assert repository.check() == []
    (buckets,) = repository.get("m").settings.bucketed
    assert buckets == Buckets("x.1", (4,), {"x": -math.inf}, (Crop("y", 1, 2, -0.5, "floor"),))


def test_a_folder_with_only_a_model_has_defaults(write):
    repository = write(None)
    assert repository.names == ("m",)
    assert repository.check() == []
    settings = repository.get("m").settings
    assert (settings.engine, settings.residency.load, settings.batching.max_delay_ms) == ("auto", None, 5)
    assert settings.profiles == ()
    assert not settings.outputs.finite


def test_the_whole_catalogue_is_in_order(tmp_path):
    models = {name: (make(), None) for name, make in catalogue.ALL.items()}
    repository = Repository(catalogue.write_repository(tmp_path, models))
    assert repository.check() == []
    assert repository.names == tuple(sorted(models))


@pytest.mark.parametrize(
    ("settings", "key", "message", "remedy"),
    [
        ("enigne = 'auto'", "enigne", "unknown key", "did you mean 'engine'?"),
        (
            "[batching]\nmax_dealy_ms = 1",
            "batching.max_dealy_ms",
            "unknown key",
            "did you mean 'max_delay_ms'?",
        ),
        ("[zzz]\n", "zzz", "unknown key", "use one of: source, engine"),
        ("engine = 'tensorflow'", "engine", "got 'tensorflow', expected 'auto'", "correct or remove"),
        ("precision = 'fp17'", "precision", "got 'fp17', expected 'fp32', 'fp16'", "correct"),
        ("batch_axis = 1", "batch_axis", "got 1, expected 0, or 'none'", "correct"),
        ("batch_axis = false", "batch_axis", "got False, expected 0", "correct"),
        ("batching = 3", "batching", "got 3, expected a table [batching]", "correct"),
        (
            "[batching]\nmax_delay_ms = -1",
            "batching.max_delay_ms",
            "got -1, expected a number of milli",
            "correct",
        ),
        ("[batching]\nmax_delay_ms = '5'", "batching.max_delay_ms", "got '5'", "correct"),
        ("[batching]\nmax_delay_ms = true", "batching.max_delay_ms", "got True", "correct"),
        ("[batching]\nmax_delay_ms = nan", "batching.max_delay_ms", "got nan", "correct"),
        ("[residency]\nload = 'never'", "residency.load", "got 'never', expected 'eager'", "correct"),
        ("[residency]\npin = 1", "residency.pin", "got 1, expected true or false", "correct"),
        ("[queue]\nmax_jobs = 0", "queue.max_jobs", "got 0, expected a whole number of jobs", "correct"),
        ("[queue]\nmax_bytes = 1.5", "queue.max_bytes", "got 1.5", "correct"),
        ("[graphs]\nsizes = 'all'", "graphs.sizes", "got 'all', expected 'ladder'", "correct"),
        ("[graphs]\nsizes = [0]", "graphs.sizes", "got [0]", "correct"),
        (
            "[graphs]\nsizes = [1, 9]",
            "graphs.sizes",
            "got [1, 9], but the model's ladder is [1, 8, 32]",
            "ladder",
        ),
        ("buckets = 3", "buckets", "got 3, expected a table of AXIS = [lengths", "correct"),
        ("[buckets]\nW = 3", "buckets.W", "got 3, expected a table of AXIS = [lengths", "correct"),
        ("[buckets]\nW = []", "buckets.W.lengths", "got [], expected a list of lengths >= 1", "correct"),
        ("[buckets]\nW = [0, 1]", "buckets.W.lengths[0]", "got 0, expected a list of lengths", "correct"),
        ("[buckets]\nW = [8, 4]", "buckets.W.lengths", "got [8, 4], expected a list of", "correct"),
        ("[buckets]\nW = [4, 4]", "buckets.W.lengths", "got [4, 4], expected a list of", "correct"),
        ("[buckets]\nW = [8.0]", "buckets.W.lengths[0]", "got 8.0", "correct"),
        ("[buckets.W]\nfill = 1", "buckets.W.lengths", "is missing", "give a list of lengths"),
        ("[buckets.W]\nlenghts = [1]", "buckets.W.lenghts", "unknown key", "did you mean 'lengths'?"),
        ("[buckets.W]\nlengths = [1]\nfill = 'a'", "buckets.W.fill", "got 'a', expected a num", "correct"),
        ("[buckets.W]\nlengths = [1]\nfill.x = [1]", "buckets.W.fill", "expected a number, or a", "correct"),
        (f"[buckets.W]\nlengths = [1]\nfill = 1{'0' * 400}", "buckets.W.fill", "got 10", "correct"),
        ("[buckets.W]\nlengths = [1]\ncrop = 1", "buckets.W.crop", "got 1, expected a table of", "correct"),
        ("[buckets.W]\nlengths = [1]\ncrop.y = {}", "buckets.W.crop.y.axis", "is missing", "give an axis"),
        (
            "[buckets.W]\nlengths = [1]\ncrop.y = { axis = 1, scael = 1 }",
            "buckets.W.crop.y.scael",
            "unknown key",
            "did you mean 'scale'?",
        ),
        (
            "[buckets.W]\nlengths = [1]\ncrop.y = { axis = 1, scale = 0 }",
            "buckets.W.crop.y.scale",
            "got 0, expected a number above 0",
            "correct",
        ),
        ("[buckets]\nw = [8]", "buckets.w", "no such free axis", "W"),
        ("[buckets]\nN = [8]", "buckets.N", "this is the batch axis", "remove it"),
        (
            PROFILE.format([1, 8], [1, 8], [1, 16]) + "[buckets]\nW = [8, 32]",
            "buckets.W",
            "lengths [32] are outside all profiles, which take x [1, 8..16]",
            "widen a [[profile]]",
        ),
        ("profile = 3", "profile", "got 3, expected [[profile]]", "correct"),
        ("[[profile]]\nx = 3", "profile[0].x", "got 3, expected a table", "correct"),
        ("[[profile]]\n", "profile[0]", "got {}", "correct"),
        ("[[profile]]\nx = { min = [1, 1], opt = [1, 1] }", "profile[0].x.max", "is missing", "give a list"),
        (PROFILE.format([1, 0], [1, 1], [1, 1]), "profile[0].x.min[1]", "got 0, expected a list", "correct"),
        (PROFILE.format([1, 1], "[1, 1.5]", [1, 1]), "profile[0].x.opt[1]", "got 1.5", "correct"),
        ("[[profile]]\nx = { mni = [1] }", "profile[0].x.mni", "unknown key", "did you mean 'min'?"),
        (
            PROFILE.format([2, 8], [1, 8], [4, 8]),
            "profile[0].x",
            "axis 0 has min 2, opt 1, max 4",
            "ascending",
        ),
        (PROFILE.format([1], [1], [1, 8]), "profile[0].x", "have 1, 1 and 2 axes", "rank"),
        (
            PROFILE.replace("\nx", "\nX").format([1, 8], [1, 8], [1, 8]),
            "profile[0].X",
            "no such input",
            "use one of: x",
        ),
        (
            "[[profile]]\nq={min=[1],opt=[1],max=[1]}",
            "profile[0]",
            "x: float32[N, W] has free axes",
            "add x =",
        ),
        (PROFILE.format([1, 8, 1], [1, 8], [1, 8]), "profile[0].x.min", "got 3 axes", "give 2 lengths"),
        ("source = '/etc/passwd'", "source", "got '/etc/passwd', expected a path inside", "put the file"),
        ("source = '../m/model.onnx'", "source", "expected a path inside", "put the file"),
        ('source = "nul\\u0000"', "source", "expected a path inside", "put the file"),
        ("source = 'other.onnx'", "source", "there is no file 'other.onnx'", "put the model there"),
        ("source = ''", "source", "got ''", "correct"),
        ("engine = \n", "line 1", "is not TOML", "correct the syntax"),
        ("precision = 'fp16'\n[queue\n", "line 2", "is not TOML", "correct the syntax"),
        ("a = [1,", "end of file", "is not TOML", "correct the syntax"),
    ],
)
def test_each_mistake_is_told_with_file_key_and_remedy(write, tmp_path, settings, key, message, remedy):
    problems = write(settings).check()
    found = [problem for problem in problems if problem.key == key]
    assert found, [str(problem) for problem in problems]
    assert found[0].file == str(tmp_path / "m" / "model.toml")
    assert message in found[0].message
    assert remedy in found[0].remedy
    assert str(found[0]).startswith(f"{found[0].file}: {key}: ")


def test_a_changed_fixed_axis_is_told_for_min_opt_and_max(write):
    problems = write(PROFILE.format([1, 64], [1, 64], [1, 128]), catalogue.mlp()).check()
    assert [problem.key for problem in problems] == ["profile[0].x.min", "profile[0].x.opt"]
    assert "axis 1 is fixed at 128 in x: float32[N, 128], got 64" in problems[0].message


def test_inputs_that_differ_in_batch_are_told(write):
    table = "[[profile]]\na = {min=[1,4],opt=[2,4],max=[4,4]}\nb = {min=[1,4],opt=[2,4],max=[8,4]}\n"
    problem = only(write(table, catalogue.two_in_two_out()).check())
    assert (problem.key, "inputs a, b differ" in problem.message) == ("profile[0]", True)


def test_an_input_of_fixed_axes_needs_no_range(write):
    assert write("engine = 'auto'", catalogue.fixed_batch()).check() == []


def test_all_mistakes_of_all_models_are_told_at_once(tmp_path):
    affine = catalogue.affine()
    settings = "engine = 'x'\nfoo = 1\n[queue]\nmax_jobs = 0\n"
    models = {
        "a": (affine, settings),
        "b": (affine, None),
        "c": (affine, "source = 'no.onnx'"),
        "d": (affine, "="),
    }
    problems = Repository(catalogue.write_repository(tmp_path, models)).check()
    assert [problem.key for problem in problems] == ["engine", "queue.max_jobs", "foo", "source", "line 1"]


@pytest.mark.parametrize("settings", ["engine = 3\n[queue]\nmax_job = 1", "engine = "])
def test_mistakes_in_the_settings_do_not_hide_those_in_the_model_file(write, tmp_path, settings):
    repository = write(settings)
    (tmp_path / "m" / "model.onnx").write_bytes(b"not onnx")
    problems = repository.check()
    assert problems[0].file.endswith("model.toml")
    assert problems[-1].file.endswith("model.onnx")


def test_a_mistake_in_one_key_does_not_hide_those_in_others(write):
    disorder = PROFILE.format([2, 8], [1, 8], [4, 8])
    assert [p.key for p in write(f"foo = 1\nsource = 'no.onnx'\n{disorder}").check()] == [
        "foo",
        "source",
        "profile[0].x",
    ]


def test_a_symlink_out_of_the_folder_is_refused_and_one_inside_is_not(write, tmp_path):
    repository = write("source = 'link.onnx'")
    link = tmp_path / "m" / "link.onnx"
    link.symlink_to("model.onnx")
    assert repository.check() == []
    link.unlink()
    (tmp_path.parent / f"{tmp_path.name}-secret.onnx").write_bytes(b"")
    link.symlink_to(tmp_path.parent / f"{tmp_path.name}-secret.onnx")
    assert "outside the model's folder" in only(repository.check()).message
    with pytest.raises(RepositoryError, match="outside"):
        repository.get("m")


def test_a_linked_folder_out_of_the_folder_is_refused(write, tmp_path):
    repository = write("source = 'sub/model.onnx'")
    (tmp_path / "m" / "sub").symlink_to(tmp_path / "m2")
    catalogue.write_repository(tmp_path, {"m2": (catalogue.affine(), None)})
    assert "outside the model's folder" in only(repository.check()).message


@pytest.mark.parametrize("content", [b"", b"not onnx", b"\x08\x08"])
def test_a_bad_onnx_file_is_told(write, tmp_path, content):
    repository = write(None)
    (tmp_path / "m" / "model.onnx").write_bytes(content)
    problem = only(repository.check())
    assert problem.file == str(tmp_path / "m" / "model.onnx")
    assert "is not an ONNX model" in problem.message
    assert "again" in problem.remedy


def test_a_truncated_onnx_file_is_told(write, tmp_path):
    repository = write(None, catalogue.mlp())
    content = catalogue.mlp().SerializeToString()
    (tmp_path / "m" / "model.onnx").write_bytes(content[: len(content) // 2])
    assert "is not an ONNX model, or is cut short" in only(repository.check()).message


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("gone.bin", "no such file"),
        ("../../gone.bin", "outside"),
        ("/etc/passwd", "outside"),
        ("circle.bin", "'circle.bin'"),
        ("nu\0ll.bin", "no path of a file"),
        ("long" * 100, "no such file"),
    ],
    ids=["gone", "up", "absolute", "circle", "null", "long"],
)
def test_missing_and_escaping_weight_files_are_told(write, tmp_path, location, words):
    model = catalogue.mlp()
    for weight in model.graph.initializer[:2]:
        weight.ClearField("raw_data")
        weight.data_location = 1
        weight.external_data.add(key="location", value=location)
    repository = write(None, model)
    (tmp_path / "m" / "circle.bin").symlink_to("circle.bin")
    problem = only(repository.check())
    assert (problem.key, words in problem.message) == ("external data", True)


def test_a_folder_whose_name_is_no_model_name_is_told_and_not_listed(write, tmp_path):
    repository = write(None, name="bad name")
    problem = only(repository.check())
    assert "'bad name' is not a model name" in problem.message
    assert problem.remedy == "rename the folder"
    assert repository.names == ()


def test_a_folder_without_a_model_is_told_and_hidden_ones_are_not(write, tmp_path):
    repository = write(None)
    (tmp_path / "empty").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "README.md").write_text("hello")
    assert "there is no file 'model.onnx' or 'model.plan'" in only(repository.check()).message
    assert repository.names == ("m",)


def test_no_models_at_all_is_told(tmp_path):
    assert "holds no models" in only(Repository(tmp_path).check()).message


def test_a_repository_that_is_not_there_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "absent", tmp_path / "file"):
        assert "cannot be read" in only(Repository(path).check()).message
        with pytest.raises(RepositoryError, match="cannot be read"):
            _ = Repository(path).names


def test_settings_that_are_not_text_are_told_with_their_line(write, tmp_path):
    repository = write("")
    (tmp_path / "m" / "model.toml").write_bytes(b"engine = 'auto'\nsource = '\xff'\n")
    assert only(repository.check()).key == "line 2"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (f"batching.max_delay_ms = {'9' * 5000}", "cannot be read: Exceeds the limit"),
        (f"[inputs.x]\nwire = 'uint8'\nscale = {'9' * 400}", "expected a number, or a list"),
        (f"x = {'[' * 5000}", "cannot be read: maximum recursion depth"),
        (f"source = '{'long' * 100}.onnx'", "there is no file 'longlong"),
    ],
    ids=["number", "scale", "nest", "name"],
)
def test_settings_beyond_what_a_machine_takes_are_told(write, settings, words):
    assert words in only(write(settings).check()).message


def test_settings_that_are_no_file_are_told(write, tmp_path):
    repository = write(None)
    (tmp_path / "m" / "model.toml").mkdir()
    assert "cannot be read" in only(repository.check()).message


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_settings_that_may_not_be_read_are_told(write, tmp_path):
    repository = write("")
    (tmp_path / "m" / "model.toml").chmod(0)
    assert "Permission denied" in only(repository.check()).message


@pytest.fixture
def ordinary_user():
    """A folder that anybody reads; root is nobody meanwhile, whom modes of folders bind."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        root = os.geteuid() == 0

        def become():
            if root:
                os.seteuid(65534)

        yield Path(folder), become
        if root:
            os.seteuid(0)


def test_a_folder_that_may_not_be_entered_is_told_and_hides_no_others(ordinary_user):
    path, become = ordinary_user
    catalogue.write_repository(path, {"closed": (catalogue.affine(), ""), "open": (catalogue.affine(), "")})
    # As on a file system of its own.
    (path / "lost+found").mkdir()
    for name in ("closed", "lost+found"):
        (path / name).chmod(0)
    repository = Repository(path)
    # What is imported where it is first used, nobody may not read here.
    assert repository.get("open").name == "open"
    become()
    assert repository.names == ("closed", "open")
    assert repository.get("open").name == "open"
    with pytest.raises(RepositoryError, match="closed: cannot be read: Permission denied"):
        repository.get("closed")
    assert "Permission denied" in only(check_folder(path / "closed")).message


def test_a_plan_is_accepted_for_tensorrt_and_told_for_others(write, tmp_path):
    repository = write("source = 'model.plan'\nengine = 'onnxruntime'")
    (tmp_path / "m" / "model.plan").write_bytes(b"plan")
    assert "is a TensorRT plan" in only(repository.check()).message
    (tmp_path / "m" / "model.toml").write_text("source = 'model.plan'")
    assert repository.check() == []


def test_an_unknown_model_gets_the_nearest_name(write):
    with pytest.raises(RepositoryError, match="no model 'ocr-rex'; did you mean 'ocr-rec'") as caught:
        write(None, name="ocr-rec").get("ocr-rex")
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("name", ["../m", "/etc", "", ".", "m/../m", "m\0"])
def test_a_name_cannot_leave_the_repository(write, name):
    with pytest.raises(RepositoryError):
        write(None).get(name)
