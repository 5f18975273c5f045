"""Words that claim nothing: courtesy, questions for a number, devices and their faults, in nine languages, folded.

A sentence of a free draft that holds any other word, and that no author approved, is one for a person to look at. Words
of money, time, goods, visits and repairs are missing on purpose.
"""

from __future__ import annotations

_BY_LANGUAGE = """
English:
a able about above absolutely according across action actions actually add added additional additionally address
after afternoon afterwards again ahead air alarm all almost along already also although am among amplifier an and
anew annoyed annoying answer answered answering any anybody anyone anything apologies apologise apologize app
apparently appear appears appliance appliances appreciate appreciated approximately are aren around as ask asked
asking asks assess assessed assessing assigned assist assistance assisted assists assume assumes assure at attach
attached attaches attaching attempt attempted attention available away b back background bar base bathroom battery
be because been beeps before begin beginning begins behind being believe believes below beneath bent beside besides
best between beyond bigger bike black blank blender blink blinking blinks bluetooth blurred blurry body boiler both
bother bothered bothers bottom bought box brand bright broke broken burning burnt business but button by cable came
camera can cannot case cause center centre certain certainly certificate chance characters charger check checked
checking choose circumstances clarification clarified clarify clarifying clean cleaned cleaner clear clearly coffee
cold colleague colleagues column come comes company compare complete completed compressor concern concerned concerns
conditioner confirm confirmation confirmed confirms confuse connect connected connection contact contacting content
contents context continue cooker cools copy cordially corner correct corrected could course crack cracked cracks
crashes created currently customer customers czech d dark date day dear defect definitely dehumidifier delighted
department describe described describes describing description deserves desk despite detail details determine
determined device devices did didn different differently difficult digit digits dirty disappointed disappointing
disappointment dishwasher display distinct do does doesn doing don done door doorbell double drill drips drone drum
dry dryer during dutch e each earbuds earlier easily easy edge either else email empty enclose enclosed enclosing
end english enough ensure equal especially espresso evaluate evaluated even evening everybody everyone everything
exactly examine examined example explain explained explaining explains extractor fades fairly faithfully family fan
fault faults feel few fewer field file files fill filter find finding finds finish first flicker flickering flickers
focus focused folder follow following for format forward forwarded found frame freezer freezes french fridge from
front frozen frustrated frustrating frustration fryer further g garage garden gave general german get gets getting
give given gives giving glad gladly go going good got grateful gratitude great grey grill guess guide guitar had
hand handbook handed handing handle handling happen happened happens happy hard has hasn hassle have haven having
heading headline headphones headset hear heard hearing hears heat heater heating heats hedge hello help helped
helpful helping helps hence here hi history hob home honestly hood hope hoped hopes hoping hose hot household
housing how however humidifier hums i identical identified identify identifying if illegible image important
impossible in inbox include included includes including incomplete inconvenience indeed individual individually
inform information informed informing inner inside inspect inspected instead instructions interest interested
interesting into investigate invoice iron is isn issue it italian its jammed jointly jpg juicer junk just keep
keeping keeps kept kettle keyboard kind kindly kitchen know label lamp language laptop large last later lawnmower
lead leak leaking leaks least leave leaves leaving legible less let lets letter letters lid light like liked likely
likes line list listed listen listening lists little living ll load locate long longer look looked looking looks
loose lot lots loud love lower loyal loyalty m machine madam made mail main mainly make maker makes making manual
many marked match matched matches matching matter matters may maybe me mean meanwhile member members mention
mentioned mentioning mentions merely message metal microwave middle might mind minus missed missing mistake mistyped
mixed mixer model modem moment monitor more moreover morning most mostly mouse moved mower mr mrs ms much multiple
must my name named names naming naturally near nearly necessary need needed needing needs nevertheless news next no
nobody noise noisy none nonetheless normally not note nothing notice noticed noticing now nuisance number numbers o
obviously of off office often ok okay on once one only onto open opened opens option or original other others
otherwise our ourselves out outer outside oven overheating overheats own owner pairing particular particularly pass
passed passes passing patience patient pdf perhaps person phone photo photos piano picture piece pity place plastic
plate please pleased pleasure plenty plug plugged png point points polish polisher portuguese possibility possible
precisely prefer preferred prefers prepared presently previously print printed printer probable probably problem
problems process processed processing product progress projector proof proper provide provided provides providing
pump purchase purchased purifier purpose puts question questioned questions quick quickly quiet quite quote quoting
rather rating rattles rattling re reached reaching read readable reading reads realise realize really rear reason
reasons reboots receipt receive received recently record records refer reference refrigerator regarding regards
registered regret regretfully regrets regrettably relate related relates relating remote repeat replied replies
reply replying report reported request requests require required requires requiring resend resent reset resolution
respectfully respective respond responded responding response responses restarts review reviewed reviewing robot
room rotates roughly router row runs sad said same sander saw say saying says scale scales scan scanned scooter
scratched scratches screen screenshot search searched searches searching second see seeing seek seeks seem seems
seen sees send sending sends sent sentence separate separately serial service set setting settings several share
shared shares sharing shaver shop short should show showed showing shown shows side sign silver similar similarly
simply since sincerely single sir situation slip slow slowly small smaller smell smells so socket solely some
somebody someone something soon sorry sought sound sounds spanish speak speaker speaks specific spelling spin
spinning spins spoke spoken spot staff stage start started starting starts stating status stay stayed stays step
steps sticker still stopped stopping stops store story stove stressful strong stuck subject such support supported
supporting supports suppose sure surely surface surprised suspect switch switches synthesizer system tablet take
taken taking talk team television tell telling tells text than thank thanked thankful thanks that the their them
themselves then there therefore thermostat these they thing things think this those though thrice through throughout
thus ticket tiny to toaster together told too took toothbrush top topic touch toward towards translation tray tried
tries trimmer trouble troubles truly try trying turn turned turning turns tv twice two twofold type typed types
typing unable unclear underneath underside understand understandable understandably understanding unfortunately
unique unit unlikely unpleasant unplugged unreadable until up update upon upper upset us use used user uses using
usually vacuum various ve verification verified verify verifying very wait waited waiting waits want wanted wants
warm warmly warms was washer washing wasn watch watched way we weak website welcome welcomed well were wet what when
whenever where whereas whether which while white who whole why wifi will wish wished wishes with within without
wonderful word words work worked working works workshop worried would write writes writing written wrong wrote yes
yet you your yours yourself zoom

German:
ab abend abends aber abgleichen alle als andere anderen anderer anfrage angabe angaben angeben angegeben anhang
anhange anliegen anruf antwort antworte antworten anzahl arger argerlich auch auf aufkleber aus ausfuhrlich
ausfuhrliche auskunft backofen bedanken bedankt bedauern befindet bei beiden beim bekommen bereits beschreibung
bessere bestatigen besten betreff bevor bild bilder bis bitte boden brauchen brummt buchstabe buchstaben da daher
damen damit dank danke das dass datei dazu defekt dem den denn der des deshalb die dies diese diesem dieser dieses
doch dort drucker eben eigene eigenen ein eine einem einen einer einfach eingegangen einmal einzeln einzelne er
erfahren erhalten erkennbar erkennen erneut es etikett etwas falls falsch fanden fehler fernseher finden foto frau
freuen freundlich freundliche freundlichen freut fuhren fuhrt funktioniert fur ganz geben geduld geehrte geehrter
gefunden gehause geht gelesen genau genaue genauen genauer gepruft gepruften geraete gerat gerate gerats gern gerne
gesagt geschirrspuler geschrieben gesehen gesucht getrennt gibt gleich gruss grusse grussen gute guten habe haben
hallo handelt hat heizt helfen herr herren herzlich herzliche herzlichen hier hilft hinten hinweis ich ihn ihnen ihr
ihre ihrem ihren ihrer ihres im innen innenseite ist ja jede jeden jeder jedes jedoch jetzt kaffeemaschine kann
kaputt karton kauf kaufbeleg klappert klaren klarheit klingt kollegen kommen konnen konnten kontrollieren kopie
korrekt kuhlschrank kuhlt kunde kunden kundin lampe larm lautet lautsprecher leer leere leid leider lesbar lesen
liegt machen macht man mehr mehrere mehreren meist melden meldet mit mitteilen mochten morgens nach nachdem
nachfrage nachgesehen nachricht nachrichten nachste nachsten nennen nicht noch nochmals notieren nummer nur ob oben
oberhalb obwohl oder oft ohne probleme prufen pruft rechnung richtig richtige ruckfrage ruckmeldung ruckseite sache
sagen schauen schicken schild schonen schreiben schreibfehler schreibt schreibweise schritt schwierigkeiten sehen
sehr sein seit seite senden serie seriennummer serviceteam sich sie sind sobald sodass sollte spulmaschine
staubsauger stehen steht stelle stoppt suchen tag teil teilen telefonisch ticketnummer tippen tippfehler trockner
tropft trotzdem tun tur tut typenschild uber uberprufen uberpruft uberprufung um unannehmlichkeiten und undicht
unklar unleserlich uns unser unsere unserem unseren unserer unten unter unterhalb unterlagen unterseite vergleich
vergleichen verpackung verstandnis verstehen vertippt verwechselt viele vielen vollstandig vom von vor vorgang
vorliegt wahrend wahrscheinlich war waschmaschine wasserkocher weiter weitere welche welchem welchen welches wenn
wie wir wird wo wofur womit woran worden worum wunsche wunschen zeichen ziffer ziffern zu zum zunachst zur zuruck
zusammen zusatzlich

Polish:
aby albo ale bardziej bardzo bazie bedzie bez blad bledny bledu byc byl byla bylo chcemy cierpliwosc cieszymy co
cyfra cyfry czajnik czy czytelne czytelny dac dane data daty dla dlatego dobre dobry doceniamy dokladnego dokladnie
dokladny doprecyzowac dowodu drugie drukarka drzwiczkach dziekujac dziekuje dziekujemy dzien ekspres etykiecie
etykieta gdy gdzie halas imieniu informacje inny jak jaki jako jedna jednak jednakze jednego jedno jego jej jesli
jest jeszcze jezeli juz kartce klopot klopotow kontakt kopia krok ktora ktore ktory lampa litera literowka lodowka
lub ma maila mamy milego milo mily moga moglaby moglby mogliby moze mozna na naklejce nam nami napisac napisze nas
nasz nasza nasze naszej naszym nie nieczytelne niestety numer numeru numery obudowie od odczytac odczytania odezwie
odkurzacz odpowiedz odpowiedzi odwrocie okaze opakowaniu opis otrzymalismy pan pana pani pania panstwa panstwo pismo
po pod podac podali podanie poinformowac pomoc pomozemy poniewaz ponizej ponownie poprawnie poprawny potwierdzamy
potwierdzic powodu pozdrawiamy pozdrowienia pozdrowieniami pralka pralke pralki prawidlowy problemu prosimy prosze
przecieka przepisac przepraszamy przez przy przykro pudelku raz razem rowniez rozumiemy sa serdecznie serii serwis
serwisowy seryjnego seryjny spodem sprawa sprawdzenie sprawdzic sprawdzilismy sprawdzimy sprawdzono sprawie stronie
suszarka suszarki szanowna szanowni szanowny szczegolow szczegoly szukalismy ta tabliczce tabliczka tak te tego tej
telewizor temat ten toster tresc tresci tu tyl tylu tym tytul uprzejmie urzadzenia urzadzenie urzadzeniu usterka
usterki w wewnatrz wiadomosc wiadomosci wiec wpisac wpisany wtedy wyjasnic wyjasnienie wyrozumialosc wyslac
wystarczy z za zakupu zalacznik zalaczniki zalaczniku zapoznalismy zapytanie zarowno zdjecie ze zespol zgadza
zglasza zgloszenia zgloszenie zmywarka znajduje znamionowej

French:
afin agreable ai appareil apprecions apres arriere aspirateur au aux avec avez avons bas besoin bien boite boitier
bon bonjour bonne bonnes bonsoir bouilloire bruit c ca cafetiere carte ce cela ces cet cette cher cherche chere
chiffre chiffres ci clairement client collegue comme comment comparer comprenons confirmer confusion controle
cordialement dans de demande derriere desagrement desole desoles dessous deux donc dossier dossiers du ecrira ecrire
ecrivez elle emballage en encore envoyer envoyez equipe equipes erreur est et etape etat ete etiquette etudier exact
exacte exactement faire fichier figure figurent fois fond four fuite gentille grille heureux ici il illisible ils
imprimante incorrect indiquer interieur introduit j je joint jointe joints journee jusqu l la lave le les lettre
lettres leur lieu linge lire lisible lui madame mais malheureusement meilleures merci mesdames messieurs moi mon
monsieur n ne non nos notre nous nouvelles numero objet ont ou pain panne par pas peut peuvent plaisir plaque plus
porte pour pouvez pouvons preciser precision prendra prochaine qu quel quelle qui recevez recherche reclamation recu
refrigerateur regrettons relire remercie remercions repondez repondre reponse retrouver s saisi saisie salutations
se seche selon serons ses si signaletique sinceres soiree sommes son sont souhaitez sous suite sur t tapez telle
texte tout toutes tres trouve trouver trouverez trouvez un une vaisselle verifie verifiee verifier veuillez vide vos
votre vous

Spanish:
aclaracion aclarar adjunta adjunto agradecemos al algo alguna ante antes apagado aparato apreciada apreciado aqui
archivo archivos asi aspiradora asunto atentamente atento atras aunque averia ayuda ayudar ayudarle buen buena
buenas buenos buscado cada cafetera caja carcasa carta caso cifra cliente codigo como comparar compra comprendemos
comprobado comprobante comprobar compruebe comunicar con confirmar confirmarnos contacto copia cordial correcta
correcto correo cual cuando dado dato datos debajo decirnos del desea desgraciadamente despues dias dice disculpe
donde dos el ella embalaje encontrar encontrara entendemos enviarnos equipo errata error esa escriba escribanos
escribir escribira escribirnos ese esta estado estan estar este estimada estimado estimados estudiar etiqueta exacta
exacto factura fecha figura fondo fue fuga gracias ha hacer han hasta hay haya hervidor hola horno ilegible
impresora incorrecto indicar indicarnos indique informacion interior lamentablemente lamentamos lampara las lavadora
lavavajillas lee letra lo los maquina mas mensaje mi mientras modo molestias muy necesitamos nevera ni nombre
nosotros noticias nuestra nuestro nuestros nuevamente otra otro paciencia para parte paso pedimos pero placa podemos
podria podrian podrias por posible pregunta problema producto pueda puede puerta que quiere recibido recibo
registros responda responder respuesta revisado revisar ruido saber saludo saludos sea secadora senor senora
sentimos ser servicio siguiente sobre solicitud su suele sus tambien tan tarde televisor tenemos tenga texto tiene
todo tostadora tras trasera traves una unas uno usted ustedes va vacio vez y ya

Italian:
abbiamo ad alla allegati allegato altra altro anche ancora apparecchio archivi asciugatrice aspirapolvere assistenza
attendiamo avete avuto bene bollitore buon buona buonasera buongiorno caffe capiamo cerca cercato che chi
chiarimento chiarire cio codice comprendiamo conferma confermarci confermare confrontare contattare controllare
controllato controlli cordiali corretta corretto cosa cui dal dalla dati degli dei dell della delle desidera di
dirci dispiace distinti dopo dove due ecco ed egregio entrambi errato errore esatta esatto essere etichetta fa fare
fattura favore fino forno frigorifero fronte gentile gentilissima gentilissimo gli grazie guasto hai hanno ho
illeggibile imballaggio indicarci indirizzo informazioni interno inviarci inviare invii involucro io lampada
lavastoviglie lavatrice leggibile lei lettera lettere loro macchina messaggio molto nei nel nell nella noi nome
nostra nostri nostro notizia notizie nulla oggetto ogni oppure pazienza per perche perdita piacere piu poi porta
possiamo possibile potrebbe potremo potreste pratica prego presto prova purtroppo qualche quale quando quello questa
questo retro ricevuta ricevuto richiesta ricontrollare riguarda ringraziamo ringrazio risponda rispondere risposta
risulta rumore saluti salve scatola scriva scrivera scriverci scrivere secondo seguito sempre sentiamo serve
servizio sfortunatamente sia siamo signora signore sono sotto spesso stampante stato sua sul sull sulla suo suoi
targhetta televisore testo tostapane trova trovera troviamo tutto valutare vede verifica verificare verificato volta
vostra vostro vuoto

Dutch:
aan achter achterkant alleen alles antwoord antwoorden apparaat avond begrijpen behuizing beide bekijken bekijkt
bericht beschrijving bestand beste bevestigen bij bijlage bijlagen binnenkant bodem bonnetje broodrooster cijfer
cijfers controleren dan danken dat datum deur deze dezelfde dit doet doorgeven doos droger een eens excuses factuur
fout ga gaan gaat geachte gecontroleerd gegeven gegevens genoeg gezocht goed goede goedemiddag goedemorgen
goedenavond goedendag graag groet groeten hartelijk hebben hebt heeft helaas helpen hem het hij hoe hulp ik jammer
jij juist juiste kan kant keer kijk klant koelkast koffiezetapparaat komt kunnen kunt laat laten lawaai leeg
leesbaar lek lekt liggen maar mee meer meneer met mevrouw mij mijn moeten naam naar nagekeken neemt nemen niet niets
nieuws nodig nog nu om omdat onder onderkant onderwerp onjuist onleesbaar ons onze ook op opgezocht over plaatje
probleem reactie reageren samen schrijf schrijven serienummer slag spijt staat stofzuiger storing sturen stuur
stuurt tekst televisie toch toelichting tot typeplaatje u uit uw vaatwasser van vandaar verduidelijken vergelijken
vermelden verpakking vervelend vinden vindt voor vraag vragen vriendelijke waar wanneer wasmachine wat waterkocher
wel welk welke wij willen wilt wordt zal zich zie zien zijn zo zodat zodra zou

Portuguese:
abaixo aberto abrir agora ainda algum alguma anexo anexos ao aos aparelho apos aspirador assim assunto ate
atenciosamente autocolante avaliar avaria barulho bem boa boas bom cafe caixa cara caro chaleira com compreendemos
comprovativo connosco consta correta correto cumprimentos dados dele descricao desculpe deseja desejar dessa desta
deste deve dia digitar digito dois ela ele em embalagem encontra entrar enviar envie equipa erro esclarecer
esclarecimento escreva escrever estamos estes exata exato exmo fatura favor ficheiro foi frigorifico fundo gostaria
grato haver ilegivel impressora incomodo incorreto infelizmente informacao isso isto lamento lavar legivel lhe loica
mensagem mesmo momento muito nao nem nossa nosso nossos noticia novamente obrigada obrigado ola onde os outra outro
passo pedido pela pelo pergunta pode poderia poderiam podia pois porque possa possivel precisamos preciso prezada
prezado procurado procuramos produto qual qualquer quem questao recebemos recebida referente registos resposta sabe
secar sem senhor senhora senhores servico seu seus sob suas tambem tem temos ter teve tipo toda todos torradeira
tudo uma unidade vai vazio verificado verificamos verificar verifique via voce voces

Czech:
abychom adresa ahoj ano az bohuzel bude budeme budete byt byva cerna chapeme chtel chteli chyba cislice cislo
citelny dale dekujeme dekuji diky dno dobrou dodavka dotaz dve dvere dvirka evidenci fotku fotografie fotografii
hledali hluk jeho jeji jejich jen jeste jestli jiny jmeno jsem jsme jsou jste k kam kavovar kde kdy kdyz ke konvice
krabice krabici kryt ktera ktere ktery lednice libi lito mame mate mohla mohli mrzi muze muzete mycka nad najde
najdete napis napise napiste nase naseho nasem nasi nebo necitelny nedokazeme nej neni nepodarilo nespravny nez nic
nim nyni obal obalu odpoved odpovezte ohlasit ohledne overeni overili overit ovsem pismeno podarilo podle pokud
pomoci pomohlo popis porovnat porovnejte poslat posleme poslete posoudi potize potrebujeme potvrdit pozadavek
pozadavku pozdravem prace pracka prackou pracku prazdny predem predmet prejete preklep pres presne presny pri
prijemny priloha prilohu priloze pristroj pristroje pristroji prosim prosime proto sdeli sdelit seriove skutecne
snad soubor spodni spolu spravne spravny stitek stitku strane susicka sve svoje tece tedy televize tento tiskarna
toho tom tomu toustovac trouba trpelivost uctenku upresneni upresnit uveden uvest v vam vami vas vase vaseho vasem
vasi vasim vazena vazeni vazeny vime vnitrni vsak vyhledali vyhledat vyrobni vysavac zadni zakaznik zarucni zaslat
zavada zda zdvorile zjistit zkontrolovali zkontrolovat zkontrolujte znovu zprava zpravu
"""

HARMLESS_WORDS = frozenset(word for word in _BY_LANGUAGE.split() if not word.endswith(":"))
