"""French, Spanish, Italian and Portuguese."""

from __future__ import annotations

from guarantee_email_agent.email.automatic_phrases.phrases import NUMBER, REF, Phrases

_FR_ITEM = r"(?:demande|message|e-?mail|courriel|mail|ticket|requête|réclamation|dossier|commande)"
FRENCH = Phrases(
    subject_words=(
        "nous votre accusé confirmation réponse absence absent absente message notification merci ticket non "
        "demande automatique: je nouveau"
    ),
    sentence_words="ceci ce cet cette veuillez prière ne saisir écrire saisissez écrivez",
    stems="automat répon ticket reçu absent congé vacanc généré enregistr délais",
    automatic=(
        r"réponse automatique|message (?:automatique|d'absence)|absence(?: du bureau)?|notification d'absence|"
        r"non remis|accusé de réception(?: automatique)?"
    ),
    acknowledgements=(
        rf"(?:merci[,!.] )?nous avons (?:bien )?reçu votre {_FR_ITEM}{REF}|"
        rf"nous accusons (?:bonne )?réception de votre {_FR_ITEM}|"
        rf"votre {_FR_ITEM}{REF} (?:a (?:bien )?été (?:reçue?|enregistrée?|créée?|prise? en compte|transmise?|"
        rf"ouverte?|clôturée?|résolue?|mise? à jour|fermée?)|est (?:bien )?(?:enregistrée?|prise? en compte|"
        rf"en cours de traitement)){REF}|accusé de réception(?: automatique)?(?: de votre {_FR_ITEM})?{REF}|"
        rf"confirmation de (?:réception|(?:la réception de )?votre {_FR_ITEM}){REF}|"
        rf"(?:nouveau )?(?:ticket|demande){REF} (?:a été )?(?:créée?|enregistrée?|ouverte?|reçue?)|"
        rf"merci (?:de nous avoir contactée?s?|d'avoir contacté [\w .&'-]{{1,50}}|pour votre (?:demande|requête)|"
        rf"de votre demande)"
    ),
    declarations=(
        r"(?:ceci|ce(?:tte|t)? (?:message|e-?mail|courriel|mail|réponse|notification)) (?:est|"
        r"a été)(?: \w+)? ?(?:un |une )?(?:\w+ )?(?:automatique|généré\w*|envoyé\w*|créé\w*)(?: (?:de manière |"
        r"de façon )?automati\w+)?\b.*|(?:merci de ne pas|veuillez ne pas|ne pas|"
        r"prière de ne pas) (?:y )?répondre(?: (?:directement )?à ce(?:t|tte)? .*)?|cette (?:boîte|"
        r"adresse)[\w -]{0,30}n'est pas (?:surveillée|consultée|lue).*|(?:veuillez )?(?:saisir|écrire|saisissez|"
        r"écrivez) votre réponse au-dessus de cette ligne"
    ),
    promises=(
        r"\b(?:nous (?:vous|y|la|le) ?\w* ?(?:répond|contact|trait|revien|recontact|apport)\w+|"
        r"nos? (?:\w+ ){1,4}(?:vous|la|le|va|vont|revien\w+) ?\w*|sera traitée?|"
        r"dans les (?:plus brefs|meilleurs) délais|(?:sous|dans un délai de|d'ici) \d+|numéro de (?:ticket|dossier|"
        r"demande|suivi)|un ticket a été)"
    ),
    absences=(
        r"je suis(?: actuellement)? (?:absente?|en congés?|en vacances|hors du bureau|en déplacement)|"
        r"je serai absente?"
    ),
    person=r"je|mon(?! compte)|mes(?! demandes)|moi",
)

