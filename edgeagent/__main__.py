"""`python -m edgeagent` is the same as `edgeagent`."""

from edgeagent.doors.cli.main import main

if __name__ == "__main__":
    main()
