/* SPDX-License-Identifier: MIT */
/* Model of the session (runtime/session.c, session_fork.c, drain.c, drain_sig.c, handler_sig.c and the
 * two ends of a thread): control threads that start, pause, resume, stop, end the process, make the
 * host single-threaded for a moment and fork at any point; threads that begin, tick (also late: a tick
 * may come long after its timer was taken away) and end; the drain thread, started at the first tick;
 * a second copy of lapse in the process; waits that give up.
 *
 * Checked, in every order of the steps:
 *   memory    ring and store are renewed by a start while nobody is at work on them: no handler, no
 *             ending thread, no drain thread; and never are two threads in the store
 *   samples   what was recorded is in the spool when the session is over
 *   timers    when nothing moves, LIVE slots are armed if the session runs, and none is otherwise
 *   copies    two copies of lapse never have a session at the same time
 *   deadlock  every wait ends by itself (spin's invalid end states), also in a fork's child, where
 *             none of the other threads exists. With the LTL formula: a stop that was begun ends.
 * When a wait gave up (GIVE_UPS), samples may be lost; the other properties hold.
 *
 * What a step is: one access to a word that is shared. Sequential consistency. Not in the model: the
 * ring's insides (ring.pml), a quiesce that gives up (when the drain thread takes longer than the exit
 * budget to leave, the host goes on beside it), ids and snapshots, slots of one thread made twice (tests/unit/scan.c). Two
 * copies that start at the very same moment in two threads may both run: the model lets the second
 * one start only while the first is in no control operation.
 *
 * These break the model on purpose; faults.sh demands that each is found:
 *   FAULT=1 -DGIVE_UPS=1 -DOPS=2 -DOPS_OTHER=0 a start does not wait for the drain thread of the session before
 *   FAULT=2 -DGIVE_UPS=1 -DOPS=2 -DOPS_OTHER=0 a start does not wait for handlers of the session before
 *   FAULT=3 a thread that ends does not count itself in
 *   FAULT=4 the starter of the drain thread says RUNNING in its place
 *   FAULT=5 the end writes where it finds no drain thread, though one may be leaving
 *   FAULT=6 -DOPS=2 -DOPS_OTHER=0 a fork's child keeps that others were in the handler
 *   FAULT=7 a thread that begins does not look at the state again
 *   FAULT=8 the handler reads the state before it counts itself in
 *   FAULT=9 a control operation is asked for by a signal handler within one, and waits for its thread
 *   FAULT=10 signals are blocked only after STOPPING
 *   FAULT=11 the drain thread looks at its requests before the bell
 *   FAULT=12 a stop does not wait for handlers
 *   FAULT=13 -DOPS=2 -DTICKS=0 a fork's child keeps the control owner
 *   FAULT=14 -DCOPIES=1 -DOPS=2 -DOPS_OTHER=0 a paused session of the other copy does not count
 *   FAULT=15 quiesce stores HELD over STARTING as well
 */
#ifndef OPS
#define OPS 1 /* control operations of the first control thread */
#endif
#ifndef OPS_OTHER
#define OPS_OTHER 1 /* and of the second */
#endif
#ifndef TICKS
#define TICKS 1 /* of each worker */
#endif
#ifndef WORKERS
#define WORKERS 1
#endif
#ifndef GIVE_UPS
#define GIVE_UPS 0 /* waits that end by their time limit */
#endif
#ifndef EXPIRES
#define EXPIRES 0 /* the session has a duration */
#endif
#ifndef COPIES
#define COPIES 0 /* there is a second copy of lapse */
#endif
#ifndef NO_CLONE
#define NO_CLONE 0 /* the system may have no room for a thread */
#endif
#ifndef FAULT
#define FAULT 0
#endif

mtype:session = { OFF, RUNNING, PAUSED, STOPPING };
mtype:thread = { NONE, STARTING, ALIVE, HELD, REPLACED };
mtype:slot = { FREE, TAKEN, LIVE, ENDING };

