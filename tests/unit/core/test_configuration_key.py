"""The key of a configuration: what it is indifferent to, and what it tells apart."""

from hypothesis import given
from hypothesis import strategies as st

from ddtui.core.configuration_key import configuration_key
from ddtui.core.redact import redact_argv, redact_environment

PROGRAM = ("/opt/venv/bin/python", "-m", "sglang.launch_server")
NAMES = st.sampled_from(["tp-size", "speculative-ddtree-budget", "port", "enable-metrics", "lora"])
VALUES = st.lists(st.from_regex(r"[a-z0-9./_]{1,12}|-[0-9]{1,3}", fullmatch=True), max_size=3)
FLAGS = st.dictionaries(NAMES, VALUES)
VARIABLES = st.dictionaries(
    st.sampled_from(["NCCL_DEBUG", "HF_HOME", "SGLANG_DDTREE_MAX_TOPK"]), st.text(max_size=8)
)


def words(flags: dict[str, list[str]], order: list[str], *, joined: bool = False) -> list[str]:
    result: list[str] = list(PROGRAM)
    for name in order:
        if joined and len(flags[name]) == 1:
            result.append(f"--{name}={flags[name][0]}")
        else:
            result += [f"--{name}", *flags[name]]
    return result


def test_it_is_the_same_in_every_process() -> None:
    argv = [*PROGRAM, "--tp-size", "8", "--speculative-ddtree-budget", "16"]
    assert configuration_key(argv, {"NCCL_DEBUG": "WARN"}) == "3d22a1acee5cec58"


@given(flags=FLAGS, variables=VARIABLES, data=st.data())
def test_order_and_style_do_not_count(
    flags: dict[str, list[str]], variables: dict[str, str], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(list(flags)))
    shuffled = dict(data.draw(st.permutations(list(variables.items()))))
    assert configuration_key(words(flags, list(flags)), variables) == configuration_key(
        words(flags, order, joined=True), shuffled
    )


@given(flags=FLAGS, other=FLAGS)
def test_other_flags_are_another_configuration(
    flags: dict[str, list[str]], other: dict[str, list[str]]
) -> None:
    same = configuration_key(words(flags, list(flags))) == configuration_key(
        words(other, list(other))
    )
    assert same == (flags == other)


@given(flags=FLAGS, earlier=VALUES, name=NAMES)
def test_the_last_use_of_a_flag_counts(
    flags: dict[str, list[str]], earlier: list[str], name: str
) -> None:
    flags = {**flags, name: ["9"]}
    plain = words(flags, list(flags))
    repeated = [*PROGRAM, f"--{name}", *earlier, *plain[len(PROGRAM) :]]
    assert configuration_key(repeated) == configuration_key(plain)


def test_a_secret_does_not_count_masked_or_renewed() -> None:
    argv = [*PROGRAM, "--api-key", "sk-abcdefgh12345", "--tp-size", "8"]
    environment = {"HF_TOKEN": "hf_aaaaaaaaaaaaaaaaaaaa", "PROXY": "http://me:secret1@proxy:1"}
    masked = dict(
        pair.partition("=")[::2]
        for pair in redact_environment(f"{name}={value}" for name, value in environment.items())
    )
    key = configuration_key(argv, environment)
    assert configuration_key(redact_argv(argv), masked) == key
    assert configuration_key([*PROGRAM, "--tp-size", "8"], {"PROXY": masked["PROXY"]}) == key


def test_what_every_start_sets_anew_does_not_count() -> None:
    plain = configuration_key(PROGRAM, {"A": "1"})
    marked = {"A": "1", "INVOCATION_ID": "ab", "DDTUI_RECORD": "x", "JOURNAL_STREAM": "8:1"}
    assert configuration_key(["exec", *PROGRAM], marked) == plain


def test_another_interpreter_or_variable_is_another_configuration() -> None:
    keys = {
        configuration_key(PROGRAM),
        configuration_key(("/opt/other/bin/python", *PROGRAM[1:])),
        configuration_key(PROGRAM, {"A": "1"}),
        configuration_key(PROGRAM, {"A": "2"}),
        configuration_key([*PROGRAM, "--A", "1"]),
    }
    assert len(keys) == 5


def test_bytes_that_are_no_text_make_a_key_of_their_own() -> None:
    """A path on Linux may be of such bytes; Python keeps them as lone surrogates."""
    paths = [b"/models/\xff\xfe".decode("utf-8", "surrogateescape"), "/models/\ufffd\ufffd"]
    keys = {configuration_key([*PROGRAM, "--model-path", each]) for each in paths}
    assert len(keys) == 2
