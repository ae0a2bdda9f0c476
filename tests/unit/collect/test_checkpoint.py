from __future__ import annotations

from pathlib import Path

from ddtui.collect.base import Context
from ddtui.collect.checkpoint import CheckpointCollector, hub_cache, parse_checkpoint, weights
from ddtui.collect.observed import Observed
from ddtui.collect.programs import CHECKPOINT
from ddtui.collect.settings import HostSettings
from ddtui.core.samples import CheckpointSample, SourceSample, SourceStatus, UnitSample, UnitStatus
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Completed
from ddtui.hosts.local import LocalHost
from tests.unit.collect.fakes import FakeHost, Recorder, collecting

COMMAND = (
    *("python", "-m", "sglang.launch_server", "--model-path", "/m/kimi"),
    *("--speculative-draft-model-path", "/m/draft"),
)


def test_shards_are_counted_and_other_formats_are_not() -> None:
    shards = [(f"model-0000{n}-of-00002.safetensors", 100) for n in (1, 2)]
    whole = [("consolidated.safetensors", 200), ("pytorch_model.bin", 200)]
    assert weights(shards + whole) == (200, 2)
    assert weights([("model.safetensors", 7)]) == (7, 1)
    assert weights([("pytorch_model-00001-of-00001.bin", 5), ("training.pt", 1)]) == (5, 1)
    assert weights([("config.json", 1)]) == (0, 0)


def test_a_folder_without_weights_has_no_size() -> None:
    sample = parse_checkpoint("@path /m\n@disk tmpfs\n@end\n", 1.0, "m", "target")
    assert (sample.size, sample.shards, sample.path, sample.disk) == (None, None, "/m", "tmpfs")


def test_the_hub_cache_of_the_unit() -> None:
    unit = UnitStatus("a", environment=("HF_HOME=/data/hf", "B", "C=d"))
    assert hub_cache(unit, None) == "/data/hf/hub"
    assert hub_cache(unit, "/mine") == "/mine"
    both = UnitStatus("a", environment=("HF_HOME=/data/hf", "HF_HUB_CACHE=/cache"))
    assert hub_cache(both, None) == "/cache"
    assert hub_cache(UnitStatus("a"), None) == ""


async def test_the_real_program_on_folders_and_hub_names(tmp_path: Path) -> None:
    model = tmp_path / "my model"
    model.mkdir()
    (model / "model-00001-of-00002.safetensors").write_bytes(b"x" * 100)
    (model / "model-00002-of-00002.safetensors").write_bytes(b"x" * 50)
    (model / "config.json").write_text('{"a": 1}\n@file 99 x.safetensors')
    snapshot = tmp_path / "hub" / "models--org--name" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    blob = tmp_path / "blob"
    blob.write_bytes(b"y" * 70)
    (snapshot / "model.safetensors").symlink_to(blob)
    host = LocalHost()
    await host.start()
    absolute = await host.run(CHECKPOINT, str(model), "", "")
    relative = await host.run(CHECKPOINT, "my model", str(tmp_path), "")
    named = await host.run(CHECKPOINT, "org/name", "", str(tmp_path / "hub"))
    missing = await host.run(CHECKPOINT, "org/none", "", "")
    await host.close()
    for answer in (absolute, relative):
        sample = parse_checkpoint(answer.stdout.decode(), 1.0, "m", "target")
        assert (sample.size, sample.shards, sample.path) == (150, 2, str(model))
        assert sample.disk
    sample = parse_checkpoint(named.stdout.decode(), 1.0, "m", "target")
    assert (sample.size, sample.shards) == (70, 1)
    assert missing.status == 3
    assert b"no such folder" in missing.stderr


async def test_both_models_are_measured_once(
    host: FakeHost, recorder: Recorder, context: Context
) -> None:
    host.answers[CHECKPOINT.label] = lambda model, *_: Completed(
        0, f"@path {model}\n@disk /dev/sda1\n@file 10 m.safetensors\n@end\n".encode(), b""
    )
    observed = Observed(SGLANG)
    recorder.forward = observed.apply

    def unit(invocation: str) -> UnitSample:
        return UnitSample(0.0, "x", UnitStatus("a", invocation=invocation, command_line=COMMAND))

    observed.apply(unit("1"))
    collector = CheckpointCollector(HostSettings(), SGLANG, observed, context)
    async with collecting(collector, host, recorder):
        await recorder.until(lambda: len(recorder.of(CheckpointSample)) == 2)
        observed.apply(unit("2"))
        await recorder.until(lambda: len(recorder.of(CheckpointSample)) == 4)
    assert [sample.role for sample in recorder.of(CheckpointSample)] == ["target", "drafter"] * 2
    assert len(host.calls) == 2
    assert observed.model_disk == "/dev/sda1"


async def test_a_model_that_is_not_found_is_said(
    host: FakeHost, recorder: Recorder, context: Context
) -> None:
    host.answers[CHECKPOINT.label] = lambda *_: Completed(3, b"", b"no such folder: /m/kimi\n")
    observed = Observed(SGLANG)
    observed.apply(UnitSample(0.0, "x", UnitStatus("a", invocation="1", command_line=COMMAND)))
    collector = CheckpointCollector(HostSettings(), SGLANG, observed, context)
    async with collecting(collector, host, recorder):
        await recorder.until(lambda: len(recorder.of(SourceSample)) == 2)
    said = recorder.of(SourceSample)[-1]
    assert said.status is SourceStatus.FAILED
    assert "no such folder" in said.detail
