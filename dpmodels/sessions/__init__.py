"""What is said once of a table, and verbs as methods that spend of what is left."""
