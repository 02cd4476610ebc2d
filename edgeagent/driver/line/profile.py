"""Profile of a device: what its operator says of it in a small TOML file, read, checked and frozen. Opens no port."""

from __future__ import annotations

import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from edgeagent.driver.line.command import Command, check_command, compiled
from edgeagent.driver.line.consoles import TABLE, kinds, known_pagers
from edgeagent.driver.line.template import Quoting
from edgeagent.errors import ConfigError

SHIPPED = Path(__file__).parent / "profiles"
EXTENDS_MAX = 4
"""A profile built on a profile: deeper than this nobody finds the line that counts."""

Style = Literal["marker", "prompt", "raw_repl"]

SETTLE_MS = 500
SETTLE_CHARS = 100
"""How long a line must be quiet before it is taken to have nothing more to say: so long, and the time of a line."""

SECRET = (
    r"(?i:pass[ -]?(?:word|phrase|code|wort)\b|kennwort|mot de passe|contrase[nñ]a|senha|wachtwoord|l[oö]senord|"
    r"adgangskode|salasana|has[lł]o|heslo|parola|[sş]ifre|парол|密[码碼]|口令|パスワード|暗証|암호|비밀번호)|"
    r"\b(?:PIN|OTP)\b|(?i:\b(?:verification|one-time|security|authentication) (?:code|token)\b)"
)
"""What is asked for where a secret is: no answer of ours goes there."""

QUESTIONS = (
    (
        r"(?i:[(\[<] ?\[?(?:yes|y|no|n)\]? ?(?:[/|,]| or ) ?(?:\w ?/ ?)?\[?(?:yes|y|no|n)\]? ?"
        r"(?:[/|,] ?\w+ ?)*[)\]>])[?: ]*(?:[(\[]\w*[)\]][?: ]*)?$"
    ),
    r"(?i:(?:\b|\[)y\]?(?:es)? ?(?:/| or ) ?\[?n\]?o?)[?: ]*$",
    r"(?i:\b(?:press|type|enter) [\"'<\[]?(?:y|n|yes|no)\b[^\n]{0,60})$",
    r"(?i:\b(?:enter|input|name|address|number|value|choice)\b[^\n]{0,60}\[[^\]\n]{0,40}\][: ]*)$",
    r"(?i:\(?\by\)?es ?/ ?\(?n\)?o\b)[?: ]*$",
    r"(?i:\b(?:user ?name|e-?mail|code|token|key) (?:for|of|to)\b[^\n]{0,60}: ?$)",
    r"(?i:\b(?:press|hit) [<\[\"']?(?:return|enter|any key)\b[^\n]{0,60}$)",
    r"(?i:[(\[](?:confirm|yes|no|y|n|ok|cancel)[)\]][?: ]*)$",
    r"\? *(?:[(\[][^)\]\n]{0,40}[)\]][?: ]*)?$",
    rf"(?:{SECRET})[^\n]{{0,40}}: *$",
    (
        r"(?i:\b(?:press|hit|type|enter|choose|select|confirm|continue|proceed|overwrite|are you sure)\b[^\n]{0,60}"
        r"(?:[:?.>]|key|return|enter|continue)[. )]*)$"
    ),
)
"""How a command asks something back, on a line that it leaves unfinished."""


class Wire(Struct, frozen=True, forbid_unknown_fields=True):
    """How the line is set, unless the caller says otherwise."""

    baud: int = 115_200
    data_bits: Literal[5, 6, 7, 8] = 8
    parity: Literal["N", "E", "O"] = "N"
    stop_bits: Literal[1, 2] = 1
    flow: Literal["none", "rtscts", "xonxoff"] = "none"


class Pacing(Struct, frozen=True, forbid_unknown_fields=True):
    """How fast the device can take in what is typed: waits in ms after each character, chunk and line; 0 is none."""

    char_ms: float = 0
    chunk_bytes: int = 256
    chunk_ms: float = 0
    line_ms: float = 0


