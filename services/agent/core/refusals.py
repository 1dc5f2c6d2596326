"""The error of a broken rule; see `services.common.refusals`."""

from services.common.refusals import Refused as Refused
