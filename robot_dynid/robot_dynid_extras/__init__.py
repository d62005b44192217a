"""Methods, verbs and parts of nodes that the core finds by entry points."""
