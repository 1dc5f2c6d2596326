"""What a tool takes: its schema from its source, by syntax alone, and arguments held against it."""
