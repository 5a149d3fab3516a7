"""Arenas: memory that all contexts of a lane share, and what becomes of graphs when it grows."""

import pytest

from fakes.cuda import OUT_OF_MEMORY
from tensorq_engines import Profile, TileFailed
from tensorq_engines.tensorrt.arena import GrowingArena, MovingArena
from tensorq_engines.tensorrt.cuda.addresses import BLOCK_BYTES
from tensorq_engines.tensorrt.cuda.device import Device
from tensorq_engines.tensorrt.cuda.errors import CudaOutOfMemory

MIB = 1 << 20


@pytest.fixture
def device(fake):
    return Device.require()


class TestGrowing:
    def test_grows_at_its_end_and_never_moves(self, fake, device):
        arena = GrowingArena(device)
        assert (arena.address, arena.size_bytes) == (0, 0)
        arena.reserve(3 * MIB)
        address = arena.address
        for size in (MIB, 5 * MIB, 70 * MIB):
            arena.reserve(size)
            assert arena.address == address
            assert size <= arena.size_bytes == fake.cuda.used_bytes
        assert arena.size_bytes == 70 * MIB

    def test_trim_gives_back_whole_blocks_from_the_end(self, fake, device):
        arena = GrowingArena(device)
        arena.reserve(2 * MIB)
        arena.reserve(2 * BLOCK_BYTES)
        arena.trim(MIB)
        assert MIB <= arena.size_bytes <= 2 * MIB
        arena.reserve(2 * BLOCK_BYTES)
        arena.trim(0)
        assert arena.size_bytes == fake.cuda.used_bytes == 0

    def test_without_enough_memory_keeps_what_it_had(self, small_fake):
        fake = small_fake(memory_bytes=64 * MIB)
        arena = GrowingArena(Device.require())
        arena.reserve(10 * MIB)
        fake.cuda._take(0)
        fake.cuda.device["others"] = 40 * MIB
        with pytest.raises(CudaOutOfMemory):
            arena.reserve(60 * MIB)
        assert arena.size_bytes == 10 * MIB
        arena.close()
        arena.close()
        assert fake.cuda.used_bytes == 40 * MIB

    def test_a_step_that_fails_half_way_leaks_nothing(self, fake, device):
        arena = GrowingArena(device)
        arena.reserve(2 * MIB)
        fake.cuda.fail("cuMemSetAccess", 1)
        with pytest.raises(Exception, match="cuMemSetAccess"):
            arena.reserve(8 * MIB)
        assert arena.size_bytes == fake.cuda.used_bytes == 2 * MIB


class TestMoving:
    def test_tells_before_it_moves_and_never_shrinks_in_part(self, fake):
        moves = []
        arena = MovingArena(lambda: moves.append(arena.address))
        arena.reserve(3 * MIB)
        first = arena.address
        arena.reserve(MIB)
        assert (arena.address, moves) == (first, [])
        arena.reserve(5 * MIB)
        assert moves == [first]
        arena.trim(MIB)
        assert arena.size_bytes == fake.cuda.used_bytes == 6 * MIB
        arena.trim(0)
        assert (arena.size_bytes, fake.cuda.used_bytes) == (0, 0)
        assert len(moves) == 2

    def test_without_enough_memory_is_as_large_as_before(self, small_fake):
        fake = small_fake(memory_bytes=64 * MIB)
        arena = MovingArena(lambda: None)
        arena.reserve(10 * MIB)
        with pytest.raises(CudaOutOfMemory):
            arena.reserve(100 * MIB)
        assert arena.address
        assert arena.size_bytes == fake.cuda.used_bytes == 10 * MIB


@pytest.mark.parametrize("arena", ["growing", "moving"])
def test_results_stay_right_while_a_lanes_arena_grows_and_shrinks(open_plan, open_lane, run, arena):
    lane = open_lane(arena=arena)
    small = open_plan(plan={"activation_bytes": 2 * MIB})
    large = open_plan(plan={"activation_bytes": 40 * MIB})
    for _ in range(2):
        run(lane, small, 32)
    sizes = [lane.memory.arena_bytes]
    for _ in range(2):
        for engine in (large, small):
            run(lane, engine, 32)
    sizes.append(lane.memory.arena_bytes)
    large.close()
    sizes.append(lane.memory.arena_bytes)
    for _ in range(3):
        run(lane, small, 32)
    large.load()
    for _ in range(3):
        for engine in (large, small):
            run(lane, engine, 32)
    assert sizes[:2] == [2 * MIB, 40 * MIB]
    assert sizes[2] == (2 if arena == "growing" else 40) * MIB
    assert (small.graphs.invalidations == 0) is (arena == "growing")
    assert small.graphs.hits > 0