mtype:session state = RUNNING; /* OFF comes by a stop */
byte owner;                /* control_owner */
bool drain_is_held;        /* between quiesce and unquiesce */
mtype:slot slot[WORKERS] = FREE;
bool armed[WORKERS], ticked[WORKERS], inside[WORKERS], lives[WORKERS], rests[WORKERS];
byte writers;              /* lapse_annotations_inside */
mtype:thread drain = NONE;
bool alive;                /* set by the clone, cleared when the thread is gone */
byte threads;              /* drain threads so far: who waits for one to go waits for that one */
byte bell;                 /* futex */
bool asked_finish, asked_leave, finished;
byte reserved, committed, taken; /* records of this session's ring */
byte renewals, in_store;   /* for the assertions: ring and store were renewed; threads in the store */
byte patience = GIVE_UPS;
bool gave_up;
bool other_runs;           /* the second copy of lapse */
byte only;                 /* a fork's child: the one process that is there; ENDED: none */
byte controls;             /* control threads that are done */
bool go_on;

#define ENDED 99
#define DRAIN 20
#define COPY 30
#define MAIN 40
#define IS_OPEN (state == RUNNING || state == PAUSED)
#define IS_LATE (state == OFF || finished)
#define GONE(me) (only != 0 && only != me)

/* A time limit is reached. */
inline give_up()
{
    atomic { patience > 0 -> patience--; gave_up = true }
}

/* lapse_ring_push */
inline push()
{
    atomic { generation = renewals; reserved++ }
    atomic { assert(generation == renewals); committed++; generation = 0 }
}

/* lapse_drain_start; `drain != NONE` counts as started */
inline start_drain()
{
    if
    :: atomic { drain == NONE -> drain = STARTING }
        if
        :: atomic {
            alive -> started = false;
            if
            :: drain == STARTING -> drain = NONE
            :: else
            fi
        }
        :: atomic { !alive && drain != STARTING -> started = false }
#if NO_CLONE
        :: atomic { !alive && drain == STARTING -> drain = NONE; started = false }
#endif
        :: !alive && drain == STARTING ->
            atomic { alive = true; threads = (threads + 1) % 4 }
#if FAULT == 4
            drain = ALIVE;
#endif
            started = true
        fi
    :: atomic { drain != NONE -> started = true }
    fi
}

/* What is done to one slot after the other, each in one step. */
#define FOR_EACH_SLOT(act) \
    do \
    :: atomic { i < WORKERS - 1 -> act; i++ } \
    :: atomic { i == WORKERS - 1 -> act; i = 0; break } \
    od

/* ------------------------------------------------------------------ host threads that are sampled */

inline tick(w)
{
#if FAULT == 8
    if
    :: state == RUNNING -> inside[w] = true; push(); start_drain()
    :: else
    fi;
#else
    inside[w] = true;
    if
    :: state == RUNNING -> push(); start_drain()
    :: else
    fi;
#endif
    inside[w] = false
}

/* A slot that became LIVE while the session changed: over, paused or resumed meanwhile. `running`: its
 * timer is armed. */
inline settle(w)
{
    do
    :: !IS_OPEN ->
        if
        :: atomic { slot[w] == LIVE -> slot[w] = ENDING }
            armed[w] = false;
            slot[w] = FREE
        :: slot[w] != LIVE
        fi;
        break
#if FAULT == 7
    :: else -> break
#else
    :: state == RUNNING && !running ->
        atomic {
            running = true;
            if /* a timer that is deleted cannot be armed */
            :: slot[w] == LIVE -> armed[w] = true; ticked[w] = true
            :: else
            fi
        }
    :: state == PAUSED && running -> atomic { armed[w] = false; running = false }
    :: (state == RUNNING && running) || (state == PAUSED && !running) -> break
#endif
    od;
    running = false
}

/* The second half of a slot's making: timer, LIVE, and what has changed since the look at the state. */
inline make_live(w)
{
    if
    :: running -> atomic { armed[w] = true; ticked[w] = true }
    :: else
    fi;
    slot[w] = LIVE;
    settle(w)
}

inline begin_thread(w)
{
    if
    :: atomic { IS_OPEN && slot[w] == FREE -> slot[w] = TAKEN; running = state == RUNNING }
        make_live(w)
    :: else
    fi;
    lives[w] = true
}

