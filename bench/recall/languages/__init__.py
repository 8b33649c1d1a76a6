"""The texts from which dialogues are made, by language."""
