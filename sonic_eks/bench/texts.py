"""What is said under load: English texts of mixed length, written for it."""

from __future__ import annotations

import random
from collections.abc import Iterator

# What voice agents say, in three lengths of equal number: answers of a few words, sentences, and
# turns of several sentences. 15 to 415 characters, 138.4 in the mean.
_TEXTS = """\
Sure, one moment.

Yes, that works.

Thanks, got it.

Could you repeat that?

Your order is on its way.

Hello, how can I help you today?

Let me check that for you.

Is there anything else?

The earliest appointment is on Thursday at a quarter past nine, would that suit you?

I can see two payments of forty-nine dollars each, and both were made on the third of May.

Please have your meter reading at hand, it is the number in the small window on the left.

Your flight leaves from gate B twelve, and boarding begins in about thirty-five minutes.

We can deliver the replacement tomorrow, as long as somebody is at home before noon.

The room has a view of the harbour, breakfast is included, and check-in starts at three.

For your security, I will send a code to the phone number that ends in seven two one.

That part is out of stock at the moment, but a newer model fits the same bracket.

I understand how annoying that is. The outage began at ten past six this morning, after a digger
cut a cable in your street. A crew is on site, and they expect to have the line back by two in
the afternoon. Shall I send you a message as soon as it works again?

Here is what we have so far. A table for six on Saturday evening, by the window if possible,
with one high chair and no nuts in any of the dishes. I have put it under the name Moreau. If
your plans change, please call us by Friday, because we keep a waiting list.

Your policy covers the windscreen and the rental car, but not the paint on the door. The
workshop in Mill Lane can take the car on Monday, and the repair takes two days. You would pay
the excess of one hundred and fifty, and we settle the rest with them directly.

To reset the thermostat, press the wheel for ten seconds until the display goes dark. It will
then count down from five. When it asks for the language, turn the wheel once to the right and
press again. Tell me when you see the house symbol, and we pair it with your phone.

The walk takes about forty minutes. Leave the station by the north exit, cross the square with
the fountain, and follow the river until you reach the second bridge. On the other side there is
a bakery, and right behind it the path climbs to the castle. In winter it closes at four, so it
is better to start before two.

Your results are back, and there is nothing to worry about. The iron level is a little low,
which would explain why you have felt tired. The doctor suggests a supplement for three months
and another test in spring. I can send the prescription to the pharmacy next to the town hall,
or to any other one that you prefer.

I have moved your contract to the new address from the first of next month. The old meter has to
be read on the day you leave, a photograph is enough. At the new flat there is a smart meter, so
nobody needs to come. The monthly rate stays the same for now, and we will adjust it after the
first quarter, once we know how much you really use there.

Let us go through it once more, step by step. First take the battery out and wait for half a
minute. Then hold the power button down, to drain what is left. Put the battery back, plug in
the charger, and do not start the machine yet. There should be an orange light beside the hinge.
If it blinks three times and then stays on, the board is fine, and all we need to replace is the
little fan on the right-hand side.
"""

TEXTS = tuple(" ".join(text.split()) for text in _TEXTS.split("\n\n"))


def texts(seed: int) -> Iterator[str]:
    """Give texts without end: each once in a random order, then all again in another.

    So every run of some length says the same amount, whatever the seed.
    """
    dice = random.Random(seed)
    while True:
        order = list(TEXTS)
        dice.shuffle(order)
        yield from order
