-- The scene of what a memory says: the file that was at hand, or the question that was asked, by the turn that shows it.
create table scenes (
  seq integer primary key,
  memory_seq integer not null unique references memories (seq) on delete cascade,
  uuid text not null,
  text text not null
);
create index scenes_by_uuid on scenes (uuid);
create index memories_by_session on memories (session_id);
