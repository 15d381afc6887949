"""A viewer in the browser, on this machine alone: a process of its own that knows the socket and never the store."""
