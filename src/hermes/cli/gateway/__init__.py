"""`hermes gateway`: runs a gateway, and shows and controls the ones that run."""
