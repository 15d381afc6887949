-- What a rewind left behind in a session (store/rewinds.py): it stays listed there, and nothing is made of it.
alter table session_turn add column rewound integer not null default 0;
-- Of two prompts behind one line the later took the place of the earlier.
create index turns_by_parent on turns (parent_uuid) where parent_uuid <> '' and kind in ('user', 'relayed', 'command');

-- Transcripts that are still there are read again: only their lines tell what was rewound, what a session held whose file
-- began with the host's own agent, and what was answered to the assistant's questions.
update files set foot = 'again', mtime_ns = 1 where position > 0 and substr(path, 1, 7) <> 'purged:';
