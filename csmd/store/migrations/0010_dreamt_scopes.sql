-- A digest of what a scope held when a dream found nothing more to do there: until it changes, nothing is compared again.
create table dreamt_scopes (
  project_seq integer primary key references projects (seq) on delete cascade,
  digest text not null
) without rowid;