_ES_ITEM = (
    r"(?:solicitud|mensaje|consulta|correo(?: electrónico)?|e-?mail|ticket|tique|petición|incidencia|caso|"
    r"reclamación|pedido)"
)
SPANISH = Phrases(
    subject_words=(
        "hemos su tu acuse confirmación respuesta fuera ausente ausencia gracias ticket solicitud mensaje no "
        "recibimos nuevo caso estoy notificación"
    ),
    sentence_words="este esta esto por escriba actualmente estaré me muchas",
    stems="automát automat respond recib oficina vacaciones ticket generad registr cread contact",
    automatic=(
        r"respuesta automática|mensaje automático|fuera de (?:la )?oficina|ausencia|no se puede entregar|"
        r"acuse de recibo|notificación automática"
    ),
    acknowledgements=(
        rf"(?:gracias[,!.] )?(?:hemos recibido|recibimos) (?:su|tu) {_ES_ITEM}{REF}|"
        rf"(?:su|tu) {_ES_ITEM}{REF} (?:ha sido|fue|se ha|está siendo) (?:correctamente )?(?:recibid[oa]|cread[oa]|"
        rf"registrad[oa]|actualizad[oa]|cerrad[oa]|abiert[oa]|resuelt[oa]|asignad[oa]|enviad[oa]|procesad[oa]|"
        rf"recibido|creado){REF}|acuse de recibo(?: de su {_ES_ITEM})?{REF}|confirmación de (?:recepción|recibo|"
        rf"su {_ES_ITEM}|tu {_ES_ITEM}){REF}|(?:nuevo )?(?:ticket|solicitud|caso){REF} (?:ha sido )?(?:cread[oa]|"
        rf"recibid[oa]|registrad[oa]|abiert[oa])|gracias por (?:contactarnos|contactar(?: con)? [\w .&'-]{{1,50}}|"
        rf"(?:ponerse|ponerte) en contacto(?: con [\w .&'-]{{1,50}})?|comunicarse con [\w .&'-]{{1,50}}|"
        rf"(?:su|tu) (?:solicitud|consulta))"
    ),
    declarations=(
        r"(?:este|esta|esto)(?: \w+){0,2} (?:es|ha sido|fue|se ha)(?: un| una)?(?: \w+){0,2} (?:automátic\w+|"
        r"automáticamente|generad\w+ automáticamente|autogenerad\w+)\b.*|(?:por favor,? )?no (?:responda|conteste|"
        r"responder|respondas)(?: (?:directamente )?a est[ea] .*)?|(?:por favor,? )?escriba su respuesta (?:por "
        r")?encima de esta línea"
    ),
    promises=(
        r"\b(?:nos pondremos en contacto|(?:le|te|les) (?:responderemos|contestaremos|contactaremos|atenderemos)|"
        r"nuestro equipo|un (?:agente|asesor|miembro) [\w ]{0,30}|en breve|a la (?:mayor )?brevedad|"
        r"en (?:un plazo|menos) de \d+|número de (?:ticket|caso|solicitud|incidencia|referencia))"
    ),
    absences=r"(?:actualmente )?(?:estoy|estaré|me encuentro) (?:fuera de la oficina|ausente|de vacaciones|de baja)",
    person=r"mi(?! cuenta)|mis|me|yo",
)

_IT_ITEM = r"(?:richiesta|e-?mail|mail|segnalazione|domanda|messaggio|ticket|reclamo|ordine|pratica)"
ITALIAN = Phrases(
    subject_words=(
        "abbiamo la il conferma risposta fuori assente assenza messaggio grazie ticket richiesta presa nuovo sono "
        "notifica"
    ),
    sentence_words="questa questo si vi per non attualmente sarò",
    stems="automat rispond ricevut ufficio ferie ticket carico registr contatt assente",
    automatic=(
        r"risposta automatica|messaggio automatico|fuori (?:sede|ufficio)|notifica (?:automatica|di assenza)|"
        r"assenza dall'ufficio|conferma di (?:ricezione|ricevimento)"
    ),
    acknowledgements=(
        rf"(?:grazie[,!.] )?abbiamo (?:ricevuto|preso in carico) (?:la|il) (?:sua|suo|tua|tuo|vostra|"
        rf"vostro) {_IT_ITEM}{REF}|(?:la|il) (?:sua|suo|tua|tuo|vostra|vostro) {_IT_ITEM}{REF} (?:è stat[ao]|"
        rf"è) (?:correttamente )?(?:ricevut[ao]|registrat[ao]|pres[ao] in carico|creat[ao]|apert[ao]|inoltrat[ao]|"
        rf"chius[ao]|risolt[ao]|aggiornat[ao]|inviat[ao]){REF}|conferma (?:di )?(?:ricezione|ricevimento|"
        rf"presa in carico)(?: (?:della|del) {_IT_ITEM})?{REF}|presa in carico{NUMBER}|(?:nuovo )?(?:ticket|"
        rf"richiesta){REF} (?:è stat[ao] )?(?:creat[ao]|apert[ao]|ricevut[ao]|registrat[ao])|"
        rf"grazie per (?:averci (?:contattat[oi]|scritto)|aver contattato [\w .&'-]{{1,50}}|"
        rf"la (?:sua|tua) (?:richiesta|segnalazione))"
    ),
    declarations=(
        r"(?:questa|questo|il presente|la presente)(?: \S+){0,2} (?:è|è stat[oa]|viene)(?: un[ao]?)?(?: \w+){0,2} "
        r"(?:automatic[oa]|automaticamente)\b.*|(?:si prega di|vi preghiamo di|la preghiamo di|per favore,?|"
        r"si prega cortesemente di)? ?non rispondere(?: (?:direttamente )?a quest[oa] .*)?"
    ),
    promises=(
        r"\b(?:(?:vi|le|ti) (?:risponderemo|contatteremo|ricontatteremo)|"
        r"il nostro (?:team|staff|servizio)[\w ]{0,30}|un (?:operatore|nostro)[\w ]{0,30}|al più presto|"
        r"(?:entro|nel giro di) (?:\d+|le prossime)|numero (?:di )?(?:ticket|pratica|richiesta))"
    ),
    absences=r"(?:attualmente )?(?:sono|sarò) (?:fuori (?:ufficio|sede)|assente|in ferie)",
    person=r"io|mi|mio|mia|miei|ma",
)

