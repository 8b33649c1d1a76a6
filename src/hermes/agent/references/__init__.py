"""Context references: `@file:`, `@folder:`, `@diff`, `@staged`, `@git:` and `@url:` in a message of the user."""
