"""`python -m csmd` is the `csmd` command."""

from csmd.cli.main import entry

entry()
