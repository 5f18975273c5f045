"""Subjects and texts as autoresponders and ticket systems write them, by language: none may be answered."""

from __future__ import annotations

import pytest

from guarantee_email_agent.email.automatic_mail import is_automatic_subject, is_automatic_text
from guarantee_email_agent.email.automatic_phrases import ALL_PHRASES
from guarantee_email_agent.email.parsing.parse import parse_email

SUBJECTS = """
    Automatic reply: My drill
    Automatic reply
    Auto-Reply: Re: My drill
    AUTOREPLY: x
    Auto Response: Re: Warranty
    Automated response
    [Auto-Reply] Re: My drill
    Auto-acknowledgement: Re: My drill
    Out of Office: back on Monday
    Out of Office AutoReply: My drill
    Out of office
    Out of the office until 4 May
    Out of office - Jane Doe
    I am out of the office until Monday
    Jane Doe is out of the office
    Vacation reply
    Undeliverable: Hello
    Mail delivery failed: returning message to sender
    Delivery Status Notification (Delay)
    Failure notice
    Your request (#123) has been received
    Your request #4711 has been received: Re: My drill
    Your support ticket 20261122-17 has been created
    Your message has been received
    Your email was received
    Your case CAS-00123-X4 has been created
    Your ticket has been closed
    Your inquiry has been forwarded [#99]
    Your complaint has been registered - Re: My drill
    Your order 55120 has been shipped
    We have received your message
    We've received your request
    We received your enquiry (ref 123)
    Thank you, we have received your email
    Thank you for contacting Acme Support
    Thanks for contacting us!
    Thank you for reaching out to Acme Home Appliances
    Thank you for getting in touch with us
    Thank you for your inquiry
    Thanks for submitting your ticket
    [Ticket #123] received
    [Ticket #123] Received: Re: My drill
    Ticket created
    Ticket created: Re: My drill
    Ticket Received - Re: My drill
    Ticket #123 has been updated
    Ticket #123: Re: My drill
    Support ticket opened [#482913]
    New ticket #4512
    New support request 88123
    New case 00123456
    Case 00123456 created
    Case #00123456 has been resolved
    Case 00123456: Re: My drill
    Case 00123 has been created: Washing machine warranty
    [Request received] Re: My drill
    Request received: Re: My drill
    Request INC0012345 has been opened
    Incident INC0099 has been assigned
    [Acme Support] Your request has been received
    [Acme #123] AutoReply: Re: My drill
    Confirmation of receipt
    Acknowledgement of your request
    Acknowledgment of receipt: Re: My drill
    Receipt confirmation
    Message received
    Automatische Antwort: Bohrer
    Automatische Antwort
    Automatische Eingangsbestätigung
    Automatische Eingangsbestätigung: AW: Bohrer
    Eingangsbestätigung
    Eingangsbestätigung Ihrer Anfrage #123
    Empfangsbestätigung
    Bestätigung Ihrer Anfrage
    Abwesenheitsnotiz
    Abwesenheitsnotiz: Bohrer
    Abwesenheit: Bohrer
    Abwesenheit
    Abwesenheitsmeldung
    Ich bin bis zum 5. Mai im Urlaub
    Wir haben Ihre Anfrage erhalten
    Wir haben Ihre E-Mail erhalten: AW: Bohrer
    Ihre Anfrage ist eingegangen
    Ihre Anfrage #2026-117 ist bei uns eingegangen
    Ihr Ticket #123 wurde erstellt
    Ihr Ticket wurde geschlossen
    Ihre Reklamation wurde registriert
    Ticket #123 wurde eröffnet
    [Ticket #123] Wir haben Ihre Nachricht erhalten
    Vielen Dank für Ihre Anfrage
    Vielen Dank für Ihre Kontaktaufnahme
    Unzustellbar: Bohrer
    Réponse automatique : Perceuse
    Réponse automatique
    Message d'absence
    Absence du bureau : Re: Perceuse
    Je suis absent jusqu'au 5 mai
    Accusé de réception
    Accusé de réception de votre demande n° 123
    Votre demande a bien été enregistrée
    Votre demande n°4521 a été prise en compte
    Nous avons bien reçu votre message
    Merci de nous avoir contactés
    Confirmation de réception
    Ticket #123 créé
    Respuesta automática: Taladro
    Respuesta automática
    Fuera de la oficina: Re: Taladro
    Hemos recibido su solicitud
    Hemos recibido tu mensaje
    Su solicitud #123 ha sido recibida
    Tu ticket ha sido creado
    Acuse de recibo
    Gracias por contactarnos
    Gracias por ponerse en contacto con Acme
    Risposta automatica: Trapano
    Fuori ufficio: Re: Trapano
    Abbiamo ricevuto la sua richiesta
    La tua richiesta #123 è stata presa in carico
    Conferma di ricezione
    Grazie per averci contattato
    Resposta automática: Berbequim
    Fora do escritório: Re: Berbequim
    Recebemos a sua mensagem
    Sua solicitação #123 foi recebida
    Confirmação de recebimento
    Obrigado por entrar em contato
    Automatisch antwoord: Boor
    Automatische reactie
    Afwezig: Re: Boor
    Afwezigheidsbericht
    Niet op kantoor: Boor
    Wij hebben uw bericht ontvangen
    We hebben je vraag goed ontvangen
    Uw melding #123 is geregistreerd
    Ontvangstbevestiging
    Bevestiging van ontvangst
    Bedankt voor uw aanvraag
    Autosvar: SV: Borr
    Automatiskt svar
    Automatisk svar: Bor
    Frånvaro: Borr
    Frånvaromeddelande
    Fraværsmelding
    Vi har mottagit ditt ärende
    Ditt ärende #123 har registrerats
    Vi har mottatt din henvendelse
    Din henvendelse er mottatt
    Vi har modtaget din henvendelse
    Din henvendelse #123 er oprettet
    Mottagningsbekräftelse
    Kvittering for modtagelse
    Automaattinen vastaus: Pora
    Poissaoloviesti
    Olemme vastaanottaneet viestisi
    Yhteydenottosi on vastaanotettu
    Odpowiedź automatyczna: Wiertarka
    Automatyczna odpowiedź
    Nieobecność: Wiertarka
    Poza biurem: Wiertarka
    Potwierdzenie przyjęcia zgłoszenia
    Potwierdzenie przyjęcia zgłoszenia #123
    Potwierdzenie otrzymania wiadomości
    Otrzymaliśmy Twoje zgłoszenie
    Otrzymaliśmy Państwa wiadomość
    Twoje zgłoszenie #123 zostało przyjęte
    Zgłoszenie #123 zostało zarejestrowane
    Dziękujemy za kontakt
    Dziękujemy za zgłoszenie
    Automatická odpověď: Vrtačka
    Automatická odpoveď: Vŕtačka
    Mimo kancelář: Vrtačka
    Potvrzení o přijetí
    Přijali jsme vaši zprávu
    Váš požadavek #123 byl přijat
    Vaša požiadavka #123 bola prijatá
    Автоматический ответ: Дрель
    Автоответ
    Ваше обращение №123 зарегистрировано
    Мы получили ваше письмо
    Ваша заявка принята
    Вне офиса: Дрель
    Автоматична відповідь: Дриль
    Ваше звернення зареєстровано
    Automatikus válasz: Fúró
    Házon kívül: Fúró
    Răspuns automat: Bormașină
    Otomatik yanıt: Matkap
    Talebiniz alındı
    Αυτόματη απάντηση: Τρυπάνι
    Trả lời tự động: khoan
    自动回复: 电钻
    自动回复：电钻
    [自动回复] 电钻
    自動回覆: 電鑽
    您的工单已创建
    我们已收到您的邮件
    自動返信: ドリル
    【自動返信】お問い合わせありがとうございます
    不在通知: ドリル
    お問い合わせを受け付けました
    자동 회신: 드릴
    부재 중 자동 응답
"""

