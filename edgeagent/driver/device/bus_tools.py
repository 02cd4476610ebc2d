"""Tools of a device on a bus: registers, SCPI commands, SMP statistics and images, as its operator's TOML lists them.

Laws as for consoles: what it answers is untrusted, reading runs, writing needs a rule or a person, and a call whose
effect is unknown is not made again until a person has looked.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from edgeagent.core.agent import Tool, ToolEffect
from edgeagent.core.values import canonical_json
from edgeagent.driver.bus.smp_client import SmpClient, SmpDone, SmpNotSent, SmpOutcome, SmpRefused
from edgeagent.driver.bus.smp_image import upload
from edgeagent.driver.device.bus_profile import WORDS, BusProfile, Images, Register
from edgeagent.driver.device.device_tools import EXTRA_S, argument_schema, command_line, read_answer, schema_of
from edgeagent.driver.device.modbus_tools import value_of, words_of
from edgeagent.driver.line.command import Command
from edgeagent.driver.line.port import PortSettings, SerialPort
from edgeagent.driver.unknown import CommandFailed, EffectUnknown, UnknownEffects
from edgeagent.errors import ConfigError, DriverUnavailable

OPEN_S = 2.0
UPLOAD_S = 600.0
"""A megabyte at 115200 baud, with the device's pauses."""

CUTS_MAX = 5
"""How often an upload goes on after its line was lost, within one call."""

Call = Callable[[dict[str, Any]], Any]


