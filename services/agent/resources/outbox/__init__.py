"""The outbox: deliveries that a transaction orders."""
