"""Identity of a port: a USB serial number, vendor and product, a by-id name or a URL; kernel names come last.

`/dev/ttyUSB0` is whatever was plugged in first; a board that comes back after an unplug may well be `/dev/ttyUSB1`.
"""

from __future__ import annotations

import errno
import grp
import os
import re
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from edgeagent.errors import ConfigError, DriverUnavailable

BY_ID = Path("/dev/serial/by-id")
_USB = re.compile(r"usb:(?:(?P<vid>[0-9a-fA-F]{4}):(?P<pid>[0-9a-fA-F]{4}))?(?::?(?P<serial>[^:\s]+))?")


class PortFound(Struct, frozen=True):
    """A serial port of this machine, and by what it can be named."""

    device: str
    identity: str
    description: str = ""
    serial_number: str = ""
    vendor: int = 0
    product: int = 0


def ports_here() -> tuple[PortFound, ...]:
    """List the serial ports of this machine, each with the best name it has."""
    from serial.tools.list_ports import comports  # Only here: it walks /sys.

    return tuple(_found(each) for each in sorted(comports(), key=lambda p: p.device))


def _found(each: object) -> PortFound:
    device = str(getattr(each, "device", ""))
    serial_number = str(getattr(each, "serial_number", None) or "")
    vendor, product = int(getattr(each, "vid", None) or 0), int(getattr(each, "pid", None) or 0)
    return PortFound(
        device=device,
        identity=_best_name(device, serial_number, vendor, product),
        description=str(getattr(each, "description", "") or ""),
        serial_number=serial_number,
        vendor=vendor,
        product=product,
    )


def _best_name(device: str, serial_number: str, vendor: int, product: int) -> str:
    if serial_number and re.fullmatch(r"[^:\s]+", serial_number):
        return f"usb:{vendor:04x}:{product:04x}:{serial_number}" if vendor else f"usb:{serial_number}"
    links = [link for link in (BY_ID.iterdir() if BY_ID.is_dir() else ()) if os.path.realpath(link) == device]
    if links:
        return f"by-id:{links[0].name}"
    return f"usb:{vendor:04x}:{product:04x}" if vendor else device


def locate(identity: str, found: Iterable[PortFound] | None = None) -> str:
    """Return the path or URL that `identity` names now.

    Raises DriverUnavailable when it is not plugged in, ConfigError when the name cannot be read or fits two ports.
    """
    if not identity or any(c.isspace() for c in identity):
        raise ConfigError(f"port {identity!r}: give usb:SERIAL, usb:VVVV:PPPP, by-id:NAME, a path or a URL")
    if "://" in identity or identity.startswith("/"):
        return identity
    if identity.startswith("by-id:"):
        return str(BY_ID / identity.removeprefix("by-id:"))
    if identity.startswith("usb:"):
        return _by_usb(identity, tuple(ports_here() if found is None else found))
    raise ConfigError(f"port {identity!r} starts with none of usb:, by-id:, / and no scheme://")


def _by_usb(identity: str, found: tuple[PortFound, ...]) -> str:
    named = _USB.fullmatch(identity)
    if named is None or not named.group(0).removeprefix("usb:"):
        raise ConfigError(f"port {identity!r}: write usb:SERIAL, usb:1a86:7523 or usb:1a86:7523:SERIAL")
    vid, pid, serial_number = named.group("vid"), named.group("pid"), named.group("serial")
    fitting = [
        port
        for port in found
        if (vid is None or (port.vendor, port.product) == (int(vid, 16), int(pid, 16)))
        and (serial_number is None or port.serial_number == serial_number)
    ]
    if not fitting:
        raise DriverUnavailable(f"no USB serial port fits {identity}; `edgeagent device list` shows what is plugged in")
    if len(fitting) > 1:
        devices = ", ".join(port.identity for port in fitting)
        raise ConfigError(f"{identity} fits {len(fitting)} ports ({devices}): name one of them by its serial number")
    return fitting[0].device


def in_container() -> bool:
    """Return whether this process runs in a container, as docker and podman mark one."""
    return any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv"))


def why_not_opened(path: str, number: int, detail: str = "") -> str:
    """Say why opening `path` failed with this errno, and what to do."""
    if number == errno.EACCES:
        group = _group_of(path)
        return (
            f"{path} may not be opened by this user: it belongs to group {group}. "
            f"`sudo usermod -aG {group} $USER`, then log in again"
        )
    if number in (errno.EBUSY, errno.EAGAIN):
        return f"{path} is in use by {holder_of(path) or 'another program'}; end that first"
    if number in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return f"{path} is not there; `edgeagent device list` shows what is plugged in"
    return f"{path} cannot be opened: {detail or os.strerror(number)}"


def _group_of(path: str) -> str:
    try:
        name = grp.getgrgid(Path(path).stat().st_gid).gr_name
    except (OSError, KeyError):
        return "dialout"
    return name if name != "root" else "dialout"


def holder_of(path: str) -> str:
    """Name the process that holds this device: "screen (process 812)"; empty when none is seen."""
    others = holders(path)
    return ", ".join(f"{_command_of(pid)} (process {pid})" for pid in others)


def holders(path: str) -> tuple[int, ...]:
    """Return the other processes that hold the device open, lock holders first; only those we may look at."""
    try:
        meant = Path(path).stat()
    except OSError:
        return ()
    locking = _lock_holders(meant)
    return locking or tuple(pid for pid in _processes() if pid != os.getpid() and _has_open(pid, meant))


def _lock_holders(meant: os.stat_result) -> tuple[int, ...]:
    device = f"{os.major(meant.st_dev):02x}:{os.minor(meant.st_dev):02x}:{meant.st_ino}"
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return ()
    fields = [line.split() for line in lines if " FLOCK " in line and "->" not in line]
    return tuple(int(f[4]) for f in fields if len(f) > 5 and f[5] == device and int(f[4]) not in (0, os.getpid()))


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _has_open(pid: int, meant: os.stat_result) -> bool:
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            seen = entry.stat()
            if seen.st_rdev == meant.st_rdev and seen.st_ino == meant.st_ino and seen.st_rdev:
                return True
    except OSError:
        return False  # It ended, or is not ours to look at.
    return False


def _command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() or "?"
    except OSError:
        return "?"
