"""A port for a test's own agent, and what is answered there."""

import socket
import urllib.error
import urllib.request


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
    return port


def asked(place: str, page: str = "/healthz") -> tuple[int, str]:
    """Status and text of what an agent answers there."""
    try:
        with urllib.request.urlopen(f"http://{place}{page}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()
    except OSError as error:
        return 0, str(error)