@pytest.mark.parametrize("arena", ["growing", "moving", "private"])
def test_two_models_of_one_lane_take_the_larger_ones_activations_unless_private(
    fake, open_plan, open_lane, run, arena
):
    lane = open_lane(arena=arena)
    for activation in (6, 10, 4):
        engine = open_plan(plan={"activation_bytes": activation * MIB})
        run(lane, engine, 8)
    activations = fake.cuda.used_bytes - lane.memory.io_bytes
    assert activations == (20 if arena == "private" else 10) * MIB


def test_two_lanes_have_an_arena_each(fake, open_plan, open_lane, run):
    engine = open_plan(plan={"activation_bytes": 10 * MIB})
    lanes = [open_lane(), open_lane()]
    for lane in lanes:
        run(lane, engine, 8)
    assert [lane.memory.arena_bytes for lane in lanes] == [10 * MIB] * 2


def test_without_address_ranges_auto_moves(small_fake, open_plan, open_lane, run):
    fake = small_fake(address_ranges=False)
    engine, lane = open_plan(), open_lane()
    run(lane, engine, 8)
    assert fake.cuda.calls["cuMemAddressReserve"] == 0
    assert lane.memory.arena_bytes > 0


@pytest.mark.parametrize("arena", ["growing", "moving"])
def test_a_model_that_does_not_fit_fails_its_tile_and_others_go_on(
    small_fake, open_plan, open_lane, run, arena
):
    small_fake(memory_bytes=32 * MIB)
    lane = open_lane(arena=arena)
    small, large = open_plan(), open_plan(plan={"activation_bytes": 60 * MIB})
    run(lane, small, 8)
    for _ in range(lane.slot_count + 1):
        with pytest.raises(TileFailed, match=r"model .*x \[8, 16\].*OutOfMemory"):
            run(lane, large, 8)
    run(lane, small, 8)


@pytest.mark.parametrize("arena", ["growing", "moving"])
def test_a_slot_that_is_filled_outlives_a_larger_tile_that_does_not_fit(
    small_fake, open_plan, open_lane, run, fill, arena
):
    small_fake(memory_bytes=16 * MIB)
    lane, engine = open_lane(arena=arena), open_plan()
    large = open_plan(profiles=(Profile.of(x=([1, 4], [8, 16], [1, 4 * MIB])),))
    slot = fill(lane, engine)
    with pytest.raises(TileFailed, match="OutOfMemory"):
        lane.acquire(large, {"x": (1, 4 * MIB)})
    lane.submit(slot)
    assert (slot.wait()["y"] == 3).all()
    slot.release()
    run(lane, engine, 8)


def test_memory_that_others_took_for_a_moment_is_there_for_the_next_tile(
    small_fake, open_plan, open_lane, run, fill
):
    fake = small_fake(memory_bytes=32 * MIB)
    lane = open_lane(arena="moving")
    small, large = open_plan(), open_plan(plan={"activation_bytes": 60 * MIB})
    run(lane, small, 8)
    # Growing fails, and so does taking the old size back.
    fake.cuda.fail("cudaMalloc", OUT_OF_MEMORY, OUT_OF_MEMORY, OUT_OF_MEMORY)
    with pytest.raises(TileFailed, match="OutOfMemory"):
        run(lane, large, 8)
    with pytest.raises(TileFailed, match="OutOfMemory"):
        run(lane, small, 8)
    run(lane, small, 8)


def test_load_and_close_give_everything_back(fake, open_plan, open_lane, run):
    engine, lane = open_plan(), open_lane()
    taken = []
    for _ in range(5):
        engine.load()
        for _ in range(2):
            run(lane, engine, 8)
        engine.close()
        taken.append((fake.cuda.used_bytes, len(fake.cuda.execs), fake.contexts, fake.engines))
    assert taken == [(0, 0, 0, 0)] * 5
