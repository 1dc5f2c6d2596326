"""Environment variables of calls, the tenant's sandbox settings, and how their values are kept out of what is told.

values.py    what they are            rules.py       what may be stored         configs.py  what sandbox settings say
vault.py     sealed and opened        store.py       the port of the database   admin.py    what EnvironmentService does
calls.py     what a call gets         masking.py     secrets in text, hidden    packages.py  installed beforehand
"""
