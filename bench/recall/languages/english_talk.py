"""English: people, things and small talk."""

from __future__ import annotations

PEOPLE = ("Marta", "Tom", "Ingrid", "Rashid", "Colette", "Bruno", "Yusuf", "Hanna", "Priya", "Declan")

THINGS = (
    *("the weather", "the new tram line", "breakfast", "the neighbours", "the football match", "that film"),
    *("the school holidays", "the traffic", "an old song", "the election", "my sleep", "the garden", "coffee"),
)

SMALL_TALK = (
    ("Good morning! How are you today?", "Good morning! Ready when you are. What is on your mind?"),
    ("I am a bit tired, {who} called late last night.", "Then let us take it slowly today."),
    ("Did you think about {thing} again?", "A little. There is not much new to say about {thing}."),
    ("{who} says hello, by the way.", "Thank you, please say hello to {who} as well."),
    ("I have no plans for the weekend yet.", "A weekend without plans can be the best one."),
    ("What would you cook with two eggs and some rice?", "Fried rice, with whatever vegetables are left."),
    ("Can you remind me to call {who} tomorrow?", "I will. Shall I note what the call is about?"),
    ("No, {who} knows what it is about.", "All right, only the call then."),
    ("I talked with {who} about {thing} for an hour.", "An hour! And did you agree in the end?"),
    ("Not really, but it was funny.", "That is the main thing."),
    ("It has been raining since Monday.", "The forecast promises sun for the end of the week."),
    ("Let us change the subject.", "Gladly. What would you like to talk about?"),
    ("What was the name of that actor with the hat?", "There are many with hats. Do you remember the film?"),
    ("No idea, it was years ago.", "Then we will not find out today, I am afraid."),
    ("{who} and I went for a walk by the river.", "Fresh air helps. Was it crowded?"),
    ("Quite crowded, everybody had the same idea.", "Next time perhaps early in the morning."),
    ("My phone battery is nearly empty.", "We can go on later, nothing gets lost."),
    ("I should start to do more sport.", "Small steps are enough. Ten minutes are a beginning."),
    ("Work was exhausting, three meetings in a row.", "Did at least one of them lead to something?"),
    ("One of three, so I will not complain.", "A quota that many would envy."),
    ("I keep forgetting where I put my keys.", "A bowl beside the door works for most people."),
    ("{who} was in a strange mood at lunch.", "Perhaps it was only hunger. Ask again tomorrow."),
    ("Do you have an idea for a birthday present?", "What does the person like to do on a free day?"),
    ("Reading, cooking, complaining about {thing}.", "Then a book, or a voucher for a dinner."),
    ("I watched a documentary on {thing}.", "Was it worth the time?"),
    ("Half of it, then I fell asleep.", "That happens to the best of us."),
    ("How do I get a coffee stain out of a shirt?", "Cold water at once, then a little soap, then wash it."),
    ("Please make that list shorter.", "Here is the short form: first call, then write, then wait."),
    ("Thank you, that was helpful.", "You are welcome. Anything else?"),
    ("That is all for now. Talk to you soon!", "See you soon, take care!"),
    ("What time is it in {who}'s city now?", "That depends on the city. Two hours ahead, if I remember well."),
    ("I found some old photos of {who}.", "Old photos are always worth an evening."),
    ("We laughed about {thing} the whole evening.", "Evenings like that are rare, keep the memory."),
    ("I bought nothing today, for once.", "Your purse will thank you."),
    ("Could you check my spelling in this sentence?", "It is fine, only the comma should go."),
    ("{who} wants to learn something new this year.", "There is no shortage of courses. What direction?"),
    ("Hard to say with {who}.", "Then a trial lesson of several things."),
)