inline end_thread(w)
{
    lives[w] = false;
#if FAULT != 3
    writers++;
#endif
    if
    :: IS_OPEN ->
        if
        :: atomic { slot[w] == LIVE -> slot[w] = ENDING }
            push();
            start_drain();
            armed[w] = false;
            slot[w] = FREE
        :: slot[w] != LIVE
        fi
    :: else
    fi
#if FAULT != 3
    ; writers--
#endif
}

proctype worker(byte w)
{
    byte generation, ticks;
    bool running, started;
    {
        begin_thread(w);
        do
        :: ticks < TICKS && ticked[w] -> ticks++; tick(w)
        :: break
        od;
        if
        :: rests[w] = true; go_on
        :: skip
        fi;
        end_thread(w)
    } unless { GONE(10 + w) };
    rests[w] = true
}

/* ------------------------------------------------------------------------------- the drain thread */

inline enter_store()
{
    atomic { in_store++; assert(in_store == 1); generation = renewals }
}

/* take_records and write_records: what is committed; then out of the store. */
inline drain_ring()
{
    enter_store();
    taken = committed;
    atomic { assert(generation == renewals); generation = 0; in_store-- }
}

inline disarm()
{
    if
    :: slot[i] == LIVE -> armed[i] = false
    :: else
    fi
}

inline arm()
{
    if
    :: slot[i] == LIVE -> armed[i] = true; ticked[i] = true
    :: else
    fi
}

inline drop_slot()
{
    if
    :: slot[i] == LIVE -> armed[i] = false; slot[i] = FREE
    :: else
    fi
}

inline wait_for_handler()
{
    if
    :: !inside[i]
    :: give_up()
    fi
}

inline wait_for_handlers()
{
    if
    :: writers == 0
    :: give_up()
    fi;
    FOR_EACH_SLOT(wait_for_handler())
}

inline session_is_over()
{
    atomic {
        assert(gave_up || reserved == taken);
        state = OFF
    }
}

/* lapse_session_expire: the duration is over. */
inline expire()
{
    if
    :: atomic { IS_OPEN -> state = STOPPING }
        FOR_EACH_SLOT(disarm());
        wait_for_handlers();
        drain_ring();
        finished = true;
        FOR_EACH_SLOT(drop_slot());
        session_is_over();
        leaves = true
    :: !IS_OPEN
    fi
}

proctype drain_thread()
{
    byte generation, i;
    byte seen;
    bool finish, leave, leaves;
    {
end_not_there:
        do
        :: alive ->
            atomic {
                if
                :: drain == STARTING -> drain = ALIVE
                :: else
                fi
            }
            do
            :: atomic { leaves = false; seen = bell }
#if FAULT == 11
                atomic { finish = asked_finish; leave = asked_leave; asked_finish = false; asked_leave = false }
                seen = bell;
#else
                atomic { finish = asked_finish; leave = asked_leave; asked_finish = false; asked_leave = false }
#endif
                if
                :: finish ->
                    drain_ring();
                    finished = true;
                    leaves = true
                :: !finish && IS_LATE -> leaves = true /* started by a handler that was held up */
#if EXPIRES
                :: !finish && !IS_LATE -> expire()
#endif
                :: !finish && !IS_LATE -> drain_ring()
                fi;
                if
                :: leaves || leave -> break
                :: else
                fi;
end_waits:
                (bell != seen || committed != taken || IS_LATE)
            od;
            atomic {
                if /* HELD stays; STARTING is the next one's */
                :: drain == ALIVE -> drain = NONE
                :: else
                fi;
                finish = false; leave = false; leaves = false; seen = 0; i = 0
            }
            alive = false
        od
    } unless { GONE(DRAIN) }
}

/* -------------------------------------------------------------------------------- control threads */

inline control_begin()
{
    if
    :: atomic { owner == 0 -> owner = me; refused = false }
    :: atomic { give_up(); refused = true }
    fi;
#if FAULT == 9
    if
    :: skip -> owner != me
    :: skip
    fi
#endif
}