class BusDevice:
    """A device on a bus. Nothing is opened before the first call; `close` lets the line go."""

    def __init__(
        self, where: str, profile: BusProfile, *, ruled: Collection[str] = (), baud: int | None = None, folder: str = ""
    ) -> None:
        """`ruled` names tools that a rule guards already; images are looked for beside `folder`."""
        wire = profile.wire
        self.profile = profile
        self.port = SerialPort(
            PortSettings(where, baud or wire.baud, wire.data_bits, wire.parity, wire.stop_bits, wire.flow)
        )
        self._folder = Path(folder)
        self._ruled = frozenset(ruled)
        self._unknown = UnknownEffects()
        self._client: Any = None
        self._opening = threading.Lock()
        self.tools = tuple({"modbus": self._modbus, "scpi": self._scpi, "smp": self._smp}[profile.bus]())
        if unheard := sorted(self._ruled - {tool.name for tool in self.tools}):
            raise ConfigError(f"profile {profile.name} has no tool {unheard[0]}, which a rule is said to guard")

    def looked(self) -> tuple[str, ...]:
        """A person has looked at the device: calls with an unknown effect may be made again. Returns what was held."""
        return self._unknown.looked()

    def close(self) -> None:
        """Let the line go."""
        self.port.close()

    def client(self) -> Any:
        """Return the protocol's client on the open line; open it, or find it again. Raises DriverUnavailable."""
        with self._opening:
            if self._client is None or not self.port.is_open:
                self.port.reopen(OPEN_S)
                self._client = self._client or _client_of(self.profile, self.port)
            return self._client

    def _tool(
        self,
        name: str,
        about: str,
        arguments: dict[str, dict[str, Any]],
        call: Call,
        *,
        effect: ToolEffect = "read",
        idempotent: bool = True,
        timeout_s: float = 0.0,
        examples: tuple[str, ...] = (),
    ) -> Tool:
        def guarded(given: dict[str, Any]) -> Any:
            key = (name, canonical_json(given))
            self._unknown.check(key)
            return self._unknown.noted(key, lambda: call(given), harmless=effect == "read" and idempotent)

        longest_s = 2 * (timeout_s or self.profile.timeout_s) + max(self.profile.late_s, 10.0) + EXTRA_S
        return Tool.of_schema(
            name,
            about,
            schema_of(arguments),
            guarded,
            idempotent=idempotent,
            effect=effect,
            confirm=effect != "read" and name not in self._ruled,
            timeout_s=longest_s,
            examples=examples,
            notes=self.port.take_notes,
        )

    # -- Modbus

    def _modbus(self) -> list[Tool]:
        tools = []
        for each in self.profile.registers:
            unit = f" [{each.unit}]" if each.unit else ""
            tools.append(
                self._tool(f"read_{each.name}", f"{each.help}{unit}", {}, self._reading(each), examples=each.examples)
            )
            if each.writable:
                words = {"description": each.unit} if each.unit else {}
                bounds = {"minimum": each.minimum, "maximum": each.maximum}
                whole = each.kind != "f32" and each.scale == int(each.scale)
                value: dict[str, Any] = {"type": "integer" if whole else "number", **bounds, **words}
                value = {"type": "boolean"} if each.kind == "bit" else value
                about = f"Set: {each.help}{unit}"
                tools.append(
                    self._tool(f"set_{each.name}", about, {"value": value}, self._setting(each), effect="write")
                )
        return tools

    def _reading(self, register: Register) -> Call:
        def read(_: dict[str, Any]) -> Any:
            from edgeagent.driver.bus import modbus

            client: modbus.ModbusClient = self.client()
            reads = {
                "holding": client.read_holding,
                "input": client.read_input,
                "coil": client.read_coils,
                "discrete": client.read_discrete,
            }
            outcome = reads[register.table](self.profile.device_id, register.address, WORDS[register.kind])
            if isinstance(outcome, modbus.ModbusDone):
                return value_of(register, outcome.values)
            raise _modbus_error(f"read_{register.name}", outcome)

        return read

    def _setting(self, register: Register) -> Call:
        def write(given: dict[str, Any]) -> Any:
            from edgeagent.driver.bus import modbus

            client: modbus.ModbusClient = self.client()
            unit, address = self.profile.device_id, register.address
            if register.kind == "bit":
                outcome = client.write_coil(unit, address, given["value"])
            else:
                words = words_of(register, given["value"])
                single = len(words) == 1
                outcome = (
                    client.write_register(unit, address, words[0])
                    if single
                    else client.write_registers(unit, address, words)
                )
            if isinstance(outcome, modbus.ModbusDone):
                return "done"
            raise _modbus_error(f"set_{register.name}", outcome)

        return write

    # -- SCPI

    def _scpi(self) -> list[Tool]:
        return [
            self._tool(
                each.name,
                each.help,
                {name: argument_schema(argument) for name, argument in each.arguments.items()},
                self._saying(each),
                effect=each.effect,
                idempotent=each.idempotent,
                timeout_s=each.timeout_s,
                examples=each.examples,
            )
            for each in self.profile.commands
        ]

    def _saying(self, command: Command) -> Call:
        def say(given: dict[str, Any]) -> Any:
            from edgeagent.driver.bus import scpi

            line = command_line(command, "none", given)
            client: scpi.ScpiClient = self.client()
            exchange = client.ask if "?" in line else client.tell
            outcome = exchange(line, command.timeout_s)
            if not isinstance(outcome, scpi.ScpiDone):
                raise _not_known(command.name, outcome.because, sent=outcome.sent)
            if "?" in line:
                return read_answer(outcome.text, command.answer, command.name)
            if self.profile.error_query:
                self._raise_error(client.ask(self.profile.error_query, command.timeout_s), command.name)
            return outcome.text or "done"

        return say

    def _raise_error(self, outcome: Any, name: str) -> None:
        """Ask the instrument whether it took the command: `0,"No error"` is well."""
        said = getattr(outcome, "text", None)
        if said is None:
            raise EffectUnknown(f"{name} was sent, and whether it was taken is not known: {outcome.because}")
        if not said.lstrip("+").startswith("0"):
            raise CommandFailed(f"{name} failed: {said[:200]!r}")

    # -- SMP

    def _smp(self) -> list[Tool]:
        profile, tools = self.profile, []

        def asked(name: str, ask: Callable[[SmpClient, dict[str, Any]], SmpOutcome], key: str = "") -> Call:
            return lambda given: _smp_result(name, ask(self.client(), given), key)

        if profile.statistics:
            read = asked("read_statistics", lambda client, given: client.statistics(given["group"]), "fields")
            about = "Read one group of the device's counters."
            tools.append(self._tool("read_statistics", about, {"group": _choice(profile.statistics)}, read))
        if profile.settings:
            setting = asked("read_setting", lambda client, given: client.read_setting(given["name"]), "val")
            about = "Read one setting of the device."
            tools.append(self._tool("read_setting", about, {"name": _choice(profile.settings)}, setting))
        return tools if profile.images is None else [*tools, *self._image_tools(profile.images, asked)]

    def _image_tools(self, known: Images, asked: Callable[..., Call]) -> list[Tool]:
        images = asked("list_images", lambda client, _: client.images(), "images")
        confirm = asked("confirm_image", lambda client, _: client.mark_image(None, confirm=True))
        files = {"file": _choice(known.files)}
        sure: dict[str, Any] = {"effect": "irreversible"}
        return [
            self._tool("list_images", "Tell which firmware images the device holds, and their state.", {}, images),
            self._tool(
                "upload_image",
                "Upload a firmware image into the device's spare slot; goes on where it was cut.",
                files,
                self._upload,
                effect="write",
                timeout_s=UPLOAD_S,
            ),
            self._tool(
                "try_image",
                "Have the uploaded image tried once at the next start; without a confirmation the old one comes back.",
                {},
                self._try_image,
                **sure,
            ),
            self._tool("confirm_image", "Keep the running image for good.", {}, confirm, **sure),
            self._tool(
                "restart_device",
                "Have the device start again.",
                {},
                asked("restart_device", lambda client, _: client.reset()),
                idempotent=False,
                **sure,
            ),
        ]

    def _upload(self, given: dict[str, Any]) -> Any:
        assert self.profile.images is not None, "only a profile with images has this tool"
        path = self._folder / self.profile.images.folder / given["file"]
        try:
            image = path.read_bytes()
        except OSError as error:
            raise DriverUnavailable(f"upload_image: {path} cannot be read: {error.strerror}") from None
        until = time.monotonic() + UPLOAD_S
        outcome = upload(self.client(), image, until)
        for _ in range(CUTS_MAX):
            if self.port.is_open:
                break
            outcome = upload(self.client(), image, until)  # Where the line was cut; the device tells where it stood.
        _smp_result("upload_image", outcome, "")
        return {"file": given["file"], "bytes": len(image)}

    def _try_image(self, _: dict[str, Any]) -> Any:
        client: SmpClient = self.client()
        found = _smp_result("try_image", client.images(), "images")
        slots = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
        waiting = [each for each in slots if each.get("slot") == 1 and isinstance(each.get("hash"), str)]
        if not waiting:
            raise CommandFailed("try_image: the spare slot holds no image; upload one first")
        return _smp_result("try_image", client.mark_image(bytes.fromhex(waiting[0]["hash"]), confirm=False), "")


