"""What a launch and its drafter bear, as matching is told of it."""

from __future__ import annotations

from ddtui.core.launch import Launch, Limits
from ddtui.engines.sglang.checks import CheckContext, limits

COMMAND = ("python", "-m", "sglang.launch_server", "--model-path", "/m")
DRAFTED = (*COMMAND, "--speculative-algorithm", "DDTREE")


def of(*flags: str, config: dict[str, object] | None = None) -> Limits:
    launch = Launch((*DRAFTED, *flags))
    return limits(CheckContext(before=launch, after=launch, drafter_config=config))


def test_what_a_launch_bears() -> None:
    found = of(
        *("--max-running-requests", "16"),
        *("--speculative-ddtree-cuda-graph-buckets", "9 17 33"),
        config={"dflash_config": {"block_size": 8}},
    )
    assert found == Limits(trained_block=8, max_running=16, graph_widths=(9, 17, 33))


def test_what_is_not_known_is_not_guessed() -> None:
    found = of()
    assert (found.trained_block, found.graph_widths) == (None, ())
    plain = Launch(("sh", "-c", "start"))
    assert limits(CheckContext(before=plain, after=plain)) == Limits()
