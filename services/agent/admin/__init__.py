"""Agents, conversations, checkpoints, callbacks: what is asked for outside of turns."""
