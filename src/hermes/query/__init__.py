"""The language of search: text becomes words, a query becomes a tree. Pure, and the same for every engine."""
