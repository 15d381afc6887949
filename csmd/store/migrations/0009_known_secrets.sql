-- What was known as a secret in a session is looked up by the session at each of its events.
create index tombstones_by_place on tombstones (place) where place <> '';
