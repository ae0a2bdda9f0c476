"""The texts of the simulated host's answers: /proc frames, sockets, checkpoints, units, facts."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from ddtui.demo.machine import DRAFTER_PATH, MODEL_PATH, Machine
from ddtui.demo.startup import DRAFTER_BYTES, DRAFTER_SHARDS, TARGET_BYTES, TARGET_SHARDS
from ddtui.demo.world import CORES, DRIVER, GPU_NAME, MEMORY_TOTAL, MODEL_DISK

_SERVICE_UID = 998
_SECTOR = 512


def gpu_processes(machine: Machine) -> str:
    """`nvidia-smi --query-compute-apps=pid,gpu_uuid,used_gpu_memory,process_name`."""
    engine, lines = machine.unit.engine, []
    pids = machine.unit.processes()
    for gpu in machine.world.gpus:
        pid = pids.get(f"TP{gpu.index}")
        held = engine.memory(gpu.index) >> 20 if engine and pid else 0
        if held:
            lines.append(f"{pid}, {gpu.uuid}, {held}, sglang::scheduler_TP{gpu.index}")
    return "".join(f"{line}\n" for line in lines)


def system_frame(machine: Machine, group: str) -> str:
    """One frame of the system program."""
    world, now = machine.world, machine.clock()
    world.advance()
    uptime = now - world.booted_at
    # A core ticks 100 times a second.
    user, total = int(world.busy_seconds * 100), int(uptime * CORES * 100)
    cache, engine = world.page_cache(), machine.unit.engine
    used = (23 << 30) + (96 << 30 if engine else 0)
    free = max(2 << 30, MEMORY_TOTAL - used - cache)
    load = world.cpu_cores(engine)
    sectors = world.disk_read // _SECTOR
    lines = [
        f"@time {now:.6f}",
        f"@cores {CORES}",
        "@file stat",
        f"cpu  {user} 0 {user // 9} {total - user - user // 9} 41200 0 5310 0 0 0",
        "@file meminfo",
        *(
            f"{name + ':':<15} {size >> 10:>9} kB"
            for name, size in (
                ("MemTotal", MEMORY_TOTAL),
                ("MemFree", free),
                ("MemAvailable", free + cache - (1 << 30)),
                ("Buffers", 410 << 20),
                ("Cached", cache),
                ("SwapCached", 0),
                ("Active", cache // 3),
                ("Inactive", cache // 2),
            )
        ),
        "@file loadavg",
        f"{load:.2f} {load:.2f} {load:.2f} 3/2210 48211",
        "@file net/dev",
        "Inter-|   Receive                                                |  Transmit",
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs "
        "drop fifo colls carrier compressed",
        "    lo: 913000000 610000    0    0    0     0          0         0 913000000 610000    0"
        "    0    0     0       0          0",
        f"  eno1: {int(81e9 + world.received)} 91000000    0    0    0     0          0         0 "
        f"{int(44e9 + world.sent)} 52000000    0    0    0     0       0          0",
        "@file diskstats",
        " 259       0 nvme0n1 812000 1200 61200000 240000 2110000 900000 88100000 610000 0 410000 "
        "850000 0 0 0 0 0 0",
        f" 259       1 {MODEL_DISK} {sectors // 512} 0 {sectors} {sectors // 2600} 14000 2000 "
        f"9800000 6100 0 {sectors // 2700} {sectors // 2600} 0 0 0 0 0 0",
        "@file uptime",
        f"{uptime:.2f} {uptime * CORES - world.busy_seconds:.2f}",
        "@io",
        *_io_lines(machine, group),
        "@end",
    ]
    return "\n".join(lines) + "\n"


def _io_lines(machine: Machine, group: str) -> list[str]:
    unit, engine = machine.unit, machine.unit.engine
    if not group or group != unit.control_group or engine is None:
        return []
    pids, total = unit.processes(), engine.read_bytes()
    ranks = [role for role in pids if role.startswith("TP")]
    share = total // max(1, len(ranks))
    return [f"{pid} {share if role in ranks else 41_000_000}" for role, pid in pids.items()]


def listener(machine: Machine, port: int, group: str) -> str:
    """Who listens on a port, and which sockets the unit's processes hold."""
    unit, lines = machine.unit, []
    main_pid = unit.main_pid
    inode = 900_000 + main_pid
    open_here = machine.engine_on(port) is not None
    if open_here:
        lines.append(f"@socket {_SERVICE_UID} {inode}")
    if open_here and group and group == unit.control_group:
        lines += [f"@process {pid} {_SERVICE_UID} readable" for pid in unit.processes().values()]
        lines.append(f"@holds {main_pid} {inode}")
    return "\n".join([*lines, "@end"]) + "\n"


