/* SPDX-License-Identifier: MIT */
/* Threads in place of signals: producers push records whose every word follows from the first, a slow
 * consumer reads them. Written minus dropped equals read; each thread's records come in order; no
 * word is torn. usage: ring SECONDS. Positions start just below their end. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ring.h"

#define PRODUCERS 4
#define WORDS 256

static struct lapse_ring ring;
static _Atomic int stop;
static _Atomic int running = PRODUCERS;
static uint64_t pushed[PRODUCERS], dropped[PRODUCERS];

static uint64_t mix(uint64_t thread, uint64_t number, uint64_t word)
{
    return (thread * 31 + number) * UINT64_C(0x9e3779b97f4a7c15) + word;
}

static void *produce(void *argument)
{
    uint64_t me = (uint64_t)(uintptr_t)argument, pcs[32];
    for (uint64_t number = 1; !atomic_load_explicit(&stop, memory_order_relaxed); number++) {
        struct lapse_record record = { .kind = LAPSE_RECORD_SAMPLE, .thread = (uint32_t)me,
            .tid = (uint32_t)number, .time_ns = number, .weight_ns = mix(me, number, 100), .pcs = pcs,
            .depth = (uint32_t)(number % 32) };
        for (uint64_t i = 0; i < record.depth; i++)
            pcs[i] = mix(me, number, i);
        if (lapse_ring_push(&ring, &record))
            dropped[me]++;
        else
            pushed[me]++;
    }
    atomic_fetch_sub_explicit(&running, 1, memory_order_release);
    return NULL;
}

static int check(const struct lapse_record *record, uint64_t *last)
{
    uint64_t thread = record->thread, number = record->time_ns;
    if (thread >= PRODUCERS || number <= last[thread] || record->tid != (uint32_t)number ||
        record->depth != number % 32 || record->weight_ns != mix(thread, number, 100))
        return 0;
    last[thread] = number;
    for (uint64_t i = 0; i < record->depth; i++)
        if (record->pcs[i] != mix(thread, number, i))
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    struct timespec start, now, pause = { 0, 20000 };
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    static uint64_t scratch[64], last[PRODUCERS], taken;
    pthread_t threads[PRODUCERS];
    void *memory = aligned_alloc(4096, LAPSE_RING_CONTROL_SIZE + 4096);
    if (!memory)
        return 1;
    for (size_t i = 0; i < (LAPSE_RING_CONTROL_SIZE + 4096) / 8; i++)
        ((uint64_t *)memory)[i] = 0;
    lapse_ring_init(&ring, memory, WORDS, UINT64_MAX - 1000);
    for (uintptr_t i = 0; i < PRODUCERS; i++)
        pthread_create(&threads[i], NULL, produce, (void *)i);
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (struct lapse_record record;;) {
        int left = atomic_load_explicit(&running, memory_order_acquire);
        int result = lapse_ring_pop(&ring, &record, scratch, 64);
        if (result < 0 || (result && !check(&record, last))) {
            fprintf(stderr, "record %llu is not what was pushed\n", (unsigned long long)taken);
            return 1;
        }
        taken += (uint64_t)result;
        if (!result && !left)
            break;
        if (!result || taken % 1000 == 0)
            nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) * 1e-9 > seconds)
            atomic_store_explicit(&stop, 1, memory_order_relaxed);
    }
    uint64_t in = 0, lost = 0;
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(threads[i], NULL);
        in += pushed[i];
        lost += dropped[i];
    }
    printf("pushed %llu, dropped %llu, read %llu\n", (unsigned long long)in, (unsigned long long)lost,
           (unsigned long long)taken);
    return !(in == taken && lapse_ring_is_valid(&ring) && in > 1000);
}
