-- Turns are searched by their passages (0005): the index and the vectors of whole turns go, and so do cursors of what a
-- store of before them had to be given.
drop trigger turns_fts_insert;
drop trigger turns_fts_delete;
drop trigger turns_fts_update;
drop table turns_fts;
drop view turn_text;
delete from vector_codes where kind = 'turn';
delete from vectors where kind = 'turn';
delete from embed_again where kind = 'turn';
delete from cursors where stage in ('passages', 'reselection');
