"""How the text is taken out of a file. Runs in the parsing child alone: see child.py."""
