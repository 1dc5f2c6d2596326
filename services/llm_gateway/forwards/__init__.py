"""Requests in a vendor's own form, handed on to it.

addresses.py  where a request goes and with which headers, or why not; answers.py  what is read of an answer on its way;
clients.py  the connections; forwards.py  one request from its budget to its account
"""