inline control_end()
{
    owner = 0
}

/* Until the thread `which` is gone. */
inline wait_gone()
{
    if
    :: atomic { !alive || threads != which -> which = 0 }
    :: atomic { give_up(); which = 0 }
    fi
}

inline wait_for_handler_or_refuse()
{
    if
    :: !inside[i]
    :: atomic { give_up(); refused = true }
    fi
}

/* What lies between two sessions. Refused while anybody of the last one is still at work. */
inline renew()
{
#if FAULT != 2
    FOR_EACH_SLOT(wait_for_handler_or_refuse());
    if
    :: writers == 0
    :: atomic { give_up(); refused = true }
    fi;
#endif
#if FAULT != 1
    if
    :: !alive
    :: atomic { give_up(); refused = true }
    fi;
#endif
    if
    :: !refused ->
        atomic {
            assert(in_store == 0);
            assert(gave_up || reserved == taken);
            renewals++;
            reserved = 0; committed = 0; taken = 0;
            finished = false; asked_finish = false; asked_leave = false
        }
    :: else
    fi
}

inline start()
{
    control_begin();
    if
    :: refused
    :: else ->
        if
        :: state == OFF && !other_runs ->
            renew();
            if
            :: refused
            :: else ->
                if
                :: state = RUNNING
                :: state = PAUSED
                fi;
                assert(!other_runs);
                /* the scan: threads that came before the session */
                do
                :: atomic { i < WORKERS && lives[i] && slot[i] == FREE -> slot[i] = TAKEN; running = state == RUNNING }
                    make_live(i);
                    i++
                :: atomic { i < WORKERS && (!lives[i] || slot[i] != FREE) -> i++ }
                :: atomic { i == WORKERS -> i = 0; break }
                od
            fi
        :: else
        fi;
        control_end()
    fi
}

inline pause()
{
    control_begin();
    if
    :: refused
    :: else ->
        if
        :: state == RUNNING ->
            FOR_EACH_SLOT(disarm());
            wait_for_handlers()
        :: else
        fi;
        if
        :: atomic { state == RUNNING -> state = PAUSED }
#if FAULT != 7
            FOR_EACH_SLOT(disarm()) /* threads that began meanwhile */
#endif
        :: state != RUNNING
        fi;
        control_end()
    fi
}

inline resume()
{
    control_begin();
    if
    :: refused
    :: else ->
        if
        :: atomic { state == PAUSED -> state = RUNNING }
            FOR_EACH_SLOT(arm())
        :: state != PAUSED
        fi;
        control_end()
    fi
}

/* write_everything: by the drain thread; in its place where none can be had. */
inline write_everything()
{
    atomic {
        if
        :: drain == HELD -> drain = NONE
        :: else
        fi
    }
    if
    :: drain == NONE && reserved == 0 -> skip /* nothing was ever recorded */
    :: else ->
#if FAULT == 5
        if
        :: drain == NONE -> start_drain()
        :: else -> started = true
        fi;
        if
        :: started -> asked_finish = true; bell = (bell + 1) % 8;
            if
            :: finished
            :: give_up()
            fi
        :: else -> drain_ring(); finished = true
        fi;
#else
        do
        :: finished -> break
        :: !finished && !alive ->
            atomic {
                if
                :: drain == HELD -> drain = NONE
                :: else
                fi
            }
            start_drain();
            if
            :: started
            :: !started ->
                if
                :: atomic { drain == NONE -> drain = REPLACED }
                    if
                    :: !alive -> drain_ring(); finished = true
                    :: alive
                    fi;
                    drain = NONE
                :: drain != NONE
                fi
            fi
        :: !finished && alive ->
            asked_finish = true;
            bell = (bell + 1) % 8;
            if
            :: finished
            :: !alive && (drain == NONE || drain == HELD) /* it left before it heard us */
            :: give_up() -> break
            fi
        od;
#endif
        if
        :: atomic { finished -> which = threads } wait_gone()
        :: else
        fi
    fi
}

