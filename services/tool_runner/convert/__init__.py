"""Protobuf to plain values and back."""
