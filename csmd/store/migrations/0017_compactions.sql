-- `dropped` is how many bytes of what was said the store does not have, `gone` whether it has none of them any more.
alter table turns add column gone integer not null default 0;
-- The tokens of what was said as tiktoken counts them; null until they are counted.
alter table turns add column counted integer;
-- How much the assistant may do by itself when a prompt is given, in its host's words; '' where nobody says.
alter table turns add column mode text not null default '';
-- Up to when a session's conversation was dropped for its age; '' for never.
alter table sessions add column emptied_at text not null default '';
update turns set gone = 1 where dropped is not null;
drop index turns_of_tools;
create index turns_of_tools on turns (at) where kind in ('tool_call', 'tool_result') and gone = 0;
create index turns_uncounted on turns (seq) where counted is null and gone = 0;

drop trigger turns_passages_update;
create trigger turns_passages_update after update of text, searchable, gone on turns
when old.text <> new.text or old.searchable <> new.searchable begin
  delete from passages where turn_seq = old.seq and (text = '' or old.gone = 1 or new.gone = 0);
  insert into passages (turn_seq, session_seq, project_seq, start_at, end_at)
    select new.seq, new.session_seq, new.project_seq, j.value ->> 0, j.value ->> 1 from json_each(csmd_passages(new.text)) j
    where new.searchable = 1;
  insert into passages_fts (rowid, text)
    select p.seq, csmd_indexed(j.value ->> 2, new.at) from json_each(csmd_passages(new.text)) j
    cross join passages p on p.turn_seq = new.seq and p.start_at = j.value ->> 0 and p.text = ''
    where new.searchable = 1;
end;

-- A turn of which less is kept than was said; what has no row here was within the budget. Tokens were all counted by
-- tiktoken where `is_counted`, else they are estimated at least in part. Causes: size (trimmed when it was stored), session (no room in its session), age, room.
create table compactions (
  turn_seq integer not null references turns (seq) on delete cascade,
  outcome text not null,
  cause text not null,
  bytes_before integer not null,
  bytes_after integer not null,
  tokens_before integer not null,
  tokens_after integer not null,
  is_counted integer not null default 0,
  primary key (turn_seq)
) without rowid;

-- What was trimmed and dropped before this was noted.
update turns set dropped =
    cast(substr(text, instr(text, char(10) || '[csmd: ') + 8, 12) as integer)
  where kind in ('tool_call', 'tool_result') and dropped is null
  and text like '%' || char(10) || '[csmd: % bytes left out of turn ' || uuid || ']' || char(10) || '%'
  and cast(substr(text, instr(text, char(10) || '[csmd: ') + 8, 12) as integer) > 0;
insert into compactions (turn_seq, outcome, cause, bytes_before, bytes_after, tokens_before, tokens_after)
  select seq, 'compressed', case gone when 1 then 'age' else 'size' end, before, after, before / 4, after / 4 from (
    select seq, gone, length(cast(text as blob)) as after,
      case gone when 1 then dropped
      else length(cast(text as blob)) + dropped - length('[csmd:  bytes left out of turn ]') - 2 - length(dropped) - length(uuid) end as before
    from turns where dropped is not null);
