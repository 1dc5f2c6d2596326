"""The memory service: blocks with their history, archives of passages, and the tools that change them."""
