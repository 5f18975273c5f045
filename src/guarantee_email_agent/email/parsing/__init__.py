"""From the bytes of a mail to an `Email`: MIME, headers, HTML, addresses, quoted text."""
