"""Upload of a firmware image over SMP, piece by piece; goes on where it was cut, and never writes a piece twice.

Each piece carries its offset, and the device answers with the offset that it wants next. A piece sent again after an
answer was lost is therefore harmless, and an upload that begins again with the same SHA-256 goes on where it stood.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

from edgeagent.driver.bus import smp
from edgeagent.driver.bus.smp_client import SmpClient, SmpDone, SmpOutcome, SmpUnknown

UPLOAD = 1
PIECE_S = 5.0
"""The first piece may have the device erase a slot."""

TRIES = 4
"""How often one piece is sent before the upload is given up; it may be taken up again later."""


def upload(client: SmpClient, image: bytes, until: float, told: Callable[[int], None] = lambda _: None) -> SmpOutcome:
    """Upload an image; return SmpDone with `off`, or the first outcome that ended it. `told` hears each offset."""
    offset, tries, outcome = 0, 0, SmpUnknown("there was no time left")
    while time.monotonic() < until:
        answer = client.request(smp.WRITE, smp.IMAGE, UPLOAD, _piece(client, image, offset), PIECE_S)
        wanted = answer.body.get("off") if isinstance(answer, SmpDone) else None
        if isinstance(answer, SmpUnknown) and tries < TRIES:
            tries, outcome = tries + 1, answer
            continue
        if not isinstance(wanted, int) or not 0 <= wanted <= len(image):
            return answer if wanted is None else SmpUnknown(f"the device wants byte {wanted} of {len(image)}")
        tries = tries + 1 if wanted <= offset and offset else 0
        if tries > TRIES:
            return SmpUnknown(f"the device takes nothing after byte {wanted}")
        offset = wanted
        told(offset)
        if offset == len(image):
            return SmpDone({"off": offset})
    return outcome


def _piece(client: SmpClient, image: bytes, offset: int) -> dict[str, object]:
    """The piece at this offset, as large as the device takes in; the first tells length and SHA-256 of the whole."""
    about = {"len": len(image), "sha": hashlib.sha256(image).digest()} if offset == 0 else {}
    body = {"off": offset, "data": b"", **about}
    empty = len(smp.encode(smp.Message(smp.WRITE, smp.IMAGE, UPLOAD, 0, body)))
    size = max(1, client.buffer_bytes - empty - 4)  # 4: the longest head that CBOR puts before so many bytes.
    return {**body, "data": image[offset : offset + size]}
