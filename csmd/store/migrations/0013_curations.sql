-- Which sessions a language model was asked about, up to which turn, and with what result: nobody pays for one twice.
create table curations (
  session_seq integer not null primary key references sessions (seq) on delete cascade,
  turns integer not null,
  at text not null,
  questions integer not null,
  candidates integer not null,
  notes integer not null,
  -- Why what was answered was not believed, as name=count pairs; '' for nothing.
  dropped text not null default ''
) without rowid;
-- What a memory is worth telling, as the model said and csmd believed: starts, tasks, never; noted for what a note says in
-- its place, which the link curated_as leads to. With an undone dream it goes.
create table judgements (
  memory_seq integer not null references memories (seq) on delete cascade,
  uuid text not null,
  tell text not null,
  at text not null,
  primary key (memory_seq, uuid)
) without rowid;
create index judgements_by_uuid on judgements (uuid);
