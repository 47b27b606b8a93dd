/* SPDX-License-Identifier: MIT */
/* Model of runtime/ring.h: producers reserve by compare-and-swap, write words, commit the header
 * last; one consumer reads, clears, hands back. Checked: no record is read half written, no word of
 * a record in use is written by another, a free word is always 0, every record is read once and in
 * order of its position, what was pushed minus what was dropped is what is read.
 *
 * Positions run from START, so that they pass the end of their (here: 8-bit) range. A record has
 * WORDS words: a header (its position's low bits + 1, never 0) and a body that names its producer
 * and its number. Sequential consistency: orders of memory are the business of the comments in
 * ring_sig.c and ring.c and of the ThreadSanitizer test. */
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef RECORDS
#define RECORDS 2
#endif
#ifndef SIZE
#define SIZE 4
#endif
#define WORDS 2
#define START 254
#define TRIES 2

byte head = START, tail = START; /* modulo 256, compared by difference */
byte words[SIZE];
byte pushed, dropped, taken;
byte last[PRODUCERS];    /* number of the last record read, by producer */
byte owner[SIZE];        /* 0 free, 1 being written, 2 committed: for the assertions only */

#define AT(p) ((p) % SIZE)
#define DISTANCE(a, b) ((256 + (a) - (b)) % 256)

proctype producer(byte me)
{
    byte h, t, i, number, tries;
    bool done;
    for (number : 1 .. RECORDS) {
        h = head;
        tries = 0;
        done = false;
        do
        :: !done && tries < TRIES ->
            t = tail; /* acquire */
            if
            :: DISTANCE(h, t) > SIZE -> h = head /* stale */
            :: else ->
                if
                :: DISTANCE(h, t) + WORDS > SIZE -> break
                :: else ->
                    atomic {
                        if
                        :: head == h -> head = (h + WORDS) % 256; done = true;
                            for (i : 0 .. WORDS - 1) {
                                assert(owner[AT(h + i)] == 0);
                                assert(words[AT(h + i)] == 0);
                                owner[AT(h + i)] = 1
                            }
                        :: else -> h = head
                        fi
                    }
                fi
            fi;
            tries++
        :: else -> break
        od;
        if
        :: done ->
            words[AT(h + 1)] = me * 16 + number;
            atomic {
                words[AT(h)] = (h % 128) + 1; /* release */
                owner[AT(h)] = 2;
                owner[AT(h + 1)] = 2;
                pushed++
            }
        :: else -> dropped++
        fi
    }
}

proctype consumer()
{
    byte header, body, who;
    do
    :: taken + dropped == PRODUCERS * RECORDS -> break
    :: words[AT(tail)] != 0 -> /* acquire */
        header = words[AT(tail)];
        assert(header == (tail % 128) + 1);
        body = words[AT(tail + 1)];
        assert(body != 0);
        who = body / 16;
        assert(body % 16 > last[who]);
        last[who] = body % 16;
        words[AT(tail)] = 0;
        owner[AT(tail)] = 0;
        words[AT(tail + 1)] = 0;
        owner[AT(tail + 1)] = 0;
        tail = (tail + WORDS) % 256; /* release */
        taken++
    od;
    assert(taken == pushed);
    assert(head == tail)
}

init {
    byte i;
    atomic {
        run consumer();
        for (i : 0 .. PRODUCERS - 1) {
            run producer(i)
        }
    }
}
