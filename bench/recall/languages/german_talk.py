"""German: things and small talk."""

from __future__ import annotations

THINGS = (
    *("das Wetter", "die neue Straßenbahn", "das Frühstück", "die Nachbarn", "das Fußballspiel", "den Film"),
    *("die Schulferien", "den Verkehr", "ein altes Lied", "die Wahl", "den Garten", "Kaffee"),
)

SMALL_TALK = (
    ("Guten Morgen! Wie geht es dir heute?", "Guten Morgen! Worum geht es heute?"),
    ("Ich bin etwas müde, {who} hat gestern spät angerufen.", "Dann machen wir heute langsam."),
    ("Schöne Grüße von {who} übrigens.", "Danke, grüße {who} bitte zurück."),
    ("Für das Wochenende habe ich noch keine Pläne.", "Ein Wochenende ohne Pläne ist oft das beste."),
    ("Was kocht man aus zwei Eiern und etwas Reis?", "Gebratenen Reis, mit dem Gemüse, das übrig ist."),
    ("Erinnere mich bitte daran, morgen {who} anzurufen.", "Mache ich. Soll ich den Anlass dazu notieren?"),
    ("Nein, {who} weiß, worum es geht.", "Gut, dann nur der Anruf."),
    ("Mit {who} habe ich eine Stunde über {thing} geredet.", "Eine Stunde! Wart ihr euch am Ende einig?"),
    ("Nicht wirklich, aber lustig war es.", "Das ist die Hauptsache."),
    ("Es regnet seit Montag.", "Für das Ende der Woche ist Sonne angesagt."),
    ("Reden wir über etwas anderes.", "Gern. Worüber möchtest du reden?"),
    ("Wie hieß der Schauspieler mit dem Hut?", "Es gibt viele mit Hut. Weißt du noch den Film?"),
    ("Keine Ahnung, das ist Jahre her.", "Dann finden wir es heute wohl nicht heraus."),
    ("{who} und ich waren am Fluss spazieren.", "Frische Luft hilft. War viel los?"),
    ("Ziemlich viel, alle hatten dieselbe Idee.", "Nächstes Mal vielleicht früh am Morgen."),
    ("Mein Akku ist fast leer.", "Wir können später weitermachen, nichts geht verloren."),
    ("Die Arbeit war anstrengend, drei Sitzungen hintereinander.", "Hat wenigstens eine etwas gebracht?"),
    ("Eine von dreien, ich will nicht klagen.", "Um die Quote beneiden dich viele."),
    ("Ständig suche ich meine Schlüssel.", "Eine Schale an der Tür hilft den meisten."),
    ("{who} war beim Mittagessen seltsam gelaunt.", "Vielleicht nur Hunger. Frag morgen noch einmal."),
    ("Hast du eine Idee für ein Geburtstagsgeschenk?", "Was macht die Person an einem freien Tag gern?"),
    ("Lesen, kochen, über {thing} schimpfen.", "Dann ein Buch oder ein Gutschein für ein Essen."),
    ("Ich habe eine Sendung über {thing} gesehen.", "Hat es sich gelohnt?"),
    ("Die Hälfte, dann bin ich eingeschlafen.", "Das passiert den Besten."),
    ("Wie bekomme ich einen Kaffeefleck aus dem Hemd?", "Sofort kaltes Wasser, dann etwas Seife, dann waschen."),
    ("Mach die Liste bitte kürzer.", "Die Kurzform: erst anrufen, dann schreiben, dann warten."),
    ("Danke, das hat geholfen.", "Gern geschehen. Noch etwas?"),
    ("Das war alles. Bis bald!", "Bis bald, pass auf dich auf!"),
    ("Ich habe alte Fotos von {who} gefunden.", "Alte Fotos sind immer einen Abend wert."),
    ("{who} möchte dieses Jahr etwas Neues lernen.", "An Kursen fehlt es nicht. In welche Richtung?"),
)