/* lapse_session_finish */
inline finish()
{
    if
    :: atomic { IS_OPEN -> state = STOPPING }
#if FAULT == 10
        if
        :: skip -> state != STOPPING
        :: skip
        fi;
#endif
        FOR_EACH_SLOT(disarm());
#if FAULT != 12
        wait_for_handlers();
#endif
        write_everything();
        FOR_EACH_SLOT(drop_slot());
        session_is_over()
    :: !IS_OPEN ->
        if
        :: state != STOPPING
        :: give_up()
        fi
    fi
}

inline stop()
{
    control_begin();
    if
    :: refused
    :: else -> finish(); control_end()
    fi
}

/* lapse_session_quiesce, unquiesce: no drain thread for a moment. */
inline be_single()
{
    if
    :: atomic { IS_OPEN && !drain_is_held -> drain_is_held = true }
        if
        :: atomic { drain == NONE -> drain = HELD; which = threads }
            atomic { !alive || threads != which -> which = 0 }
            assert(gave_up || drain != HELD || !alive)
#if FAULT == 15
        :: atomic { drain != NONE -> drain = HELD }
#else
        :: atomic { drain == ALIVE -> drain = HELD }
#endif
            atomic { which = threads; asked_leave = true }
            bell = (bell + 1) % 8;
            atomic { !alive || threads != which -> which = 0 }
            assert(gave_up || drain != HELD || !alive)
        :: drain == HELD
        fi;
        drain_is_held = false;
        atomic {
            if
            :: drain == HELD -> drain = NONE
            :: else
            fi
        }
    :: !IS_OPEN || drain_is_held
    fi
}

/* In the child: the other threads are gone in the midst of what they did. */
inline become_child()
{
    atomic {
        only = me;
        in_store = 0; /* for the assertion: who was in it is not here */
        if
        :: state == STOPPING -> state = OFF
        :: else
        fi;
#if FAULT != 13
        owner = 0;
#endif
        drain_is_held = false;
        drain = NONE;
        alive = false;
        writers = 0;
        for (i : 0 .. WORKERS - 1) {
            slot[i] = FREE; armed[i] = false; lives[i] = false;
#if FAULT != 6
            inside[i] = false
#else
            skip
#endif
        }
        i = 0;
        renewals++;
        reserved = 0; committed = 0; taken = 0;
        finished = false; asked_finish = false; asked_leave = false
    }
}

proctype control(byte me, ops)
{
    byte generation, i, which;
    bool refused, started, running;
    {
        do
        :: ops > 0 ->
            ops--;
            if /* skip: chosen whether or not it can go on */
            :: skip -> start()
            :: skip -> pause()
            :: skip -> resume()
            :: skip -> stop()
            :: skip -> be_single()
            :: skip -> finish(); only = ENDED
            :: only == 0 -> become_child()
            fi
        :: else -> break
        od
    } unless { GONE(me) };
    controls++
}

/* The second copy of lapse: its start reads the first one's state, and the other way round. */
proctype copy()
{
    {
end_may_start:
        do
#if FAULT == 14
        :: atomic { owner == 0 && !other_runs && state != RUNNING && state != STOPPING -> other_runs = true; assert(state == OFF) }
#else
        :: atomic { owner == 0 && !other_runs && state == OFF -> other_runs = true }
#endif
        :: other_runs -> other_runs = false; break
        od
    } unless { GONE(COPY) }
}

init {
    byte w;
    {
        atomic {
            run drain_thread();
#if COPIES
            run copy();
#endif
            for (w : 0 .. WORKERS - 1) {
                run worker(w)
            }
            run control(1, OPS);
            run control(2, OPS_OTHER)
        }
        atomic {
            controls == 2 && rests[0] && rests[WORKERS - 1] && state != STOPPING;
            for (w : 0 .. WORKERS - 1) {
                assert(slot[w] == FREE || slot[w] == LIVE);
                assert(slot[w] != LIVE || IS_OPEN);
                assert(armed[w] == (slot[w] == LIVE && state == RUNNING))
            }
            go_on = true
        }
    } unless { GONE(MAIN) }
}

#ifdef LIVENESS
ltl ends { [] (state == STOPPING -> <> (state != STOPPING)) }
#endif
