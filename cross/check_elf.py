"""Does every library in this folder of wheels keep to what ARCH promises?   check_elf.py FOLDER ARCH

Each ELF file is for the right machine, states no CPU feature beyond the target's, and asks for no newer C library than
the oldest system it is for. Ends with 6 and a list if not.
"""

from __future__ import annotations

import re
import sys
import tempfile
import zipfile
from pathlib import Path

from elf import read_library

PROMISED = {
    "aarch64": ("aarch64", set()),
    "armv7": ("armv7l", {"vfpv3", "vfpv4", "vfpd32", "neon"}),
    "armv7-no-neon": ("armv7l", {"vfpv3"}),
    "riscv64": ("riscv64", set("imafdc")),
}
"""Machine, and the features that a library may state that it needs."""

DISPATCHES = re.compile(r"numpy/_?core/_(multiarray_umath|simd)\.")
"""Debian's numpy holds NEON code that it takes only after asking the CPU; conformance.sh runs it on one without."""

GLIBC_MAX = {"cp311": (2, 36), "any": (2, 36), "cp313": (2, 41)}
"""Debian bookworm's for Python 3.11 and for what serves every Python, trixie's for 3.13."""


def main() -> None:
    """Check every wheel; print how many libraries there were, or what is wrong."""
    house, target = Path(sys.argv[1]), sys.argv[2]
    wrong, count = [], 0
    for wheel in sorted(house.glob("*.whl")):
        for name, content in _libraries(wheel):
            count += 1
            wrong += [f"{wheel.name}: {name} {each}" for each in _complaints(name, content, target, wheel.name)]
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
        sys.exit(6)
    print(f"-- {count} libraries keep to {target}: {', '.join(sorted(PROMISED[target][1])) or 'its base set'}")


def _libraries(wheel: Path) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        every = ((name, archive.read(name)) for name in archive.namelist() if re.search(r"\.so(\.\d+)*$", name))
        return [(name, content) for name, content in every if content[:4] == b"\x7fELF"]


def _complaints(name: str, content: bytes, target: str, wheel: str) -> list[str]:
    machine, promised = PROMISED[target]
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        Path(file.name).write_bytes(content)
        library = read_library(Path(file.name))
    found = []
    if library.machine != machine:
        found.append(f"is for {library.machine}, not {machine}")
    extra = library.needs - promised
    if extra and not DISPATCHES.search(name):
        found.append(f"needs {', '.join(sorted(extra))}, which {target} does not promise ({library.detail})")
    wanted = max((tuple(map(int, v.split(b"."))) for v in re.findall(rb"GLIBC_(2\.\d+)\b", content)), default=(2, 0))
    limit = next(value for tag, value in GLIBC_MAX.items() if tag in wheel or tag == "cp313")
    if wanted > limit:
        found.append(f"needs glibc {'.'.join(map(str, wanted))}, newer than {'.'.join(map(str, limit))}")
    return found


if __name__ == "__main__":
    main()
