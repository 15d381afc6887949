-- States were guessed from pace, length and single words: what was guessed is unknown (extraction/packets.py).
update packets set frustration = -1, energy = -1, urgency = -1, stance = 'unknown';
