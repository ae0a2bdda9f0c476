"""Reads a saved log: what journalctl printed (as text or JSON), or an engine's bare output.

Lines are read in a stream, so that a log may be larger than memory. The formats of journalctl's
text output are those of its `--output=` (journalctl(1)): short, short-precise, short-iso(-precise),
short-full, short-unix, short-monotonic, short-delta and with-unit; export is read too. Times
without a zone are taken as UTC, those without a year as of the last twelve months.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import IO, cast

import msgspec

from ddtui.collect import journal_export
from ddtui.collect.journal_entries import JournalReader
from ddtui.collect.journal_writers import Held, Units, Writers
from ddtui.core.journal_text import split_message
from ddtui.core.kernel_words import KernelLine
from ddtui.core.log_wrapping import Wrapping
from ddtui.core.samples import JournalLine
from ddtui.core.text import clean

CHUNK = 1 << 18
LONGEST_LINE = 1 << 18
"""Characters of one line; the rest of it is dropped."""
TEXT_LIMIT = 48 * 1024
KERNEL_KEPT = 500
_HEAD = 8192
_FEW = 0.3
_ODD_SHARE = 0.05
"""Share of control characters in the beginning above which it is no text."""


class NotALog(ValueError):
    """What was given cannot be read as a log: the message says why and what to do."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


_PREFIX = re.compile(
    r"(?:(?P<short>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)(?:\.\d{1,6})?"
    r"|(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?(?P<zone>[+-]\d\d:?\d\d)"
    r"|[A-Z][a-z]{2} (?P<full>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d{1,6})? [A-Z+\-\d:]{1,8}"
    r"|(?P<unix>\d{9,11}\.\d{1,6})"
    r"|\[ {0,12}(?P<boot>\d{1,12}\.\d{6})(?: <[ \d.]{0,24}[ *]>| {0,24})\])"
    r" (?P<host>[^\s\[(:]{1,255}|\[[\w.-]{1,80}\])"
    r" (?P<ident>\S{1,255}?)(?:\[(?P<pid>\d{1,10})\])?: ?"
)
_CONTAINER = re.compile(r"(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?Z ")
# What ddtui's own log screen saves: always milliseconds and UTC, which journalctl never prints.
_SAVED = re.compile(r"(?:(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}\+00:00|no time)(?: |$)")
_SAVED_MANAGER = re.compile(
    r"\S+\.service: |(?:Start|Stopp)(?:ed|ing) (?:\S+\.service\b|.*\.$)|\[ddtui\] "
)
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,32}[mK]")
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_LEVEL_STAMP = re.compile(
    r"(?:\([\w.-]{1,60}(?: rank=\d{1,5})? pid=\d{1,9}\) ?)?"
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d:\d\d:\d\d) \["
)
_BEGINS = re.compile("server_args=|vLLM API server version")
_ABOUT_ENGINES = re.compile("Xid|GPU|NVRM|NVLink|amdgpu|[Mm]emory|oom|segfault")
"""What of the kernel's log may tell why an engine ended: firewalls write a lot more."""
_MANAGER = re.compile(r"systemd|(?:\S+/)?init\.scope|user@\d+\.service")
_OTHER_UNITS = re.compile(
    r"\S\.(?:scope|timer|slice|mount|target|socket|path|device|swap)\b|\b[Ss]ession \d"
)

_MAGIC = (
    (b"LPKSHHRH", "a binary journal file", "journalctl --file=FILE -a -o json"),
    (b"\x28\xb5\x2f\xfd", "compressed (zstd)", "zstdcat FILE"),
    (b"\xfd7zXZ", "compressed (xz)", "xzcat FILE"),
    (b"BZh", "compressed (bzip2)", "bzcat FILE"),
    (b"PK\x03\x04", "a zip archive", "unzip -p FILE"),
)

_OTHER_FORMATS = {
    "json-pretty": re.compile(r"[\[{]$"),
    "export, behind other lines": re.compile("__CURSOR="),
    "json-sse": re.compile(r"data: \{"),
    "json-seq": re.compile("\x1e"),
    "verbose": re.compile(r"\S.{9,60} \[s=[0-9a-f]{32};i="),
}
"""How an entry begins in journalctl's other formats (journalctl(1), `--output=`)."""


class _Written(msgspec.Struct):
    """A line of a log of which each line is an object: docker's files, collectors' exports."""

    log: object = None
    message: object = None
    line: object = None
    text_payload: object = msgspec.field(name="textPayload", default=None)
    msg: object = None
    text: object = None
    time: object = None
    timestamp: object = None

    def words(self) -> str:
        """What the program wrote."""
        names = (self.log, self.message, self.line, self.text_payload, self.msg, self.text)
        return next((each for each in names if isinstance(each, str)), "")

    def stamp(self) -> str:
        """When it wrote that, if the time is written out."""
        return next((each for each in (self.time, self.timestamp) if isinstance(each, str)), "")


