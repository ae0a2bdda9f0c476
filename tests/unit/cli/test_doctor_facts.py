"""What the doctor concludes from a host's facts. The texts are those of real hosts."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from ddtui.cli.doctor.check import Check, Verdict, bounded
from ddtui.cli.doctor.facts import Facts, check_clock, check_facts, parse_facts
from ddtui.cli.doctor.rights import ask_rights, check_rights
from ddtui.control.rights import commands_for, granted, sudoers_lines
from ddtui.control.unit_programs import RIGHTS
from ddtui.hosts.base import LinkDown, Program
from ddtui.hosts.local import LocalHost

OUTPUT = b"""\
Welcome to ct200!
@time 1795984817.123456
@user ops 1501
@groups ops adm systemd-journal
@hostname ct200
@kernel Linux 6.8.0-60-generic
@bash 5.2.21(1)-release
@systemd systemd 255 (255.4-1ubuntu8.8)
@state running
@journalctl /usr/bin/journalctl
@journal
@journal_entries 1
@nvidia_smi /usr/bin/nvidia-smi
@nvidia_smi_status 0
@gpu 0, NVIDIA RTX PRO 6000 Blackwell Server Edition, 580.95.05
@gpu 1, NVIDIA RTX PRO 6000 Blackwell Server Edition, 580.95.05
@cgroup cgroup2fs
@sudo /usr/bin/sudo
@sudo_rule sudo: a password is required
@end
"""


def facts(**changes: str | list[str]) -> Facts:
    values = dict(parse_facts(OUTPUT).values)
    for name, value in changes.items():
        values[name] = [value] if isinstance(value, str) else value
    return Facts(values, complete=True)


def found(name: str, **changes: str | list[str]) -> Check:
    checks = check_facts(facts(**changes), unit="llm.service", user_unit=False)
    return next(check for check in checks if check.name == name)


def test_a_good_host_has_no_complaint() -> None:
    checks = check_facts(facts(), unit="llm.service", user_unit=False)
    assert {check.verdict for check in checks} == {Verdict.OK}
    assert found("gpus").detail == "2 x NVIDIA RTX PRO 6000 Blackwell Server Edition"


def test_facts_that_were_cut_off_are_known_to_be() -> None:
    assert not parse_facts(OUTPUT.removesuffix(b"@end\n")).complete
    hostile = parse_facts(b"@hostname \x1b[2Jct\xff200\n@end\n")
    assert "\x1b" not in hostile.one("hostname")


@pytest.mark.parametrize(
    ("name", "changes", "verdict", "told"),
    [
        ("bash", {"bash": "4.4.20(1)-release"}, Verdict.FAIL, "bash 5.0 or newer"),
        ("systemd", {"systemd": "systemd 232"}, Verdict.FAIL, "systemd 239 or newer"),
        ("systemd", {"state": "offline"}, Verdict.FAIL, ""),
        (
            "systemd",
            {"systemd": "bash: systemctl: command not found"},
            Verdict.FAIL,
            "runs systemd",
        ),
        ("systemd", {"state": "degraded"}, Verdict.OK, ""),
        ("control groups", {"cgroup": "tmpfs"}, Verdict.WARN, "unified_cgroup_hierarchy"),
        ("journal", {"journalctl": ""}, Verdict.FAIL, "engine's log"),
        (
            "journal",
            {"journal_entries": "0", "groups": "dev"},
            Verdict.FAIL,
            "sudo usermod -aG systemd-journal ops",
        ),
        ("journal", {"journal_entries": "0"}, Verdict.WARN, ""),
        ("nvidia-smi", {"nvidia_smi": ""}, Verdict.WARN, "set nvidia_smi"),
        (
            "nvidia-smi",
            {"nvidia_smi_status": "9", "gpu": ["NVIDIA-SMI has failed because it couldn't"]},
            Verdict.FAIL,
            "on the host itself",
        ),
    ],
)
def test_what_is_missing_is_told_with_a_remedy(
    name: str, changes: dict[str, str | list[str]], verdict: Verdict, told: str
) -> None:
    check = found(name, **changes)
    assert check.verdict is verdict
    assert told in check.remedy


@pytest.mark.parametrize(
    ("ahead", "verdict"),
    [(0.0, Verdict.OK), (1.4, Verdict.OK), (1.6, Verdict.WARN), (-9, Verdict.WARN)],
)
def test_the_clock_is_judged_with_the_links_delay_in_mind(ahead: float, verdict: Verdict) -> None:
    at = 1795984817.123456 - ahead
    assert check_clock(facts(), at - 0.5, at + 0.5).verdict is verdict


# ---- rights ----


def test_sudoers_lines_name_each_command_and_escape_what_sudo_would_read() -> None:
    folder = "/etc/systemd/system/llm.service.d"
    assert sudoers_lines("ops", "llm.service") == [
        "ops ALL=(root) NOPASSWD: /usr/bin/systemctl start llm.service",
        "ops ALL=(root) NOPASSWD: /usr/bin/systemctl stop llm.service",
        "ops ALL=(root) NOPASSWD: /usr/bin/systemctl reset-failed llm.service",
        "ops ALL=(root) NOPASSWD: /usr/bin/systemctl daemon-reload",
        f"ops ALL=(root) NOPASSWD: /usr/bin/mkdir -p {folder}",
        f"ops ALL=(root) NOPASSWD: /usr/bin/tee {folder}/50-ddtui.conf.new",
        "ops ALL=(root) NOPASSWD: /usr/bin/mv -T "
        f"{folder}/50-ddtui.conf.new {folder}/50-ddtui.conf",
    ]
    assert sudoers_lines("ops", r"a\x2db:c.service")[0].endswith(r"start a\\\\x2db\:c.service")


def rights(*rules: str, missing: Iterable[str] = (), user_unit: bool = False, **more: str) -> Check:
    return check_rights(
        facts(sudo_rule=list(rules), **more),
        set(missing),
        unit="llm.service",
        user_unit=user_unit,
    )


def test_rights_that_are_granted_are_seen() -> None:
    heading = "User ops may run the following commands on ct200:"
    assert rights(heading, "(root) NOPASSWD: /usr/bin/systemctl ^.* llm$").verdict is Verdict.OK
    assert rights("(ALL : ALL) NOPASSWD: ALL").verdict is Verdict.OK
    assert rights(user="root 0").verdict is Verdict.OK
    assert rights(user_unit=True).verdict is Verdict.OK


def test_a_rule_with_a_password_leaves_a_doubt_that_commands_by_name_do_not() -> None:
    listed = ", ".join(commands_for("llm.service"))
    assert rights("(ALL : ALL) ALL", f"(root) NOPASSWD: {listed}").verdict is Verdict.OK
    folded = listed.replace(", ", ",\n", 1).split("\n")
    both = ("(ALL : ALL) ALL", f"(root) NOPASSWD: {folded[0]}", folded[1])
    assert rights(*both).verdict is Verdict.OK
    start = "(root) NOPASSWD: /usr/bin/systemctl start llm.service"
    doubt = rights("(ALL : ALL) ALL", start)
    assert doubt.verdict is Verdict.WARN
    assert "perhaps those for 6 of them" in doubt.detail


async def test_sudo_itself_is_asked(tmp_path: Path) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\ncase "$*" in "-n -l /usr/bin/systemctl "*) ;; *) exit 1 ;; esac\n')
    sudo.chmod(0o755)
    script = f"PATH={tmp_path}:$PATH\n" + RIGHTS.script.replace('[ "$UID" = 0 ]', "false", 1)
    host = LocalHost()
    await host.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ddtui.cli.doctor.rights.RIGHTS", Program(RIGHTS.label, script))
            missing = await ask_rights(host, "llm.service")
    finally:
        await host.close()
    assert missing == set(commands_for("llm.service")[4:])


def test_rights_that_need_a_password_or_another_user_do_not_count() -> None:
    assert granted(["(ALL : ALL) ALL"]) == set()
    assert granted(["(www) NOPASSWD: ALL"]) == set()
    assert granted(["(root) NOPASSWD: /bin/a, PASSWD: /bin/b, NOPASSWD: /bin/c"]) == {
        "/bin/a",
        "/bin/c",
    }
    assert granted([r"(root) NOPASSWD: SETENV: /bin/a b\:c"]) == {"/bin/a b:c"}


def test_only_the_missing_rights_are_listed() -> None:
    commands = commands_for("llm.service")
    check = rights("(root) NOPASSWD: /usr/bin/systemctl start *", missing=commands[1:])
    assert check.verdict is Verdict.WARN
    assert "6 of 7" in check.detail
    lines = check.remedy.splitlines()
    assert lines[0].endswith("add:")
    assert len(lines) == 7
    assert not any("systemctl start" in line for line in lines)
    none = rights("sudo: a password is required", missing=commands, sudo="")
    assert none.detail.startswith("sudo is not installed")
    assert none.remedy == "on the host: install sudo, or log in as root"


# ---- bounds ----


async def test_a_check_that_hangs_or_breaks_is_a_result() -> None:
    import asyncio

    async def hangs() -> list[Check]:
        await asyncio.Event().wait()
        return []

    async def breaks() -> list[Check]:
        raise LinkDown("gone", "plug it in")

    async def errs() -> list[Check]:
        raise ValueError("oops")

    (hung,) = await bounded("a", hangs, limit=0.01)
    assert (hung.verdict, hung.detail) == (Verdict.FAIL, "no answer within 0.01 s")
    (broken,) = await bounded("b", breaks)
    assert (broken.detail, broken.remedy) == ("gone", "plug it in")
    (erred,) = await bounded("c", errs)
    assert "ValueError: oops" in erred.detail
