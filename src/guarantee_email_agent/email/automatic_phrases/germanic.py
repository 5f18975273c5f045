"""English, German, Dutch, and Danish, Norwegian and Swedish as one."""

from __future__ import annotations

from guarantee_email_agent.email.automatic_phrases.phrases import NUMBER, REF, Phrases

_EN_ITEM = (
    r"(?:(?:support|service|help ?desk|customer|warranty|repair|contact|online|e-?mail) )*(?:ticket|request|case|"
    r"enquiry|inquiry|message|e-?mail|mail|question|query|submission|incident|complaint|claim|feedback|application|"
    r"order|issue|report|parcel|shipment|payment|appointment)"
)
_EN_DONE = (
    r"(?:received|created|registered|logged|opened|submitted|recorded|assigned|updated|closed|resolved|solved|"
    r"acknowledged|confirmed|forwarded|escalated|processed|reopened|completed|shipped|dispatched|delivered)"
)
_EN_MAIL = r"(?:message|e-?mail|mail|reply|response|notification|acknowledge?ment|confirmation|notice|receipt)"

# What may follow "this is an automated message"; "that did not help me" is a person's.
_EN_TAIL = (
    r"(?: ?[,:;(]? ?(?:please|do not|and (?:is|was|this|repl|you|cannot|does)|from|sent|to|confirming|generated|by|"
    r"for|regarding|which)\b.*)?"
)

