-- Whose a searchable turn or a memory is, without its text: asked for each of the thousands of rows that hold a word.
create index turns_of_projects on turns (project_seq) where searchable = 1;
create index memories_of_projects on memories (project_seq);
-- Who spoke, too, so that the exchange around a turn is found without the texts between.
drop index if exists turns_searchable;
create index turns_searchable on turns (searchable, seq, kind) where searchable = 1;
