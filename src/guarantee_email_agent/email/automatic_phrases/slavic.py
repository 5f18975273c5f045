"""Polish, Czech and Slovak as one, Russian and Ukrainian as one."""

from __future__ import annotations

from guarantee_email_agent.email.automatic_phrases.phrases import NUMBER, REF, Phrases

_PL_ITEM = (
    r"(?:wiadomość|wiadomości|zgłoszenie|zgłoszenia|zapytanie|zapytania|e-?maila?|maila?|reklamację|reklamacji|"
    r"zamówienie|pismo|prośbę)"
)
_PL_YOURS = r"(?:twoj[ąeą]|twój|twojego|twojej|państwa|pana|pani|pana/pani|pani/pana)"
POLISH = Phrases(
    subject_words=(
        "otrzymaliśmy potwierdzenie twoje twoja państwa zgłoszenie odpowiedź automatyczna autoodpowiedź nieobecność "
        "poza informacja dziękujemy przyjęliśmy niedostarczalne jestem rejestracja ticket automatyczne utworzono "
        "zarejestrowano wiadomość twój"
    ),
    sentence_words="uwaga uwaga: ta niniejsza ten to prosimy proszę na obecnie będę przebywam e-mail",
    stems="automat odpow odpis otrzymal skontakt przyj zarejestr urlop biur",
    automatic=(
        r"odpowiedź automatyczna|automatyczna (?:odpowiedź|wiadomość)|automatyczne potwierdzenie|autoodpowiedź|"
        r"nieobecność|poza biurem|informacja o nieobecności|niedostarczalne|nieobecność w biurze"
    ),
    acknowledgements=(
        rf"(?:dziękujemy[,!.] )?(?:otrzymaliśmy|przyjęliśmy|zarejestrowaliśmy) {_PL_YOURS} {_PL_ITEM}{REF}|"
        rf"(?:automatyczne )?potwierdzenie (?:przyjęcia|otrzymania|odbioru|rejestracji|"
        rf"wpłynięcia) (?:{_PL_YOURS} )?{_PL_ITEM}{REF}|(?:{_PL_YOURS} )?(?:zgłoszenie|zapytanie){REF} (?:zostało |"
        rf"jest )(?:przyjęte|zarejestrowane|utworzone|otrzymane|zamknięte|przekazane|zaktualizowane|rozwiązane|"
        rf"w trakcie realizacji){REF}|(?:zgłoszenie|ticket){REF} (?:przyjęte|zarejestrowane|utworzon[ey])|(?:twoja|"
        rf"państwa) wiadomość{REF} (?:została |do nas )(?:przyjęta|otrzymana|dotarła|zarejestrowana)|(?:utworzono|"
        rf"zarejestrowano) (?:nowe )?(?:zgłoszenie|ticket){REF}|rejestracja zgłoszenia{REF}|"
        rf"dziękujemy za (?:kontakt|wiadomość|zgłoszenie|zapytanie|przesłanie zgłoszenia)[\w .&'-]{{0,50}}"
    ),
    declarations=(
        r"(?:uwaga:? )?(?:ta|niniejsza|ten)(?: \S+){0,2} (?:został[ay]?|jest)(?: \S+)? (?:automatyczn\w+|"
        r"automatycznie)\b.*|to (?:jest )?automatyczn[ay] \w+(?:,? .*)?|(?:prosimy|proszę) (?:o nieodpowiadanie|"
        r"nie odpowiadać|nie odpisywać)(?: .*)?|(?:wiadomość|e-mail) (?:wygenerowan\w+|wysłan\w+) automatycznie.*|"
        r"na t[ęe] wiadomość (?:nie należy|prosimy nie) odpowiadać"
    ),
    promises=(
        r"\b(?:odpowiemy|skontaktujemy się|udzielimy odpowiedzi|odpowiedzi udzielimy|"
        r"nasz \w+ (?:\w+ )?(?:skontaktuje|odpowie)|nasi \w+|w ciągu \S+ (?:godzin|dni|roboczych)|najszybciej jak|"
        r"(?:jak )?najszybciej|wkrótce|numer (?:zgłoszenia|sprawy|ticketu)|nadany numer|zgłoszeniu nadano)"
    ),
    absences=(
        r"(?:obecnie )?(?:jestem|będę)(?: \w+)? (?:poza biurem|nieobecn[ya]|na urlopie)|"
        r"przebywam(?: \w+)? (?:na urlopie|poza biurem)"
    ),
    person=r"mi|mam|ale",
)

