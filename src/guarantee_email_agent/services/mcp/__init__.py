"""Services of others, reached by the Model Context Protocol: the mailbox, look-ups and tickets on their servers."""
