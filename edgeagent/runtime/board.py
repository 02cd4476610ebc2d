"""Facts of this board that an agent depends on: each known good, known bad with its remedy, or not to be known here.

Whatever cannot be read is not known; nothing here raises for it. All files of the system are read below `Machine.root`.
"""

from __future__ import annotations

import ctypes
import errno
import grp
import importlib.util
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from msgspec import Struct

from edgeagent.errors import EdgeAgentError
from edgeagent.models.catalogue import EMBEDDER_SUFFIX, KNOWN
from edgeagent.models.cpu import check_cpu
from edgeagent.models.disk import store_root
from edgeagent.models.gguf import check_gguf
from edgeagent.models.store import models

Verdict = Literal["good", "bad", "unknown"]

PROCESS_BYTES = 100 << 20
"""What a session takes besides twice the model's file. That makes 302 MB of SmolLM2, with 337 measured at most,
and 611 of Gemma 3 270M, with 698 measured; both with a window of 4,096 tokens, twice the default (docs/models.md)."""

FREE_BYTES_MIN = 64 << 20
"""Room for sessions: a memory of a model is up to 64 MB, a trace some kB a turn."""

WRITE_S, WRITES_MAX, RECORD_BYTES = 1.0, 64, 4096
"""How long, and how often at most, a record's write is timed."""

SYNC_MS_MAX = 200.0
"""A turn with one call waits for the disk some five times; more than a second of that is felt."""

EPOCH_MIN_S = 1_767_225_600
"""The beginning of 2026: a clock that says less has not been set since this was written."""

TTYS = ("ttyUSB*", "ttyACM*", "ttyAMA*", "ttymxc*", "ttyTHS*", "ttyGS*", "ttySC*", "ttyLP*")
_WRITERS = {name: known.size_bytes for name, known in KNOWN.items() if known.kind == "writer"}
_UNSYNCHRONISED = 5  # TIME_ERROR of adjtimex(2)
_NO_LIMIT_BYTES = 1 << 60  # What the first kind of control group says where there is none.


class Finding(Struct, frozen=True):
    """What was found about one thing, and if it is bad, what to do."""

    about: str
    verdict: Verdict
    found: str
    remedy: str = ""


def kernel_clock() -> bool | None:
    """Whether the kernel calls its clock synchronised; None where it cannot be asked."""
    try:
        state = int(ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512)))  # All zero: it is only read.
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _UNSYNCHRONISED


