-- A digest of what a scope held when comparing its memories brought nothing: until it changes, none is compared again.
create table dreamt_scopes (
  project_seq integer primary key references projects (seq) on delete cascade,
  digest text not null
) without rowid;
