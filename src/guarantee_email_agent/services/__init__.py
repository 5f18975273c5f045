"""The three ports (mail, warranty, ticketing) and what makes calls through them robust."""