@dataclass(frozen=True)
class Machine:
    """A machine: where its files are, and whom to ask for what is in none."""

    state: Path
    root: Path = Path("/")
    models: Path = field(default_factory=store_root)
    machine: str = field(default_factory=platform.machine)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    synchronised: Callable[[], bool | None] = kernel_clock
    now_s: Callable[[], float] = time.time
    trial: Callable[[], None] = check_cpu

    def findings(self, on_begin: Callable[[str], None] = lambda what: None) -> Iterator[Finding]:
        """Each fact in turn; `on_begin` is told before what may take longer than a second."""
        yield self.cpu()
        on_begin("trying llama.cpp on this CPU")
        yield self.engine()
        yield self.memory()
        yield from self.model_files()
        yield self.state_folder()
        on_begin("writing to the disk for a second")
        yield self.disk()
        yield self.clock()
        yield self.zone()
        yield from self.serial_ports()
        yield self.service_manager()

    def cpu(self) -> Finding:
        """What the kernel calls the CPU, and how wide it computes."""
        info = _pairs(self._read("proc/cpuinfo"))
        model = info.get("model name") or info.get("uarch") or info.get("hardware") or ""
        features = set((info.get("flags") or info.get("features") or "").split())
        isa = info.get("isa", "")
        features |= {"v"} if "v" in isa.partition("_")[0].removeprefix("rv64") else set()
        wide = [name for name in ("avx512f", "avx2", "avx", "asimd", "neon", "v") if name in features]
        if not info:
            return Finding("cpu", "unknown", f"{self.machine}; /proc/cpuinfo cannot be read")
        width = f"vectors by {wide[0]}" if wide else "no vector unit, so a model reads and writes slowly"
        return Finding("cpu", "good", f"{model or 'unnamed'} ({self.machine}), {width}")

    def engine(self) -> Finding:
        """Whether llama.cpp loads and computes here, which a child process tries."""
        try:
            self.trial()
        except EdgeAgentError as error:
            found, _, remedy = str(error).partition("; ")
            return Finding("llama.cpp", "bad", found, remedy)
        return Finding("llama.cpp", "good", "it loads and computes")

    def memory(self) -> Finding:
        """How much memory there is for us, also by the limits of the control group."""
        total, room = self._memory()
        if total is None:
            return Finding("memory", "unknown", "neither /proc/meminfo nor a limit can be read")
        least = _needed(min(_WRITERS.values()))
        found = f"{_mb(total)} in all, {_mb(room)} free"
        if room < least:
            remedy = "stop other programs, add swap, or raise the limit of the container or unit"
            return Finding("memory", "bad", f"{found}; the smallest model of the catalogue takes {_mb(least)}", remedy)
        return Finding("memory", "good", found)

    def model_files(self) -> Iterator[Finding]:
        """The models that are here, whole and small enough; or which one to get."""
        _, room = self._memory()
        here = [each for each in models(self.models) if each.path.suffix != EMBEDDER_SUFFIX]
        for stored in here:
            about, need = f"model {stored.name}", _needed(stored.size_bytes)
            try:
                header = check_gguf(stored.path)
            except EdgeAgentError as error:
                remedy = f"edgeagent model remove {stored.name}, then get it again"
                yield Finding(about, "bad", str(error).partition("; ")[0], remedy)
                continue
            found = f"{_mb(header.size_bytes)}, takes about {_mb(need)} of memory"
            if room and need > room:
                yield Finding(about, "bad", f"{found}; {_mb(room)} are free", "use a smaller model, or free memory")
            else:
                yield Finding(about, "good", found)
        if not here:
            fit = [name for name, size in _WRITERS.items() if not room or _needed(size) <= room]
            found = f"none is in {self.models}; that fit: {', '.join(fit) or 'none of the catalogue'}"
            yield Finding("models", "bad", found, f"edgeagent model pull {next(iter(fit), 'smollm2')}")

    def state_folder(self) -> Finding:
        """Whether sessions can be kept, and be read by nobody else."""
        remedy = "name a folder of yours with --state or EDGEAGENT_STATE"
        try:
            with tempfile.TemporaryFile(dir=_nearest(self.state)):
                pass
            kept = next((each for each in (self.state / "sessions", self.state) if each.exists()), None)
            mode = kept.stat().st_mode & 0o777 if kept else 0
        except OSError as error:
            return Finding("state", "bad", f"{self.state} cannot be written: {error.strerror}", remedy)
        if kept and mode & 0o077:
            return Finding("state", "bad", f"{kept} is open to others ({mode:o})", f"chmod 700 {kept}")
        kind = self._file_system(_nearest(self.state))
        if kind in ("tmpfs", "ramfs"):
            return Finding("state", "bad", f"{self.state} is in memory ({kind}) and lost with the power", remedy)
        return Finding("state", "good", f"{self.state} can be written" + ("" if kept else "; it is not there yet"))

    def disk(self) -> Finding:
        """How much room the disk of the sessions has, and how long a record takes to be safe on it."""
        folder = _nearest(self.state)
        other = "put the state on another disk: --state or EDGEAGENT_STATE"
        try:
            free = shutil.disk_usage(folder).free
            if free < FREE_BYTES_MIN:
                return Finding("disk", "bad", f"{_mb(free)} free at {folder}", f"make room, or {other}")
            sync_ms = _sync_ms(folder)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            said = f"{folder} takes no writes: {error.strerror}"
            return Finding("disk", "bad" if full else "unknown", said, f"make room, or {other}" if full else "")
        found = f"{_mb(free)} free at {folder}; a record is safe after {sync_ms:.1f} ms"
        if sync_ms > SYNC_MS_MAX:
            return Finding("disk", "bad", f"{found}, which is felt in each turn", other)
        return Finding("disk", "good", found)

    def clock(self) -> Finding:
        """Whether the wall clock can be believed: rules on hours and dates go by it."""
        rtc = any(self._names("sys/class/rtc", "rtc*"))
        shows_rtc = (self.root / "sys/class/rtc").is_dir()
        kept = "a real-time clock keeps it" if rtc else "no real-time clock keeps it without power"
        kept = kept if rtc or shows_rtc else "whether a real-time clock keeps it is not shown here"
        remedy = "timedatectl set-ntp true (or run chrony); without a network, add a real-time clock"
        if self.now_s() < EPOCH_MIN_S:
            said = time.strftime("%Y-%m-%d", time.gmtime(self.now_s()))
            return Finding("clock", "bad", f"it says {said}; {kept}", remedy)
        if (self.root / "run/systemd/timesync/synchronized").exists() or (synchronised := self.synchronised()):
            return Finding("clock", "good", f"synchronised; {kept}")
        if synchronised is False and shows_rtc and not rtc:
            return Finding("clock", "bad", f"not synchronised, and {kept}", remedy)
        return Finding("clock", "unknown", f"nobody says that it is synchronised; {kept}")

    def zone(self) -> Finding:
        """In which time zone words such as "tomorrow" are meant."""
        if named := self.environment.get("TZ"):
            return Finding("time zone", "good", f"{named}, by TZ")
        link = self.root / "etc/localtime"
        try:
            name = str(link.readlink()).partition("zoneinfo/")[2]
        except OSError:
            name = self._read("etc/timezone").strip()
        if name:
            return Finding("time zone", "good", name)
        said = "as /etc/localtime says, which names none" if link.exists() else "none is set, so it is UTC"
        return Finding("time zone", "unknown", said)

    def serial_ports(self) -> Iterator[Finding]:
        """The serial ports, and whether we may open them."""
        ports = [each for pattern in TTYS for each in self._names("dev", pattern)]
        ports += [each for each in self._names("dev", "ttyS[0-9]*") if self._is_declared(each.name)]
        if not ports:
            yield Finding("serial", "unknown", "no port is there now; plug the device in and look again")
        elif importlib.util.find_spec("serial") is None:
            yield Finding("serial", "bad", "pyserial is not installed", "pip install 'edgeagent[serial]'")
        for port in sorted(ports):
            name = f"/dev/{port.name}"
            if os.access(port, os.R_OK | os.W_OK, effective_ids=True):
                yield Finding("serial", "good", f"{name} may be opened")
            else:
                group = _group_of(port)
                remedy = f"sudo usermod -aG {group} $USER, then log in again" if group else f"sudo chmod a+rw {name}"
                yield Finding("serial", "bad", f"{name} may not be opened by this user", remedy)

    def service_manager(self) -> Finding:
        """Whether systemd can start an agent here, and has started us."""
        under = "INVOCATION_ID" in self.environment or "NOTIFY_SOCKET" in self.environment
        if (self.root / "run/systemd/system").is_dir():
            return Finding("systemd", "good", "it runs here" + (", and has started this" if under else ""))
        return Finding("systemd", "unknown", "it does not run here, so something else must start an agent again")

    # -- reading below the root --------------------------------------------------------------------------------------

    def _read(self, name: str) -> str:
        try:
            return (self.root / name).read_text(errors="replace")
        except OSError:
            return ""

    def _names(self, folder: str, pattern: str) -> list[Path]:
        try:
            return sorted((self.root / folder).glob(pattern))
        except OSError:
            return []

    def _is_declared(self, tty: str) -> bool:
        """Whether the device tree has the port; a PC shows four, whether or not they are there."""
        return (self.root / "sys/class/tty" / tty / "device/of_node").exists()

    def _memory(self) -> tuple[int | None, int]:
        """Bytes in all and free, by the machine and by the tightest control group."""
        info = _pairs(self._read("proc/meminfo"))
        total, free = _kilobytes(info.get("memtotal")), _kilobytes(info.get("memavailable"))
        limits = [limit for limit in self._limits() if limit[0] < _NO_LIMIT_BYTES]
        if total is None and not limits:
            return None, 0
        totals = [each for each in (total, *(limit for limit, _ in limits)) if each is not None]
        rooms = [free if free is not None else min(totals), *(max(0, limit - used) for limit, used in limits)]
        return min(totals), min(rooms)

    def _limits(self) -> Iterator[tuple[int, int]]:
        """Each limit of memory that holds for this process, and what is used of it."""
        below = "sys/fs/cgroup"
        own = next((each[3:] for each in self._read("proc/self/cgroup").splitlines() if each.startswith("0::")), "/")
        inside = Path(own.strip().lstrip("/"))
        places = [f"{below}/{each}" for each in (inside, *inside.parents)]
        names = [(f"{place}/memory.max", f"{place}/memory.current") for place in places]
        old = f"{below}/memory/memory"
        for limit, used in (*names, (f"{old}.limit_in_bytes", f"{old}.usage_in_bytes")):
            if (text := self._read(limit).strip()).isdigit():
                held = self._read(used).strip()
                yield int(text), int(held) if held.isdigit() else 0

    def _file_system(self, folder: Path) -> str:
        """The kind of file system that a folder is on; empty where it is not known."""
        found = [line.split()[1:3] for line in self._read("proc/self/mounts").splitlines() if len(line.split()) > 2]
        whole = folder.resolve()
        on = [(len(place), kind) for place, kind in found if whole.is_relative_to(place)]
        return max(on, default=(0, ""))[1]