ENGLISH = Phrases(
    subject_words=(
        "your we we've thank thanks ticket request case incident new automatic automated auto auto-reply autoreply "
        "auto-response autoresponse auto-acknowledgement acknowledgement acknowledgment confirmation receipt out "
        "vacation away undeliverable undelivered delivery mail failure returned support message enquiry inquiry i "
        "i'm notification"
    ),
    sentence_words=(
        "this please note note: important important: do don't replies responses answers you type write reply "
        "currently a many"
    ),
    stems=(
        "automat generated reply respond ticket within received monitored office created vacation holiday leave "
        "registered longer"
    ),
    automatic=(
        r"auto(?:matic|mated)?[ -]?(?:reply|response|answer|acknowledge?ment|confirmation|message|e-?mail|"
        r"notification)|out of (?:the )?office(?: (?:auto-?reply|reply|response|message|notification|notice|alert))?|"
        r"vacation (?:reply|response|message|notice)|away message|undeliverable|undelivered(?: mail)?|"
        r"mail delivery (?:failed|failure)|delivery (?:status notification|failure)(?: \(\w+\))?|returned mail"
    ),
    acknowledgements=(
        r"(?:this is )?(?:just )?a (?:quick |short )?(?:note|message|e-?mail) to (?:let you know|confirm|"
        r"inform you)(?: that)? "
        rf"(?:we have|we've) received your {_EN_ITEM}|your {_EN_ITEM} is (?:very )?important to us|"
        r"(?:we have|we've|we) received it\b|"
        rf"your {_EN_ITEM}{REF} (?:has (?:now )?been|was|is|is being) (?:successfully |"
        rf"automatically )?{_EN_DONE}{REF}|"
        rf"(?:thank you[,!.]? |thanks[,!.]? )?we(?: have|'ve)? (?:now |successfully )?received your {_EN_ITEM}{REF}|"
        rf"thank(?:s| you)(?: very much)? for (?:contacting|reaching out to|getting in touch with|writing to|"
        rf"e-?mailing) [\w .&'-]{{1,50}}|"
        rf"thank(?:s| you)(?: very much)? for (?:submitting|sending(?: us)?) (?:your|a|an) (?:support )?(?:ticket|"
        rf"request|enquiry|inquiry)|thank(?:s| you) for your (?:enquiry|inquiry|request|submission)|"
        rf"(?:a |new )*(?:support )?(?:ticket|request|case|enquiry|inquiry|incident|submission){REF} (?:has been |"
        rf"was )?(?:received|created|registered|logged|opened|assigned|updated|acknowledged)|"
        rf"(?:ticket|request|case|incident){REF} (?:has been|was) {_EN_DONE}|message received|"
        rf"new (?:support )?(?:ticket|case|request|incident){NUMBER}|(?:ticket|case){NUMBER} ?: ?(?=re:)|"
        rf"(?:receipt confirmation|(?:confirmation|acknowledge?ment) (?:of|for) (?:receipt|your {_EN_ITEM})){REF}|"
        rf"notification of receipt"
    ),
    declarations=(
        r"this (?:mailbox|inbox|e-?mail address|address|account) is no longer (?:monitored|in use|active|valid|"
        r"read)\b.*|"
        rf"(?:please note(?: that)?:? |note:? |important:? )?(?:this (?:is|was) an? (?:fully )?(?:auto-?matic|"
        rf"automated|auto-?generated|automatically (?:generated|created|sent)|system[- ]generated|"
        rf"computer[- ]generated|unattended)(?: \w+)? {_EN_MAIL}{_EN_TAIL}|this {_EN_MAIL} (?:was|is|"
        rf"has been) (?:automatically|auto-?)[ -]?(?:generated|created|sent|produced)?{_EN_TAIL}|"
        rf"this {_EN_MAIL} (?:was|is|has been) (?:generated|created|sent) (?:automatically|"
        rf"by an? automat\w+(?: \w+)?|by (?:our|a) system){_EN_TAIL}|(?:please )?(?:do not|don't) (?:reply|respond|"
        rf"answer|write)(?: directly| back)?(?: to this (?:automat\w+ )?(?:{_EN_MAIL}|address|mailbox)\b.*| as .*)?|"
        rf"(?:replies|responses|answers)(?: sent)? to this (?:e-?mail|message|mail|address) (?:are|will|cannot|"
        rf"can't)\b.*|this (?:mailbox|inbox|e-?mail address|address|account) is (?:not|"
        rf"un)[ -]?(?:being )?(?:monitored|attended|read)\b.*|you (?:are receiving|received) this (?:e-?mail|message|"
        rf"notification) because\b.*|(?:please )?(?:type|write) your (?:reply|response) above this line|"
        rf"(?:please )?reply above this line)"
    ),
    promises=(
        r"\b(?:and|someone|somebody) will (?:get back|respond|reply|answer|contact|be in touch)|"
        r"\b(?:we|our \w+(?: \w+){0,3}|(?:a|an|one of our|the) [\w ]{1,40}?)(?: will|'ll| shall| is going to|"
        r" aims? to| endeavou?r to| try to)(?: \w+)? (?:get back|respond|reply|contact|answer|be in touch|review|"
        r"process|look into|assist|follow up|handle|reach out)|"
        r"\b(?:we|you) (?:will|can|should) (?:expect|receive|hear)\b|"
        r"within (?:the next )?(?:\d+|one|two|three|five|twenty-four|forty-eight)(?: ?- ?\d+)? (?:business |"
        r"working )?(?:hour|day)s?|\b(?:ticket|case|reference|request|tracking) (?:number|no\.|id|#|has been)|"
        r"\byour ticket\b|ticket (?:has been |was )?(?:created|opened)"
    ),
    absences=(
        r"away (?=until)|on (?:leave|vacation|holiday) (?=until)|"
        r"(?:i am|i'm|i will be|\w+ \w+ is|\w+ is)(?: currently| presently| now)? (?:out of (?:the )?office|"
        r"away (?:from|until|on)|on (?:\w+ )?(?:leave|vacation|holidays?)|not in the office|travell?ing)|"
        r"(?:currently )?out of (?:the )?office (?:until|from)"
    ),
)

