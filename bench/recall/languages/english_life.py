"""English: home, work, health, pets and purchases."""

from __future__ import annotations

from bench.recall.topic import FORM, SAME, SEVERAL, SYNONYM, TIME, Topic

LIFE_TOPICS = (
    Topic(
        values=(
            "a red folding bike|bicycle",
            "an espresso machine|coffee maker",
            "a standing desk|desk",
            "a used telescope|telescope",
            "a winter tent|tent",
            "a sewing machine|sewing machine",
            "a pair of hiking boots|boots",
            "a record player|turntable",
        ),
        details=(
            "at the flea market for 40 euros",
            "from a colleague",
            "online, and it arrived scratched",
            "half price",
        ),
        own=("I finally bought {a}, {detail}.", "So I got myself {a}, {detail}."),
        about_others=("{who} finally bought {a}, {detail}.", "{who} went and got {a}, {detail}."),
        replies=("Good choice. Does it work well?", "You only live once."),
        mentions=("Do you know anything about {a}? I saw one in a window.", "A friend wants to sell {a}."),
        questions=(
            (SAME, "Where did {who} buy {a}?"),
            (SYNONYM, "How did {who} come by the {b}?"),
            (FORM, "How was {whose} {b} bought?"),
            (TIME, "What did {who} buy in {month}?"),
            (SEVERAL, "Which things has {who} bought?"),
        ),
    ),
    Topic(
        values=("Biscuit", "Pepper", "Momo", "Ziggy", "Clementine", "Otto"),
        details=(
            "a grey cat from the shelter",
            "a greyhound that hates stairs",
            "a parrot of thirty",
            "a blind rabbit",
        ),
        own=("We adopted {a}: {detail}.", "Meet {a}, {detail}. We adopted the little one on Saturday."),
        about_others=("{who} adopted {a}: {detail}.", "{who} has adopted a pet. It is called {a}, {detail}."),
        replies=("How sweet! Is the animal eating well?", "Congratulations on the new family member!"),
        mentions=("{a} would be a nice name for a boat.", "Is {a} short for something?"),
        questions=(
            (SAME, "What kind of animal is {a}, which {who} adopted?"),
            (FORM, "What is known about {whose} adoption of {a}?"),
            (SYNONYM, "What sort of creature did {who} take home and call {a}?"),
            (TIME, "Which pet did {who} adopt in {month}?"),
        ),
    ),
    Topic(
        values=(
            "head of logistics|logistics",
            "a nurse at the children's ward|nursing",
            "a train driver|train driving",
            "a museum guide|museum guiding",
            "a translator for the court|translating",
            "a baker at the harbour|bakery",
        ),
        details=("the pay is worse but the hours are better", "after nine interviews", "starting next month"),
        own=("I got the job! I will be {a}; {detail}.", "It is official, I am now {a}; {detail}."),
        about_others=("{who} got the job and will be {a}; {detail}.", "It is official: {who} is now {a}; {detail}."),
        replies=("Congratulations! What was decisive?", "Well deserved. When is the first day?"),
        mentions=("My neighbour used to be {a} for years.", "They are looking for {a}, it was in the paper."),
        questions=(
            (SAME, "What do we know about {whose} job as {a}?"),
            (FORM, "How did {who} get into {b}?"),
            (TIME, "Which job did {who} get in {month}?"),
            (SYNONYM, "What new position at work did {who} land, something with {b}?"),
        ),
    ),
    Topic(
        values=("Doctor Okafor", "Doctor Lindqvist", "Doctor Baptiste", "Doctor Ferreira", "Doctor Novak"),
        details=(
            "less salt and a walk after dinner",
            "the knee needs an operation",
            "new glasses, nothing serious",
            "an allergy to hazelnuts",
        ),
        own=("I saw {a} today. The result: {detail}.", "My appointment with {a} went fine: {detail}."),
        about_others=(
            "{who} saw {a} today. The result: {detail}.",
            "{whose} appointment with {a} went fine: {detail}.",
        ),
        replies=("Good that it was looked at.", "I hope it gets better soon."),
        mentions=("{a} has moved to a new practice, I heard.", "The waiting list of {a} is endless."),
        questions=(
            (SAME, "What was the result when {who} saw {a}?"),
            (FORM, "What did {a} advise when {who} was seeing them?"),
            (SYNONYM, "What diagnosis did {who} receive from {a}?"),
            (TIME, "What came out of {whose} medical appointment on {date}?"),
        ),
    ),
    Topic(
        values=(
            "the kitchen ceiling|kitchen",
            "the garden shed|shed",
            "the bathroom tap|tap",
            "the cellar door|cellar",
            "the balcony railing|balcony",
            "the old boiler|heating",
        ),
        details=(
            "it cost 380 in the end",
            "a plumber called Petrov helped",
            "it took a whole weekend",
            "mould behind it",
        ),
        own=("I repaired {a}, {detail}.", "{a} is fixed at last, {detail}, I did most of it."),
        about_others=("{who} repaired {a}, {detail}.", "{who} got {a} fixed at last, {detail}."),
        replies=("That must be a relief.", "One thing less on the list."),
        mentions=("I still have to look at {a} some day.", "Somehow {a} is always the first thing guests see."),
        questions=(
            (SAME, "How did it go when {who} repaired {a}?"),
            (FORM, "How did {whose} repairs of {a} go?"),
            (SYNONYM, "What did it take {who} to mend the {b}?"),
            (TIME, "What did {who} repair in {month}?"),
        ),
    ),
    Topic(
        values=(
            "moved to Harbour Street|Harbour Street",
            "moved into the old mill|mill",
            "moved to a flat above the cinema|cinema",
            "moved back to the valley|valley",
            "moved in with a friend in Leith|Leith",
        ),
        details=(
            "the rent is 640",
            "the boxes are still unopened",
            "there is no lift",
            "from the window one sees the sea",
        ),
        own=("We {a} last weekend, {detail}.", "I {a}, {detail}."),
        about_others=("{who} {a} last weekend, {detail}.", "{who} has {a}, {detail}."),
        replies=("May the new home bring luck.", "Do you need help with the furniture?"),
        mentions=("The bus does not go there any more, the {b} stop is closed.", "There was a power cut near the {b}."),
        questions=(
            (SAME, "What is it like there since {who} {a}?"),
            (FORM, "What is the new home like after {whose} move, the {b} one?"),
            (SYNONYM, "What was {whose} relocation to the {b} like?"),
            (TIME, "Where did {who} move in {month}?"),
        ),
    ),
    Topic(
        values=(
            "the lost passport|passport",
            "the stolen laptop|computer",
            "the flooded cellar|water damage",
            "the cancelled flight|flight",
            "the broken windscreen|car window",
        ),
        details=(
            "reference number 48-1177",
            "they pay only half",
            "a Mrs Duval handles it",
            "the deadline is in six weeks",
        ),
        own=("The insurance wrote about {a}: {detail}.", "News about {a}: {detail}. So says the insurance."),
        about_others=("The insurance wrote to {who} about {a}: {detail}.", "{who} has news about {a}: {detail}."),
        replies=("Keep the letter in any case.", "Insurances are all the same."),
        mentions=("A colleague had the same with {a} once.", "It could be worse, think of {a}."),
        questions=(
            (SAME, "What did the insurance write to {who} about {a}?"),
            (FORM, "How does {whose} insurer handle {a}?"),
            (SYNONYM, "What is the state of {whose} {b} claim?"),
        ),
    ),
)
