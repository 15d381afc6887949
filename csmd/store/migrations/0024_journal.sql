-- One journal for answers and for the actions of dreams: a set is one act, with why it was done (evidence are ids and uuids
-- with spaces between). Those of dreams have no id and go with their dream.
create table change_sets (
  seq integer primary key autoincrement,
  id text unique,
  dream_seq integer references dreams (seq) on delete cascade,
  by_whom text not null,
  kind text not null,
  item text not null default '',
  made text not null default '',
  project_seq integer not null,
  reason text not null default '',
  evidence text not null default '',
  at text not null,
  undone_at text not null default ''
);
create index change_sets_by_item on change_sets (item);
create index change_sets_by_made on change_sets (made);
create index change_sets_by_dream on change_sets (dream_seq);
-- Every memory and candidate that an act changed, before and after it; state is '' where it did not exist. kept: why it was
-- not restored though the set was undone.
create table changed_rows (
  seq integer primary key autoincrement,
  set_seq integer not null references change_sets (seq) on delete cascade,
  item text not null,
  text text not null,
  state text not null,
  more text not null,
  text_after text not null,
  state_after text not null,
  more_after text not null,
  kept text not null default ''
);
create index changed_rows_by_set on changed_rows (set_seq);
create index changed_rows_by_item on changed_rows (item);
-- Every file that an act wrote, before and after it, and whether there was one. path is relative to the home.
create table changed_files (
  seq integer primary key autoincrement,
  set_seq integer not null references change_sets (seq) on delete cascade,
  path text not null,
  before text not null,
  after text not null,
  was_there integer not null,
  is_there integer not null,
  kept text not null default ''
);
create index changed_files_by_set on changed_files (set_seq);
create index changed_files_by_path on changed_files (path);

-- Answers keep their order among each other and come before dreams' actions, whose keys move up by as many.
insert into change_sets (seq, id, by_whom, kind, item, made, project_seq, at, undone_at)
  select seq, id, case was when 'rule' then 'rule' else 'person' end, answer, item, made, project_seq, at, undone_at
  from answers order by seq;
insert into change_sets (seq, dream_seq, by_whom, kind, project_seq, reason, evidence, at, undone_at)
  select seq + (select coalesce(max(a.seq), 0) from answers a), dream_seq, 'dream', kind, project_seq, reason, evidence, at,
    undone_at from dream_changes order by seq;
-- Of the rows after an answer only the version is known.
insert into changed_rows (set_seq, item, text, state, more, text_after, state_after, more_after)
  select answer_seq, memory_id, text, state, more, '', '{"version": ' || version_after || '}', '' from answer_befores order by seq;
insert into changed_rows (set_seq, item, text, state, more, text_after, state_after, more_after, kept)
  select change_seq + (select coalesce(max(a.seq), 0) from answers a), item, text, state, more, text_after, state_after,
    more_after, kept from dream_rows order by seq;
insert into changed_files (set_seq, path, before, after, was_there, is_there, kept)
  select change_seq + (select coalesce(max(a.seq), 0) from answers a), path, before, after, was_there, is_there, kept
  from dream_files order by seq;
drop table answer_befores;
drop table answers;
drop table dream_files;
drop table dream_rows;
drop table dream_changes;
