"""One module an assistant: its event names, line types and answers, reduced to csmd's values."""