def checkpoint(model: str) -> str | None:
    """The files of a model's folder; None for a folder that is not there."""
    known = {
        MODEL_PATH: (TARGET_BYTES, TARGET_SHARDS, _TARGET_CONFIG),
        DRAFTER_PATH: (DRAFTER_BYTES, DRAFTER_SHARDS, _DRAFTER_CONFIG),
    }
    path = model.rstrip("/")
    if path not in known:
        return None
    size, shards, config = known[path]
    sizes = [size // shards] * (shards - 1)
    sizes.append(size - sum(sizes))
    files = [
        f"@file {size} model-{index:05d}-of-{shards:06d}.safetensors"
        for index, size in enumerate(sizes, start=1)
    ]
    lines = [f"@path {path}", f"@disk /dev/{MODEL_DISK}", *files]
    return "\n".join([*lines, "@config", json.dumps(config, indent=2), "@end"]) + "\n"


_TARGET_CONFIG = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "model_type": "kimi_k25",
    "text_config": {
        "num_hidden_layers": 61,
        "hidden_size": 7168,
        "max_position_embeddings": 262144,
    },
}
_DRAFTER_CONFIG = {
    "architectures": ["DFlashDraftModel"],
    "block_size": 8,
    "dflash_config": {"mask_token_id": 163838, "target_layer_ids": [1, 15, 29, 43, 58]},
    "num_hidden_layers": 6,
}


def missing_unit(name: str, properties: Sequence[str]) -> str:
    """`systemctl show` of a unit that is not there."""
    values = {
        "Id": name,
        "LoadState": "not-found",
        "ActiveState": "inactive",
        "SubState": "dead",
        "Result": "success",
        "MainPID": "0",
        "NRestarts": "0",
        "ExecMainCode": "0",
        "ExecMainStatus": "0",
        "MemoryCurrent": "[not set]",
        "TasksCurrent": "[not set]",
        "NeedDaemonReload": "no",
    }
    return "\n".join(f"{key}={values.get(key, '')}" for key in properties)


def units(machine: Machine) -> str:
    """`systemctl show` of every service, in blocks."""
    names = ("Id", "ActiveState", "LoadState", "ExecStart", "FragmentPath")
    others = {
        "nvidia-persistenced.service": "/usr/bin/nvidia-persistenced --user nvidia-persistenced",
        "ssh.service": "/usr/sbin/sshd -D",
        "systemd-journald.service": "/lib/systemd/systemd-journald",
    }
    blocks = [machine.unit.show(names)]
    for name, command in others.items():
        path = shlex.split(command)[0]
        start = (
            f"{{ path={path} ; argv[]={command} ; ignore_errors=no ; start_time=[n/a] ; "
            "stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }"
        )
        values = (name, "active", "loaded", start, f"/lib/systemd/system/{name}")
        blocks.append("\n".join(f"{key}={value}" for key, value in zip(names, values, strict=True)))
    return "\n\n".join(blocks) + "\n"


def facts(machine: Machine) -> str:
    """What the doctor asks of a host."""
    systemctl, name = "/usr/bin/systemctl", machine.unit.name
    rules = [
        f"    (root) NOPASSWD: {systemctl} {verb} {name}" for verb in ("start", "stop", "restart")
    ]
    lines = [
        f"@time {machine.clock():.6f}",
        "@user ops 1501",
        "@groups ops adm systemd-journal video",
        "@hostname ct200",
        "@kernel Linux 6.8.0-60-generic",
        "@bash 5.2.15(1)-release",
        "@systemd systemd 252 (252.39-1~deb12u1)",
        "@state running",
        "@journalctl /usr/bin/journalctl",
        "@journal ",
        "@journal_entries 1",
        "@nvidia_smi /usr/bin/nvidia-smi",
        "@nvidia_smi_status 0",
        *(f"@gpu {gpu.index}, {GPU_NAME}, {DRIVER}" for gpu in machine.world.gpus),
        "@cgroup cgroup2fs",
        "@sudo /usr/bin/sudo",
        "@sudo_rule User ops may run the following commands on ct200:",
        *(f"@sudo_rule {rule}" for rule in rules),
        "@end",
    ]
    return "\n".join(lines) + "\n"
