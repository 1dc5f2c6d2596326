"""The gRPC methods: parse, call, convert. Who asks and who pays comes from the verified call context."""