_DE_ITEM = (
    r"(?:(?:kontakt|support|service|kunden|online|reparatur|garantie)-?)?(?:anfrage|nachricht|e-?mail|mail|ticket|"
    r"meldung|anliegen|reklamation|schreiben|mitteilung|vorgang|bestellung|auftrag|antrag|störungsmeldung|"
    r"rückmeldung)"
)
GERMAN = Phrases(
    subject_words=(
        "wir ihr ihre ihren deine dein ticket eingangsbestätigung empfangsbestätigung bestätigung automatische "
        "automatisch automatisierte abwesenheit abwesenheitsnotiz abwesenheitsmeldung abwesenheitsbenachrichtigung "
        "abwesenheitsinfo vielen herzlichen dank danke ich unzustellbar autoantwort support-ticket supportanfrage "
        "anfrage abwesend derzeit"
    ),
    sentence_words="dies das es diese die hinweis hinweis: bitte wichtig: antworten rückantworten besten",
    stems=(
        "automat antwort ticket innerhalb erhalten eingegangen büro urlaub geschlossen abwesend registriert "
        "maschinell erstellt schnellst nummer"
    ),
    automatic=(
        r"automati(?:sche|sch|sierte)(?: generierte)? (?:antwort|eingangsbestätigung|empfangsbestätigung|bestätigung|"
        r"nachricht|benachrichtigung|e-?mail|rückmeldung|abwesenheitsnotiz)|autoantwort|"
        r"abwesenheit(?:snotiz|smeldung|sbenachrichtigung|sinfo)?|unzustellbar|eingangsbestätigung|"
        r"empfangsbestätigung"
    ),
    acknowledgements=(
        rf"(?:vielen dank[,!.] )?wir haben (?:ihre?n?|deinen?|dein) {_DE_ITEM}{REF} erhalten|"
        rf"(?:ihre?|deine?) {_DE_ITEM}{REF} (?:ist (?:bei uns |soeben )?(?:erfolgreich )?eingegangen|"
        rf"haben wir erhalten|wird bearbeitet|wurde (?:bei uns |von uns )?(?:erfolgreich |"
        rf"automatisch )?(?:unter (?:der )?\S+ (?:\S+ )?)?(?:empfangen|registriert|erstellt|angelegt|eröffnet|"
        rf"aufgenommen|erfasst|aktualisiert|geschlossen|abgeschlossen|übermittelt|versandt|weitergeleitet|zugestellt|"
        rf"gelöst|entgegengenommen))|"
        rf"(?:neues |support-?)?(?:ticket|anfrage|supportanfrage){REF} (?:wurde |ist )?(?:erstellt|eröffnet|angelegt|"
        rf"eingegangen|registriert|erhalten)|"
        rf"(?:eingangs|empfangs)bestätigung(?: (?:zu )?(?:ihrer|deiner|ihres|für ihre) {_DE_ITEM}s?)?{REF}|"
        rf"bestätigung (?:des eingangs|des empfangs)?(?:ihrer|deiner|ihres)? ?{_DE_ITEM}s?{REF}|"
        rf"(?:vielen |herzlichen )?danke? für (?:ihre|deine) (?:\w*anfrage|kontaktaufnahme|meldung|mitteilung)|"
        rf"(?:vielen |herzlichen )?danke?,? dass (?:sie|du) [\w ]{{2,40}}kontaktier\w+( ha\w+)?"
    ),
    declarations=(
        r"(?:hinweis:? |bitte beachten sie:? |wichtig:? )?(?:(?:dies|das|es handelt sich(?: hierbei)?) (?:ist|"
        r"um)(?: nur)? eine (?:automatische?|automatisierte|automatisch (?:generierte|erstellte|erzeugte|versendete|"
        r"versandte)) \S+?(?:,? (?:bitte|auf die|von|des|der|zur|und (?:bitte|kann|wird|muss|bedarf))\b.*)?|(?:diese|"
        r"die vorliegende) (?:e-?mail|mail|nachricht|mitteilung|antwort|benachrichtigung|bestätigung) (?:wurde|ist|"
        r"wird)(?: \w+){0,2} (?:automatisch|maschinell|automatisiert)(?: (?:von \w+ \w+ )?\w+)?(?:,? (?:bitte|"
        r"und (?:bedarf|ist|enthält|kann|wird|bitte)|antworten|von|sie|eine)\b.*)?|(?:bitte )?(?:antworten sie|"
        r"antworte)(?: bitte)? (?:nicht|nicht direkt) (?:auf|an) diese\w* .*|bitte (?:nicht (?:auf|"
        r"an) diese [\w-]+ (?:antworten|schreiben)|nicht antworten).*|(?:antworten|rückantworten) (?:auf|"
        r"an) diese [\w-]+ (?:werden|können|sind)\b.*|diese [\w-]+ (?:wird|werden) nicht (?:gelesen|überwacht|"
        r"bearbeitet).*|bitte (?:schreiben|geben) sie ihre antwort (?:über|oberhalb) diese\w*.*)"
    ),
    promises=(
        r"\bmelden uns\b|"
        r"\b(?:wir|unser \S+|unsere \S+|ein \S+|eine \S+)(?: \w+){0,2} (?:werden|wird|melden|meldet|bearbeiten|"
        r"kümmern|antworten|setzen)\b|\bwerden (?:wir|uns)\b|"
        r"innerhalb (?:von )?(?:\S+) (?:stunden|werktagen|arbeitstagen|tagen)|schnellstmöglich|"
        r"(?:ticket|vorgangs|bearbeitungs|anfrage|fall)-?(?:nummer|nr\.|id)|\bticket wurde\b|"
        r"(?:lautet|nummer):? ?#?\d"
    ),
    absences=(
        r"ich bin(?: \w+){0,3} (?:nicht (?:im|am) (?:büro|haus|arbeitsplatz|platz)|abwesend|außer haus|im urlaub|"
        r"in elternzeit|bis (?:zum )?\d)|ich befinde mich(?: \w+){0,3} im urlaub|ich bin (?:ab dem|vom|bis)\b"
    ),
)