class _Origin(msgspec.Struct):
    """The fields of a journal entry that say whose it is."""

    unit: object = msgspec.field(name="_SYSTEMD_UNIT", default="")
    user_unit: object = msgspec.field(name="_SYSTEMD_USER_UNIT", default="")
    about: object = msgspec.field(name="UNIT", default="")
    about_user: object = msgspec.field(name="USER_UNIT", default="")
    transport: object = msgspec.field(name="_TRANSPORT", default="")
    stamp: object = msgspec.field(name="__REALTIME_TIMESTAMP", default="")
    message: object = msgspec.field(name="MESSAGE", default=None)


_origin = msgspec.json.Decoder(_Origin)
_written = msgspec.json.Decoder(_Written)


class SavedLog:
    """A log that is read once, from its beginning to its end."""

    def __init__(self, stream: IO[bytes], *, now: float, unit: str = "") -> None:
        self._stream = stream
        self._packed: gzip.GzipFile | None = None
        """What unpacks the stream, where that is compressed."""
        self._now = datetime.fromtimestamp(now, UTC)
        self.unit = unit
        """Unit whose lines are wanted, where the log holds those of several; empty: not known."""
        self._kernel: deque[KernelLine] = deque(maxlen=KERNEL_KEPT)
        self._is_journal = False
        """Engine and kernel have stamps of one clock."""
        self.lines_read = 0
        self.bytes_read = 0
        self.cut = ""
        """Why its compressed data could not be read to its end; empty where it could."""
        self._reader = JournalReader()
        self._stamp = 0.0
        self._pid: int | None = None
        self._unit_of_last = ""
        self._writers, self._units = Writers(), Units()
        self._writer_of_last = ""
        self._is_saved = False
        self._outer, self._inner = Wrapping(), Wrapping()
        """What stands before the lines, and before the messages of the journal's lines."""
        self._begun = ""

    def lines(self) -> Iterator[JournalLine]:
        """The lines of engine and service manager. Raises NotALog, OSError."""
        is_begin = True
        for text in self._texts():
            self.lines_read += 1
            if is_begin:
                _refuse_other_formats(text)
                is_begin = text.startswith("-- ")  # older ones head a log: `-- Logs begin at ...`
            if text.startswith(('{"', "{ ")):
                yield from self._json(text)
            else:
                yield from self._plain(text)
        for line in self._begun.splitlines():  # the end of a program that ended within a line
            yield from self._plain(line)

    # ---- bytes to text --------------------------------------------------------------------------

    def _texts(self) -> Iterator[str]:
        """Lines of text without their end, cut at LONGEST_LINE."""
        head = self._read()
        if not head:
            raise NotALog("it is empty")
        if head.startswith(b"\x1f\x8b"):
            joined = cast("IO[bytes]", _Joined(head, self._stream))
            self._packed = gzip.GzipFile(fileobj=joined)
            self.bytes_read = 0
            head = self._read()
            if self.cut and not head:
                raise NotALog(f"its compressed data is {self.cut}", "copy it once more, whole")
            if not head:
                raise NotALog("it is empty")
        if head.startswith(journal_export.FIRST):
            yield from journal_export.entries(head, self._read)
            return
        decoder = _decoder_for(head)
        pending = ""
        is_cut = False
        chunk = head
        while chunk:
            *whole, pending = (pending + decoder.decode(chunk)).split("\n")
            for line in whole:
                if not is_cut:
                    yield line[:LONGEST_LINE].removesuffix("\r")
                is_cut = False
            if len(pending) > LONGEST_LINE:
                if not is_cut:
                    yield pending[:LONGEST_LINE]
                pending, is_cut = "", True
            chunk = self._read()
        if pending and not is_cut:
            yield pending.removesuffix("\r")

    def _read(self) -> bytes:
        """The next bytes, none at the end. Of compressed data that is cut, all up to there."""
        if self._packed is None:
            chunk = self._stream.read(CHUNK)
        else:
            try:
                chunk = self._packed.read1(CHUNK)  # read() would lose what stands before the cut
            except EOFError:
                chunk, self.cut = b"", "cut off"
            except (gzip.BadGzipFile, zlib.error) as error:
                chunk, self.cut = b"", f"damaged ({error})"
        self.bytes_read += len(chunk)
        return chunk

    # ---- one entry of JSON ----------------------------------------------------------------------

    def _json(self, text: str) -> Iterator[JournalLine]:
        raw = text.encode("utf-8", "replace")
        try:
            origin = _origin.decode(raw)
        except msgspec.DecodeError:
            return
        if origin.message is None and "MESSAGE" not in text:
            yield from self._of_object(_written.decode(raw))
            return
        if origin.transport == "kernel":
            if isinstance(origin.message, str):
                self._of_kernel(_microseconds(origin.stamp), origin.message)
            return
        self._is_journal = True
        about = str(origin.about or origin.about_user or "")
        name = about or str(origin.user_unit or origin.unit or "")
        if self.unit and name != self.unit:
            return
        if not about:
            self._unit_of_last = name
        for line in self._reader.read([raw]).lines:
            yield from self._inner.lines(line)

    def _of_object(self, written: _Written) -> Iterator[JournalLine]:
        """A line of another log of objects. Docker cuts long ones: all but the last end nowhere."""
        self._stamp = _seconds(written.stamp()[:19]) or self._stamp
        words = self._begun + written.words()
        self._begun = ""
        if isinstance(written.log, str) and not words.endswith("\n"):
            self._begun = words[:LONGEST_LINE]
            return
        for line in words.splitlines():
            yield from self._plain(line)

    def kernel(self) -> tuple[KernelLine, ...]:
        """Lines of the kernel found in it, with times where they are of the engine's clock."""
        if self._is_journal:
            return tuple(self._kernel)
        return tuple(line._replace(stamp=0.0) for line in self._kernel)

    def _of_kernel(self, stamp: float, text: str) -> None:
        if _ABOUT_ENGINES.search(text) is not None:
            self._kernel.append(KernelLine(stamp, text))

    def settle_unit(self) -> None:
        """Take the unit of the line read last for the engine's: others' lines are passed over."""
        self.unit = self.unit or self._unit_of_last
        self._writers.settle(self._writer_of_last)
        self._units.began_to_speak(self._stamp)

    # ---- one line of text -----------------------------------------------------------------------

    def _plain(self, text: str) -> Iterator[JournalLine]:
        if "\x1b" in text:
            text = _COLOUR.sub("", text)
        if text.startswith("-- ") or (text.startswith("# ") and self._is_saved):
            return  # journalctl's own: `-- Boot 3f... --`, `-- No entries --`; the log screen's
        text = self._unwrapped(text)
        manager = False
        saved = _SAVED.match(text)
        if saved is not None:
            yield from self._saved(saved, text[saved.end() :])
            return
        if text[:1] != "[" or text[1:2] == " " or text[5:6] != "-":
            prefix = _PREFIX.match(text)
            if prefix is not None:
                ident = prefix["ident"]
                text = text[prefix.end() :]
                self._stamp = self._time_of(prefix) or self._stamp
                if ident == "kernel":
                    self._of_kernel(self._stamp, text)
                    return
                self._is_journal = True
                manager = _MANAGER.fullmatch(ident) is not None
                if not manager:
                    self._pid = int(prefix["pid"]) if prefix["pid"] else None
                if self._wanted(ident, text, manager=manager):
                    yield from self._written(ident, text, manager=manager)
                return
            else:
                text = self._inner.strip(self._own_stamp(text))
        else:
            self._stamp = _seconds(text[1:20].replace(" ", "T")) or self._stamp
        yield from self._split(text, manager=manager)

    def _written(self, writer: str, text: str, *, manager: bool) -> Iterator[JournalLine]:
        """A line of the journal's text forms, with those that have waited for it."""
        if manager:
            ready = self._writers.of_manager(text)
        else:
            self._writer_of_last = writer
            text = self._inner.strip(text)
            ready = self._writers.of_engine(Held(writer, self._stamp, self._pid, text))
            if ready and _BEGINS.search(text[:400]) is not None:
                self._units.began_to_speak(self._stamp)
        now = (self._stamp, self._pid)
        for held in ready:
            self._stamp, self._pid = held.stamp, held.pid
            yield from self._split(held.text, manager=False)
        self._stamp, self._pid = now
        if manager:
            yield from self._split(text, manager=True)

    def _unwrapped(self, text: str) -> str:
        """A line without what a container, a pager or a mail put before it."""
        known = (_PREFIX, _SAVED, _CONTAINER)
        if not self._outer.settled and any(form.match(text) is not None for form in known):
            return text
        return self._outer.strip(text)

    def _saved(self, stamp: re.Match[str], text: str) -> Iterator[JournalLine]:
        """A line that the log screen saved. Systemd's are known by their words."""
        self._is_saved = True
        if stamp["iso"] is not None:
            self._stamp = _seconds(stamp["iso"]) or self._stamp
        self._pid = None
        manager = _SAVED_MANAGER.match(text) is not None
        if not manager or self._wanted("systemd", text, manager=True):
            yield from self._split(text, manager=manager)

    def _wanted(self, ident: str, text: str, *, manager: bool) -> bool:
        if manager:
            if _OTHER_UNITS.search(text) is not None:
                return False
            if not self.unit:
                return self._units.of_manager(text, self._stamp)
            return ".service" not in text or self.unit in text
        if ident.endswith(".service"):
            name = ident.rpartition("/")[2]
            self._unit_of_last = name
            return not self.unit or name == self.unit
        return True

    def _own_stamp(self, text: str) -> str:
        """Take the stamp that a container's or an engine's line brings itself."""
        if text[10:11] == "T":
            container = _CONTAINER.match(text)
            if container is not None:
                self._stamp = _seconds(container["iso"]) or self._stamp
                return text[container.end() :]
        level = _LEVEL_STAMP.match(text)
        if level is not None:
            month, day, clock = level.groups()
            self._stamp = self._in_last_year(int(month), int(day), clock) or self._stamp
        return text

    def _split(self, text: str, *, manager: bool) -> Iterator[JournalLine]:
        for part, bar in split_message(text):
            shown = clean(part, TEXT_LIMIT)
            yield JournalLine(
                self._stamp,
                shown,
                pid=None if manager else self._pid,
                from_manager=manager,
                truncated=len(part) > TEXT_LIMIT,
                bar=bar,
            )

    def _time_of(self, prefix: re.Match[str]) -> float | None:
        if (iso := prefix["iso"]) is not None:
            seconds, zone = _seconds(iso), prefix["zone"]
            return None if seconds is None else seconds - _offset(zone)
        if (full := prefix["full"]) is not None:
            return _seconds(full.replace(" ", "T"))
        if (short := prefix["short"]) is not None:
            month = _MONTHS.find(short[:3]) // 3 + 1
            return self._in_last_year(month, int(short[4:6]), short[7:])
        return float(prefix["unix"] or prefix["boot"])

    def _in_last_year(self, month: int, day: int, clock: str) -> float | None:
        now = self._now
        is_later = (month, day) > (now.month, now.day + 1)
        return _seconds(f"{now.year - is_later}-{month:02}-{day:02}T{clock}")