def _client_of(profile: BusProfile, port: SerialPort) -> Any:
    late: dict[str, Any] = {"late_s": profile.late_s} if profile.late_s else {}
    match profile.bus:
        case "modbus":
            from edgeagent.driver.bus.modbus import ModbusClient  # pymodbus comes with the extra.

            return ModbusClient(port, timeout_s=profile.timeout_s, local_echo=profile.echo, **late)
        case "scpi":
            from edgeagent.driver.bus.scpi import ScpiClient

            return ScpiClient(port, echo=profile.echo, answers_every_command=profile.answers_every_command, **late)
        case "smp":
            # By chance, so that a late answer to a process that ended is not taken for one to this.
            client = SmpClient(port, first_sequence=secrets.randbelow(256))
            client.greet(profile.timeout_s)
            return client


def _choice(names: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "string", "enum": list(names)}


def _shown(value: Any) -> Any:
    """A value as a tool returns it: bytes as hexadecimal digits."""
    match value:
        case bytes():
            return value.hex()
        case list():
            return [_shown(each) for each in value]
        case dict():
            return {str(key): _shown(each) for key, each in value.items()}
        case _:
            return value


def _not_known(name: str, because: str, *, sent: bool) -> Exception:
    if sent:
        return EffectUnknown(f"{name} was sent and its effect is unknown: {because}")
    return DriverUnavailable(f"{name} was not sent: {because}")


def _modbus_error(name: str, outcome: Any) -> Exception:
    if hasattr(outcome, "code"):
        return CommandFailed(f"{name} was refused with reason {outcome.code}: {outcome.because}")
    return _not_known(name, outcome.because, sent=outcome.sent)


def _smp_result(name: str, outcome: SmpOutcome, key: str) -> Any:
    """Return what the device answered under this key, bytes as hexadecimal digits; or raise what is known."""
    match outcome:
        case SmpDone():
            return _shown(outcome.body.get(key, "done")) if key else "done"
        case SmpRefused():
            raise CommandFailed(f"{name} was refused with error {outcome.code} of group {outcome.group}")
        case SmpNotSent():
            raise DriverUnavailable(f"{name} was not sent: {outcome.because}")
        case _:
            raise EffectUnknown(f"{name} was sent and its effect is unknown: {outcome.because}")
