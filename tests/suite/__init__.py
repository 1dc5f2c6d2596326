"""How the tests are run: the parts of the suite, what a change asks for, and one verdict over all of them.

`make test` runs the short part, `make test-all` everything, `.ci/run` the short part and what a change asks for:
docs/decisions/0065-two-halves-and-a-second-try.md.
"""
