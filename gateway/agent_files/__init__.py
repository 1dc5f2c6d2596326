"""Agent files (.af): read in any of their forms, checked whole before anything is made, and written.

reading.py    bytes -> AgentFile, whatever the form; legacy.py: the older one, made into the current
shapes.py     the current form, field by field
checking.py   ids, references and numbers
said.py       messages of a file <-> stored ones; spoken_parts.py: their parts
drafts.py     entities of a file -> what the services take
importing.py  makes them, and takes them back when a later one fails; making.py: one entity each
exporting.py  reads what an agent is made of; writing.py: puts it into the current form
"""
