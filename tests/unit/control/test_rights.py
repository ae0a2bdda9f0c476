"""Rights that sudo grants only with a password are none: nobody is there to type it."""

from __future__ import annotations

import pytest

from ddtui.control.rights import granted, never_asks, sudoers_lines, wants_password

COMMAND = "/usr/bin/systemctl stop llm.service"
ALL = "(ALL : ALL) ALL"
FREE = "(root) NOPASSWD: /usr/bin/systemctl stop llm.service"


def listed(*rules: str, defaults: str = "env_reset, mail_badpass") -> list[str]:
    """As sudo 1.9 prints it."""
    head = ["Matching Defaults entries for ops on ct200:", f"    {defaults}", ""]
    return [
        *head,
        "User ops may run the following commands on ct200:",
        *(f"    {r}" for r in rules),
    ]


@pytest.mark.parametrize(
    ("rules", "wants"),
    [
        ([ALL], True),
        ([FREE], False),
        ([ALL, FREE], False),
        ([FREE, ALL], True),  # the last one counts
        (["(root) /usr/bin/systemctl"], True),
        (["(root) NOPASSWD: /usr/bin/systemctl"], False),
        (["(root) NOPASSWD: /usr/bin/systemctl * llm*"], False),
        (["(root) NOPASSWD: /usr/bin/"], False),
        (['(root) /usr/bin/systemctl stop *, NOPASSWD: /usr/bin/systemctl ""'], True),
        (["(root) NOPASSWD: /bin/a, PASSWD: /usr/bin/systemctl stop *"], True),
        (["(www) ALL", FREE], False),
        ([ALL, "(root,dev) NOPASSWD: ALL"], False),
        ([ALL, "(#0) NOPASSWD: ALL"], False),
        ([ALL, "(ALL, !dev) NOPASSWD: ALL"], False),
        ([FREE, "(ALL, !root) ALL"], False),
        ([ALL, "(root : root) NOPASSWD: SETENV: ALL"], False),
        ([FREE, "(root) ALL, !/usr/bin/su"], True),
        (["(root) NOPASSWD: ALL, !/usr/bin/su"], False),
        (["(root) NOPASSWD: ALL, !/usr/bin/systemctl"], None),  # whether it is allowed, sudo says
        # Not understood here, or about other commands: that is not known.
        ([], None),
        ([ALL, "(ALL) CWD=/ NOPASSWD: ALL"], None),
        ([ALL, "(%wheel) NOPASSWD: ALL"], None),
        ([ALL, "(ADMINS) NOPASSWD: ALL"], None),
        (["(root) ^/usr/bin/systemctl .*$"], None),
        ([FREE, "(root) NOPASSWD: ^/usr/bin/systemctl .*$"], False),
        ([r"(root) /usr/bin/tee /etc/systemd/system/llm.service.d/50-ddtui.conf\:x"], None),
        (["(root) NOPASSWD: /usr/bin/systemctl", "start llm.service, /usr/bin/systemctl stop",
          "llm.service"], False),  # folded
    ],
)  # fmt: skip
def test_the_last_rule_that_fits_decides(rules: list[str], wants: bool | None) -> None:
    assert wants_password(listed(*rules), COMMAND) is wants


@pytest.mark.parametrize(
    ("defaults", "wants"),
    [
        ("!authenticate", False),
        ("!authenticate, authenticate", True),
        ("env_reset, exempt_group=wheel", None),
        ("timestamp_type=global", None),
    ],
)
def test_defaults_may_do_without_a_password(defaults: str, wants: bool | None) -> None:
    assert wants_password(listed(ALL, defaults=defaults), COMMAND) is wants
    assert wants_password(listed(FREE, defaults=defaults), COMMAND) is False


def test_a_backslash_in_a_units_name_is_granted_as_sudo_matches_it() -> None:
    r"""Of the four one is left for the pattern's escape, and one for the name.

    A rule that is listed with one stands for the name without it.
    """
    unit = r"llm@gpu\x2d0.service"
    stop = f"/usr/bin/systemctl stop {unit}"
    assert r"gpu\\\\x2d0.service" in sudoers_lines("ops", unit)[1]
    assert granted([r"(root) NOPASSWD: /usr/bin/systemctl stop llm@gpu\\x2d0.service"]) == {stop}
    assert stop not in granted([rf"(root) NOPASSWD: {stop}"])


@pytest.mark.parametrize(
    ("rules", "never"),
    [
        ([], False),
        ([FREE], True),
        ([ALL], False),
        ([FREE, ALL], False),
        (["(root) NOPASSWD: ^/usr/bin/systemctl .*$, /usr/bin/tee ^.*$"], True),
        (["(root) NOPASSWD: /bin/a, PASSWD: ^/usr/bin/systemctl .*$"], False),
        (["(root) ^/usr/bin/systemctl .*$"], False),
        (["(www) ALL", FREE], True),  # of another user
        (["ALL", FREE], False),  # not understood
        (["(root) NOPASSWD: /usr/bin/systemctl", "start llm.service"], True),  # folded
    ],
)
def test_where_every_rule_goes_without_a_password_any_command_does(
    rules: list[str], never: bool
) -> None:
    assert never_asks(listed(*rules)) is never
