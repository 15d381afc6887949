"""The process: socket, watcher, background work and the tools it answers."""
