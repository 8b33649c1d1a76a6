"""The conformance kit: plain functions that check an adapter against its platform, or a server that plays it."""

from hermes.platforms.testing.checks import CHECKS, Result, run_checks
from hermes.platforms.testing.harness import Failure, Harness, NotConforming, RecordingInbox

__all__ = ["CHECKS", "Failure", "Harness", "NotConforming", "RecordingInbox", "Result", "run_checks"]