def _pairs(text: str) -> dict[str, str]:
    """The first value of each name in a file of the kernel's `name: value` lines."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        found.setdefault(name.strip().lower(), value.strip())
    return found


def _kilobytes(text: str | None) -> int | None:
    number = (text or "").partition(" ")[0]
    return int(number) << 10 if number.isdigit() else None


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    whole = folder.expanduser().absolute()
    return next((each for each in (whole, *whole.parents) if os.path.exists(each)), Path("/"))  # noqa: PTH110


def _sync_ms(folder: Path) -> float:
    """Milliseconds until a record is safe on the disk: the median of a second's writes. Raises OSError."""
    took: list[float] = []
    until = time.monotonic() + WRITE_S
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        while len(took) < WRITES_MAX and (not took or time.monotonic() < until):
            began = time.monotonic()
            file.write(bytes(RECORD_BYTES))
            os.fdatasync(file.fileno())
            took.append((time.monotonic() - began) * 1000)
    return statistics.median(took)


def _group_of(port: Path) -> str:
    """The group that may use a port, if joining it would help."""
    try:
        status = port.stat()
        group = grp.getgrgid(status.st_gid).gr_name
    except (OSError, KeyError):
        return ""
    return group if status.st_mode & 0o060 == 0o060 and group != "root" else ""


def _needed(file_bytes: int) -> int:
    """About what a session with a model of this size takes of the memory."""
    return 2 * file_bytes + PROCESS_BYTES


def _mb(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.0f} MB"
