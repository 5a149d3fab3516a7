from dataclasses import replace

from tensorq_engines.tensorrt.builder.timing import load_timings, save_timings, timing_path

from .test_recipe import RECIPE


class Cache:
    def __init__(self, entries):
        self.entries = set(entries)

    def combine(self, other, ignore_mismatch):
        assert not ignore_mismatch
        self.entries |= other.entries
        return True

    def serialize(self):
        return b",".join(sorted(self.entries))


class Config:
    """As TensorRT's: create gives None for what it cannot read, set gives False for another GPU's."""

    def create_timing_cache(self, data):
        return None if data.startswith(b"!") else Cache(filter(None, bytes(data).split(b",")))

    def set_timing_cache(self, cache, ignore_mismatch):
        self.cache = cache
        return b"foreign" not in cache.entries

    def get_timing_cache(self):
        return self.cache


def test_what_others_measured_meanwhile_is_kept(tmp_path):
    path = timing_path(tmp_path, RECIPE)
    path.write_bytes(b"a")
    config = Config()
    load_timings(config, path).entries.add(b"b")
    path.write_bytes(b"a,c")
    save_timings(config, path, "m")
    assert path.read_bytes() == b"a,b,c"


def test_a_damaged_or_foreign_file_counts_as_empty_and_is_told(tmp_path, caplog):
    path = tmp_path / "t.timing"
    for content, words in ((b"!", "is damaged"), (b"foreign", "another GPU")):
        path.write_bytes(content)
        assert load_timings(Config(), path).entries == set()
        assert words in caplog.messages[-1]
    path.unlink()
    caplog.clear()
    assert load_timings(Config(), path).entries == set()
    assert caplog.messages == []


def test_timings_that_cannot_be_written_are_told_and_no_more(tmp_path, caplog):
    config = Config()
    load_timings(config, tmp_path / "t.timing")
    save_timings(config, tmp_path / "gone" / "t.timing", "m")
    assert "cannot be written" in caplog.messages[-1]


def test_each_target_has_a_file_of_its_own(tmp_path):
    others = [
        replace(RECIPE, device_name="x"),
        replace(RECIPE, flavour_version="1"),
        replace(RECIPE, model="x"),
    ]
    paths = [timing_path(tmp_path, recipe) for recipe in (RECIPE, *others)]
    assert len(set(paths)) == 3
    assert paths[0] == paths[3]
