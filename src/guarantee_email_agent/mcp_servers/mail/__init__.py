"""The mail server: an inbox to read, replies to send, and proof of what was sent, over a Maildir or IMAP and SMTP."""
