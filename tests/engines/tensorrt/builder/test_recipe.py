from dataclasses import fields, replace

import pytest

from tensorq_engines import Profile
from tensorq_engines.tensorrt.builder.recipe import BuildOptions, Recipe

RECIPE = Recipe(
    model="a" * 64,
    batch_axis="None",
    rewrites=("axes 1",),
    calibration="",
    precision="fp32",
    flags=(),
    profiles=(Profile.of(x=([1, 4], [8, 4], [32, 4])),),
    options=BuildOptions(),
    plugins=(),
    os="linux",
    arch="x86_64",
    flavour="tensorrt",
    flavour_version="10.3.0.26",
    compute_capability="9.0",
    device_name="NVIDIA H200",
)
CHANGES = {
    "model": "b" * 64,
    "batch_axis": "0",
    "rewrites": ("axes 2",),
    "calibration": "c" * 64,
    "precision": "fp16",
    "flags": ("FP16",),
    "profiles": (Profile.of(x=([1, 4], [8, 4], [33, 4])),),
    "plugins": ("d" * 64,),
    "os": "windows",
    "arch": "aarch64",
    "flavour": "tensorrt_rtx",
    "flavour_version": "10.3.0.27",
    "compute_capability": "9.1",
    "device_name": "NVIDIA H100",
    "version": 99,
}
OPTIONS = {"optimization_level": 3, "workspace_mib": 64, "tf32": False, "detailed_layers": True}


def test_every_part_is_tried():
    assert {item.name for item in fields(Recipe)} == {*CHANGES, "options"}
    assert {item.name for item in fields(BuildOptions)} == set(OPTIONS)


@pytest.mark.parametrize("part", CHANGES)
def test_changing_a_part_changes_the_key_and_the_file(part):
    other = replace(RECIPE, **{part: CHANGES[part]})
    assert other.key != RECIPE.key
    assert other.file_name != RECIPE.file_name


@pytest.mark.parametrize("option", OPTIONS)
def test_changing_an_option_changes_the_key(option):
    assert replace(RECIPE, options=BuildOptions(**{option: OPTIONS[option]})).key != RECIPE.key


def test_the_key_does_not_depend_on_the_process():
    assert RECIPE.key == "47bd2929c59c896c798b4e8d2aa52782722e97dc888e754a2b9db61554d3d9ec"


def test_the_file_name_tells_what_the_plan_is_for():
    assert RECIPE.file_name == f"tensorrt-10.3.0.26-sm90-{RECIPE.key[:16]}.plan"
    assert replace(RECIPE, compute_capability="").target == "tensorrt-10.3.0.26-any"
