"""A chat made to fit a wire: ids, schemas, the order of speakers, and words for what has no field."""
