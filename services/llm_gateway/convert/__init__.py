"""Protobuf to the plain dataclasses and back."""
