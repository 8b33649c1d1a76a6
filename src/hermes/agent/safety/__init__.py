"""What an agent's tools may do: what is asked for, what is refused, and what is shown to the person who decides."""
