"""Sources of tools as people write them: schema, call, return. `python_tools.txt` has a section for each."""
