"""The gRPC methods: parse, call, convert. The tenant and the user come from the verified call context."""
