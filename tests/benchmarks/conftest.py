"""The benchmarks import what stands beside them, as programs of their own folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
