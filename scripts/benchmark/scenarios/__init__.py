"""What is measured: each module brings its peers up, measures round by round, and gives rows of the table."""
