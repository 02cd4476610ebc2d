"""Does what is said after a call name only what there is to say? A text with names in braces."""

from __future__ import annotations

import string
from collections.abc import Collection


def why_not_said(say: str, known: Collection[str]) -> str:
    """Say what is wrong with such a text, if only these names are known; nothing if it is right."""
    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(say) if name is not None]
    except ValueError as error:
        return f"whose braces do not match ({error}); write {{{{ for a brace itself"
    unknown = next((name for name in fields if name not in known), None)
    if unknown is None:
        return ""
    return f"and there is no {unknown or 'name in its braces'}; there are: {', '.join(known)}"
