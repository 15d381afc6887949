-- Which assistants load an instruction file, by their names with spaces between: the others are not told what it says.
alter table instructions add column hosts text not null default 'claude';
