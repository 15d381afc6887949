"""csmd: a memory across sessions for AI coding assistants, on one screen.

    hook, transcript --> capture --> extraction --> memory --> recall --> the next session
                         turns       statements     memories   brief, search
                            \\____________________ store ___________________/

A hook hands each event to the daemon over a socket (or, when none answers, to a spool);
the daemon reads the transcript that belongs to it. `capture` stores turns, exactly once;
`extraction` chooses the sentences worth keeping; `memory` makes memories of them, with
confidence and provenance; `recall` puts the right few before the assistant. Each stage
reads rows past its cursor and writes its rows and the new cursor in one transaction:
the store is the bus.
"""

__version__ = "0.1.0"
