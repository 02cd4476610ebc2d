"""The version of this package, in one place for the build and for the trace."""

__version__ = "0.1.0"
