"""Requests in a vendor's own form, handed on to it.

addresses.py checks a request and makes its address and headers; answers.py reads text and usage of an answer on its
way; clients.py has the connections; service.py takes a request from its budget to its account.
"""
