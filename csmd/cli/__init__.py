"""The command line: asks the daemon over its socket."""
