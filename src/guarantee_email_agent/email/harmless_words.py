"""Words that claim nothing: courtesy, questions for a number, devices and their faults, in nine languages, folded.

A sentence of a free draft that holds any other word, and that no author approved, is one for a person to look at. Words
of money, time, goods, visits and repairs are missing on purpose.
"""

from __future__ import annotations

_BY_LANGUAGE = """
English:
a able about above absolutely according across action actions actually adapter adapters add added additional
additionally address afraid after afternoon afterwards again ahead air alarm all almost along already also although
am among amplifier an and anew annoyed annoying answer answered answering any anybody anyone anything apologies
apologise apologize app apparently appear appears appliance appliances appreciate appreciated approximately are aren
around as ask asked asking asks assess assessed assessing assigned assist assistance assisted assists assume assumes
assure at attach attached attaches attaching attempt attempted attention available away axe b baby back background
bang banging bar barbecue base bath bathroom battery bbq be because been beeps beer before begin beginning begins
behind being believe believes bell below beneath bent beside besides best between beyond bigger bike binoculars
black blank blender blinds blink blinking blinks blown bluetooth blurred blurry board boards body boiler boilers
both bother bothered bothers bottle bottom bought box brake brakes brand bright broke broken bulb bulbs burning
burnt business but button buzz buzzing by cabinet cable calculator came camera can cannot carpet case cause cellar
center centre certain certainly certificate chain chair chance characters charger check checked checking chiller
choose circumstances clarification clarified clarify clarifying clean cleaned cleaner clear clearly clicking clicks
clock coffee cold colleague colleagues column come comes company compare complete completed compressor concern
concerned concerns conditioner confirm confirmation confirmed confirms confuse connect connected connection contact
contacting content contents context continue controller cooker cooler cools copier copy cord cordially cords corner
correct corrected could course crack cracked cracks crafts crashes cream created curler currently curtain customer
customers czech d dark date daughter day dear defect definitely dehumidifier delighted department describe described
describes describing description deserves desk despite detail details detector detectors determine determined device
devices did didn different differently difficult digit digits dim dims dirty disappointed disappointing
disappointment dishwasher display distinct do dock does doesn doing don done door doorbell double drawer drill drips
drone drum dry dryer dull during dutch e each earbuds earlier easily easy edge egg either else email empty enclose
enclosed enclosing end english enough ensure epilator equal especially espresso evaluate evaluated even evening
everybody everyone everything exactly examine examined example explain explained explaining explains extractor faded
fades fading fairly faithfully family fan father faucet fault faults feel few fewer field file files fill filter
find finding finds finish first flashlight flicker flickering flickers focus focused folder follow following food
for forgot forgotten format forward forwarded found frame freezer freezes french fridge friend from front frother
frozen frustrated frustrating frustration fryer further fuse g game games garage garden gauge gauges gave general
german get gets getting give given gives giving glad gladly gladness glove gloves go going good got grandfather
grandmother grateful gratitude great grey grill grinder grinding guess guide guitar gurgles gurgling had hairdryer
hand handbook handed handing handle handling happen happened happens happy hard has hasn hassle have haven having
heading headline headphones headset hear heard hearing hears heat heater heating heats hedge hello helmet help
helped helpful helping helps hence here hi hissing history hob home honestly hood hope hoped hopes hoping hose hot
household housing how however hub humid humidifier humming hums husband i ice identical identified identify
identifying if illegible image important impossible in inbox include included includes including incomplete
inconvenience indeed individual individually inform information informed informing inner inside inspect inspected
instead instructions intercom interest interested interesting into investigate invoice iron is isn issue it italian
its jacuzzi jammed jointly joystick jpg juicer juicers junk just keep keeping keeps kept kettle keyboard kind kindly
kitchen knife knitting know label ladder lamp language lantern laptop large last later lawn lawnmower lead leak
leaking leaks least leave leaves leaving led legible less let lets letter letters lid light like liked likely likes
line list listed listen listening lists little living ll load locate lock locks long longer look looked looking
looks loose lost lot lots loud love lower loyal loyalty m machine madam made mail main mainly make maker makes
making manual many marked massager match matched matches matching matter matters mattress may maybe me mean
meanwhile member members mention mentioned mentioning mentions merely message metal meter meters microwave middle
might milk mind minus mirror missed missing mistake mistyped mixed mixer model modem moment monitor monitors more
moreover morning most mostly mother mouldy mouse moved mower mr mrs ms much multiple must my name named names naming
naturally near nearly necessary need needed needing needs nevertheless news next no nobody noise noisy none
nonetheless normally not note nothing notice noticed noticing now nuisance number numbers o obviously of off office
often ok okay on once one only onto open opened opens option or original other others otherwise our ourselves out
outer outside oven overheating overheats owner pairing pan particular particularly pass passed passes passing
patience patient pdf pedal pedals peeled perhaps person phone photo photos piano picture piece pity place plastic
plate please pleased pleasure plenty plug plugged png point points polish polisher pool popcorn portuguese
possibility possible pot pots precisely prefer preferred prefers prepared presently previously print printed printer
probable probably problem problems process processed processing processor product progress projector proof proper
provide provided provides providing pump purchase purchased purifier purpose puts question questioned questions
quick quickly quiet quietly quite quote quoting radio radios rather rating rattles rattling razor re reached
reaching read readable reading reads realise realize really rear reason reasons reboots receipt receive received
recently record records refer reference refrigerator regarding regards registered regret regretfully regrets
regrettably relate related relates relating remote repeat replied replies reply replying report reported request
requests require required requires requiring resend resent reset resolution respectfully respective respond
responded responding response responses restarts review reviewed reviewing rice robot room rotates roughly router
row rug rumbling runs rusted rusty sad sadly said same sander sandwich sauna saw saws say saying says scale scales
scan scanned scanner scooter scratched scratches screen screenshot sealer search searched searches searching seat
second see seeing seek seeks seem seems seen sees send sending sends sensor sensors sent sentence separate
separately serial service set setting settings several sewing shakes shaking share shared shares sharing shaver
shelf shop short should show showed shower showing shown shows shredder side sign silence silent silver similar
similarly simply since sincerely single sink sir situation sleepless slicer slip slow slowly small smaller smell
smells smoke smoker smoky so socket sofa solely some somebody someone something son soon sorry sought sound soundbar
sounds spanish spark sparks speak speaker speaks specific spelling spin spinning spins spoke spoken spot squeak
squeaking stage start started starting starts stating status stay stayed stays steamer step steps stereo stick
sticker still stopped stopping stops store story stove straightener stressful stroller strong stuck subject
subwoofer such support supported supporting supports suppose sure surely surface surprised suspect switch switches
synthesizer system tablet take taken taking talk tap tea team telescope television tell telling tells text than
thank thanked thankful thanks that the their them themselves then there therefore thermos thermostat these they
thing things think this those though thrice through throughout thus ticket tiny to toaster together toilet told too
took toothbrush top topic torch torn touch toward towards toy toys translation tray treadmill tried tries trimmer
trimmers tripped trips trouble troubles truly try trying turn turned turning turns turntable tv twice two twofold
type typed types typing tyre tyres unable unclear underneath underside understand understandable understandably
understanding unfortunately unique unit unlikely unpleasant unplugged unreadable until up update upon upper upset us
usb use used user uses using usually vacuum various ve ventilator verification verified verify verifying very
vibrates vibrating waffle wait waited waiting waits want wanted wants warm warmly warms was washer washing wasn
watch watched water way we weak website welcome welcomed well were wet what wheel wheels when whenever where whereas
whether which while whines whining whistling white who whole why wife wifi will window wine wish wished wishes with
within without wobbles wobbling wonderful word words work worked working works workshop worn worried would write
writes writing written wrong wrote yes yet you your yours yourself zoom

German:
ab abend abends aber abgleichen alle als andere anderen anderer anfrage angabe angaben angeben angegeben anhang
anhange anliegen anruf antwort antworte antworten anzahl anzeige arger argerlich auch auf aufkleber aus ausfuhrlich
ausfuhrliche auskunft ausschalten backofen beamer bedanken bedankt bedauern befindet bei beiden beim bekommen beleg
belege bereits beschreibung besorgt bessere bestatigen besten betreff bevor bild bilder bis bitte blinkt boden
brauchen brummt buchstabe buchstaben bugeleisen da daher damen damit dank danke das dass datei dazu defekt dem den
denn der des deshalb dichtung die dies diese diesem dieser dieses doch dort dreht drucker eben eigene eigenen ein
eine einem einen einer einfach eingegangen einmal einschalten einzeln einzelne er erfahren erhalten erkennbar
erkennen erneut es etikett etwas falls falsch fanden fehler fernseher finden flackert fohn foto frau freuen
freundlich freundliche freundlichen freut fuhren fuhrt funktioniert fur ganz geben geduld geehrte geehrter gefreut
gefunden gehause geht gelesen genau genaue genauen genauer gepruft gepruften geraete gerat gerate gerats gern gerne
gesagt geschirrspuler geschrieben gesehen gesucht getrennt gibt gleich gruss grusse grussen gute guten habe haben
hallo handelt hat heizt heizung helfen herd herr herren herzlich herzliche herzlichen hier hilft hinten hinweis ich
ihn ihnen ihr ihre ihrem ihren ihrer ihres im innen innenseite ist ja jede jeden jeder jedes jedoch jetzt kabel
kaffeemaschine kamera kann kaputt karton kassenbon kauf kaufbeleg klappert klaren klarheit klemmt klingt knopf
kochfeld kollegen kommen konnen konnten kontrollieren kopie korrekt kuhlschrank kuhlt kunde kunden kundin ladegerat
ladt lampe larm lautet lautsprecher leer leere leid leider lesbar lesen leuchtet liegt machen macht man maus mehr
mehrere mehreren meist melden meldet mit mitteilen mochten morgens nach nachdem nachfrage nachgesehen nachricht
nachrichten nachste nachsten naehmaschine nahmaschine nennen netzteil nicht noch nochmals notieren nummer nur ob
oben oberhalb obwohl oder oft ohne plattenspieler probleme prufen pruft pumpe pumpt quietscht rasenmaher rasierer
raucht reagiert rechnung richtig richtige ruckfrage ruckmeldung ruckseite sache sagen saugt schade schalter schauen
schicken schild schlauch schleudert schonen schreiben schreibfehler schreibt schreibweise schritt schweigt
schwierigkeiten sehen sehr sein seit seite senden serie seriennummer serviceteam sich sie sind sobald sodass sollte
springt spulmaschine startet staubsauger stehen steht stelle stinkt stoppt suchen tag tastatur taste teil teilen
telefonisch ticketnummer tippen tippfehler traurig trockner trommel tropft trotzdem tun tur tut typenschild uber
uberprufen uberpruft uberprufung uhr um unannehmlichkeiten und undicht unklar unleserlich uns unser unsere unserem
unseren unserer unten unter unterhalb unterlagen unterseite vergleich vergleichen verpackung verstandnis verstehen
vertippt verwechselt viele vielen vollstandig vom von vor vorgang vorliegt waage wahrend wahrscheinlich war
waschmaschine wasserkocher weiter weitere welche welchem welchen welches wenn wie wir wird wo wofur womit woran
worden worum wunsche wunschen zeichen ziffer ziffern zu zum zunachst zur zuruck zusammen zusatzlich

Polish:
aby albo ale bardziej bardzo bazie beben bedzie bez blad bledny bledu byc byl byla bylo chcemy chlodzi cierpliwosc
cieszymy co cyfra cyfry czajnik czy czytelne czytelny dac dane data daty dla dlatego dobre dobry doceniamy
dokladnego dokladnie dokladny doprecyzowac dowodu drugie drukarka drzwiczkach dymi dziekujac dziekuje dziekujemy
dzien ekspres etykiecie etykieta gdy gdzie golarka grzeje grzejnik halas imieniu informacje inny jak jaki jako jedna
jednak jednakze jednego jedno jego jej jesli jest jeszcze jezeli juz kartce klawiatura klopot klopotow kontakt kopia
kosiarka kreci krok ktora ktore ktory kuchenka ladowarka laduje lampa litera literowka lodowka lub ma maila mamy
miga milego milo mily moga moglaby moglby mogliby moze mozna mysz na naklejce nam nami napisac napisze nas nasz
nasza nasze naszej naszym nie nieczytelne niestety numer numeru numery obudowie od odczytac odczytania odezwie
odkurzacz odpowiedz odpowiedzi odwrocie okaze opakowaniu opis otrzymalismy pana pani pania panstwa panstwo paragon
paragonu pismo piszczy plyta po pod podac podali podanie poinformowac pomoc pomozemy pompa poniewaz ponizej ponownie
poprawnie poprawny potwierdzamy potwierdzic powodu pozdrawiamy pozdrowienia pozdrowieniami pralka pralke pralki
prawidlowy problemu projektor prosimy prosze przecieka przelacznik przepisac przepraszamy przez przy przycisk
przykro pudelku raz razem rowniez rozumiemy sa serdecznie serii serwis serwisowy seryjnego seryjny smierdzi smutno
spodem sprawa sprawdzenie sprawdzic sprawdzilismy sprawdzimy sprawdzono sprawie stronie stuka suszarka suszarki
swieci szanowna szanowni szanowny szczegolow szczegoly szkoda szukalismy ta tabliczce tabliczka tak te tego tej
telewizor temat ten toster tresc tresci tu tyl tylu tym tytul uprzejmie urzadzenia urzadzenie urzadzeniu usterka
usterki uszczelka w waga waz wewnatrz wiadomosc wiadomosci wiec wpisac wpisany wtedy wyjasnic wyjasnienie
wyrozumialosc wyslac wystarczy wyswietlacz z za zakupu zalacznik zalaczniki zalaczniku zapoznalismy zapytanie
zarowno zasilacz zdjecie ze zegar zelazko zespol zgadza zglasza zgloszenia zgloszenie zmywarka znajduje znamionowej

French:
afin agreable ai appareil apprecions apres arriere aspirateur au aux avec avez avons balance bas besoin bien boite
boitier bon bonjour bonne bonnes bonsoir bouilloire bouton bruit c ca cafetiere carte ce cela ces cet cette chargeur
chauffage chauffe cher cherche chere chiffre chiffres ci clairement clavier client clignote collegue comme comment
comparer comprenons confirmer confusion controle cordialement cuisson dans de demande derriere desagrement desole
desoles dessous deux donc dossier dossiers du ecran ecrira ecrire ecrivez elle emballage en encore ennui enregistre
enregistree envoyer envoyez equipe equipes erreur est et etape etat ete etiquette etudier exact exacte exactement
faire fer fichier figure figurent fois fond four fuite fume gentille grille grince heureux horloge ici il illisible
ils imprimante incorrect indiquer interieur interrupteur introduit j je joint jointe joints journee jusqu
justificatif l la lave le les lettre lettres leur lieu linge lire lisible lui madame mais malheureusement meilleures
merci mesdames messieurs moi mon monsieur n ne non nos notre nous nouvelles numero objet ont ou pain panne par pas
peut peuvent plaisir plaque plus pompe porte pour pouvez pouvons preciser precision prendra prochaine projecteur qu
quel quelle qui rasoir recevez recherche reclamation recu refrigerateur regrettons relire remercie remercions
repasser repondez repondre reponse retrouver s saisi saisie salutations se seche selon serons ses si signaletique
sinceres soiree sommes sont souhaitez souris sous suite sur t tambour tapez telle texte tondeuse tout toutes tres
trouve trouver trouverez trouvez tuyau un une vaisselle verifie verifiee verifier veuillez vide vos votre vous

Spanish:
aclaracion aclarar adjunta adjunto afeitadora agradecemos al algo alguna ante antes apagado aparato apreciada
apreciado aqui archivo archivos asi aspiradora asunto atentamente atento atras aunque averia ayuda ayudar ayudarle
balanza bomba boton buen buena buenas buenos buscado cada cafetera caja calefaccion calienta camara carcasa cargador
carta caso chirria cifra cliente cocina codigo como comparar compra comprendemos comprobado comprobante comprobar
compruebe comunicar con confirmar confirmarnos contacto copia cordial correcta correcto correo cortacesped cual
cuando dado dato datos debajo decirnos del desea desgraciadamente despues dias dice disculpe donde dos el ella
embalaje encontrar encontrara entendemos enviarnos envienos equipo errata error esa escriba escribanos escribir
escribira escribirnos ese esta estado estan estar este estimada estimado estimados estudiar etiqueta exacta exacto
factura fecha figura fondo fue fuga gracias ha hacer han hasta hay haya hervidor hola horno humea ilegible impresora
incorrecto indicar indicarnos indique informacion interior interruptor junta justificante lamentablemente lamentamos
lampara las lavadora lavavajillas lee letra lo los manguera maquina mas mensaje mi mientras modo molestias muy
necesitamos nevera ni nombre nosotros noticias nuestra nuestro nuestros nuevamente otra otro paciencia pantalla para
parpadea parte paso pedimos pero placa plancha podemos podria podrian podrias por posible pregunta problema producto
proyector pueda puede puerta que quiere raton recibido recibo registros reloj responda responder respuesta revisado
revisar ruido saber saludo saludos sea secadora senor senora sentimos ser servicio siguiente sobre solicitud su
suele sus tambien tambor tan tarde teclado televisor tenemos tenga texto tiene tique todo tostadora tras trasera
traves una unas uno usted ustedes va vacio vez y ya

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
