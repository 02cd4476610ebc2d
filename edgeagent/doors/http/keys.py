"""Keys: who may come in. One a line, `NAME KEY`, in a file that nobody else may read; compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat
from pathlib import Path

from edgeagent.errors import ConfigError

CREDENTIAL_NAME = "edgeagent.keys"
"""The name of the file among a unit's systemd credentials (`LoadCredential=edgeagent.keys:...`)."""

KEY_CHARS_MIN = 20
KEYS_MAX = 256
HOW_TO_MAKE = (
    "make one with: (umask 077; echo \"phone $(head -c 24 /dev/urandom | base64 | tr '+/' '-_')\" >> edgeagent.keys)"
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_KEY = re.compile(rf"[!-~]{{{KEY_CHARS_MIN},200}}")


class Keys:
    """The keys of a server, by the names under which their sessions are kept. Holds digests, never the keys."""

    def __init__(self, keys: dict[str, str]) -> None:
        self._digests = {name: _digest(key) for name, key in keys.items()}

    def __len__(self) -> int:
        return len(self._digests)

    def name_of(self, key: str) -> str | None:
        """Whose key this is. Every key is compared, whichever fits, so that time tells nothing."""
        given, found = _digest(key), None
        for name, digest in self._digests.items():
            if hmac.compare_digest(given, digest):
                found = name
        return found

    def mark_of(self, name: str) -> bytes | None:
        """What a key of this name, if there is one, is known by; another key has another."""
        return self._digests.get(name)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def keys_file(named: Path | None, environment: dict[str, str] | None = None) -> Path | None:
    """The file that was named, or else the systemd credential, if there is one."""
    folder = (os.environ if environment is None else environment).get("CREDENTIALS_DIRECTORY", "")
    credential = Path(folder) / CREDENTIAL_NAME
    return named if named is not None else (credential if folder and credential.exists() else None)


def read_keys(file: Path) -> Keys:
    """Read a file of keys. Raises ConfigError naming file and line; a key itself is never shown."""
    try:
        with file.open("rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            text = opened.read(1 << 16).decode("ascii")
    except OSError as error:
        raise ConfigError(f"the keys' file {file}: {error.strerror}; {HOW_TO_MAKE}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the keys' file {file} is not plain ASCII, a line `NAME KEY` each") from None
    if mode & 0o077:
        raise ConfigError(f"others may read the keys' file {file} (mode {mode:o}): chmod 600 {file}")
    keys: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        _check(f"{file}, line {number}", words, keys)
        keys[words[0]] = words[1]
    if not keys:
        raise ConfigError(f"the keys' file {file} holds no key; {HOW_TO_MAKE}")
    return Keys(keys)


def _check(where: str, words: list[str], keys: dict[str, str]) -> None:
    if len(words) != 2 or not _NAME.fullmatch(words[0]):
        raise ConfigError(f"{where}: write NAME KEY; a name is up to 32 letters, digits, '_' or '-'")
    if not _KEY.fullmatch(words[1]):
        raise ConfigError(f"{where}: the key of {words[0]} has fewer than {KEY_CHARS_MIN} characters; {HOW_TO_MAKE}")
    if words[0] in keys or words[1] in keys.values():
        raise ConfigError(f"{where}: the name or the key of {words[0]} stands there twice; each key has one name")
    if len(keys) >= KEYS_MAX:
        raise ConfigError(f"{where}: {KEYS_MAX} keys are the most")
