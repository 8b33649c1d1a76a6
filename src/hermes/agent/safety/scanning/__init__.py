"""Scanning of commands before they run: patterns that always apply, and the program Tirith if it is installed."""
