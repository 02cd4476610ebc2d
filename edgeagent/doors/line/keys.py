"""Keys that a person at a line has for themselves, as a table that the help is written from. Bytes in, wishes out."""

from __future__ import annotations

from msgspec import Struct

ESCAPE = 0x14
"""Ctrl-T, as in tio: what follows is for us."""

LEAVE = 0x1C
"""Ctrl-\\, which leaves at once, in whatever the person is."""


class Key(Struct, frozen=True):
    """One key after Ctrl-T, what is done then, and how the help says it."""

    key: str
    wish: str
    about: str


KEYS = (
    Key("?", "help", "this list"),
    Key("q", "leave", "leave (so does Ctrl-\\)"),
    Key("b", "break", "send a break"),
    Key("d", "dtr", "DTR on or off"),
    Key("D", "pulse_dtr", "pulse DTR: resets many boards"),
    Key("r", "rts", "RTS on or off"),
    Key("R", "pulse_rts", "pulse RTS"),
    Key("i", "about", "the line: settings, modem lines, bytes"),
    Key("x", "xmodem", "send a file by XMODEM"),
    Key("X", "xmodem-1k", "send a file by XMODEM in blocks of 1,024"),
    Key("y", "ymodem", "send a file by YMODEM"),
    Key("f", "raw", "send a file as it is"),
    Key("u", "scroll_back", "look back, and search, at what was heard"),
    Key("l", "log", "log to a file, and stop it"),
    Key("t", "stamps", "time before each line: none, of day, since the start, since the line before"),
    Key("h", "hex", "bytes in hex, and back"),
    Key("e", "echo", "show what is typed, for devices without echo"),
    Key("c", "clear", "clear the screen"),
    Key("\\", "type_leave", "type Ctrl-\\"),
    Key("\x14", "type_escape", "type Ctrl-T"),
)


class Wish(Struct, frozen=True):
    """What a key after Ctrl-T asks for; `unknown` is said with the key."""

    name: str
    key: str = ""


Meant = bytes | Wish


class KeyReader:
    """Cuts what is typed into what is for the device and what is for us."""

    def __init__(self) -> None:
        self._escaped = False

    def feed(self, typed: bytes) -> list[Meant]:
        """Return it in order. Nothing is taken after a wish to leave."""
        meant: list[Meant] = []
        plain = bytearray()
        for byte in typed:
            wish = self._wish(byte)
            if wish is None and not self._escaped:
                plain.append(byte)
            if wish is None:
                continue
            meant += [bytes(plain)] if plain else []
            plain.clear()
            meant.append(wish)
            if wish.name == "leave":
                return meant
        return meant + ([bytes(plain)] if plain else [])

    def _wish(self, byte: int) -> Wish | None:
        if byte == LEAVE:
            self._escaped = False
            return Wish("leave")
        if not self._escaped:
            self._escaped = byte == ESCAPE
            return None
        self._escaped = False
        names = (each.wish for each in KEYS if ord(each.key) == byte)
        return Wish(next(names, "unknown"), chr(byte))


def help_lines() -> tuple[str, ...]:
    """The table as a person reads it."""
    return tuple(f"Ctrl-T {_named(each.key):<7} {each.about}" for each in KEYS)


def _named(key: str) -> str:
    return f"Ctrl-{chr(ord(key) + 0x40)}" if key < " " else key
