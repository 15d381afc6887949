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
