"""Profile of a device that speaks frames: registers, queries, images, in an operator's TOML. Opens no port."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from edgeagent.driver.line.command import Command, check_command
from edgeagent.driver.line.profile import Wire, readable
from edgeagent.errors import ConfigError

Table = Literal["holding", "input", "coil", "discrete"]
Kind = Literal["u16", "i16", "u32", "i32", "f32", "bit"]

WORDS: dict[Kind, int] = {"u16": 1, "i16": 1, "u32": 2, "i32": 2, "f32": 2, "bit": 1}
BOUNDS: dict[Kind, tuple[int, int]] = {
    "u16": (0, 0xFFFF),
    "i16": (-0x8000, 0x7FFF),
    "u32": (0, 0xFFFF_FFFF),
    "i32": (-0x8000_0000, 0x7FFF_FFFF),
}


class Register(Struct, frozen=True, forbid_unknown_fields=True):
    """One value of a Modbus device. It becomes `read_NAME`, and where `writable` also `set_NAME`.

    The value is what the registers hold times `scale`, in `unit`. `low_word_first`: of two registers the first is the
    lower half. `minimum` and `maximum` are what may be set, in `unit`.
    """

    name: str
    help: str
    address: int
    table: Table = "holding"
    kind: Kind = "u16"
    scale: float = 1.0
    unit: str = ""
    low_word_first: bool = False
    writable: bool = False
    minimum: float | None = None
    maximum: float | None = None
    examples: tuple[str, ...] = ()


class Images(Struct, frozen=True, forbid_unknown_fields=True):
    """Firmware of an SMP device: the folder whose files may be uploaded; the device tries one once, then confirms."""

    folder: str
    files: tuple[str, ...]


class BusProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """A device on a bus as its operator describes it. Get one with `load_bus_profile`.

    `late_s` is how long an answer may still come after its request; 0: as the protocol's client has it.
    """

    name: str
    bus: Literal["modbus", "scpi", "smp"]
    about: str = ""
    wire: Wire = Wire()
    timeout_s: float = 3.0
    late_s: float = 0.0
    echo: bool = False
    device_id: int = 1
    registers: tuple[Register, ...] = ()
    commands: tuple[Command, ...] = ()
    answers_every_command: bool = False
    error_query: str = ""
    statistics: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    images: Images | None = None


def is_bus_profile(name: str) -> bool:
    """Return whether this names a file with a profile of a bus."""
    try:
        return name.endswith(".toml") and "bus" in tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False  # Whoever loads it says what is wrong.


def load_bus_profile(name: str) -> BusProfile:
    """Return the profile in this file. Raises ConfigError naming file and key."""
    try:
        whole: dict[str, Any] = tomllib.loads(Path(name).read_text(encoding="utf-8"))
        profile = msgspec.convert(whole, BusProfile)
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name} is not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name}: {readable(str(error))}") from None
    _check(profile, name)
    return profile


def _check(profile: BusProfile, source: str) -> None:
    own = {"modbus": ("registers",), "scpi": ("commands", "error_query"), "smp": ("statistics", "settings", "images")}
    for bus, keys in own.items():
        strange = [key for key in keys if getattr(profile, key)] if bus != profile.bus else []
        if strange:
            raise ConfigError(f"{source}: {strange[0]} is for bus {bus!r}; this one is {profile.bus!r}")
    if profile.timeout_s <= 0 or profile.late_s < 0:
        raise ConfigError(f"{source}: timeout_s must be above 0, and late_s not below it")
    names = [*(register.name for register in profile.registers), *(command.name for command in profile.commands)]
    for each in names:
        if names.count(each) > 1 or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,50}", each):
            raise ConfigError(f"{source}: {each} is there twice, or no name: a letter, then letters, digits or _")
    for register in profile.registers:
        _check_register(register, f"{source}: registers.{register.name}")
    for command in profile.commands:
        check_command(command, "none", f"{source}: commands.{command.name}")


def _check_register(register: Register, where: str) -> None:
    bits = register.table in ("coil", "discrete")
    if not register.help.strip():
        raise ConfigError(f"{where}.help is empty: the model needs one sentence on what it is")
    if not 0 <= register.address <= 0xFFFF - WORDS[register.kind] + 1:
        raise ConfigError(f"{where}.address is {register.address}; 0 to 65535, counted from 0 as it goes on the line")
    if bits != (register.kind == "bit"):
        raise ConfigError(f"{where}: a {register.table} is {'a bit' if bits else 'no bit'}; kind is {register.kind!r}")
    if not register.scale:
        raise ConfigError(f"{where}.scale is 0")
    if not register.writable:
        return
    if register.table in ("input", "discrete"):
        raise ConfigError(f"{where}: a {register.table} cannot be written; leave writable out")
    if bits:
        return
    if register.minimum is None or register.maximum is None or register.minimum > register.maximum:
        raise ConfigError(f"{where} is writable and needs a minimum and a maximum: say what the device can take")
    if register.kind != "f32":
        low, high = sorted((register.minimum / register.scale, register.maximum / register.scale))
        least, most = BOUNDS[register.kind]
        if low < least or high > most:
            raise ConfigError(f"{where}: {register.minimum:g} to {register.maximum:g} does not fit in {register.kind}")
