"""The nouns of the REST API, a folder each.

routes.py and its kin: the handlers; requests.py: bodies, and the gRPC requests made of them; responses.py: protobuf to
REST where the general rule is not enough; schemas.py: what the OpenAPI document says of the answers.
"""
