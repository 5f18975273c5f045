"""Luhn's check digit (ISO/IEC 7812-1, annex B)."""


def check_digit(number):
    """The digit that belongs behind a string of digits."""
    total = 0
    for place, digit in enumerate(reversed(number)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)
