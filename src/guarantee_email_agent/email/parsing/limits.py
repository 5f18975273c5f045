"""How much of one mail is read. Past a limit the rest is left out and the mail's `problems` say so; nothing is refused.

A mail that is cut still gets an answer: the text stands before the photos. Refusing it would leave it in the inbox
to be fetched, and refused, for ever. The figures lie well above what people send and keep the work on the worst
mail at about a second.
"""

from __future__ import annotations

MAX_MAIL_BYTES = 25_000_000  # what the large providers let through with attachments
MAX_PART_BYTES = 4_000_000  # one text part as sent, before base64 or quoted-printable is undone
MAX_HTML_CHARS = 1_000_000  # all HTML of a mail; styles and markup are most of it
MAX_BODY_CHARS = 200_000  # the text that is labelled and searched for a serial number
MAX_SUBJECT_CHARS = 1_000  # RFC 5322 §2.1.1 allows 998 a line
MAX_HEADER_CHARS = 10_000  # one header, unfolded
MAX_HEADERS = 1_000
MAX_MIME_DEPTH = 20
MAX_PARTS = 200
MAX_ATTACHMENTS = 200
MAX_NAME_CHARS = 255  # an attachment's name: what file systems take
MAX_RECIPIENTS = 100
MAX_ADDRESS_CHARS = 320  # RFC 5321 §4.5.3.1: 64 for the local part, "@", 255 for the domain
MAX_MESSAGE_ID_CHARS = 998
MAX_DATE_CHARS = 100