class Keys(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of this console. Control characters may be written as TOML, `^C` or `\\x03`; each is one byte."""

    enter: str = "\r"
    clear_line: str = "\x15"
    interrupt: str = "\x03"
    nudge: str = "\r"


class Prompts(Struct, frozen=True, forbid_unknown_fields=True):
    """The last line in each state: regular expressions that must reach its end. Empty: no such state.

    `above`: whole lines that are printed with each prompt, above it.
    """

    boot_loader: str = ""
    log_in: str = ""
    password: str = ""
    shell: str = ""
    repl: str = ""
    above: str = ""


class Boot(Struct, frozen=True, forbid_unknown_fields=True):
    """How a start of the device is noticed, and which key holds it in the boot loader."""

    banner: tuple[str, ...] = ()
    autoboot: str = ""
    autoboot_key: str = " "


class Transaction(Struct, frozen=True, forbid_unknown_fields=True):
    """How a command is sent so that its begin, end and status are certain.

    `marker`: `probe` and `line` are templates; {left} and {right} are halves of a word that only the device joins,
    {command} is the command, and the second word is followed by the status. `prompt`: the end is the prompt; the
    status comes from `status_command`, or is bad when a `failure` pattern is found. `raw_repl`: MicroPython's.
    """

    style: Style = "prompt"
    probe: str = ""
    line: str = ""
    status_command: str = ""
    status: str = r"(-?\d+)"
    failure: tuple[str, ...] = ()


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """A question that this device may ask, and what the operator lets be typed to it without asking a person."""

    question: str
    answer: str


class Profile(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A device as its operator describes it. Get one with `load_profile`."""

    name: str
    about: str = ""
    extends: str = ""
    wire: Wire = Wire()
    pacing: Pacing = Pacing()
    keys: Keys = Keys()
    prompts: Prompts = Prompts()
    boot: Boot = Boot()
    transaction: Transaction = Transaction()
    quoting: Quoting = "none"
    noise: tuple[str, ...] = ()
    questions: tuple[str, ...] = QUESTIONS
    answers: tuple[Answer, ...] = ()
    pager: str = ""
    pager_key: str = " "
    on_entry: tuple[str, ...] = ()
    wake: tuple[str, ...] = ()
    echo: bool = True
    quiet_ms: int = 400
    settle_ms: int = 0
    round_trip_ms: int = 0
    line_bytes_max: int = 255
    columns: int = 80
    answer_cursor_query: bool = False
    may_interrupt: bool = False
    commands: tuple[Command, ...] = ()

    @cached_property
    def noise_patterns(self) -> tuple[re.Pattern[str], ...]:
        """Noise lines: each pattern is taken to the end of its line."""
        return tuple(re.compile(rf"(?:{each})[^\n]*\n") for each in self.noise)

    @cached_property
    def prompt_patterns(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        """The states that have a prompt, the most dangerous to mistake first."""
        named = (
            (state, getattr(self.prompts, state)) for state in ("password", "log_in", "boot_loader", "repl", "shell")
        )
        return tuple((state, re.compile(rf"(?:{text})\Z")) for state, text in named if text)

    @cached_property
    def above_pattern(self) -> re.Pattern[str]:
        """What is printed with each prompt, above it: whole lines, and empty ones."""
        return re.compile(rf"(?:{self.prompts.above})?\s*")

    @cached_property
    def banner_patterns(self) -> tuple[re.Pattern[str], ...]:
        """What is only ever printed by a start of the device."""
        return tuple(re.compile(each, re.MULTILINE) for each in (*self.boot.banner, self.boot.autoboot) if each)

    @cached_property
    def settle_s(self) -> float:
        """How long the line must be quiet before a prompt is believed: as the profile says, or by the line's speed."""
        return (self.settle_ms or SETTLE_MS + SETTLE_CHARS * 10_000 / self.wire.baud) / 1000

    @property
    def round_trip_s(self) -> float:
        """How long the line is said to take there and back; what is measured counts where it is more."""
        return self.round_trip_ms / 1000

    @cached_property
    def pager_patterns(self) -> tuple[tuple[re.Pattern[str], str], ...]:
        """What pagers show while they wait, and the key that goes on: the profile's own first."""
        own = ((re.compile(self.pager), self.pager_key),) if self.pager else ()
        return (*own, *known_pagers())

    @cached_property
    def answer_patterns(self) -> tuple[tuple[re.Pattern[str], str], ...]:
        """The questions that may be answered without asking a person, and with what."""
        return tuple((re.compile(each.question), each.answer) for each in self.answers)

    @cached_property
    def wake_patterns(self) -> tuple[re.Pattern[str], ...]:
        """Lines that the device prints by itself and that an agent is told."""
        return tuple(re.compile(each) for each in self.wake)

    @cached_property
    def question_patterns(self) -> tuple[re.Pattern[str], ...]:
        """How a command asks something back."""
        return tuple(re.compile(each) for each in self.questions)


def load_profile(name: str) -> Profile:
    """Return the shipped profile of this name, or the one in this file. Raises ConfigError naming file and key."""
    source = _source_of(name)
    merged = _merged(name, source, depth=0)
    try:
        profile = msgspec.convert(merged, Profile)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: {readable(str(error))}") from None
    profile = _with_key_bytes(profile, source)
    _check(profile, source)
    return profile


def shipped_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that come with the package."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.toml")))


def _source_of(name: str) -> Path:
    if name.endswith(".toml") or "/" in name:
        return Path(name)
    if name in kinds():
        return TABLE
    if name not in shipped_profiles():
        known = ", ".join((*shipped_profiles(), *kinds()))
        raise ConfigError(f"no profile {name!r}: there are {known}, or give a .toml file")
    return SHIPPED / f"{name}.toml"


def _merged(name: str, source: Path, depth: int) -> dict[str, Any]:
    if source == TABLE:
        kind = kinds()[name]
        return _joined(_merged(kind.extends, _source_of(kind.extends), depth + 1), _of_kind(name))
    if depth > EXTENDS_MAX:
        raise ConfigError(f"{source}: profiles extend each other more than {EXTENDS_MAX} deep; is there a circle?")
    try:
        own = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{source} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{source} is not TOML: {error}") from None
    base = own.get("extends")
    if not isinstance(base, str) or not base:
        return own
    return _joined(_merged(base, _beside(source, base), depth + 1), own)


