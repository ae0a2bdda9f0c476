"""A file is written whole, through its links, and nothing but a file is ever replaced by one."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from ddtui.config.edit import write_default
from ddtui.config.errors import ConfigError
from ddtui.config.whole_file import is_replaced, write_whole

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes devices")
FULL, NULL, LOOP_DISK = os.makedev(1, 7), os.makedev(1, 3), os.makedev(7, 251)


def device(path: Path, kind: int, number: int) -> Path:
    try:
        os.mknod(path, kind | 0o600, number)
    except PermissionError:
        pytest.skip("may make no devices")
    return path


def leftovers(folder: Path) -> list[Path]:
    return list(folder.glob(".ddtui-*"))


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    target = tmp_path / "there" / "results.csv"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o640)
    first, second = tmp_path / "first", tmp_path / "second"
    first.symlink_to("there/results.csv")
    second.symlink_to(first)
    write_whole(second, b"new")
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert (first.is_symlink(), second.is_symlink(), target.is_symlink()) == (True, True, False)
    assert leftovers(tmp_path) == leftovers(target.parent) == []


def test_a_link_to_what_is_not_there_yet(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("later.csv")
    write_whole(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "later.csv").read_bytes() == b"new"


def test_a_loop_of_links_is_told(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("link")
    with pytest.raises(OSError, match="symbolic links") as caught:
        write_whole(link, b"new")
    assert caught.value.errno == errno.ELOOP


def test_a_new_private_file_is_for_its_owner_only(tmp_path: Path) -> None:
    write_whole(tmp_path / "mine", b"", private=True)
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o600


def test_a_name_as_long_as_names_may_be(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 255)
    write_whole(file, b"new")
    assert file.read_bytes() == b"new"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe, text = tmp_path / "pipe", b"line\n" * 100_000  # more than a pipe holds
    os.mkfifo(pipe)
    read: list[bytes] = []
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)

    def reader() -> None:
        with os.fdopen(reading, "rb") as stream:
            read.append(stream.read())

    thread = threading.Thread(target=reader)
    writer = os.open(pipe, os.O_WRONLY)  # so that the reader meets no end before it begins
    thread.start()
    write_whole(pipe, text)
    os.close(writer)
    thread.join(timeout=30)
    assert read == [text]
    assert pipe.is_fifo()


def test_a_pipe_without_a_reader_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="nobody reads this pipe: start its reader first"):
        write_whole(pipe, b"new")
    assert pipe.is_fifo()


def test_what_another_process_gives_as_a_descriptor(tmp_path: Path) -> None:
    """`--out >(gzip > x)` names a pipe that has no name of its own."""
    reading, writing = os.pipe()
    write_whole(Path(f"/proc/self/fd/{writing}"), b"new")
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        assert stream.read() == b"new"


def test_a_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="it is a folder: name a file in it"):
        write_whole(tmp_path, b"new")


@needs_root
def test_a_device_is_written_to_and_a_full_one_told(tmp_path: Path) -> None:
    full, null = device(tmp_path / "full", stat.S_IFCHR, FULL), tmp_path / "null"
    device(null, stat.S_IFCHR, NULL)
    try:
        write_whole(null, b"new")
        with pytest.raises(OSError, match="No space left") as caught:
            write_whole(full, b"new")
    except PermissionError:
        pytest.skip("this file system has no devices")
    assert caught.value.errno == errno.ENOSPC
    assert (full.is_char_device(), null.is_char_device()) == (True, True)
    assert not is_replaced(full)
    assert leftovers(tmp_path) == []


@needs_root
def test_a_disk_is_never_written(tmp_path: Path) -> None:
    disk = device(tmp_path / "disk", stat.S_IFBLK, LOOP_DISK)
    with pytest.raises(OSError, match="all of which would be overwritten"):
        write_whole(disk, b"new")
    assert disk.is_block_device()


def test_what_was_there_stays_where_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = tmp_path / "results.csv"
    file.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(file, b"new")
    assert file.read_text() == "old"
    assert leftovers(tmp_path) == []


def test_the_configuration_is_kept_in_files_only(tmp_path: Path) -> None:
    pipe = tmp_path / "config.toml"
    os.mkfifo(pipe)
    with pytest.raises(
        ConfigError, match="is no file: nothing that is written there would be kept"
    ):
        write_default(pipe, force=True)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]
