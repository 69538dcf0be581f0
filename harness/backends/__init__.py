"""What measures a cell: the in-process engine, and later the servers of other engines."""
