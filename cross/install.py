"""Install a wheelhouse for another architecture into a folder:   install.py WHEELS ROOT PYTHON PLATFORM...

Runs in the image's build stage with the same Python as the target has, so that the bytecode fits. Standard library
and pip alone.
"""

from __future__ import annotations

import compileall
import py_compile
import re
import shutil
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Choose the wheels that fit, install them without looking anywhere else, compile, leave the launcher."""
    house, root, python, *platforms = sys.argv[1:]
    assert python == f"{sys.version_info[0]}.{sys.version_info[1]}", f"bytecode for {python} needs Python {python}"
    site = Path(root) / f"usr/local/lib/python{python}/dist-packages"
    tag = "cp" + python.replace(".", "")
    names = sorted({re.split("-", wheel.name)[0] for wheel in Path(house).glob("*.whl")})
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", f"--find-links={house}", "--no-deps"]
    command += ["--only-binary=:all:", "--no-compile", "--root-user-action=ignore", f"--target={site}"]
    command += ["--implementation=cp", f"--python-version={python}", f"--abi={tag}", "--abi=abi3", "--abi=none"]
    subprocess.run([*command, *(f"--platform={each}" for each in platforms), *names], check=True)
    _leave_out(site)
    _launcher(Path(root))
    for place in (site, Path(root) / f"usr/lib/python{python}", Path(root) / "usr/lib/python3"):
        # The image never changes, so the bytecode need not be held against the source at every start.
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        compileall.compile_dir(place, quiet=2, stripdir=root, force=True, invalidation_mode=mode)


def _leave_out(site: Path) -> None:
    """Other packages' tests and what only a compiler needs."""
    for folder in [*site.rglob("tests"), *site.rglob("include"), site / "bin", *site.rglob("__pycache__")]:
        if folder.is_dir() and folder != site / "numpy/_core/tests":
            shutil.rmtree(folder)
    for file in [*site.rglob("*.pyi"), *site.rglob("*.a"), *(site / "numpy/_core/tests").glob("test_*")]:
        file.unlink()


def _launcher(root: Path) -> None:
    target = root / "usr/local/bin/edgeagent"
    target.parent.mkdir(parents=True, exist_ok=True)
    # -P: a file in the working folder must not be taken for a module; -s: nothing from the user's folder.
    target.write_text("#!/usr/bin/python3 -sP\nfrom edgeagent.doors.cli.main import main\n\nmain()\n")
    target.chmod(0o755)


if __name__ == "__main__":
    main()
