"""Events in mid-motion played against the nodes as processes, and what a witness saw of them."""