def _joined(below: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    return {**below, **{key: _over(below.get(key), value) for key, value in own.items()}}


def _of_kind(name: str) -> dict[str, Any]:
    """What the table of consoles says of this kind, as a profile's own words."""
    kind = kinds()[name]
    return {**kind.profile, "name": name, "about": kind.about, "extends": kind.extends}


def _beside(source: Path, base: str) -> Path:
    return source.parent / base if base.endswith(".toml") and not base.startswith("/") else _source_of(base)


def _over(below: Any, own: Any) -> Any:
    """Tables are joined key by key; commands are added; everything else is replaced."""
    if isinstance(below, dict) and isinstance(own, dict):
        return {**below, **own}
    if isinstance(below, list) and isinstance(own, list) and own and isinstance(own[0], dict):
        return below + own
    return own


def readable(message: str) -> str:
    """msgspec ends with "- at `$.commands[0].effect`": say it in a file's words."""
    return re.sub(r" - at `\$\.?([^`]*)`", r" (at \1)", message)


_KEY = re.compile(r"\\x([0-9a-fA-F]{2})|\\([rnte0])|\^([@-_])")
_NAMED_KEYS = {"r": "\r", "n": "\n", "t": "\t", "e": "\x1b", "0": "\0"}


def key_bytes(text: str) -> str:
    """Return the characters that a key stands for: `^C` and the four characters `\\x03` are both one 0x03."""

    def one(found: re.Match[str]) -> str:
        if found.group(1):
            return chr(int(found.group(1), 16))
        return _NAMED_KEYS[found.group(2)] if found.group(2) else chr(ord(found.group(3)) & 0x1F)

    return _KEY.sub(one, text)


def _with_key_bytes(profile: Profile, source: Path) -> Profile:
    keys = Keys(**{name: key_bytes(value) for name, value in msgspec.structs.asdict(profile.keys).items()})
    pager_key = key_bytes(profile.pager_key)
    boot = msgspec.structs.replace(profile.boot, autoboot_key=key_bytes(profile.boot.autoboot_key))
    for name, value in {
        **msgspec.structs.asdict(keys),
        "autoboot_key": boot.autoboot_key,
        "pager_key": pager_key,
    }.items():
        if any(ord(c) > 0xFF for c in value):
            raise ConfigError(f"{source}: key {name} is {value!r}; keys are bytes")
    return msgspec.structs.replace(profile, keys=keys, boot=boot, pager_key=pager_key)


def _check(profile: Profile, source: Path) -> None:
    _check_patterns(profile, source)
    _check_transaction(profile, source)
    names = [command.name for command in profile.commands]
    for command in profile.commands:
        where = f"{source}: commands.{command.name}"
        if names.count(command.name) > 1:
            raise ConfigError(f"{where} is there twice: rename one")
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,63}", command.name):
            raise ConfigError(f"{where}: a name is a letter, then up to 63 letters, digits or _")
        check_command(command, profile.quoting, where)


def _check_patterns(profile: Profile, source: Path) -> None:
    spoken = {
        **{f"prompts.{k}": v for k, v in msgspec.structs.asdict(profile.prompts).items()},
        **{f"noise[{n}]": v for n, v in enumerate(profile.noise)},
        **{f"boot.banner[{n}]": v for n, v in enumerate(profile.boot.banner)},
        **{f"questions[{n}]": v for n, v in enumerate(profile.questions)},
        **{f"answers[{n}].question": v.question for n, v in enumerate(profile.answers)},
        "pager": profile.pager,
        **{f"wake[{n}]": v for n, v in enumerate(profile.wake)},
        **{f"transaction.failure[{n}]": v for n, v in enumerate(profile.transaction.failure)},
        "boot.autoboot": profile.boot.autoboot,
        "transaction.status": profile.transaction.status,
    }
    for key, text in spoken.items():
        compiled(text, f"{source}: {key}")
        if key.startswith("prompts.") and text and re.search(text, ""):
            raise ConfigError(f"{source}: {key} {text!r} fits an empty line, so anything would be taken for it")


def _check_transaction(profile: Profile, source: Path) -> None:
    way = profile.transaction
    needs = {"probe": ("{left}", "{right}"), "line": ("{left}", "{right}", "{command}", "{last}")}
    if way.style == "marker":
        for key, parts in needs.items():
            missing = [part for part in parts if part not in getattr(way, key)]
            if missing:
                raise ConfigError(f"{source}: transaction.{key} lacks {missing[0]}")
            if "{left}{right}" in getattr(way, key):
                raise ConfigError(
                    f"{source}: transaction.{key} joins the marker itself, so its echo looks like the answer"
                )
    if not any((profile.prompts.shell, profile.prompts.boot_loader, profile.prompts.repl)):
        raise ConfigError(f"{source}: prompts has none of shell, boot_loader, repl: no command could ever be sent")
