"""The gateway's description of itself: what its routes answer with, and the pages that show it.

Made at the first request for it, and imported then: serving costs nothing of it.
"""
