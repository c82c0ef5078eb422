"""Sessions: settings shared by all calls on a table, and verbs that spend its budget."""
