"""Finnish; Hungarian, Romanian, Turkish, Greek and others as one; Chinese, Japanese and Korean as one."""

from __future__ import annotations

from guarantee_email_agent.email.automatic_phrases.phrases import REF, Phrases

FINNISH = Phrases(
    subject_words=(
        "olemme viestisi viestinne automaattinen poissaolo poissaoloviesti poissaoloilmoitus poissa yhteydenottosi "
        "kiitos tukipyyntösi pyyntösi vastaanottokuittaus"
    ),
    sentence_words="tämä ole älä älkää olen",
    stems="automaat vastaa loma poissa",
    automatic=(
        r"automaattinen (?:vastaus|viesti|vahvistus)|poissaolo(?:viesti|ilmoitus)?|poissa toimistosta|"
        r"vastaanottokuittaus"
    ),
    acknowledgements=(
        rf"(?:kiitos[,!.] )?olemme vastaanottaneet (?:viestisi|viestinne|yhteydenottosi|pyyntösi|tukipyyntösi|"
        rf"tiedustelusi){REF}|(?:viestisi|viestinne|yhteydenottosi|pyyntösi|tukipyyntösi){REF} on (?:vastaanotettu|"
        rf"kirjattu|käsittelyssä|suljettu){REF}|vastaanottokuittaus{REF}|kiitos (?:yhteydenotosta\w*|"
        rf"tiedustelusta\w*)"
    ),
    declarations=(
        r"tämä(?: \S+){0,2} (?:on|lähetettiin|on lähetetty)(?: \S+)? ?(?:automaatti\S+)(?: .*)?|"
        r"(?:ole hyvä ja )?älä(?:thän)? vastaa tähän .*"
    ),
    promises=(
        r"\b(?:vastaamme|palaamme|otamme (?:sinuun |teihin )?yhteyttä|käsittelemme|mahdollisimman pian|"
        r"\w+ arkipäivän|tikettinumero)"
    ),
    absences=r"olen(?: \w+){0,2} (?:poissa|lomalla|vuosilomalla)",
)

OTHER_LATIN = Phrases(
    subject_words=(
        "automatikus házon megkaptuk köszönjük üzenetét răspuns am mulțumim solicitarea otomatik ofis mesajınız "
        "talebiniz başvurunuz balasan trả αυτόματη εκτός λάβαμε automatski samodejni automaatvastus automatinis "
        "מענה رد"
    ),
    sentence_words="ez kérjük ne acest acesta vă nu bu lütfen αυτό παρακαλούμε μην ευχαριστούμε teşekkür",
    stems="automat otomatik αυτόματ megkap válaszol primit înregistrat alındı oluştur λάβαμε",
    automatic=(
        r"automatikus válasz|házon kívül|răspuns automat|otomatik (?:yanıt|cevap)|ofis dışında|balasan otomatis|"
        r"trả lời tự động|αυτόματη απάντηση|εκτός γραφείου|automatski odgovor|samodejni odgovor|automaatvastus|"
        r"automatinis atsakymas|מענה אוטומטי|رد تلقائي"
    ),
    acknowledgements=(
        rf"(?:megkaptuk (?:üzenetét|levelét|megkeresését)|(?:üzenetét|levelét|megkeresését) megkaptuk){REF}|"
        rf"köszönjük,? (?:megkeresését|hogy kapcsolatba lépett[\w .&'-]{{0,50}})|"
        rf"am (?:primit|înregistrat) (?:mesajul|solicitarea|cererea) (?:dvs\.?|dumneavoastră|ta){REF}|"
        rf"solicitarea (?:dvs\.?|dumneavoastră|ta){REF} a fost (?:primită|înregistrată|creată){REF}|"
        rf"(?:mesajınız|talebiniz|başvurunuz){REF} (?:alındı|alınmıştır|oluşturuldu|oluşturulmuştur|"
        rf"bize ulaştı){REF}|λάβαμε το (?:μήνυμά|αίτημά) σας{REF}"
    ),
    declarations=(
        r"ez egy(?: \S+)? automatikus \w+(?:, .*)?|(?:kérjük,? )?ne válaszoljon(?: .*)?|acest(?: \S+){0,2} (?:este|"
        r"a fost)(?: \S+)? (?:automat|generat automat)\b.*|(?:vă rugăm )?(?:să )?nu (?:răspundeți|"
        r"raspundeti)(?: .*)?|bu(?: \S+){0,3} otomatik(?: olarak)?(?: bir)? (?:\w+(?:dır|dir|miştir|mıştır)|"
        r"gönderil\w+|oluşturul\w+)|lütfen (?:bu \S+ )?(?:yanıtlamayın\w*|cevaplamayın\w*)|"
        r"αυτό(?: \S+){0,2} είναι(?: \S+)? αυτόματ\w+.*|(?:παρακαλούμε )?μην απαντήσετε(?: .*)?"
    ),
    promises=(
        r"hamarosan|munkanapon belül|felvesszük (?:önnel )?a kapcsolatot|ügyszám|vă vom (?:răspunde|contacta)|"
        r"în cel mai scurt timp|numărul (?:solicitării|tichetului)|en kısa sürede|talep numara\w+|θα επικοινωνήσουμε|"
        r"σύντομα"
    ),
    person=r"ben|benim|ama|nekem|de|eu|meu|mea|dar",
)

