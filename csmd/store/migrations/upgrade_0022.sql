-- Brings a database after the migration 0022_graph_counts to the state of 0023_schema.sql.
alter table turns add column speaker_due integer not null default 0;
create index turns_of_speakers_due on turns (seq) where speaker_due = 1;
update turns set speaker_due = 1 where seq in (select turn_seq from speakers_due);
drop table speakers_due;

alter table sessions add column unreported_at text not null default '';
alter table sessions add column unreported_after integer not null default 0;
create index sessions_unreported on sessions (unreported_at) where unreported_at > '';
update sessions set unreported_at = u.at, unreported_after = u.after_event from unheard u where u.session_id = sessions.id;
drop table unheard;

alter table projects add column topics_due integer not null default 0;
update projects set topics_due = d.changes from topics_due d where d.project_seq = projects.seq;
drop trigger topics_due_insert;
drop trigger topics_due_delete;
drop trigger topics_due_update;
drop table topics_due;
create trigger topics_due_insert after insert on memories begin
  update projects set topics_due = topics_due + 1 where seq = new.project_seq;
end;
create trigger topics_due_delete after delete on memories begin
  update projects set topics_due = topics_due + 1 where seq = old.project_seq;
end;
create trigger topics_due_update after update of text, project_seq, session_id, twin_of, tier on memories
when new.text <> old.text or new.project_seq <> old.project_seq or new.session_id <> old.session_id
  or new.twin_of <> old.twin_of or (new.tier = 'archive') <> (old.tier = 'archive') begin
  update projects set topics_due = topics_due + 1 where seq in (old.project_seq, new.project_seq);
end;

alter table session_links add column evidence text not null default '';
update session_links set evidence = coalesce((select group_concat(uuid, ' ' order by uuid)
  from session_link_evidence where link_seq = session_links.seq), '');
drop table session_link_evidence;

-- What it held is in `sessions`.
drop table self_continuity;

insert into tombstones (kind, hash, created_at) select 'tampered', name_hash, at from tampered;
drop table tampered;

-- The journal.
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