CZECH_SLOVAK = Phrases(
    subject_words=(
        "obdrželi přijali váš vaše automatická nepřítomnost mimo potvrzení děkujeme prijali obdržali vaša ďakujeme "
        "potvrdenie dostali oznámení"
    ),
    sentence_words=(
        "toto tato táto tento prosíme prosím neodpovídejte neodpovedajte momentálně aktuálně momentálne jsem som "
        "budu budem"
    ),
    stems="automat odpov obdrž přija prija dostali dovolen kancel",
    automatic=(
        r"automatická odpově[ďd]|automatická odpoveď|nepřítomnost|neprítomnosť|mimo kancelář|mimo kancelárie|"
        r"oznámení o nepřítomnosti"
    ),
    acknowledgements=(
        rf"(?:obdrželi|přijali|prijali|obdržali|dostali) (?:jsme|sme) (?:vaši|vašu|váš|vaše) (?:zprávu|správu|"
        rf"požadavek|požiadavku|dotaz|otázku|e-?mail|žádost|žiadosť|hlášení){REF}|(?:váš|vaše|vaša) (?:požadavek|"
        rf"požiadavka|dotaz|e-?mail|zpráva|správa|žádost|žiadosť|hlášení){REF} (?:byla?|bol[ao]?|bylo) (?:úspěšně |"
        rf"úspešne )?(?:přijat\w?|zaregistrován\w?|vytvořen\w?|uzavřen\w?|prijat\w{{1,2}}|zaregistrovan\w{{1,2}}|"
        rf"vytvoren\w{{1,2}}|doručen\w?){REF}|potvr[dz]en[íi]e? (?:o )?(?:přijetí|příjmu|doručení|prijatia|prijatí|"
        rf"doručenia)(?: \w+){{0,2}}{REF}|(?:děkujeme|ďakujeme),? (?:za váš (?:dotaz|e-?mail|požadavek)|"
        rf"za vaši (?:zprávu|žádost)|za vašu správu|že jste nás kontaktovali|že ste nás kontaktovali)"
    ),
    declarations=(
        r"(?:toto|tato|táto|tento)(?: \S+){0,2} (?:je|byla?|bol[ao]?)(?: \S+)? ?(?:automatick\w+|automaticky)\b.*|"
        r"(?:prosíme?,? )?(?:neodpovídejte|neodpovedajte)(?: .*)?"
    ),
    promises=(
        r"\b(?:(?:ozveme|odpovíme|odpovieme|kontaktujeme|budeme vás kontaktovat|ozveme se)\b|co nejdříve|čo najskôr|"
        r"do \S+ (?:hodin|dnů|dní|pracovn\w+)|číslo (?:požadavku|tiketu|žádosti|hlášení|požiadavky))"
    ),
    absences=(
        r"(?:momentálně |aktuálně |momentálne )?(?:jsem|som|budu|budem) (?:mimo kancelář\w*|na dovolené|na dovolenke|"
        r"nepřítomen|nepřítomna)"
    ),
    person=r"mi|mám|som|jsem|ale",
)

_RU_ITEM = (
    r"(?:обращение|обращения|письмо|письма|запрос|запроса|сообщение|сообщения|заявка|заявку|заявки|звернення|запит|"
    r"лист|повідомлення)"
)
CYRILLIC = Phrases(
    subject_words=(
        "автоматический автоответ автоответчик мы ваше ваш ваша получено вне подтверждение отсутствие спасибо "
        "благодарим заявка обращение автоматична ми дякуємо поза підтвердження запит получили нет регистрация"
    ),
    sentence_words="это данное этот цей це пожалуйста просьба будь я сейчас нахожусь не",
    stems="автомат отве відпов получ принят отримал зарегистр зареєстр заявк отпуск создан створ",
    automatic=(
        r"автоматический ответ|автоответ(?:чик)?|вне офиса|автоматична відповідь|отсутствие на рабочем месте|"
        r"поза офісом|нет на месте"
    ),
    acknowledgements=(
        rf"(?:спасибо[,!.] )?(?:мы |ми )?(?:получили|отримали) (?:ваше?|вашу) {_RU_ITEM}{REF}|"
        rf"(?:ваше?|ваша) {_RU_ITEM}{REF} (?:был[ао]? |було |успешно |успішно )*(?:принят[ао]?|"
        r"зарегистрирован[ао]?|получен[ао]?|создан[ао]?|закрыт[ао]?|прийнято|отримано|зареєстровано|створено|"
        rf"обработано|передан[ао]?){REF}|"
        rf"(?:заявка|обращение|запит|запрос){NUMBER} (?:принят[ао]?|зарегистрирован[ао]?|создан[ао]?|прийнято|"
        r"створено|зареєстровано)|"
        r"(?:подтверждение|підтвердження) (?:о )?(?:получени[яи]|приема|приёма|регистрации|отримання)"
        rf"(?: (?:вашего )?{_RU_ITEM})?{REF}|регистрация (?:обращения|заявки|запроса){NUMBER}|"
        r"(?:спасибо|благодарим(?: вас)?|дякуємо) (?:за (?:ваше )?(?:обращение(?: в [\w .-]{1,50})?|звернення)|"
        r"что обратились[\w .-]{0,50})"
    ),
    declarations=(
        r"(?:это|це) (?:автоматическ|автоматичн)\w+ (?:сообщение|письмо|уведомление|повідомлення|лист)(?:, .*)?|"
        r"(?:это|данное|этот|цей|це)(?: \S+){0,2} (?:является автоматическ\w+|создано автоматически|"
        r"отправлено автоматически|сформировано автоматически|сгенерировано автоматически|надіслано автоматично|"
        r"створено автоматично)\b.*|(?:пожалуйста,? |просьба |будь ласка,? )?(?:не отвечайте|не отвечать|"
        r"не відповідайте)(?: .*)?"
    ),
    promises=(
        r"(?:мы (?:ответим|свяжемся|рассмотрим)|ответим вам|свяжется|свяжутся|в ближайшее время|"
        r"в течение \S+ (?:час\w*|дн\w+|рабочих)|номер (?:обращения|заявки|запроса|звернення)|"
        r"ми (?:відповімо|зв'яжемося)|найближчим часом|присвоен номер)"
    ),
    absences=(
        r"(?:я )?(?:сейчас |в настоящее время |буду )?(?:нахожусь )?(?:в отпуске|вне офиса|отсутствую|у відпустці)"
    ),
)
