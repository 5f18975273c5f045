from __future__ import annotations

import subprocess
import sys


def test_neither_the_process_nor_what_it_starts_leaves_a_core_file() -> None:
    child = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))"
    program = (
        "import subprocess, sys; from guarantee_email_agent.utils.core_files import forbid_core_files\n"
        f"forbid_core_files(); subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "(0, 0)\n"
