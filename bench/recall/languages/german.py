"""German: topics and small talk."""

from __future__ import annotations

from bench.recall.languages.german_talk import SMALL_TALK, THINGS
from bench.recall.topic import FORM, SAME, SEVERAL, SYNONYM, TECHNICAL, TIME, Language, Topic

MONTHS = (
    *("Januar", "Februar", "März", "April", "Mai", "Juni"),
    *("Juli", "August", "September", "Oktober", "November", "Dezember"),
)

TOPICS = (
    Topic(
        values=(
            "Aquarelle zu malen|Aquarelle gemalt",
            "Brot zu backen|Brot gebacken",
            "Posaune zu spielen|Posaune gespielt",
            "Löffel zu schnitzen|Löffel geschnitzt",
            "in der Halle zu klettern|in der Halle geklettert",
            "auf dem Kanal zu rudern|auf dem Kanal gerudert",
        ),
        details=("jeden Dienstagabend", "zusammen mit zwei Nachbarn", "auf Rat der Ärztin", "um besser zu schlafen"),
        own=("Ich habe angefangen, {a}, {detail}.",),
        about_others=("{who} hat angefangen, {a}, {detail}.",),
        replies=("Das klingt entspannend.", "Schön, dafür braucht man Geduld."),
        mentions=("In der Zeitung stand, wie beliebt es ist, {a}.", "Mir fehlt die Ruhe, {a}."),
        questions=(
            (SAME, "Wie hat {who} angefangen, {a}?"),
            (FORM, "Seit wann hat {who} {b}?"),
            (TIME, "Welches Hobby hat {who} im {month} angefangen?"),
            (SEVERAL, "Welche Hobbys hat {who} angefangen?"),
        ),
    ),
    Topic(
        values=("Lissabon", "Krakau", "Bergen", "Triest", "Salamanca", "Riga"),
        details=(
            "mit dem Nachtzug",
            "mit einer geliehenen Kamera",
            "zur Hochzeit einer Cousine",
            "und der Koffer ging verloren",
        ),
        own=("Wir sind aus {a} zurück! Gereist sind wir {detail}.", "Ich war vier Tage in {a}, {detail}."),
        about_others=("{who} ist aus {a} zurück, gereist {detail}.", "{who} war vier Tage in {a}, {detail}."),
        replies=("Was für eine Reise! Hat das Wetter gehalten?", "Ich will die Fotos sehen."),
        mentions=("Die Flüge nach {a} sind gerade teuer.", "Mein Zahnarzt ist bei {a} aufgewachsen."),
        questions=(
            (SAME, "Wie war {who} vier Tage in {a} unterwegs?"),
            (FORM, "Wie verlief {whose} Reise nach {a}?"),
            (SYNONYM, "Was ist bei {whose} Urlaub in {a} passiert?"),
            (TIME, "Wohin ist {who} im {month} gereist?"),
            (TIME, "Aus welcher Stadt kam {who} am {date} zurück?"),
            (SEVERAL, "In welchen Städten war {who} schon?"),
        ),
    ),
    Topic(
        values=(
            "ein rotes Klapprad|Fahrrad",
            "eine Espressomaschine|Kaffeemaschine",
            "ein gebrauchtes Fernrohr|Teleskop",
            "eine Nähmaschine|Maschine zum Nähen",
            "einen Plattenspieler|Schallplattenspieler",
            "neue Wanderschuhe|Schuhe",
        ),
        details=(
            "auf dem Flohmarkt für 40 Euro",
            "von einer Kollegin",
            "im Internet, mit Kratzern",
            "zum halben Preis",
        ),
        own=("Ich habe endlich {a} gekauft, {detail}.",),
        about_others=("{who} hat endlich {a} gekauft, {detail}.",),
        replies=("Gute Wahl. Läuft alles?", "Man lebt nur einmal."),
        mentions=("Kennst du dich aus? Im Schaufenster steht {a}.", "Ein Bekannter verkauft {a}."),
        questions=(
            (SAME, "Wo hat {who} {a} gekauft?"),
            (FORM, "Wo kaufte {who} {a}?"),
            (SYNONYM, "Wie ist {who} an das gute Stück gekommen, {b}?"),
            (TIME, "Was hat {who} im {month} gekauft?"),
            (SEVERAL, "Welche Sachen hat {who} gekauft?"),
        ),
    ),
    Topic(
        values=("Krümel", "Pfeffer", "Momo", "Zorro", "Klementine"),
        details=("eine graue Katze aus dem Tierheim", "ein Windhund mit Angst vor Treppen", "ein blindes Kaninchen"),
        own=("Wir haben {a} aufgenommen: {detail}.",),
        about_others=("{who} hat {a} aufgenommen: {detail}.",),
        replies=("Wie süß! Frisst das Tier gut?", "Glückwunsch zum Familienmitglied!"),
        mentions=("{a} wäre ein schöner Name für ein Boot.", "Ist {a} eine Abkürzung?"),
        questions=(
            (SAME, "Was für ein Tier ist {a}, das {who} aufgenommen hat?"),
            (FORM, "Was weiß man über {whose} Aufnahme von {a}?"),
            (TIME, "Welches Haustier hat {who} im {month} aufgenommen?"),
        ),
    ),
    Topic(
        values=(
            "Leitung der Logistik|Logistikleitung",
            "Pflege auf der Kinderstation|Kinderpflege",
            "Führungen im Museum|Museumsführungen",
            "Übersetzungen für das Gericht|Gerichtsübersetzungen",
        ),
        details=("das Gehalt ist schlechter, die Zeiten sind besser", "nach neun Gesprächen", "ab nächstem Monat"),
        own=("Ich habe die Stelle! Meine Aufgabe: {a}; {detail}.",),
        about_others=("{who} hat die neue Stelle: {a}; {detail}.",),
        replies=("Herzlichen Glückwunsch!", "Verdient. Wann ist der erste Tag?"),
        mentions=("Meine Nachbarin macht seit Jahren {a}.", "Gesucht wird im Moment viel: {a} zum Beispiel."),
        questions=(
            (SAME, "Was ist über die neue Stelle von {who} bekannt, {a}?"),
            (FORM, "Wie kam {who} zu {b}?"),
            (TIME, "Welche Stelle hat {who} im {month} bekommen?"),
        ),
    ),
    Topic(
        values=(
            "die Küchendecke|Decke in der Küche",
            "den Gartenschuppen|Schuppen im Garten",
            "die Kellertür|Tür im Keller",
            "das Balkongeländer|Geländer am Balkon",
        ),
        details=(
            "es kostete am Ende 380 Euro",
            "ein Installateur namens Petrov half",
            "es dauerte ein ganzes Wochenende",
        ),
        own=("Ich habe {a} repariert, {detail}.",),
        about_others=("{who} hat {a} repariert, {detail}.",),
        replies=("Das muss eine Erleichterung sein.", "Eine Sache weniger auf der Liste."),
        mentions=("Irgendwann muss ich mir {a} ansehen.", "Gäste sehen immer zuerst {a}."),
        questions=(
            (SAME, "Wie lief es, als {who} {a} repariert hat?"),
            (FORM, "Wie lief {whose} Reparatur, {b}?"),
            (TIME, "Was hat {who} im {month} repariert?"),
        ),
    ),
    Topic(
        values=(
            "Linsencurry|Curry",
            "Zwetschgenknödel|Knödel",
            "Safranrisotto|Risotto",
            "Rote-Bete-Suppe|Suppe",
            "Walnusskuchen|Kuchen",
        ),
        details=("das Geheimnis ist ein Löffel Essig", "zwei Stunden im Ofen", "viel zu viel Knoblauch", "Omas Rezept"),
        own=("Ich habe {a} für zwölf Gäste gekocht, {detail}.",),
        about_others=("{who} hat {a} für zwölf Gäste gekocht, {detail}.",),
        replies=("Jetzt habe ich Hunger.", "Bekomme ich das Rezept?"),
        mentions=("In der Kantine gab es {a}, ziemlich fad.", "Ist {a} eigentlich vegetarisch?"),
        questions=(
            (SAME, "Was war besonders an {a}, wie {who} es gekocht hat?"),
            (FORM, "Für wie viele Gäste kochte {who} {a}?"),
            (SYNONYM, "Wie hat {who} {b} für den Besuch zubereitet?"),
            (TIME, "Was hat {who} im {month} für die Gäste gekocht?"),
        ),
    ),
    Topic(
        values=("Frau Doktor Okafor", "Doktor Lindqvist", "Frau Doktor Baptiste", "Doktor Novak"),
        details=("weniger Salz und mehr Bewegung", "das Knie muss operiert werden", "eine Allergie gegen Haselnüsse"),
        own=("Ich war heute bei {a}. Der Befund: {detail}.",),
        about_others=("{who} war heute bei {a}. Der Befund: {detail}.",),
        replies=("Gut, dass es untersucht wurde.", "Gute Besserung!"),
        mentions=("Die Praxis von {a} ist umgezogen.", "Auf einen Termin bei {a} wartet man ewig."),
        questions=(
            (SAME, "Welchen Befund hat {who} von {a}?"),
            (SYNONYM, "Was hat {a} bei der Untersuchung von {who} festgestellt?"),
            (TIME, "Was ergab {whose} Arzttermin am {date}?"),
        ),
    ),
    Topic(
        values=("PostgreSQL 16.4|PostgreSQL", "Python 3.12.5|Python", "nginx 1.27.1|nginx", "Kafka 3.8.0|Kafka"),
        details=(
            "das alte Plugin ist weg",
            "der Dienst startet doppelt so schnell",
            "zwei Einstellungen heißen jetzt anders",
        ),
        own=("Ich habe die Produktion auf {a} aktualisiert; {detail}.",),
        about_others=("{who} hat die Produktion auf {a} aktualisiert; {detail}.",),
        replies=("Gab es Probleme bei der Umstellung?", "Dann kann die Testumgebung folgen."),
        mentions=("Die Versionshinweise von {a} sind vierzig Seiten lang.", "Wer braucht noch die Schulung zu {b}?"),
        questions=(
            (TECHNICAL, "Was änderte sich, als {who} auf {a} aktualisiert hat?"),
            (FORM, "Was brachte {whose} Aktualisierung von {b}?"),
            (SYNONYM, "Welche Version von {b} läuft seit {whose} Update in der Produktion?"),
            (TIME, "Was hat {who} im {month} in der Produktion aktualisiert?"),
        ),
    ),
    Topic(
        values=(
            "ECONNREFUSED 127.0.0.1:5432|Verbindungsfehler an Port 5432",
            "OSError: [Errno 28] No space left on device|vollen Festplatte",
            "413 Request Entity Too Large|zu großen Uploads",
        ),
        details=("ein Neustart des Dienstes", "das Löschen der Sperrdatei", "ein Eintrag in der Hosts-Datei"),
        own=("Bei mir kam `{a}`. Geholfen hat {detail}.",),
        about_others=("{who} bekam `{a}`. Geholfen hat {detail}.",),
        replies=("Das schreibe ich in die Anleitung.", "Der Fehler kommt nach Updates gern wieder."),
        mentions=("Das Protokoll ist voll, aber `{a}` ist nicht dabei.", "Ist `{a}` ein Problem des Clients?"),
        questions=(
            (TECHNICAL, "Was hat {who} gegen {a} geholfen?"),
            (FORM, "Welche Hilfe gab es für {who} bei der Sache mit {b}?"),
            (SYNONYM, "Wie hat {who} das Problem mit {b} gelöst?"),
        ),
    ),
)

GERMAN = Language(
    name="German",
    people=("Marta", "Jonathan", "Ingrid", "Emre", "Annika", "Bruno", "Friederike", "Leon", "Paula", "Konrad"),
    topics=TOPICS,
    small_talk=SMALL_TALK,
    things=THINGS,
    months=MONTHS,
    day="{day}. {month}",
    genitive="{who}s",
)
