"""The four gRPC services and what they share."""
