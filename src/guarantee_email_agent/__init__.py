"""An agent that answers warranty mail, and the evaluation that proves it."""

__version__ = "0.1.0"
