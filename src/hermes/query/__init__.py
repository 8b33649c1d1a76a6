"""What a search means: text becomes words, a query becomes a tree. Pure, and the same for every engine."""
