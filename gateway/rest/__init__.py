"""The machinery that all routes share: parameters, bodies, the conversion of protobuf to REST, answers as JSON."""