# A machine's text by itself: the first new text of an answer to our reply, under a subject that says nothing.
TEXTS = """
This is an automated reply, and nobody reads this mailbox.
---
Hello,

this is an automated message and no one monitors this inbox.

Your Example Team
---
Dies ist eine automatische Antwort, und niemand liest dieses Postfach.
---
Ceci est une réponse automatique, et personne ne lit cette boîte.
---
Esta es una respuesta automática, y nadie lee este buzón.
---
Questa è una risposta automatica, e nessuno legge questa casella.
---
Dit is een automatisch antwoord, en niemand leest deze mailbox.
---
Ta wiadomość została wygenerowana automatycznie i nikt nie czyta tej skrzynki.
---
This is an automated message. Please do not reply to this e-mail.
---
Please do not reply to this e-mail. It was sent by a system.
---
This email was generated automatically.

Kind regards
Acme
---
Hello Jane,

this is an automatically generated e-mail, please do not answer.
---
Dear customer,

Thank you for contacting Acme Support. We have received your request (#4521) and will get back to you within 24 hours.

Kind regards
The Acme team
---
##- Please type your reply above this line -##

Your request (4521) has been received and is being reviewed by our support staff.
---
--- Reply above this line ---

Your ticket has been updated.
---
Hi,

Thanks for your message! A ticket has been created and one of our agents will respond as soon as possible.

This mailbox is not monitored. Please do not reply.
---
We have received your enquiry. Your ticket number is 20261122-4. We aim to reply within two business days.
---
Thanks for getting in touch with us. Our team will get back to you within 2 working days.
---
Thank you for your email.

This is an automatic reply to confirm that your message has reached the service desk of
Acme. We answer all messages in the order in which they arrive.
---
Your case 00123456 has been created. A support representative will contact you.
---
Dear Sir or Madam,

We have received your e-mail and will process it as quickly as possible. Your reference number is R-881.
---
Your parcel has been shipped. Please do not reply to this message.
---
NOTE: This is a system-generated notification. Replies to this message are not read.
---
This address is not monitored.
---
You are receiving this email because you are subscribed to ticket 881. This is an automated notification.
---
Thank you for contacting us. This is an automated response confirming the receipt of your ticket. One of our agents will
get back to you as soon as possible.

Ticket ID: 481-226
Subject: Re: Warranty
Department: Service
---
I am out of the office until Monday, 4 May, with limited access to email. In urgent cases please contact my
colleague Tom Ray at tom@acme.example.

Kind regards
Jane
---
Thank you for your message. I am currently on vacation and will reply when I return.
---
Hello,

I'm out of office from 3 to 7 May.
For urgent matters please call reception.

Best regards,
Jane Doe
---
Jane Doe is currently out of the office and will answer your message on her return.
---
Diese E-Mail wurde automatisch erstellt. Bitte antworten Sie nicht auf diese E-Mail.
---
Sehr geehrte Damen und Herren,

dies ist eine automatisch generierte Nachricht. Wir haben Ihre Anfrage erhalten.
---
Guten Tag,

vielen Dank für Ihre Anfrage. Wir haben Ihre Nachricht erhalten und werden uns innerhalb von 2 Werktagen
bei Ihnen melden.

Mit freundlichen Grüßen
Ihr Serviceteam
---
Vielen Dank für Ihre Nachricht. Ihre Anfrage wurde unter der Ticketnummer 4711 registriert.
---
Ihre Anfrage ist bei uns eingegangen. Unser Team wird sich schnellstmöglich darum kümmern.
---
Bitte nicht auf diese E-Mail antworten. Diese Nachricht wurde maschinell erstellt.
---
Ich bin bis zum 5. Mai nicht im Büro. Ihre E-Mail wird nicht weitergeleitet. In dringenden Fällen wenden Sie sich bitte
an meine Kollegin Frau Maier.
---
Vielen Dank für Ihre Nachricht. Ich bin derzeit im Urlaub und ab dem 10. Mai wieder erreichbar.
---
Ceci est un message automatique, merci de ne pas y répondre.
---
Bonjour,

Nous avons bien reçu votre demande. Un ticket a été créé et notre équipe vous répondra dans les plus brefs délais.
---
Cet e-mail a été envoyé automatiquement. Veuillez ne pas répondre.
---
Je suis absent jusqu'au 5 mai. En cas d'urgence, veuillez contacter mon collègue.
---
Este es un mensaje automático. Por favor, no responda a este correo.
---
Hola:

Hemos recibido su solicitud. Nos pondremos en contacto con usted en breve.
---
Este correo ha sido generado automáticamente.
---
Estoy fuera de la oficina hasta el lunes. Responderé su correo a mi regreso.
---
Questo è un messaggio automatico, si prega di non rispondere.
---
Gentile cliente,

abbiamo ricevuto la sua richiesta. Il nostro team la contatterà al più presto.
---
Questa e-mail è stata generata automaticamente.
---
Sono fuori ufficio fino a lunedì. Risponderò alla sua e-mail al mio rientro.
---
Esta é uma mensagem automática. Por favor, não responda a este e-mail.
---
Olá,

Recebemos a sua mensagem. Entraremos em contato em breve. Número do protocolo: 8812.
---
Dit is een automatisch gegenereerd bericht. Gelieve niet te antwoorden.
---
Geachte heer, mevrouw,

Wij hebben uw bericht ontvangen. Wij streven ernaar binnen twee werkdagen te reageren.
---
Deze e-mail is automatisch verzonden.
---
Ik ben tot maandag afwezig. Uw bericht lees ik na terugkomst.
---
Detta är ett automatiskt meddelande. Svara inte på detta mejl.
---
Hej!

Vi har mottagit ditt ärende. Vi återkommer så snart som möjligt.
---
Dette er en automatisk melding.
---
Vi har mottatt din henvendelse. Vi svarer innen to virkedager.
---
Vi har modtaget din henvendelse. Vi vender tilbage hurtigst muligt.
---
Tämä on automaattinen viesti. Älä vastaa tähän viestiin.
---
Olemme vastaanottaneet viestisi. Vastaamme mahdollisimman pian.
---
Ta wiadomość została wygenerowana automatycznie.
---
Ta wiadomość została wygenerowana automatycznie, prosimy na nią nie odpowiadać.
---
Dzień dobry,

otrzymaliśmy Państwa zgłoszenie. Numer zgłoszenia: 8812. Odpowiemy w ciągu 2 dni roboczych.
---
Dziękujemy za kontakt. Nasz konsultant skontaktuje się z Państwem najszybciej jak to możliwe.
---
Wiadomość wygenerowana automatycznie. Prosimy o nieodpowiadanie na ten adres.
---
Jestem na urlopie do 5 maja. W pilnych sprawach proszę o kontakt z sekretariatem.
---
Toto je automatická zpráva. Neodpovídejte na ni.
---
Dobrý den,

přijali jsme vaši žádost. Odpovíme co nejdříve.
---
Toto je automaticky generovaná správa, prosím, neodpovedajte.
---
Это автоматическое сообщение. Пожалуйста, не отвечайте на него.
---
Здравствуйте!

Ваше обращение зарегистрировано. Номер обращения: 8812. Мы ответим в течение 2 рабочих дней.
---
Данное письмо сформировано автоматически.
---
Цей лист створено автоматично.
---
Ez egy automatikus üzenet, kérjük, ne válaszoljon.
---
Acest mesaj este generat automat. Vă rugăm să nu răspundeți.
---
Bu otomatik bir mesajdır. Lütfen yanıtlamayınız.
---
Αυτό είναι ένα αυτόματο μήνυμα.
---
此邮件为系统自动发送，请勿回复。
---
您好，
我们已收到您的邮件，将在两个工作日内答复。
---
本郵件由系統自動發出，請勿直接回覆。
---
このメールは自動送信されています。
---
お問い合わせを受け付けました。担当者よりご連絡いたします。
---
본 메일은 자동으로 발송되었습니다.
"""

