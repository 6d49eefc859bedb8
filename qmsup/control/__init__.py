"""The command line's verbs that ask the scheduler or read its files, and the client they ask with."""
