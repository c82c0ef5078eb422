"""The commands of the command line, one a file, and the verbs' from their signatures."""
