"""The process: socket, background work, injection."""
