-- Passages: runs of neighbouring sentences of what users and assistants said, the unit that is found and told
-- (csmd/prose.py). `text` is '' where the passage is what stands from start_at to end_at, in characters, in its turn;
-- it holds the words of a tool call (a plan, a commit's message), which stand in no turn as they are told.
create table passages (
  seq integer primary key autoincrement,
  turn_seq integer not null references turns (seq) on delete cascade,
  session_seq integer not null,
  project_seq integer not null,
  start_at integer not null,
  end_at integer not null,
  text text not null default ''
);
create index passages_by_turn on passages (turn_seq, start_at);
create index passages_by_session on passages (session_seq, turn_seq, start_at);
create index passages_of_projects on passages (project_seq);

-- Passages on the same matter, the newer linked with the older.
create table passage_threads (
  older_seq integer not null references passages (seq) on delete cascade,
  newer_seq integer not null references passages (seq) on delete cascade,
  weight real not null,
  primary key (older_seq, newer_seq)
) without rowid;
create index passage_threads_by_newer on passage_threads (newer_seq);

-- Without content: the words stand in the turns. As of turns, what derives from them is indexed, too.
create virtual table passages_fts using fts5 (
  text, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

-- csmd_passages gives [[start, end, words], ...]; the second statement finds the rows that the first has made.
create trigger turns_passages_insert after insert on turns when new.searchable = 1 begin
  insert into passages (turn_seq, session_seq, project_seq, start_at, end_at)
    select new.seq, new.session_seq, new.project_seq, j.value ->> 0, j.value ->> 1 from json_each(csmd_passages(new.text)) j;
  insert into passages_fts (rowid, text)
    select p.seq, csmd_indexed(j.value ->> 2, new.at) from json_each(csmd_passages(new.text)) j
    cross join passages p on p.turn_seq = new.seq and p.start_at = j.value ->> 0 and p.text = '';
end;
-- The words of a tool call outlive its input, which is dropped when it is old; nothing else outlives its turn's text.
create trigger turns_passages_update after update of text, searchable, dropped on turns
when old.text <> new.text or old.searchable <> new.searchable begin
  delete from passages where turn_seq = old.seq and (text = '' or old.dropped is not null or new.dropped is null);
  insert into passages (turn_seq, session_seq, project_seq, start_at, end_at)
    select new.seq, new.session_seq, new.project_seq, j.value ->> 0, j.value ->> 1 from json_each(csmd_passages(new.text)) j
    where new.searchable = 1;
  insert into passages_fts (rowid, text)
    select p.seq, csmd_indexed(j.value ->> 2, new.at) from json_each(csmd_passages(new.text)) j
    cross join passages p on p.turn_seq = new.seq and p.start_at = j.value ->> 0 and p.text = ''
    where new.searchable = 1;
end;
create trigger turns_passages_at after update of at on turns
when old.at <> new.at and old.text = new.text and old.searchable = new.searchable begin
  delete from passages_fts where rowid in (select seq from passages where turn_seq = new.seq);
  insert into passages_fts (rowid, text)
    select seq, csmd_indexed(case when text <> '' then text else csmd_slice(new.text, start_at, end_at) end, new.at)
    from passages where turn_seq = new.seq;
end;
create trigger turns_passages_move after update of session_seq, project_seq on turns
when old.session_seq <> new.session_seq or old.project_seq <> new.project_seq begin
  update passages set session_seq = new.session_seq, project_seq = new.project_seq where turn_seq = new.seq;
end;
create trigger passages_insert after insert on passages when new.text <> '' begin
  insert into passages_fts (rowid, text) select new.seq, csmd_indexed(new.text, t.at) from turns t where t.seq = new.turn_seq;
end;
create trigger passages_update after update of text on passages when old.text <> new.text begin
  delete from passages_fts where rowid = old.seq;
  insert into passages_fts (rowid, text) select new.seq, csmd_indexed(new.text, t.at) from turns t where t.seq = new.turn_seq;
  insert into embed_again (model_seq, kind, row_seq)
    select distinct v.model_seq, 'passage', new.seq from vectors v where v.kind = 'passage' and v.row_seq = new.seq
    on conflict do nothing;
  delete from vectors where kind = 'passage' and row_seq = old.seq;
end;
-- A row in `vectors` takes its vector and signs with it: each model's trigger is made with its tables (vector_tables.py).
create trigger passages_delete after delete on passages begin
  delete from passages_fts where rowid = old.seq;
  delete from vectors where kind = 'passage' and row_seq = old.seq;
  delete from embed_again where kind = 'passage' and row_seq = old.seq;
end;

-- The turns that were stored before are gone through in the background up to this one (store/passage_index.py).
insert into cursors (stage, subject, position) select 'passages', 'until', coalesce(max(seq), 0) from turns;
