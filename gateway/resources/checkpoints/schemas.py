"""Checkpoints."""

from gateway.openapi.schemas import of
from loci.agent.v1 import checkpoint_pb2

CHECKPOINT = of("Checkpoint", checkpoint_pb2.Checkpoint.DESCRIPTOR)
REWIND = of("RewindDone", checkpoint_pb2.Rewind.DESCRIPTOR)
