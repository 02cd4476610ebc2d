"""Which wheel holds these files? Makes the wheels that the index lacks; the same input gives the same bytes.

    pack.py llama SDIST LIBRARIES PLATFORM OUT            llama-cpp-python around libraries that are built already
    pack.py debian PROJECT STAGE PYTHON PLATFORM OUT      Debian's build of a package, with the libraries that it needs
    pack.py compiled PROJECT SDIST STAGE PYTHON TRIPLET PLATFORM OUT     a C extension, compiled here and now

Standard library only, since it runs before anything is installed.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip can hold
_EXTENSIONS = {
    # project: (module that is made, package folder in the sdist, sources, flags)
    "msgspec": ("msgspec/_core", "src/msgspec", ["src/msgspec/_core.c"], []),
    "cbor2": (
        "_cbor2",
        "cbor2",
        [f"source/{name}.c" for name in ("module", "encoder", "decoder", "tags", "halffloat")],
        ["-std=c99", "-D_GNU_SOURCE"],
    ),
}
_DEBIAN_LIBRARIES = {"numpy": ["blas/libblas.so.3", "lapack/liblapack.so.3", "libgfortran.so.5"]}
_KEEP = {"numpy/_core/tests/__init__.py", "numpy/_core/tests/_natype.py"}  # numpy.testing imports them
_LEAVE_OUT = re.compile(r"(^|/)(tests?|__pycache__)/|\.(pyc|pyi|c|h|a|pxd|f2py_f2cmap)$|(^|/)_\w*tests\.cpython")


def wheel(project: str, version: str, tag: str, files: dict[str, bytes], about: dict[str, bytes], out: Path) -> Path:
    """Write the wheel. `about` are the files of its dist-info beside WHEEL and RECORD."""
    name = re.sub(r"[-_.]+", "_", project)
    info = f"{name}-{version}.dist-info"
    pure = tag.endswith("-any")
    head = f"Wheel-Version: 1.0\nGenerator: edgeagent cross/pack.py\nRoot-Is-Purelib: {str(pure).lower()}\nTag: {tag}\n"
    whole = {**files, **{f"{info}/{each}": content for each, content in about.items()}, f"{info}/WHEEL": head.encode()}
    rows = [f"{path},sha256={_digest(content)},{len(content)}" for path, content in sorted(whole.items())]
    whole[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    target = out / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, content in sorted(whole.items()):
            member = zipfile.ZipInfo(path, _DATE)
            member.external_attr = (0o100755 if path.endswith(".so") else 0o100644) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content)
    return target


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _field(metadata: bytes, name: str) -> str:
    found = re.search(rf"(?m)^{name}: (.+)$", metadata.decode())
    assert found, f"the package's metadata has no {name}"
    return found[1].strip()


def _python_files(root: Path, prefix: str = "") -> dict[str, bytes]:
    """Every file below a folder that is needed at run time; links to folders hold headers only."""
    found = {}
    for place, folders, names in os.walk(root):
        folders[:] = [each for each in folders if not (Path(place) / each).is_symlink()]
        for name in names:
            path = Path(place) / name
            inner = prefix + str(path.relative_to(root))
            if path.is_file() and (inner in _KEEP or not _LEAVE_OUT.search(inner)):
                found[inner] = path.read_bytes()
    return found


def _unpacked(sdist: Path, folder: Path, *, without: str) -> Path:
    with tarfile.open(sdist) as archive:
        members = [m for m in archive.getmembers() if without not in m.name]
        archive.extractall(folder, members=members, filter="data")
    return next(folder.iterdir())


def llama(sdist: Path, libraries: Path, platform: str, out: Path) -> Path:
    """llama-cpp-python's own Python files, and these libraries. The server is left out: nothing here starts it."""
    with tempfile.TemporaryDirectory() as work:
        root = _unpacked(sdist, Path(work), without="/vendor/")
        files = _python_files(root / "llama_cpp", "llama_cpp/")
        files = {path: content for path, content in files.items() if not path.startswith("llama_cpp/server/")}
        metadata = (root / "PKG-INFO").read_bytes()
        licence = (root / "LICENSE.md").read_bytes()
    for library in sorted(libraries.glob("*.so")):
        files[f"llama_cpp/lib/{library.name}"] = library.read_bytes()
    about = {"METADATA": metadata, "LICENSE.md": licence}
    return wheel("llama_cpp_python", _field(metadata, "Version"), f"py3-none-{platform}", files, about, out)


