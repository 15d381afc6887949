-- The language models that a person has added; the key itself is never here, only where it is read from.
create table providers (
    seq integer primary key,
    name text not null unique,
    place text not null,
    model text not null,
    key_from text not null,
    added_at text not null,
    answered_at text not null default '',
    failed_at text not null default '',
    failing_since text not null default '',
    failure text not null default ''
);
-- Every call of one. It is written before the call with its estimate as its tokens, which stand until the answer: what a
-- kill leaves counts in full.
create table calls (
    seq integer primary key,
    at text not null,
    day text not null,
    project_seq integer not null,
    purpose text not null,
    provider text not null,
    model text not null,
    estimate_in integer not null,
    tokens_in integer not null,
    tokens_out integer not null,
    is_estimated integer not null default 1,
    state text not null default 'asked'
);
create index calls_by_day on calls (day);
