"""`local`: sentence-embedding models on one's own machine, by ONNX Runtime, in a process of their own.

A model is a folder of files as its hub has them (folder.py), or a name there, from which hub.py fetches it once.
"""
