-- What a language model answered, from when it arrives until a dream has carried it out: nobody pays for one twice.
create table kept_answers (
  seq integer primary key,
  session_seq integer not null references sessions (seq) on delete cascade,
  -- A keyed hash of the question as it was put.
  question_hash text not null,
  text text not null,
  at text not null,
  unique (session_seq, question_hash)
);
