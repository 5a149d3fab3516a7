import subprocess
import sys

import tensorq_engines


def test_every_public_name_resolves_and_every_home_is_public():
    for name in tensorq_engines.__all__:
        assert getattr(tensorq_engines, name) is not None
    assert set(tensorq_engines._HOMES) == set(tensorq_engines.__all__)
    assert len(set(tensorq_engines.__all__)) == len(tensorq_engines.__all__)


def test_submodules_do_not_hide_public_names():
    script = (
        "import tensorq_engines.warmup, tensorq_engines.select, tensorq_engines.repository.repository\n"
        "import tensorq_engines\n"
        "assert all(type(getattr(tensorq_engines, n)).__name__ != 'module' for n in tensorq_engines.__all__)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_importing_the_package_and_the_contract_loads_no_runtime():
    script = (
        "import sys, tensorq_engines\n"
        "tensorq_engines.Lane, tensorq_engines.Engine, tensorq_engines.create_engine, tensorq_engines.warm\n"
        "heavy = {'onnx', 'onnxruntime', 'pydantic', 'tensorrt'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
