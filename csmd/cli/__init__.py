"""Install, inspect, ask: everything here talks to the daemon over its socket."""
