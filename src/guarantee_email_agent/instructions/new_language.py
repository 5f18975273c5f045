"""What has to be translated so that mail in one more language is answered, as files to fill in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from guarantee_email_agent.files.text_file import write_new_file
from guarantee_email_agent.instructions.instruction_files import InstructionFiles, unknown_language
from guarantee_email_agent.instructions.lexicon import lexicon_folder, read_lexicon
from guarantee_email_agent.instructions.markup import parse_elements
from guarantee_email_agent.instructions.reply_markup import LANGUAGE_CODE, UNTRANSLATED
from guarantee_email_agent.instructions.router import Situation
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable

_TAG: Final = r'<(?:[^<>"]|"[^"]*")*>'
_REPLY: Final = re.compile(r'<reply\b(?:[^<>"]|"[^"]*")*>.*?</reply>', re.DOTALL)
_LETTER: Final = re.compile(r"[^\W\d_]")
_LEXICON_ELEMENT: Final = re.compile(rf"({_TAG})\s*([^\n<]*)[^<]*(</[\w-]+>)")


class NewLanguage(NamedTuple):
    """written: new files. untranslated: the files of the language that hold texts to be translated, with their count.

    lacking: elements that the lexicon of the default language has and that of this one has not. hand_over: the path of
    the file with the reasons to leave a mail to a person, and their names; no element of it names a language.
    """

    written: tuple[Path, ...]
    untranslated: dict[str, int]
    lacking: tuple[str, ...]
    hand_over: tuple[Path, tuple[str, ...]]


def check_language(language: str, default: str | None) -> None:
    """Raises ConfigurationError for what is no code of a language, or the default one."""
    if not LANGUAGE_CODE.fullmatch(language):
        problem = f"'{printable(language)}' is no code of a language. Write one such as nl"
        raise ConfigurationError(f"--language: {problem}", "init_bad_language")
    if unknown := unknown_language(language):
        raise ConfigurationError(f"--language: '{language}' {unknown}", "init_bad_language")
    if language == default:
        raise ConfigurationError(f"--language: '{language}' is the default language", "init_bad_language")


def add_language(files: InstructionFiles, language: str) -> NewLanguage:
    """Write what the language has not yet, each text in the default language with a sign that keeps it from being read.

    What is there stays. Raises InstructionError for instruction files that cannot be used, and ConfigurationError for
    a language that is none or the default one, and for a folder that cannot be written.
    """
    instructions = files.load()
    default = instructions.default_language
    check_language(language, default)
    lexicon = lexicon_folder(files.main)
    texts = dict(read_lexicon(lexicon))
    original = texts.get(f"{lexicon}/{default}.md", "")
    own = texts.get(f"{lexicon}/{language}.md")
    # Every element with the first line of its entries as an example, and what explains it.
    shortened = _LEXICON_ELEMENT.sub(rf"\1\n{UNTRANSLATED} \2\n\3", original)
    skeleton = f"# {language}\n\n{shortened[max(0, shortened.find('## ')) :]}"
    contents = {lexicon / f"{language}.md": skeleton} if own is None else {}
    for scenario in instructions.scenarios:
        path = files.scenarios_dir / f"{scenario.name}.{language}.md"
        if scenario.templates and language not in scenario.languages:
            translated = path.with_name(f"{scenario.name}.{default}.md")
            contents[path] = _replies_skeleton(scenario.body) or _replies_skeleton(translated.read_text("utf-8"))
    try:
        written = tuple(path for path, text in contents.items() if write_new_file(path, text.encode()))
    except OSError as error:
        raise ConfigurationError(f"{error.filename} cannot be written ({error.strerror})", "init_unwritable") from None
    held, wanted = (_element_names(text) for text in (own or original, original))
    reasons = instructions.hand_over.reasons
    hand_over = files.scenarios_dir / f"{instructions.route(Situation(hand_over=True)).name}.md"
    return NewLanguage(
        written,
        dict(files.load().untranslated.get(language, {})),
        tuple(name for name in wanted if name not in held),
        (hand_over, tuple(reason.name for reason in reasons)),
    )


def _element_names(lexicon: str) -> list[str]:
    topics = [(each.name, each.attributes.get("topic")) for each in parse_elements(lexicon)]
    return [f"<{name}>" if topic is None else f'<{name} topic="{topic}">' for name, topic in topics]


def _replies_skeleton(text: str) -> str:
    """The replies of a file, with the sign before each paragraph and all hints."""
    replies = []
    for found in _REPLY.finditer(text):
        parts = re.split(f"({_TAG})", found[0])
        replies.append("".join(_marked_tag(part) if part.startswith("<") else _marked_text(part) for part in parts))
    return "\n\n".join(replies) + "\n" if replies else ""


def _marked_tag(tag: str) -> str:
    return re.sub(r'\bhints="', rf"\g<0>{UNTRANSLATED} ", tag)


def _marked_text(text: str) -> str:
    return "".join(
        re.sub(r"\S", lambda first: f"{UNTRANSLATED} {first[0]}", part, count=1)
        if _LETTER.search(re.sub(r"\{[^{}]*\}", "", part))
        else part
        for part in re.split(r"(\n[ \t]*\n)", text)
    )
