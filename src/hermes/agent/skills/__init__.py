"""Skills: instructions in the Hermes home that an agent reads when a task needs them."""
