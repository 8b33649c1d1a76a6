"""`hermes web`: searches the web and reads pages, as the agent's tools do."""