_PT_ITEM = r"(?:mensagem|solicitação|pedido|e-?mail|contato|contacto|chamado|ticket|reclamação|questão)"
PORTUGUESE = Phrases(
    subject_words=(
        "recebemos a o sua seu confirmação resposta fora ausência ausente obrigado obrigada ticket chamado "
        "solicitação mensagem novo estou notificação agradecemos"
    ),
    sentence_words="este esta esse essa isto por não favor estarei atualmente muito encontro-me",
    stems="automát automat respond receb escritório férias ticket registr contat",
    automatic=(
        r"resposta automática|mensagem automática|fora do escritório|ausência(?: temporária)?|notificação automática"
    ),
    acknowledgements=(
        rf"(?:obrigad[oa][,!.] )?(?:nós )?recebemos (?:a |o )?(?:sua|seu|tua|teu|vossa) {_PT_ITEM}{REF}|"
        rf"(?:a |o )?(?:sua|seu|tua|teu) {_PT_ITEM}{REF} (?:foi|está) (?:\w+ )?(?:recebid[oa]|registrad[oa]|"
        rf"registad[oa]|criad[oa]|abert[oa]|encaminhad[oa]|fechad[oa]|encerrad[oa]|resolvid[oa]|atualizad[oa]|"
        rf"enviad[oa]){REF}|confirmação (?:de|do) (?:recebimento|receção|recepção|(?:sua|seu) {_PT_ITEM}){REF}|"
        rf"(?:novo )?(?:ticket|chamado|solicitação){REF} (?:foi )?(?:criad[oa]|abert[oa]|recebid[oa]|registrad[oa])|"
        rf"(?:obrigad[oa] por|agradecemos) (?:entrar em contato|(?:nos )?contatar|contactar|o (?:seu )?contact?o|"
        rf"a sua solicitação)[\w .&'-]{{0,50}}"
    ),
    declarations=(
        r"(?:est[ea]|esse|essa|isto)(?: \w+){0,2} (?:é|foi)(?: um| uma)?(?: \w+){0,2} (?:automátic\w+|"
        r"automaticamente)\b.*|(?:por favor,? )?(?:não responda|não responder|não respondas|"
        r"favor não responder)(?: (?:diretamente )?a est[ea] .*)?"
    ),
    promises=(
        r"\b(?:(?:entraremos|entrará) em contact?o|responderemos|nossa equip[ea]|nosso time|em breve|"
        r"o mais (?:breve|rápido) possível|(?:em até|no prazo de|dentro de) \d+|número (?:do|de|da) (?:chamado|"
        r"ticket|pedido|solicitação|protocolo)|protocolo)"
    ),
    absences=r"(?:atualmente )?(?:estou|estarei|encontro-me) (?:fora do escritório|ausente|de férias)",
    person=r"eu|meu|minha(?! conta)|me|mas",
)
