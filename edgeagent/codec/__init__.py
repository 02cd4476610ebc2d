"""How models and providers write: raw text or bytes, read into calls and answers. Pure."""
