/* SPDX-License-Identifier: MIT */
/* Model of runtime/ring.h: producers reserve by compare-and-swap, write words, commit the header
 * last; one consumer peeks at records, writes what it has seen to the spool, clears the words and
 * hands them back, as late as it likes. Checked: no record is read half written, no word is reserved
 * before it is handed back, a free word is always 0, every record is read once and in the order of its
 * producer, what was pushed minus what was dropped is what is read. And at any moment the process
 * may be killed: then each committed record is in the spool or found in the ring, never in both.
 *
 * Positions run from START, so that they pass the end of their (here: 8-bit) range. A record has two
 * or three words: a header (number of words, low bits of its position; never 0) and a body that names
 * its producer and its number. Sequential consistency: orders of memory are the business of the
 * comments in ring_sig.c and ring.c and of the ThreadSanitizer test.
 *
 * These break the model on purpose; faults.sh demands that each is found:
 *   FAULT=1 full is noticed a word too late
 *   FAULT=2 a store in place of the compare-and-swap
 *   FAULT=3 the header first
 *   FAULT=4 no bound: behind a full ring lies its oldest record
 *   FAULT=5 tail before the zeros
 *   FAULT=6 no zeros
 *   FAULT=7 handed back before it is in the spool
 *   FAULT=8 the position in a chunk of its own
 */
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef RECORDS
#define RECORDS 2
#endif
#ifndef SIZE
#define SIZE 4
#endif
#ifndef FAULT
#define FAULT 0
#endif
#define START 254
#define TRIES 2

#define IS_FREE 0
#define IS_RESERVED 1
#define IS_COMMITTED 2

byte head = START, tail = START; /* modulo 256, compared by difference */
byte words[SIZE];
byte pushed, dropped, taken;
byte spool_position = START, spooled; /* the last chunk of the spool: position, records up to there */
byte last[PRODUCERS];                 /* number of the last record read, by producer */
byte use[SIZE];                       /* for the assertions only */

#define AT(p) ((p) % SIZE)
#define DISTANCE(a, b) ((256 + (a) - (b)) % 256)
#define HEADER(p, n) (1 + ((p) % 16) * 2 + (n) - 2)
#define WORDS_OF(header) (((header) - 1) % 2 + 2)
#define BODY(who, number) (64 + (who) * 8 + (number))

inline reserve_words(p, n)
{
    for (i : 0 .. n - 1) {
        assert(use[AT(p + i)] == IS_FREE);
        assert(words[AT(p + i)] == 0);
        use[AT(p + i)] = IS_RESERVED
    }
}

proctype producer(byte me)
{
    byte h, t, i, n, number, tries;
    bool done;
    for (number : 1 .. RECORDS) {
        if
        :: n = 2
        :: n = 3
        fi;
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
#if FAULT == 1
                :: DISTANCE(h, t) + n > SIZE + 1 -> break
#else
                :: DISTANCE(h, t) + n > SIZE -> break
#endif
                :: else ->
#if FAULT == 2
                    atomic { head = (h + n) % 256; done = true; reserve_words(h, n) }
#else
                    atomic {
                        if
                        :: head == h -> head = (h + n) % 256; done = true; reserve_words(h, n)
                        :: else -> h = head
                        fi
                    }
#endif
                fi
            fi;
            tries++
        :: else -> break
        od;
        if
        :: done ->
#if FAULT == 3
            words[AT(h)] = HEADER(h, n);
#endif
            words[AT(h + 1)] = BODY(me, number);
            if
            :: n == 3 -> words[AT(h + 2)] = BODY(me, number)
            :: else
            fi;
            atomic {
                words[AT(h)] = HEADER(h, n); /* release */
                for (i : 0 .. n - 1) {
                    use[AT(h + i)] = IS_COMMITTED
                }
                pushed++
            }
        :: else -> dropped++
        fi
    }
}

/* lapse_ring_peek: moves `at` on when a whole record is there. */
inline peek()
{
    used = DISTANCE(head, tail);
    if
#if FAULT == 4
    :: false -> skip
#else
    :: DISTANCE(at, tail) >= used || DISTANCE(at, tail) >= SIZE -> skip
#endif
    :: else ->
        header = words[AT(at)]; /* acquire */
        if
        :: header == 0 -> skip
        :: else ->
            n = WORDS_OF(header);
            assert(header == HEADER(at, n));
            assert(n <= used - DISTANCE(at, tail));
            body = words[AT(at + 1)];
            assert(n == 2 || words[AT(at + 2)] == body);
            who = (body - 64) / 8;
            assert(body >= 64 && who < PRODUCERS);
            assert(body % 8 > last[who]);
            last[who] = body % 8;
            at = (at + n) % 256;
            taken++
        fi
    fi
}

/* lapse_ring_hand_back: everything before `at`. */
inline hand_back()
{
    p = tail;
#if FAULT == 5
    tail = at;
#endif
    do
    :: p != at ->
        atomic {
#if FAULT != 6
            words[AT(p)] = 0;
#endif
            use[AT(p)] = IS_FREE;
            p = (p + 1) % 256
        }
    :: else -> break
    od;
    tail = at /* release */
}

proctype consumer()
{
    byte at = START, used, header, body, who, n, p;
    do
    :: taken + dropped == PRODUCERS * RECORDS && tail == at -> break
    :: words[AT(at)] != 0 && DISTANCE(at, tail) < SIZE -> peek()
#if FAULT == 4
    :: DISTANCE(at, tail) == SIZE -> peek()
#endif
    :: at != tail ->
#if FAULT == 7
        hand_back();
#endif
#if FAULT == 8
        spooled = taken;
        spool_position = at;
#else
        atomic { spooled = taken; spool_position = at }
#endif
        hand_back()
    od;
    assert(taken == pushed);
    assert(head == tail)
}

/* The process is killed here; what `lapse recover` and the end of `lapse record` then find. */
proctype killed()
{
    byte at, found, header;
    d_step {
        at = spool_position;
        if
        :: DISTANCE(at, tail) > DISTANCE(head, tail) -> at = tail
        :: else
        fi;
        do
        :: at == head -> break
        :: else ->
            header = words[AT(at)];
            if
            :: header != 0 && header < 64 && header == HEADER(at, WORDS_OF(header)) ->
                assert(words[AT(at + 1)] >= 64);
                found++;
                at = (at + WORDS_OF(header)) % 256
            :: else -> at = (at + 1) % 256 /* its writer was stopped in the middle */
            fi
        od;
        assert(spooled + found == pushed);
        at = 0;
        found = 0;
        header = 0
    }
}

init {
    byte i;
    atomic {
        run consumer();
        run killed();
        for (i : 0 .. PRODUCERS - 1) {
            run producer(i)
        }
    }
}
