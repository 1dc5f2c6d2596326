"""Answers of a store or a peer when something cannot be made: whoever reserved an id for it gives that back."""

from services.common.core.refusals import Refused
from services.common.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound

REFUSALS = (Refused, InvalidArgument, NotFound, AlreadyExists, FailedPrecondition)
