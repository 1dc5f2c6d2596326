"""Agent files (.af): read in any of their forms, checked whole before anything is made, and written.

reader.py     bytes -> AgentFile, whatever the form; legacy.py: the older one, made into the current
schema.py     the current form, field by field
checks.py     ids, references and numbers
messages.py   messages of a file <-> stored ones; message_parts.py: their parts
drafts.py     entities of a file -> what the services take
importer.py   makes them, and removes them again when a later one fails
exporter.py   reads what an agent is made of; writer.py: puts it into the current form
templates.py  the file of a template, filled in; instantiation.py: agents made of it
"""
