"""What people write, however much it looks like a machine's: every one of these is answered."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.automatic_mail import is_automatic_subject, is_automatic_text
from guarantee_email_agent.email.parsing.parse import parse_email

SUBJECTS = """
    Re: [Ticket #123] received
    Re: [Ticket #123] Your request has been received
    AW: Ihre Anfrage ist eingegangen
    RE: Automatic reply: My drill
    Fwd: Your request (#123) has been received
    WG: Eingangsbestätigung
    Odp: Potwierdzenie przyjęcia zgłoszenia
    Re: Réponse automatique : Perceuse
    [Ticket #123] My washer still leaks
    [Ticket #123]
    Ticket #123
    Ticket 4711 still open
    Ticket received, and nobody called
    Ticket received - what now?
    Ticket created: why does nobody call me?
    Ticket #123 closed without a solution
    Ticket #123
    Case 00123: washer leaking again
    Case 00123 still no answer
    New ticket
    New case for my phone is cracked
    Your request
    Your request #123
    Your request has been received, but my washer still leaks
    Your request was closed by mistake?
    Your reply
    Your message of Monday
    Your offer
    Your automatic reply
    Your automatic reply: my washer leaks
    Your ticket system
    Your robot answers me nonsense
    We have received your washer and it is broken
    We received a broken washer
    We have received your letter
    We need help with a drill
    Thank you
    Thanks for your message
    Thank you for your reply, but my drill is still broken
    Thank you for nothing
    Thank you for contacting me about the washer
    Thanks for the repair
    Automatic washer broken
    Automatic reply button broken
    Automatic door opener SN12345
    Automatic coffee machine leaks
    Auto reply never came
    Automated lawn mower defective
    Out of office chair warranty
    Out of order: washing machine
    Out of warranty?
    Out of the box defective
    Undeliverable parcel SN12345
    Delivery failed: where is my washer
    Delivery of my drill
    Failure notice board broken
    My drill: failure notice
    Mail delivery robot broken
    Request for repair
    Request for warranty
    Warranty request
    Warranty claim
    Warranty claim submitted
    Complaint submitted
    Support request: my drill
    Support needed
    Incident with my dryer
    Incident report washing machine
    Message from a customer
    Message about SN12345
    Confirmation of warranty needed
    Confirmation of purchase
    Confirmation that my drill is covered
    Receipt for my drill
    Acknowledgement
    Order received damaged
    Parcel received damaged
    Notification light on the oven is broken
    Vacation home washer broken
    Away from home: can I still claim
    On leave until May, washer broken
    I am out of the country, washer broken
    I'm out of warranty
    Submission of a claim
    Service request
    Service needed
    Email from your shop
    Automatische Waschmaschine defekt
    Automatische Antwort erhalten, Waschmaschine defekt
    Automatik des Trockners defekt
    Abwesend bei der Lieferung
    Abwesenheitsanzeige defekt
    Wir haben Ihre Waschmaschine gekauft
    Wir haben Ihren Trockner erhalten, defekt
    Wir haben eine Frage
    Ihre Waschmaschine ist defekt
    Ihre Anfrage
    Ihre Nachricht vom Montag
    Ihre Antwort hilft mir nicht
    Ihr Gerät ist kaputt
    Ihr Ticket #123
    Vielen Dank für Ihre Antwort
    Vielen Dank für die schnelle Hilfe
    Danke für Ihre Nachricht
    Danke
    Bestätigung der Garantie
    Bestätigung fehlt
    Ticket #123: immer noch keine Antwort
    Ich bin umgezogen, Garantie
    Ich bin mit dem Gerät unzufrieden
    Eingang der Waschmaschine bestätigen
    Anfrage zur Garantie
    Anfrage
    Garantieanfrage
    Réponse automatique inutile
    Réponse à votre message
    Absence de garantie
    Absence de pièces
    Votre demande
    Votre machine fuit
    Nous avons reçu une machine cassée
    Nous avons bien reçu votre machine, elle fuit
    Merci pour votre réponse
    Merci
    Accusé de réception manquant
    Confirmation de garantie
    Ticket de caisse
    Demande de garantie
    Je suis absent de la liste
    Respuesta a su mensaje
    Respuesta automática inútil, mi taladro no funciona
    Gracias por su respuesta
    Gracias
    Su taladro no funciona
    Su solicitud
    Fuera de garantía
    Hemos recibido un taladro roto
    Solicitud de garantía
    Risposta alla vostra mail
    Grazie
    La sua richiesta
    La mia lavatrice perde
    Abbiamo ricevuto la lavatrice rotta
    Fuori garanzia
    Richiesta di garanzia
    Resposta ao seu e-mail
    Sua resposta
    Seu produto chegou quebrado
    Recebemos a máquina com defeito
    Fora da garantia
    Uw bericht
    Uw wasmachine lekt
    Bedankt voor uw antwoord
    Wij hebben een kapotte wasmachine ontvangen
    Automatische wasmachine lekt
    Vi har fått en trasig tvättmaskin
    Tack
    Din produkt er gået i stykker
    Odpowiedź na Państwa wiadomość
    Zgłoszenie reklamacji
    Zgłoszenie #123
    Zgłoszenie reklamacyjne pralki
    Potwierdzenie gwarancji
    Dziękuję za odpowiedź
    Dziękujemy za pralkę, niestety cieknie
    Otrzymaliśmy uszkodzoną pralkę
    Otrzymałem automatyczną wiadomość, a pralka dalej cieknie
    Automatyczna pralka cieknie
    Automatická pračka nefunguje
    Potvrzení záruky
    Děkuji
    Автоматическая стиральная машина сломалась
    Ваше письмо
    Ваша машина сломалась
    Спасибо за ответ
    Заявка на ремонт
    自动洗衣机坏了
    您的洗衣机坏了
    自動掃除機が壊れた
    お問い合わせ
    문의 드립니다
    Bohrer
    My drill
"""

TEXTS = """
I got your automated message and my washer still leaks.
---
I received "This is an automated message. Please do not reply." Well, I do reply: SN12345.
---
This is an automated message? I wanted a person.
---
"This is an automated message" is all that I get. The serial number is WX-1188-20.
---
This is an automated reply that did not help, the washer leaks.
---
Nobody reads this mailbox, or do you? The kettle is cold.
---
This is an automated reply, and nobody reads what I write.
---
This was an automatic answer, not help. Washer leaks.
---
Please do not reply with an automatic message again. Serial number SN12345.
---
Please do not reply to this e-mail, call me: 555 0199.
---
Please do not answer with a template. My drill is broken.
---
Thank you for your message. The serial number is SN12345.
---
Thanks! Ticket number TCK-1 arrived. When will somebody come?
---
Thank you for your email. We have received your reply and the washer still leaks. Our address is Main St. 5.
---
We have received your message, but nobody has called us within 24 hours.
---
We have received your washer yesterday. It is broken.
---
We have received your request for photos. Please find them attached. The drill still smokes.
---
Your request for the serial number: SN12345
---
Your ticket 4711 was closed although the washer still leaks.
---
Your ticket has been closed. Why? Nobody came.
---
Your email was received. The number that you want is SN12345. I hope for a quick answer within 2 days.
---
Your message has been received. Here is what you asked for: model WX-20, serial number 4C 7719 0033 X.
---
A ticket has been created last week, number 4711. My washer still leaks.
---
You wrote: we have received your request and will get back to you within 24 hours. You did not. Washer is broken.
---
Hello, my automatic washing machine leaks. Please reply within two days.
---
The automatic door is broken. Please reply.
---
Automatic reply works, the device does not. SN12345
---
Please type your reply in German. My drill is SN12345.
---
I am out of the office until Monday, but my washer SN12345 leaks. Please answer by then.
---
I am on vacation and the washer in our cottage stopped. What shall I do?
---
I am on leave until May and my dishwasher stopped working.
---
I am out of the office. Is my drill still under warranty?
---
I'm away from home until Friday, please send the part to my neighbour.
---
I am currently travelling. The serial number is SN12345.
---
I will be on holiday from 3 May, and the technician can come before. Washer WX-1188-20.
---
I am out of the office until 3 May because my washer flooded it.
---
Ich habe Ihre automatische Nachricht bekommen, aber die Maschine tropft immer noch.
---
Diese E-Mail wurde automatisch erstellt? Ich möchte einen Menschen sprechen.
---
Das ist eine automatische Antwort, die mir nicht hilft.
---
Das ist eine automatische Antwort und hilft nicht. Die Maschine ist undicht.
---
Diese Antwort wurde automatisch verschickt und hilft nicht.
---
Bitte antworten Sie nicht automatisch. Seriennummer SN12345.
---
Wir haben Ihre Nachricht erhalten. Die Seriennummer lautet SN12345. Der Trockner ist noch immer kaputt.
---
Ihre Anfrage ist eingegangen. Hier die Seriennummer: ich habe sie jetzt gefunden, 4C77190033X.
---
Ich bin bis Freitag im Urlaub. Kann der Techniker danach kommen?
---
Ich bin derzeit im Urlaub und meine Nachbarin sagt, die Maschine läuft aus.
---
Vielen Dank für Ihre Nachricht. Die Seriennummer ist SN12345.
---
Mein Ticket 4711 wurde geschlossen, die Maschine tropft weiter.
---
Ceci est un message automatique ? Je veux parler à une personne.
---
Votre réponse automatique ne m'aide pas, la machine fuit.
---
Nous avons bien reçu votre message. La machine fuit toujours, numéro SN12345.
---
Je suis absent jusqu'au 5 mai et mon lave-linge est en panne.
---
Merci pour votre réponse. Le numéro de série est SN12345.
---
Este mensaje automático no me sirve, el taladro no funciona.
---
Esta respuesta automática no ayuda.
---
Hemos recibido su mensaje, pero nadie ha llamado.
---
Estoy de vacaciones y mi lavadora no funciona.
---
Questo messaggio automatico non mi aiuta, la lavatrice perde.
---
Questo messaggio automatico non aiuta.
---
Abbiamo ricevuto la sua mail ma la lavatrice è rotta.
---
Esta mensagem automática não ajuda.
---
Recebemos a sua mensagem, mas a máquina não funciona.
---
Dit automatische bericht helpt niet, de machine lekt.
---
Wij hebben uw bericht ontvangen, maar de machine lekt.
---
Detta automatiska svar hjälper inte.
---
Vi har mottagit ditt mejl men maskinen läcker.
---
Tämä automaattinen viesti ei auta. Kone vuotaa.
---
Ta automatyczna wiadomość nie pomaga, pralka cieknie.
---
Dostałem automatyczną wiadomość, pralka dalej cieknie.
---
Otrzymaliśmy Państwa wiadomość, ale pralka dalej nie działa.
---
Jestem na urlopie, a moja pralka cieknie. Numer SN12345.
---
Tato automatická zpráva nepomáhá.
---
Это автоматическое сообщение не помогает, машина течёт.
---
Это автоматическое сообщение мне не помогло.
---
Bu otomatik mesaj işe yaramadı. Makine bozuk.
---
Ez az automatikus üzenet nem segít. A mosógép elromlott.
---
这封自动回复没有用，洗衣机还在漏水。
---
这封自动邮件没有帮助。洗衣机坏了。
---
我收到了自动回复。洗衣机还是漏水。
---
メールは自動で来ましたが、洗濯機が直りません。
---
자동 회신만 왔습니다. 세탁기가 고장입니다.
---
SN12345
---
Washer leaks.
---
Hello,

please find the serial number below.

SN12345

This message was scanned for viruses.
---
Serial SN12345.

This is an automated message. Please do not reply to this e-mail.
---
The number is 00471-KL.

Diese E-Mail wurde automatisch erstellt. Bitte antworten Sie nicht.
"""

MAILS = [
    ("My washer", "We received the replacement part yesterday. It does not fit. Please advise within 2 days."),
    ("My washer", "Your technician was here. The ticket number is 4711. Water still comes out."),
    ("My washer", "Ticket number 4711. Washer at Main Street 5 makes noise. Please respond."),
    ("My washer", "This washer was delivered on Monday. Please reply."),
    ("Ticket 4711", "Ticket number: 4711. Any news?"),
    ("Your ticket #4711 was closed", "Please reopen. Water comes out of the door."),
    ("Confirmation", "Please confirm receipt of the request from Monday. Serial SN12345."),
    ("My washer", "We have received your email and the photos are attached. Serial number WX-1188-20."),
    ("My washer", "We have received your message. Serial number: WX-1188-20. Please respond within two days."),
    ("My washer", "Thank you for your message. Serial number: WX-1188-20. Ticket number TCK-4."),
    ("My washer", "Your request has been received. Serial number WX-1188-20."),
    ("My washer", "Your ticket has been created by mistake, please close it. The ticket number is 4711."),
    ("Anfrage", "Ihre Nachricht ist angekommen. Die Seriennummer lautet WX-1188-20. Ticketnummer 4711."),
    (
        "Anfrage",
        "Wir haben Ihre Nachricht erhalten. Seriennummer: WX-1188-20. Bitte melden Sie sich innerhalb von 2 Tagen.",
    ),
    ("Anfrage", "Danke für Ihre Anfrage. Seriennummer: WX-1188-20, Ticketnummer 4711."),
    ("Zapytanie", "Otrzymaliśmy Państwa wiadomość. Numer seryjny: WX-1188-20. Numer zgłoszenia 4711."),
    ("Zapytanie", "Dziękujemy za wiadomość. Numer seryjny to WX-1188-20, numer zgłoszenia 4711."),
    ("Demande", "Nous avons bien reçu votre message. Numéro de série : WX-1188-20. Numéro de ticket 4711."),
    ("Out of office", "My washer leaks"),
    ("Office", "I am away until Monday. The washer number is WX-1188-20."),
    ("Away", "I am out of the office until Monday. SN 12345."),
    ("Urlaub", "Ich bin im Urlaub, die Nachbarin lässt den Techniker rein. Termin bitte am Freitag."),
    ("Urlaub", "Ich bin bis zum 5. Mai abwesend, bitte den Termin verschieben."),
    ("Termin", "I will be out of the office from Monday, please move the appointment to Friday."),
    ("Vacation", "I am on vacation until Monday. Please send the technician after that."),
    ("Delivery", "Thank you for contacting us about the delivery. We will expect the technician on Monday."),
    ("Your ticket #4711 was closed", "I still wait for somebody to come."),
    ("Ticket #4711 has been closed", "Nobody came."),
    ("Your request has been received", "When will my drill be repaired?"),
    ("Ihr Ticket wurde geschlossen", "Die Maschine ist immer noch undicht."),
    ("Automatic reply", "Serial number WX-1188-20, as requested."),
]


def lines(block: str) -> list[str]:
    return [line.strip() for line in block.strip().splitlines()]


def parse(subject: str, text: str) -> tuple[str, str]:
    """As they reach the rule: normalized."""
    mail = {"from": "jane@example.com", "subject": subject, "body": text, "received": "", "message_id": "1"}
    email = parse_email(mail)
    return email.subject, email.new_text


@pytest.mark.parametrize("subject", lines(SUBJECTS))
def test_subjects_of_people(subject: str) -> None:
    assert not is_automatic_subject(parse(subject, "x")[0])


@pytest.mark.parametrize("text", TEXTS.strip().split("\n---\n"))
def test_texts_of_people(text: str) -> None:
    assert not is_automatic_text(parse("My drill", text)[1])


@pytest.mark.parametrize("text", TEXTS.strip().split("\n---\n"))
@pytest.mark.parametrize(
    "greeting", ["Hello,\n\n", "Sehr geehrte Damen und Herren,\n", "Thank you for your message.\n\n"]
)
def test_texts_of_people_after_a_greeting(greeting: str, text: str) -> None:
    assert not is_automatic_text(parse("My drill", greeting + text)[1])


@pytest.mark.parametrize(("subject", "text"), MAILS)
def test_mails_of_people(subject: str, text: str) -> None:
    subject, new_text = parse(subject, text)
    assert not is_automatic_subject(subject, new_text)
    assert not is_automatic_text(new_text)


@pytest.mark.parametrize("text", ["", " \n ", "?", "reply", "automatic", "...", "---", "[]"])
def test_texts_that_say_nothing(text: str) -> None:
    assert not is_automatic_text(text)
    assert not is_automatic_subject(text)


HOSTILE = [
    *(
        "this is an automated ",
        "thank you for contacting ",
        "your request ",
        "hello ",
        "[",
        "(",
        "a ",
        "\n",
        "! ",
        "ticket #1 ",
    ),
    *(
        "we have received your request ",
        "our a b c ",
        "i am out of the office ",
        "within the next ",
        "dear dear ",
        "請",
        "自动",
    ),
    *("ihre anfrage wurde unter ", "questa è ", "x" * 50 + "\n", "please note: ", "diese nachricht wurde a a "),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_200_kb_of_anything_is_read_in_linear_time(piece: str) -> None:
    text = "automatic reply " + piece * (200_000 // len(piece))
    started = time.process_time()
    is_automatic_text(text)
    is_automatic_text(text.removeprefix("automatic reply "))
    is_automatic_subject(text[:1_000])
    assert time.process_time() - started < 5  # milliseconds, unless a pattern backtracks without bound


@given(
    st.lists(st.sampled_from([*HOSTILE, "I ", "SN12345", ". ", "received", "?"]), max_size=20).map("".join) | st.text()
)
def test_no_text_breaks_the_rule(text: str) -> None:
    assert is_automatic_text(text) in (True, False)
    assert is_automatic_subject(text) in (True, False)


@given(st.text(max_size=200))
def test_whoever_says_i_first_is_a_person(text: str) -> None:
    assert not is_automatic_text(f"I have a question. {text}\nThis is an automated message.")