_NL_ITEM = r"(?:bericht|vraag|verzoek|aanvraag|e-?mail|mail|melding|ticket|klacht|bestelling|case)"
DUTCH = Phrases(
    subject_words=(
        "wij we uw je jouw ontvangstbevestiging bevestiging automatisch automatische afwezig afwezigheid "
        "afwezigheidsbericht afwezigheidsmelding bedankt hartelijk dank ticket niet onbestelbaar ik buiten"
    ),
    sentence_words="dit deze gelieve op u beantwoord reageer",
    stems="automat antwoord ontvangen ticket kantoor vakantie afwezig gesloten reageren",
    automatic=(
        r"automatisch (?:antwoord|bericht)|automatische (?:reactie|ontvangstbevestiging|beantwoording)|"
        r"afwezig(?:heids(?:bericht|melding|assistent)|heid)?|niet op kantoor|onbestelbaar|ontvangstbevestiging"
    ),
    acknowledgements=(
        rf"wi?j?e? hebben (?:uw|je|jouw) {_NL_ITEM}{REF} (?:in goede orde |goed )?ontvangen|"
        rf"(?:uw|je|jouw) {_NL_ITEM}{REF} (?:is|werd) (?:in goede orde |succesvol )?(?:ontvangen|geregistreerd|"
        rf"aangemaakt|gesloten|in behandeling(?: genomen)?|bijgewerkt|opgelost|verzonden|doorgestuurd){REF}|"
        rf"ontvangstbevestiging(?: (?:van )?uw {_NL_ITEM})?{REF}|"
        rf"bevestiging (?:van )?(?:de )?ontvangst(?: van uw {_NL_ITEM})?{REF}|"
        rf"ticket{REF} (?:is )?(?:aangemaakt|ontvangen|geopend|geregistreerd)|"
        rf"(?:hartelijk )?(?:bedankt|dank) (?:voor (?:uw|je) (?:aanvraag|vraag|melding|verzoek)|"
        rf"voor het contact opnemen[\w .&'-]{{0,50}}|dat u contact[\w .&'-]{{0,50}})"
    ),
    declarations=(
        r"(?:dit|deze)(?: \S+){0,2} (?:is|werd|wordt)(?: een| \w+)?(?: \w+)? ?(?:automati\w+|automatisch)\b.*|"
        r"(?:gelieve |u kunt |)(?:niet (?:op|te) (?:deze \S+ te )?(?:antwoorden|beantwoorden|reageren)|niet reageren|"
        r"op deze \S+ niet te antwoorden).*|(?:beantwoord|reageer)(?: a\.u\.b\.)? (?:deze|niet op deze) .*"
    ),
    promises=(
        r"\b(?:(?:wij|we|onze \w+|een medewerker)(?: \w+){0,3} (?:zullen|zal|nemen|neemt|streven|behandelen|reageren|"
        r"beantwoorden)|zo (?:spoedig|snel) mogelijk|binnen \S+ (?:uur|werkdag\w*|dagen)|(?:ticket|zaak|referentie|"
        r"dossier)nummer)"
    ),
    absences=r"ik ben(?: \w+){0,3} (?:afwezig|niet (?:op kantoor|aanwezig)|met vakantie|op vakantie|met verlof)",
    person=r"ik|mijn(?! account)|maar",
)

