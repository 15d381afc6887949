"""Which of the daemon's tools `csmd mcp --tools` serves to a model, in groups; pure.

Left out are tools that serve commands alone: jobs, the daemon's state, imports and backups, sessions of other programs,
language models, teams, projects and walls, purges, and whatever only a person may do.
"""

from __future__ import annotations

from collections.abc import Mapping

from csmd.errors import BadInput

#: The tools that are served by default.
BASIC = ("search", "show", "remember", "forget")
#: Group -> the tools that it adds to the basic ones.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "memory": (
        "csm_memory_search", "csm_memory_list", "csm_memory_lesson", "csm_memory_show", "csm_memory_context",
        "csm_memory_recall",
        "csm_memory_file_recall", "csm_memory_supersede", "csm_memory_tag", "csm_memory_untag", "csm_memory_link",
        "csm_memory_topics", "csm_memory_by_topic", "csm_memory_by_type", "csm_memory_related", "csm_graph_stats",
        "csm_belief_knowledge",
    ),
    "sessions": (
        "csm_session_list", "csm_session_show", "csm_session_transcript", "csm_memory_transcript", "csm_turn_show",
        "csm_memory_distilled_view",
        "csm_checkpoint_create", "csm_checkpoint_list", "csm_checkpoint_show", "csm_checkpoint_restore", "csm_goal_set",
        "csm_goal_list", "csm_open_list", "csm_open_done", "csm_receipts", "csm_receipt_show", "csm_context_get",
        "csm_context_status", "csm_error_list", "csm_self_model", "csm_living_state_preview",
    ),
    "upkeep": (
        "csm_memory_candidate_generate", "csm_memory_dedup_detect", "csm_memory_merge",
        "csm_memory_archive_candidate_report",
        "csm_memory_archive", "csm_memory_backfill_embeddings", "csm_memory_governance_report", "csm_memory_packets",
        "csm_memory_candidate_report", "csm_candidate_show", "csm_belief_scan", "csm_belief_scan_report",
        "csm_belief_promote",
        "csm_review_list", "csm_dream_status", "csm_dream_plan", "csm_dream_history", "csm_recall_report",
        "csm_memory_compact", "csm_compaction_audit",
    ),
    "questions": ("csm_store_schema", "csm_store_query"),
}  # fmt: skip
ALL_TOOLS = (*BASIC, *(name for names in GROUPS.values() for name in names))
CHOICES = f"{', '.join(GROUPS)}, all, or names"


def choose_tools(words: str) -> tuple[str, ...]:
    """Returns the tools that these words name, in the order of the table. A group includes the basic tools.

    BadInput for a word that is neither.
    """
    names: set[str] = set() if words else set(BASIC)
    for word in filter(None, (part.strip() for part in words.split(","))):
        if word in GROUPS or word == "all":
            names |= {*BASIC, *(ALL_TOOLS if word == "all" else GROUPS[word])}
        elif word in ALL_TOOLS:
            names.add(word)
        else:
            hint = f"give {CHOICES}, as docs/mcp.md lists them"
            raise BadInput(f"there is no group or tool {word[:60]!r} for a model", hint=hint)
    return tuple(name for name in ALL_TOOLS if name in names)
