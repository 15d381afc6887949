-- Prompts that were stored before it was told which of them a program wrote: who spoke in each is looked at once more
-- (memory/speakers.py).
create table speakers_due (
  turn_seq integer not null references turns (seq) on delete cascade,
  primary key (turn_seq)
) without rowid;
insert into speakers_due (turn_seq)
  select t.seq from turns t join sessions s on s.seq = t.session_seq where t.kind = 'user' and s.parent = '';

-- Transcripts that are still there are read again: only their lines tell how a session was begun and that an agent spoke.
update files set foot = 'again', mtime_ns = 1 where position > 0 and substr(path, 1, 7) <> 'purged:';
