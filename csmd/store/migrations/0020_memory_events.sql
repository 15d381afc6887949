-- What was done to memories, one row an act: a change of belief by its name, `undone` for one that was taken back, `forgotten`.
-- `about` names the change that was undone. What was said stands in none of these.
create table memory_events (
  seq integer primary key autoincrement,
  at text not null,
  act text not null,
  about text not null default '',
  memory_id text not null,
  project_seq integer not null,
  by_whom text not null
);