class _Joined:
    """What was read already, and the rest of the stream behind it."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head = head
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        if self._head:
            taken = self._head if size < 0 else self._head[:size]
            self._head = self._head[len(taken) :]
            return taken
        return self._stream.read(size)


def _decoder_for(head: bytes) -> codecs.IncrementalDecoder:
    """The decoder of a text that begins so. Raises NotALog for what is no text."""
    for magic, what, command in _MAGIC:
        if head.startswith(magic):
            raise NotALog(f"it is {what}, no text", f"{command} | ddtui diagnose -")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return codecs.getincrementaldecoder("utf-16")("replace")
    beginning = head[:_HEAD]
    zeros = [beginning[n::2].count(0) * 2 / len(beginning) for n in (0, 1)]
    if min(zeros) < _FEW and max(zeros) > 1 - _FEW:  # of two bytes each, without a mark
        order = "le" if zeros[1] > zeros[0] else "be"
        return codecs.getincrementaldecoder(f"utf-16-{order}")("replace")
    odd = sum(1 for byte in beginning if byte < 32 and byte not in b"\t\n\r\x1b\x08\x0c")
    if odd > _ODD_SHARE * len(beginning):
        raise NotALog(
            "it is no text (too many control characters)",
            "give the output of `journalctl -u UNIT`, of `journalctl -o json`, or the engine's own",
        )
    return codecs.getincrementaldecoder("utf-8-sig")("replace")


def _refuse_other_formats(first: str) -> None:
    """Raise NotALog for formats of journalctl that are not read: their lines are no messages."""
    name = next((name for name, begin in _OTHER_FORMATS.items() if begin.match(first)), "")
    if name:
        raise NotALog(
            f"it is a journal in a format that is not read ({name})",
            "journalctl -a -o json ... | ddtui diagnose -",
        )


@lru_cache(maxsize=4096)
def _seconds(text: str) -> float | None:
    """Unix seconds of `2026-11-29T17:20:47`; None for what is no time."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _microseconds(text: object) -> float:
    """Unix seconds of the journal's microseconds; 0 for what is no number."""
    return int(text) / 1e6 if isinstance(text, str) and text.isdecimal() else 0.0


def _offset(zone: str) -> float:
    """Seconds of `+01:00` or `-0530` east of UTC."""
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    return (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)
