"""Credential of an endpoint: a reference that is resolved at the last moment, and a value that cannot be shown.

    env:NAME          a variable, which is taken out of the environment, so that no child is given it
    file:PATH         a file of this user that nobody else may read
    credential:NAME   what systemd's `LoadCredential=` has put into $CREDENTIALS_DIRECTORY

A `Secret` is not formatted, compared, copied or serialised by anything; only `sent` gives its bytes, to a header.
"""

from __future__ import annotations

import ctypes
import os
import re
import stat
from pathlib import Path
from typing import Any, NoReturn

from edgeagent.errors import ConfigError

KINDS = ("env", "file", "credential")

SECRET_CHARS_MIN, SECRET_CHARS_MAX = 8, 4096
"""A shorter one could not be told from other text, so what a server echoes could not be scrubbed of it."""

CREDENTIALS_DIRECTORY = "CREDENTIALS_DIRECTORY"

_SENDABLE = re.compile(r"[\x21-\x7e]+")

_taken: dict[str, Secret] = {}
"""What was taken out of the environment, which is this process's as the environment was."""


class Secret:
    """A key. Make it with `resolve`."""

    __slots__ = ("__key",)
    __hash__ = None  # type: ignore[assignment] # A digest of a key is a way to guess it.

    def __init__(self, key: str) -> None:
        self.__key = key

    def __repr__(self) -> str:
        return "<secret>"

    def __str__(self) -> NoReturn:  # noqa: PLE0307 # it never returns
        _refuse("written as text")

    def __format__(self, spec: str) -> NoReturn:
        _refuse("formatted")

    def __eq__(self, other: object) -> NoReturn:
        _refuse("compared")

    def __ne__(self, other: object) -> NoReturn:
        _refuse("compared")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        _refuse("pickled or copied")

    def __getstate__(self) -> NoReturn:
        _refuse("pickled or copied")

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("Secret cannot be subclassed: a subclass could show it")

    def sent(self, before: str) -> str:
        """The line of a header that carries it, such as `Authorization: Bearer ` and the key."""
        return before + self.__key

    def told(self) -> str:
        """The key itself: for what looks for it in texts, and for nothing that keeps it."""
        return self.__key


def _refuse(what: str) -> NoReturn:
    raise TypeError(f"a secret cannot be {what}")


def check_reference(reference: str, where: str) -> str:
    """The reference, if it is one. Raises ConfigError naming the key, without repeating what may be a secret."""
    kind, colon, name = reference.partition(":")
    if kind in KINDS and colon and name:
        return reference
    raise ConfigError(
        f"{where}: a credential is a reference, never the key itself: env:NAME, file:PATH or credential:NAME"
    )


def resolve(reference: str) -> Secret:
    """The secret that a reference means now. Raises ConfigError naming the reference and the remedy."""
    kind, _, name = check_reference(reference, "credential").partition(":")
    match kind:
        case "env":
            return _from_environment(name)
        case "file":
            return _checked(_read(Path(name).expanduser(), reference), reference)
        case _:
            folder = os.environ.get(CREDENTIALS_DIRECTORY)
            if not folder:
                raise ConfigError(
                    f"{reference}: ${CREDENTIALS_DIRECTORY} is not set; it is by systemd, with LoadCredential={name}"
                )
            if "/" in name or name in (".", ".."):
                raise ConfigError(f"{reference}: the name of a credential has no /")
            return _checked(_read(Path(folder) / name, reference), reference)


def prepare(reference: str) -> None:
    """See now that there is such a key, and take it out of the environment before anything runs that could inherit it.

    Raises ConfigError naming the reference and the remedy.
    """
    if reference:
        resolve(reference)


def _from_environment(name: str) -> Secret:
    value = os.environ.get(name)
    if value is None:
        if name in _taken:
            return _taken[name]
        raise ConfigError(f"env:{name}: there is no variable {name}; set it, or use file:PATH")
    secret = _taken[name] = _checked(value, f"env:{name}")
    _wipe(name)
    del os.environ[name]
    return secret


def _wipe(name: str) -> None:
    """Overwrite the variable where the kernel still shows it, in /proc/PID/environ, after it is unset."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype, getenv.argtypes = ctypes.c_void_p, (ctypes.c_char_p,)
    address = getenv(os.fsencode(name))
    if address:
        ctypes.memset(address, ord("x"), len(ctypes.string_at(address)))


def _read(path: Path, reference: str) -> str:
    """The file's text, if it is one that only this user may read. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise ConfigError(f"{reference}: it is no regular file")
            if about.st_mode & 0o077:
                mode = stat.S_IMODE(about.st_mode)
                raise ConfigError(f"{reference}: others may read it (mode {mode:04o}); chmod 600 {path}")
            if about.st_uid not in (0, os.geteuid()):
                raise ConfigError(f"{reference}: it belongs to another user, who could change it; chown it")
            content = file.read(SECRET_CHARS_MAX + 3)
    except OSError as error:
        raise ConfigError(f"{reference}: {error.strerror}; put the key into that file, with mode 0600") from None
    try:
        return content.decode("ascii").strip("\r\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{reference}: a key is printable ASCII in one line") from None


def _checked(key: str, reference: str) -> Secret:
    """The secret, if a header can carry it and texts can be scrubbed of it. Raises ConfigError without the key."""
    if not _SENDABLE.fullmatch(key):
        raise ConfigError(f"{reference}: a key is printable ASCII in one line, without spaces")
    if not SECRET_CHARS_MIN <= len(key) <= SECRET_CHARS_MAX:
        raise ConfigError(
            f"{reference}: it has {len(key)} characters; a key has {SECRET_CHARS_MIN} to {SECRET_CHARS_MAX}. An "
            "endpoint that takes any key needs no credential"
        )
    return Secret(key)