def debian(project: str, stage: Path, python: str, platform: str, out: Path) -> Path:
    """Debian's build as a wheel. What it links to outside the base system goes along, in PROJECT.libs."""
    packages = stage / "usr/lib/python3/dist-packages"
    info = next(each for each in packages.iterdir() if re.fullmatch(rf"{project}-.*\.(dist|egg)-info", each.name))
    metadata_file = info / ("METADATA" if info.suffix == ".dist-info" else "PKG-INFO")
    metadata = metadata_file.read_bytes()
    about = {"METADATA": metadata, "LICENSE": (stage / f"usr/share/doc/python3-{project}/copyright").read_bytes()}
    files = _python_files(packages / project, f"{project}/")
    libraries = next((stage / "usr/lib").glob("*-linux-gnu*"))
    extra = {Path(each).name: (libraries / each).read_bytes() for each in _DEBIAN_LIBRARIES.get(project, [])}
    if extra:
        files = _told_where(files, project)
        files |= {f"{project}.libs/{name}": _with_path(content, "$ORIGIN") for name, content in extra.items()}
    cp = "cp" + python.replace(".", "")
    return wheel(project, _field(metadata, "Version"), f"{cp}-{cp}-{platform}", files, about, out)


def _told_where(files: dict[str, bytes], project: str) -> dict[str, bytes]:
    """Each extension module looks for its libraries in PROJECT.libs."""
    return {
        path: _with_path(content, "$ORIGIN/" + "../" * path.count("/") + f"{project}.libs")
        if path.endswith(".so") and b"libblas.so.3" in content
        else content
        for path, content in files.items()
    }


def _with_path(library: bytes, run_path: str) -> bytes:
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        Path(file.name).write_bytes(library)
        subprocess.run(["patchelf", "--set-rpath", run_path, file.name], check=True)
        return Path(file.name).read_bytes()


def compiled(project: str, sdist: Path, stage: Path, python: str, triplet: str, platform: str, out: Path) -> Path:
    """A package of Python files and one C extension, compiled for the target with the target's own Python headers."""
    module, package, sources, flags = _EXTENSIONS[project]
    with tempfile.TemporaryDirectory() as work:
        root = _unpacked(sdist, Path(work), without="/benchmarks/")
        library = Path(work) / "made.so"
        command = [
            f"{triplet}-gcc",
            "-shared",
            "-fPIC",
            "-O2",
            "-g0",
            "-DNDEBUG",
            "-fwrapv",
            "-Wl,--build-id=sha1",
            "-s",
        ]
        command += [*flags, f"-ffile-prefix-map={work}=.", *_march(triplet)]
        command += [f"-I{stage}/include/python{python}", f"-I{stage}/include"]
        subprocess.run([*command, *sources, "-o", str(library), "-lm"], check=True, cwd=root)
        cp = "cp" + python.replace(".", "")
        suffix = f".cpython-{python.replace('.', '')}-{triplet}.so"
        files = _python_files(root / package, f"{project}/") | {module + suffix: library.read_bytes()}
        metadata = (root / "PKG-INFO").read_bytes()
        licence = next(root.glob("LICENSE*")).read_bytes()
    about = {"METADATA": metadata, "LICENSE": licence}
    return wheel(project, _field(metadata, "Version"), f"{cp}-{cp}-{platform}", files, about, out)


def _march(triplet: str) -> list[str]:
    """Python's own extensions keep to the floor of the Debian port."""
    return ["-march=armv7-a", "-mfpu=vfpv3-d16", "-mfloat-abi=hard"] if triplet.startswith("arm-") else []


_KINDS: dict[str, Callable[..., Path]] = {"llama": llama, "debian": debian, "compiled": compiled}
_TEXTS = {"llama": (2,), "debian": (0, 2, 3), "compiled": (0, 3, 4, 5)}
"""Which arguments are words; the others are paths."""


def main() -> None:
    """Make one wheel and print its path."""
    kind, *given = sys.argv[1:]
    arguments = [each if at in _TEXTS[kind] else Path(each) for at, each in enumerate(given)]
    print(_KINDS[kind](*arguments))


if __name__ == "__main__":
    main()
