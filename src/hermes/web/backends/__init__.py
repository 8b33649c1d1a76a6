"""The services that search the web and read pages."""
