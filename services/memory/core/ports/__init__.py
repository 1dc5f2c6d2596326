"""The ports: stores and peers, as Protocols."""