EAST_ASIAN = Phrases(
    subject_words=(
        "自动 自動 您的 我们 我們 不在 休假 お問 お問い合わせ 【自 受付 부재 자동 문의 고객 【お 外出 感谢 感謝 "
        "系统 系統"
    ),
    sentence_words=(
        "此邮 此郵 本邮 本郵 这封 這封 該郵 该邮 この 本メ 当メ メー 본 이 请勿 請勿 我正 本人 我目 担当 谢谢 謝謝 "
        "ありが 감사"
    ),
    stems="自动 自動 자동 收到 受理 受け付 受付 返信 접수 回复 回覆 休假 不在 お問い合わせ 来信 咨询",
    automatic=(
        r"自动(?:回复|答复|应答)|自動(?:回覆|回復|返信|応答|送信|配信)(?:メール)?|不在(?:通知|連絡|のお知らせ|"
        r"の連絡)|休假(?:自动回复|通知)|外出(?:自动回复|通知)|자동 ?(?:회신|응답|답장|발송)(?: ?메일)?|"
        r"부재 ?중(?: ?(?:자동 ?응답|알림|메시지))?|【自動(?:返信|送信|配信)】"
    ),
    acknowledgements=(
        r"(?:我们|我們)(?:已经|已經|已)?收到(?:了)?您的(?:邮件|郵件|来信|來信|请求|請求|工单|工單|留言|咨询|諮詢|反馈)|"
        rf"您的(?:请求|請求|工单|工單|邮件|郵件|咨询|諮詢|反馈|申请){REF}(?:已经|已經|已)(?:成功)?"
        r"(?:收到|创建|建立|受理|提交|关闭|更新|登记)|"
        r"(?:感谢|感謝)您(?:的(?:来信|來信|咨询|諮詢|反馈|联系|聯絡)|联系|聯絡)|"
        r"(?:【[^】]{1,40}】)?お問い合わせ(?:を|は)?(?:受け?付け?(?:まし|いたし|完了)\w*|いただき(?:まし|あり)\w*|"
        r"ありがとうございま\w+|受付(?:完了|のお知らせ|いたしました)?\w*|の?受付\w*)|受付(?:完了|番号)\S*|"
        r"문의(?:가|를|하신 내용이)? ?(?:정상적으로 )?접수\w*|고객님의 문의가 \w*"
    ),
    declarations=(
        r"(?:此|本|这|這|該|该)封?(?:邮件|郵件|信|消息|訊息)?(?:为|為|是|由|系|係)[^,，]{0,10}(?:自动|"
        r"自動)[^,，]{0,8}(?:, ?(?:请|請)(?:勿|不要)(?:直接)?(?:回复|回覆|回復))?|(?:请|請)(?:勿|"
        r"不要)(?:直接)?(?:回复|回覆|回復)(?:此|本)?(?:邮件|郵件|信)?|(?:この|本|当)?メールは、?(?:システム(?:により|"
        r"から|が)?|送信専用.{0,10})?自動(?:的に)?(?:送信|配信|返信|生成).{0,10}|(?:この|本|"
        r"当)メールに(?:は)?(?:返信(?:し)?ないで|返信は?ご遠慮|ご返信いただけません|返信いただいても).{0,20}|(?:본|"
        r"이) ?(?:메일|이메일|메시지)(?:은|는) .{0,12}자동(?:으로)? ?(?:발송|전송|생성|발신)\S{0,12}|"
        r".{0,12}회신하지 ?(?:마|말)\S{0,8}"
    ),
    promises=(
        r"(?:尽快|儘快|盡快)|(?:工作日|小时|小時)内?|工单号|工單號|担当者より|(?:後日|追って)|営業日|受付番号|"
        r"お問い合わせ番号|빠른 시일|담당자|영업일|접수번호"
    ),
    absences=r"(?:我|本人)?(?:正在|目前|现在)?(?:休假|外出|出差|不在办公室)|(?:現在)?(?:不在|休暇)",
)
