import platform

from tensorq_engines.base import processor


def test_a_containers_quota_counts(monkeypatch, tmp_path):
    monkeypatch.setattr(processor, "QUOTA", tmp_path / "cpu.max")
    cores = processor.usable_cores()
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert processor.usable_cores() == 0.5
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert processor.usable_cores() == cores >= 1


def test_the_processor_is_named_as_its_maker_does(monkeypatch, tmp_path):
    monkeypatch.setattr(processor, "CPUINFO", tmp_path / "cpuinfo")
    assert processor.processor() == (platform.processor() or platform.machine())
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nmodel name\t: Another\n")
    assert processor.processor() == "A CPU @ 2 GHz"
