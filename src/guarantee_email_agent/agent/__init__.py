"""The daemon: what it checks at start, how it takes mails on, and what it remembers of them."""
