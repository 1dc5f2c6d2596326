"""TLS client hellos, HTTP headers and placeholders of secrets. Pure."""
