-- A lens is a workspace's row: the projects behind its wall and those that it only ranks first, which are the directories
-- with its lens_seq and all below them, and topics of theirs.
alter table projects add column lens_seq integer not null default 0;
create index projects_by_lens on projects (lens_seq) where lens_seq > 0;
create table lens_topics (
  seq integer primary key,
  lens_seq integer not null references projects (seq) on delete cascade,
  name text not null,
  unique (lens_seq, name)
);
