"""What is in it? An SPDX 2.3 document of a wheelhouse and of the image made with it.   sbom.py WHEELS ARCH VERSION

Every wheel with version, licence, digest and where it came from; every Debian package of the image, as the image itself
lists them. No time of making in it, so that the same contents give the same document.
"""

from __future__ import annotations

import email.parser
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any


def main() -> None:
    """Print the document."""
    house, target, version = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    packages = [_wheel(each) for each in sorted(house.glob("*.whl"))] + _debian(target)
    digest = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"edgeagent-{version}-{target}",
        "documentNamespace": f"urn:edgeagent:{version}:{target}:{digest}",
        "creationInfo": {"created": "1980-01-01T00:00:00Z", "creators": ["Tool: edgeagent cross/sbom.py"]},
        "packages": packages,
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": each["SPDXID"]}
            for each in packages
        ],
    }
    print(json.dumps(document, indent=1))


def _wheel(wheel: Path) -> dict[str, Any]:
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        about = email.parser.BytesParser().parsebytes(archive.read(name), headersonly=True)
        maker = archive.read(name.replace("METADATA", "WHEEL")).decode()
    licence = about.get("License-Expression") or (about.get("License") or "").splitlines()[:1] or ["NOASSERTION"]
    return {
        "SPDXID": _identity("wheel", wheel.name),
        "name": about["Name"],
        "versionInfo": about["Version"],
        "packageFileName": wheel.name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseDeclared": "NOASSERTION",
        "licenseComments": licence if isinstance(licence, str) else licence[0],
        "sourceInfo": "packed by cross/pack.py" if "cross/pack.py" in maker else "the package's own wheel",
        "checksums": [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(wheel.read_bytes()).hexdigest()}],
        "externalRefs": [_purl(f"pkg:pypi/{re.sub(r'[-_.]+', '-', about['Name']).lower()}@{about['Version']}")],
    }


def _debian(target: str) -> list[dict[str, Any]]:
    """The packages that the image was laid out from, read out of the image."""
    engine = shutil.which("podman") or shutil.which("docker")
    if engine is None:
        return []
    command = [str(Path(__file__).with_name("run.sh")), target, "-c", "cat /var/lib/dpkg/status.d/*"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "EXTRA": "--entrypoint sh"}
    )
    found = []
    for block in re.split(r"(?m)^(?=Package: )", done.stdout):
        if not block.strip():
            continue
        about = email.parser.Parser().parsestr(block, headersonly=True)
        name, version, architecture = about["Package"], about["Version"], about["Architecture"]
        found.append(
            {
                "SPDXID": _identity("deb", name),
                "name": name,
                "versionInfo": version,
                "downloadLocation": "NOASSERTION",
                "filesAnalyzed": False,
                "licenseDeclared": "NOASSERTION",
                "licenseComments": f"usr/share/doc/{name}/copyright in the image",
                "externalRefs": [_purl(f"pkg:deb/debian/{name}@{version}?arch={architecture}")],
            }
        )
    return found


def _purl(locator: str) -> dict[str, str]:
    return {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}


def _identity(kind: str, name: str) -> str:
    return f"SPDXRef-{kind}-{re.sub(r'[^A-Za-z0-9.-]+', '-', name)}"


if __name__ == "__main__":
    main()