# Written after the patterns, to see how far they carry.
MAILS = [
    ("Re: Warranty", "Your support request was received and logged under ticket 5512.\nWe will answer it soon."),
    (
        "Re: Warranty",
        (
            "Hello!\n\nThis is just a quick note to let you know that we have received your message. A "
            "member of our team will reply shortly."
        ),
    ),
    ("Re: Warranty", "Thank you for your email. Your enquiry is important to us. We will respond within 48 hours."),
    ("Re: Warranty", "We've received your email and will get back to you as soon as we can."),
    ("Re: Warranty", "This inbox is no longer monitored. Please use our contact form."),
    ("Re: Warranty", "This email address is no longer in use."),
    (
        "Re: Warranty",
        "A new support ticket has been opened for your request. Ticket number: 881.\nYou can view it online.",
    ),
    ("Support Ticket Received: Re: Warranty", "x"),
    ("Thank you for your message", "Thank you for your message. We have received it and will get back to you."),
    (
        "Re: Warranty",
        "*** This is an automatically generated email, please do not reply ***\n\nDear user, your ticket was updated.",
    ),
    ("Re: Warranty", "Please do not respond to this automated email."),
    ("Re: Warranty", "Hallo,\n\nwir haben deine Nachricht erhalten und melden uns bald bei dir.\n\nDein Shop-Team"),
    (
        "Re: Warranty",
        (
            "Guten Tag,\n\nIhre Nachricht ist bei uns eingegangen. Die Bearbeitung dauert bis zu 3 Tage. "
            "Ihre Vorgangsnummer: 5512"
        ),
    ),
    ("Re: Warranty", "Dies ist eine automatische Eingangsbestätigung."),
    ("Re: Warranty", "Bonjour, nous accusons réception de votre demande. Elle sera traitée dans les meilleurs délais."),
    ("Re: Warranty", "Hemos recibido tu consulta y te responderemos lo antes posible."),
    ("Re: Warranty", "Gracias por contactar con Acme. Nuestro equipo le responderá en 24 horas."),
    ("Re: Warranty", "Grazie per averci contattato. Le risponderemo entro 2 giorni lavorativi."),
    ("Re: Warranty", "Bedankt voor je bericht. We hebben je vraag ontvangen en reageren binnen 2 werkdagen."),
    ("Re: Warranty", "Tack för ditt meddelande. Vi har tagit emot ditt ärende och återkommer så snart vi kan."),
    ("Re: Warranty", "Dziękujemy za wiadomość. Odpowiemy najszybciej, jak to możliwe."),
    ("Re: Warranty", "Dziękujemy za przesłanie zgłoszenia. Zgłoszenie nr 552 zostało przyjęte."),
    ("Re: Warranty", "Děkujeme za váš dotaz. Odpovíme do 24 hodin."),
    ("Re: Warranty", "Спасибо за обращение! Ваша заявка №552 принята. Мы свяжемся с вами."),
    ("Re: Warranty", "感谢您的来信，我们会尽快回复。"),
    ("Re: Warranty", "お問い合わせいただきありがとうございます。担当者より追ってご連絡いたします。"),
    ("Automatic response: Re: Warranty", "x"),
    ("Out Of Office Re: Warranty", "x"),
    ("Away until 5 May", "x"),
    ("Ihre Supportanfrage 552 ist eingegangen", "x"),
    ("[#552] Eingangsbestätigung", "x"),
    ("(552) Wir haben Ihre Nachricht erhalten", "x"),
    ("Your ticket has been closed", "Thank you for using our service desk."),
    ("Automatic reply: Re: Warranty", "I am out of the office, and my phone is off."),
]


