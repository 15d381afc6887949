"""A language model where the user wants one: what it is asked, what is believed, what it costs."""
