"""Function words: words that a sentence needs and that say little about its subject, such as `what`, `did` and `the`.

A question is ranked by its other words. The lists hold only words of grammar (articles, pronouns, auxiliary verbs,
question words, the shortest prepositions). Whether any other word says much is decided by how often a store has it.
"""

from __future__ import annotations

from collections.abc import Iterable

ENGLISH = "english"

_LISTS = {
    ENGLISH: """a about am an and are as at be been being but by can could d did do does done for from had has have
        having he her here him his how i if in into is it its just ll m may me might must my no not
        of on or our re s shall she should so t than that the their them then there these they this
        those to too us ve very was we were what when where which who whom whose why will with would
        you your""",
    "german": """aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass dein dem den der des
        dich die dies diese dieser doch dort du durch ein eine einem einen einer eines er es euch
        fur gab hab habe haben hat hatte hier ich ihm ihn ihr ihre im in ist ja jede kann konnen man
        mein mich mir mit nach nicht noch nun nur ob oder ohne sein seine sich sie sind so uber um
        und uns unser unter vom von vor war waren warum was weil welche wenn wer werden wie wieder
        wir wird wo worden wurde woher wohin schon welchem welchen welcher welches denn mal zu zum zur""",
    "french": """a ai alors as au aux avec avez avons c ce ces cet cette comme comment d dans de des du elle elles en
        est et etait etre eu fait il ils j je l la le les leur lui m ma mais me mes moi mon n ne nos
        notre nous on ont ou par pas pour pourquoi qu quand que quel quelle qui s sa sans se ses si
        son sont sur t ta te tes toi ton tu un une vos votre vous y""",
    "spanish": """a al algo como con cual cuando de del desde donde e el ella ellas ellos en era es esa ese eso esta
        estaba este esto fue ha habia han hay he la las le les lo los mas me mi mis muy no nos
        nosotros o para pero por porque que quien se ser si sin sobre son su sus te tiene tu tus un
        una unas unos y ya yo""",
    "italian": """a ad ai al alla anche che chi ci come con cosa da dal dalla dei del della di dove e ed era gli ha
        hai hanno ho i il in io la le lei lo loro lui ma mi mia mio ne nel nella no noi non o per
        perche piu quale quando quello questa questo se sei si sia sono sta sul sulla suo te ti tra
        tu un una uno voi""",
    "portuguese": """a ao aos as ate com como da das de do dos e ela elas ele eles em entre era essa esse esta este eu
        foi ha isso isto ja la lhe mais mas me meu minha muito na nao nas no nos o onde os ou para
        pela pelo por porque qual quando que quem se sem ser seu sua tem teu um uma voce""",
    "dutch": """aan al als bij dan dat de der deze die dit doen door dus een en er had heb hebben heeft het hij hoe
        hun ik in is je kan kon maar me meer met mij mijn na naar niet nog nu of om omdat ons onze
        ook op over te tegen toch toen tot u uit van veel voor waar waarom was wat we wel welke werd
        wie wij worden wordt zal ze zei zich zij zijn zo zou""",
    "russian": """а без бы был была были было быть в вам вас все вы где да для до его ее если есть еще же за и из или
        им их к как какой когда который кто ли мне мы на над не него нее нет ни но ну о об он она
        они от по под при с со так там то тот ты у уже чего чем что чтобы эта эти это я""",
}

FUNCTION_WORDS = {language: frozenset(words.split()) for language, words in _LISTS.items()}
"""By language, folded as the analyzer folds words."""
_ALL = frozenset().union(*FUNCTION_WORDS.values())

_FUNCTION_PAIRS = """
    什么 怎么 时候 哪里 我们 你们 他们 是不 不是 没有 这个 那个 一个 可以 为什 是什 么时 した です ます
    ので から まで には では とは のは のが って いつ どこ なに 何を 何が ました 어디 언제 무엇 뭐가 했어
    했지 있어 있는 하는 에서 으로
"""
FUNCTION_PAIRS = frozenset(_FUNCTION_PAIRS.split())
"""Pairs of characters that stand for such words in Chinese, Japanese and Korean."""

_MIN_VOTES = 2


def detect_language(words: Iterable[str]) -> str:
    """Return the language with the most function words among some words; English unless another has two and more."""
    found = _ALL.intersection(words)
    if found <= FUNCTION_WORDS[ENGLISH]:
        return ENGLISH
    # The first of several with equally many; English comes first.
    best, most = ENGLISH, max(len(found & FUNCTION_WORDS[ENGLISH]), _MIN_VOTES - 1)
    for language, known in FUNCTION_WORDS.items():
        if (votes := len(found & known)) > most:
            best, most = language, votes
    return best


def is_function_word(word: str, language: str) -> bool:
    """Whether a folded word says little about the subject of a sentence in this language."""
    return word in FUNCTION_WORDS[language] or word in FUNCTION_PAIRS
