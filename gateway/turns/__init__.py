"""Turns over HTTP: asked for, told as they go, gone on with."""
