"""What the service needs from outside, as Protocols."""