def lines(block: str) -> list[str]:
    return [line.strip() for line in block.strip().splitlines()]


def parse(subject: str, text: str) -> tuple[str, str]:
    """As they reach the rule: normalized."""
    mail = {"from": "desk@example.com", "subject": subject, "body": text, "received": "", "message_id": "1"}
    email = parse_email(mail)
    return email.subject, email.new_text


@pytest.mark.parametrize("subject", lines(SUBJECTS))
def test_subjects_of_machines(subject: str) -> None:
    assert is_automatic_subject(parse(subject, "x")[0])


@pytest.mark.parametrize("subject", lines(SUBJECTS))
def test_none_of_them_counts_in_an_answer_to_it(subject: str) -> None:
    assert not is_automatic_subject(f"Re: {parse(subject, 'x')[0]}")


@pytest.mark.parametrize(("subject", "text"), MAILS)
def test_mails_of_machines(subject: str, text: str) -> None:
    subject, new_text = parse(subject, text)
    assert is_automatic_subject(subject, new_text) or is_automatic_text(new_text)


@pytest.mark.parametrize("text", TEXTS.strip().split("\n---\n"))
def test_texts_of_machines(text: str) -> None:
    assert is_automatic_text(parse("Re: Warranty", text)[1])


@pytest.mark.parametrize("text", TEXTS.strip().split("\n---\n"))
def test_none_of_them_counts_below_what_a_person_wrote(text: str) -> None:
    new_text = parse("Re: Warranty", f"My washer WX-1188-20 is still broken and I only got this:\n\n{text}")[1]
    assert not is_automatic_text(new_text)


@pytest.mark.parametrize("phrases", ALL_PHRASES, ids=lambda phrases: phrases.subject_words.split()[0])
def test_every_language_has_patterns_that_compile_and_match_no_empty_text(phrases: object) -> None:
    for kind in ("automatic_subject", "acknowledgement", "declaration", "promise", "absence"):
        assert getattr(phrases, kind).fullmatch("") is None
