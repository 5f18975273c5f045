"""The mailbox: a Maildir, or IMAP for the inbox and SMTP for replies."""
