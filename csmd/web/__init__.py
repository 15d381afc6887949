"""A viewer in the browser, for this machine only; its own process, which uses the daemon's socket."""
