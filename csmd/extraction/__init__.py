"""Turns to statements: choosing the sentences worth keeping, without paraphrasing."""
