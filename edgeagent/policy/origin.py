"""Where a value comes from: is it quoted from the user? The test itself is core's, for all to share."""

from __future__ import annotations

from edgeagent.core.quoting import quoted_from_user

__all__ = ["quoted_from_user"]