_NORDIC_ITEM = (
    r"(?:ärende|meddelande|förfrågan|e-?post|mejl|e-?mail|mail|fråga|ticket|beställning|henvendelse|melding|sak|"
    r"forespørsel|besked|anmodning|sag|spørgsmål|bestilling|supportärende|supportsak|kundeservicehenvendelse)"
)
NORDIC = Phrases(
    subject_words=(
        "vi ditt din dit deres er ert autosvar automatiskt automatisk frånvaro frånvaromeddelande fravær "
        "fraværsmelding fraværsbesked mottagningsbekräftelse bekräftelse bekreftelse bekræftelse kvittering tack "
        "takk tak ärende jag jeg sag sak ej ikke"
    ),
    sentence_words=(
        "detta dette denne denna det vänligen var vennligst svara svar undlad du tusen tusind besvara besvar"
    ),
    stems="automat svar mott modtag mottag semester ferie kontor ärende oprett opprett registr kontakt",
    automatic=(
        r"autosvar|automatiskt? svar|frånvaro(?:meddelande)?|fravær(?:smelding|sbesked|smeddelelse)?|ej på kontoret|"
        r"ikke på kontoret|mottagningsbekräftelse"
    ),
    acknowledgements=(
        rf"vi har (?:nå |nu )?(?:mottagit|tagit emot|fått|mottatt|modtaget) (?:ditt|din|dit|er|ert|"
        rf"deres) {_NORDIC_ITEM}{REF}|"
        rf"(?:ditt|din|dit|er|ert|deres) {_NORDIC_ITEM}{REF} (?:har|är|er|ble|blev) (?:nu |nå |blitt |"
        rf"blevet )?(?:mottagits|mottage[tn]|registrerats|registrera[td]|registrert|registreret|skapats|skapat|"
        rf"tagits emot|mottatt|modtaget|opprettet|oprettet|avslutats|avsluttet|lukket|stängts|oppdatert|opdateret|"
        rf"uppdaterats){REF}|"
        rf"(?:mottagnings)?(?:bekräftelse|bekreftelse|bekræftelse)(?: (?:på|av|for|om) (?:mottatt|modtaget|mottaget|"
        rf"ditt|din|dit|mottak|modtagelse) ?\w*)?{REF}|"
        rf"kvittering (?:for|på) (?:mottatt|modtaget|modtagelse|din|mottak)(?: \w+)*{REF}|"
        rf"(?:ärende|sag|sak){NUMBER} (?:har |er |är )?(?:skapats|skapat|mottagits|oprettet|opprettet|mottatt|"
        rf"modtaget|registrerats)|"
        rf"(?:tack|takk?|tusen takk?) (?:för|for) (?:att du kontakt\w+|at du kontakt\w+|din henvendelse|"
        rf"din förfrågan|ditt ärende)[\w .&'-]{{0,50}}"
    ),
    declarations=(
        r"(?:detta|dette|denne|denna|det här)(?: \S+)? (?:är|er|har|ble|blev)(?: \w+){0,2} (?:automati\w+)\b.*|"
        r"(?:vänligen |var god |vennligst )?(?:svara inte|ikke svar|svar ikke|svara ej|besvara inte|besvar ikke|"
        r"undlad (?:venligst )?at (?:svare|besvare)|du kan ikke svare|det går inte att svara|ikke besvar)(?: .*)?"
    ),
    promises=(
        r"\b(?:och|og) (?:återkommer|svarer|vender|kommer)\b|"
        r"\b(?:vi (?:\w+ )?(?:återkommer|svarar|kontaktar|svarer|kontakter|vender|behandl\w+|handlägger|besvarer|"
        r"kommer)|så snart (?:som )?(?:möjligt|mulig)|hurtigst muligt|(?:inom|innen|inden(?: for)?) \S+ (?:timmar|"
        r"dagar|timer|dager|dage|arbetsdagar|arbeidsdager|hverdage|virkedager)|(?:ärende|saks|sags|referens|"
        r"referanse)-?nummer)"
    ),
    absences=(
        r"(?:jag|jeg) (?:är|er)(?: \w+){0,3} (?:inte på kontoret|ikke på kontoret|på semester|på ferie|på ferien|"
        r"bortrest|ledig|frånvarande|fraværende|borte|ute av kontoret)"
    ),
    person=r"mit|min|mitt|mina|mine|men|ingen|meg|mig",
)
