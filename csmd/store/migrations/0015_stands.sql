-- Which memory says in what state a session left the work, up to which of its turns, by which turn: as a language model said
-- and csmd believed. With an undone dream it goes.
create table stands (
  memory_seq integer not null references memories (seq) on delete cascade,
  uuid text not null,
  session_seq integer not null references sessions (seq) on delete cascade,
  turns integer not null,
  at text not null,
  primary key (memory_seq, uuid)
) without rowid;
create index stands_by_uuid on stands (uuid);
create index stands_by_session on stands (session_seq);
