"""The tools that an agent can call, grouped in toolsets and run within limits."""
