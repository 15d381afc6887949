-- Where a forgetting holds: the keyed hash of a project's key; '' for everywhere and whenever it is said (a purge's, and
-- those of before). `again_at`: since when the user says it anew; what was said before that stays out.
alter table tombstones add column place text not null default '';
alter table tombstones add column again_at text not null default '';
