"""What a mail is about, by the weighted phrases of the lexicon."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from guarantee_email_agent.instructions.lexicon import FAULT, UNSOLICITED, Lexicon, TopicPhrase
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.instructions.phrases import PhraseMatch, TokenizedText
from guarantee_email_agent.instructions.router import OTHER_TOPIC, UNCLEAR

WARRANTY_TOPIC = WARRANTY.topics[0]

WEIGHT_OF_SERIAL_NUMBER = 3
WEIGHT_OF_FAULT = 2
WEIGHT_OF_CERTAIN_FAULT = 3
WEIGHT_OF_STRANGER = 4
WEIGHT_OF_OTHER = 3
WEIGHT_OF_WARRANTY = 3
WEIGHT_OF_CLEAR_TOPIC = 8
MAX_WEIGHT_OF_DEVICES = 2
WEIGHT_OF_PRAISE = 3
MAX_NAMES = 2
MIN_CONTENT_WORDS = 4

_DEVICES = "<devices>"  # how much of the score of the warranty stands for the names of devices
_OTHER_PHRASES = "<other phrases>"  # how many words speak for something else; a single one is everybody's
_MORE_THAN_THANKS = re.compile(r"[?0-9]")
_NUMBER = re.compile(r"[^\s0-9]*[0-9]")


SHIPPED_TOPICS = (WARRANTY_TOPIC, OTHER_TOPIC)


def classify_topic(
    written: TokenizedText,
    quoted: TokenizedText,
    has_serial_number: bool,
    lexicon: Lexicon,
    topics: Collection[str] = SHIPPED_TOPICS,
) -> str:
    """What a mail is about, by the weighted phrases of the lexicon: one of the declared `topics`, or unclear.

    written: what the customer newly wrote, subject included. quoted: counts only where `written` holds no phrase. Each
    phrase counts once, so that repetition does not outweigh meaning. A fault beside a weightier other topic is a
    conflict, hence unclear: it is never brushed off. Mail of strangers is about something else even if it talks shop.

    A topic that was added to the shipped ones has to outweigh each of them. Devices and serial numbers, of which any
    customer writes, count nothing against it, but beside a fault the number does: there the warranty is asked for.
    """
    scores = _score_topics(written, lexicon, topics)
    if not any(scores.values()) and quoted.folded:
        scores = _score_topics(quoted, lexicon, topics)
    by_name = sorted(
        ((scores[topic], topic) for topic in topics if topic not in SHIPPED_TOPICS and scores.get(topic)), reverse=True
    )
    if by_name and (scores[UNSOLICITED] < WEIGHT_OF_STRANGER or has_serial_number):
        (weight, topic), *others = by_name
        if others and others[0][0] == weight:
            return UNCLEAR
        if weight > max(_weight_against_added(scores, has_serial_number), scores[OTHER_TOPIC]):
            return topic
    topic = _classify_shipped(written, scores, has_serial_number, lexicon)
    return topic if topic in topics else UNCLEAR


def _weight_against_added(scores: dict[str, int], has_serial_number: bool) -> int:
    """What speaks for a device and its fault against a topic that was added."""
    fault = scores[FAULT]
    weight = scores[WARRANTY_TOPIC] - scores[_DEVICES] + fault
    if fault >= WEIGHT_OF_FAULT and has_serial_number:
        weight += WEIGHT_OF_SERIAL_NUMBER
    # Who only mentions a spare part, but whose device certainly failed, is not sent to the shop.
    return max(weight, WEIGHT_OF_CLEAR_TOPIC - 1) if fault >= WEIGHT_OF_CERTAIN_FAULT else weight


def _classify_shipped(written: TokenizedText, scores: dict[str, int], has_serial_number: bool, lexicon: Lexicon) -> str:
    """Between a device, something else, and unclear: what nobody recognizes is not something else."""
    if has_serial_number:
        scores[WARRANTY_TOPIC] += WEIGHT_OF_SERIAL_NUMBER
    warranty, fault, unsolicited = scores[WARRANTY_TOPIC], scores[FAULT], scores[UNSOLICITED]
    other = scores[OTHER_TOPIC] + unsolicited
    if not warranty and not other:
        # Whatever it is that does something no more, it may be a device of ours.
        content_words = {word for word in written.folded if word.isalpha() and word not in lexicon.stop_words}
        return WARRANTY_TOPIC if fault and len(content_words) >= MIN_CONTENT_WORDS else UNCLEAR
    least = WEIGHT_OF_CLEAR_TOPIC if fault >= WEIGHT_OF_CERTAIN_FAULT else WEIGHT_OF_STRANGER
    if unsolicited >= least and not has_serial_number:
        return OTHER_TOPIC
    # A labelled number, or the word warranty itself, is not outweighed by a single everyday word.
    is_one_word = scores[_OTHER_PHRASES] < 2 and warranty + fault > 0
    if warranty + fault >= other or (warranty >= WEIGHT_OF_WARRANTY and is_one_word):
        return WARRANTY_TOPIC
    # A voucher code may "not work", too: without a word of a device, much else outweighs a fault.
    is_of_device = warranty > 0 or other < WEIGHT_OF_CLEAR_TOPIC
    is_open = has_serial_number or is_one_word or other < WEIGHT_OF_OTHER
    # Where the word warranty stands, only mail of strangers is surely about something else.
    is_open = is_open or (warranty - scores[_DEVICES] >= WEIGHT_OF_WARRANTY and not unsolicited)
    is_open = is_open or (fault >= WEIGHT_OF_FAULT and is_of_device)
    return UNCLEAR if is_open or labels_number(written, lexicon) else OTHER_TOPIC


def labels_number(words: TokenizedText, lexicon: Lexicon) -> bool:
    """Whether a label of serial numbers stands before a number, also one that does not count."""
    return any(
        label.payload == "serial"
        and label.end < len(words.folded)
        and _NUMBER.match(words.text, words.starts[label.end]) is not None
        for label in lexicon.labels.find(words)
    )


def is_only_thanks(words: TokenizedText, lexicon: Lexicon) -> bool:
    """Whether a text gives thanks, first of all or beside praise, and asks, gives and complains of nothing."""
    courtesies = lexicon.courtesies.find(words)
    if not courtesies or _MORE_THAN_THANKS.search(words.text):
        return False
    if any(match.payload != "thanks" for match in courtesies):
        return False
    scores = _score_topics(words, lexicon, SHIPPED_TOPICS)
    begins_with_thanks = sum(word not in lexicon.greetings for word in words.folded[: courtesies[0].first]) <= MAX_NAMES
    return not scores[FAULT] and (begins_with_thanks or scores[OTHER_TOPIC] >= WEIGHT_OF_PRAISE)


def _score_topics(words: TokenizedText, lexicon: Lexicon, topics: Collection[str]) -> dict[str, int]:
    matches = lexicon.topics.find(words)
    found = {match.payload.phrase: match.payload for match in matches}
    counted = {*SHIPPED_TOPICS, FAULT, UNSOLICITED, *topics}
    scores = dict.fromkeys((*counted, _DEVICES, _OTHER_PHRASES), 0)
    devices = 0
    for phrase in found.values():
        if phrase.topic in counted:
            scores[phrase.topic] += phrase.weight
        devices += phrase.topic == WARRANTY_TOPIC and phrase.weight == 1
        scores[_OTHER_PHRASES] += (phrase.topic in (OTHER_TOPIC, UNSOLICITED)) * len(phrase.phrase.split())
    # Who names one device after the other says no more of it.
    scores[_DEVICES] = min(devices, MAX_WEIGHT_OF_DEVICES)
    scores[WARRANTY_TOPIC] -= devices - scores[_DEVICES]
    if devices and not scores[FAULT] and _denies_of_device(words, matches, lexicon):
        scores[FAULT] = WEIGHT_OF_FAULT
    return scores


def _denies_of_device(words: TokenizedText, matches: Sequence[PhraseMatch[TopicPhrase]], lexicon: Lexicon) -> bool:
    """Whether a sentence on a device, and on nothing else, says that it does not do something."""
    topics = dict[int, str]()
    for match in matches:
        topics.update(dict.fromkeys(range(match.first, match.end), match.payload.topic))
    in_sentence, denied, denials = set[str](), False, lexicon.denials_in(words)
    for index in range(len(words.folded)):
        if words.starts_sentence[index]:
            if denied and in_sentence == {WARRANTY_TOPIC}:
                return True
            in_sentence, denied = set(), False
        if topic := topics.get(index):
            in_sentence.add(topic)
        elif index in denials:
            denied = True
    return denied and in_sentence == {WARRANTY_TOPIC}
