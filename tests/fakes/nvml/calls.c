/* A stand-in for NVIDIA's libnvidia-ml.so.1: what it tells stands in a file, so that a test or a demo can play a card.
 *
 * The file is read anew at every call; state.c says what may stand there. As the real library, this one answers only
 * after nvmlInit, and a card that was lost stays lost until the next nvmlInit.
 */
#include "state.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    FUNCTION_NOT_FOUND = 13,
    GPU_IS_LOST = 15,
};

#define MIB (1024ULL * 1024ULL)
#define NOT_AVAILABLE (~0ULL)

typedef struct {
    unsigned long long total, free, used;
} Memory;

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} MemoryV2;

typedef struct {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance, compute_instance;
} Process;

static int is_open;
static int is_lost[MOST_CARDS];

/* ---- what every call begins with ---- */

static int begin(State *state) {
    look(state);
    if (state->init) is_open = 0; /* the driver went: what was open is void */
    if (state->init) return state->init;
    return is_open ? SUCCESS : UNINITIALIZED;
}

static int find(State *state, void *handle, Card **card) {
    int code = begin(state);
    intptr_t number = (intptr_t)handle - 1;
    if (code) return code;
    if (number < 0 || number >= state->cards) return INVALID_ARGUMENT;
    *card = &state->card[number];
    if ((*card)->error == GPU_IS_LOST) is_lost[number] = 1;
    return is_lost[number] ? GPU_IS_LOST : (*card)->error;
}

/* The handle of the nth card that lies in `parent` (NOBODY: of the whole ones). */
static int nth(State *state, int parent, unsigned int n, void **handle) {
    for (int number = 0; number < state->cards; number++)
        if (state->card[number].parent == parent && n-- == 0) {
            Card *card;
            *handle = (void *)(intptr_t)(number + 1);
            return find(state, *handle, &card);
        }
    return parent == NOBODY ? INVALID_ARGUMENT : NOT_FOUND;
}

static unsigned int count(const State *state, int parent) {
    unsigned int found = 0;
    for (int number = 0; number < state->cards; number++) found += state->card[number].parent == parent;
    return found;
}

static int copy(char *to, unsigned int size, const char *from) {
    return (unsigned int)snprintf(to, size, "%s", from) < size ? SUCCESS : INSUFFICIENT_SIZE;
}

/* ---- the calls ---- */

int nvmlInitWithFlags(unsigned int flags) {
    State state;
    (void)flags;
    look(&state);
    if (state.init) return state.init;
    is_open = 1;
    memset(is_lost, 0, sizeof is_lost);
    return SUCCESS;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void) {
    State state;
    int code = begin(&state);
    is_open = 0;
    return code;
}

const char *nvmlErrorString(int code) {
    static char text[32];
    snprintf(text, sizeof text, "error %d", code);
    return text;
}

int nvmlSystemGetDriverVersion(char *version, unsigned int size) {
    State state;
    int code = begin(&state);
    return code ? code : copy(version, size, "999.1");
}

int nvmlSystemGetNVMLVersion(char *version, unsigned int size) { return copy(version, size, "13.999.1"); }

int nvmlDeviceGetCount_v2(unsigned int *cards) {
    State state;
    int code = begin(&state);
    if (!code) *cards = count(&state, NOBODY);
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int number, void **handle) {
    State state;
    int code = begin(&state);
    return code ? code : nth(&state, NOBODY, number, handle);
}

int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int size) {
    State state;
    Card *card;
    int code = find(&state, handle, &card);
    return code ? code : copy(uuid, size, card->uuid);
}

int nvmlDeviceGetName(void *handle, char *name, unsigned int size) {
    State state;
    Card *card;
    int code = find(&state, handle, &card);
    return code ? code : copy(name, size, card->name);
}

int nvmlDeviceGetMigMode(void *handle, unsigned int *current, unsigned int *pending) {
    State state;
    Card *card;
    int code = find(&state, handle, &card);
    if (code) return code;
    if (!card->is_split) return NOT_SUPPORTED;
    *current = *pending = 1;
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned int *parts) {
    State state;
    Card *card;
    int code = find(&state, handle, &card);
    if (!code) *parts = 7; /* places, not all of them taken */
    return code;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned int number, void **part) {
    State state;
    Card *card;
    int code = find(&state, handle, &card);
    return code ? code : nth(&state, (int)(card - state.card), number, part);
}

static int measure(void *handle, int is_new, Card **card, State *state, unsigned long long *used) {
    int code = find(state, handle, card);
    if (code) return code;
    if (is_new && state->old) return FUNCTION_NOT_FOUND;
    struct timespec pause = {state->hang / 1000, state->hang % 1000 * 1000000L};
    nanosleep(&pause, NULL);
    *used = (*card)->base;
    for (int at = 0; at < state->uses; at++)
        if (!strcmp(state->use[at].uuid, (*card)->uuid)) *used += state->use[at].used;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *handle, Memory *memory) {
    State state;
    Card *card;
    unsigned long long used;
    int code = measure(handle, 0, &card, &state, &used);
    if (code) return code;
    used += card->reserved;
    memory->total = card->total * MIB;
    memory->used = used * MIB;
    memory->free = used > card->total ? 0 : (card->total - used) * MIB;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(void *handle, MemoryV2 *memory) {
    State state;
    Card *card;
    unsigned long long used;
    int code = measure(handle, 1, &card, &state, &used);
    if (code) return code;
    memory->total = card->total * MIB;
    memory->reserved = card->reserved * MIB;
    memory->used = used * MIB;
    used += card->reserved;
    memory->free = used > card->total ? 0 : (card->total - used) * MIB;
    return SUCCESS;
}

static int is_hidden(const State *state, int pid) {
    for (int at = 0; at < state->hiddens; at++)
        if (state->hidden[at] == pid) return 1;
    return 0;
}

static int list(void *handle, unsigned int *places, Process *processes, int draws, int is_new) {
    State state;
    Card *card;
    unsigned int found = 0;
    int code = find(&state, handle, &card);
    if (code) return code;
    if (state.old > !is_new) return FUNCTION_NOT_FOUND;
    if (state.lists) return state.lists;
    for (int at = 0; at < state.uses; at++) {
        const Use *use = &state.use[at];
        if (!use->pid || !(draws ? use->draws : use->computes) || strcmp(use->uuid, card->uuid)) continue;
        if (found < *places && processes)
            processes[found] = (Process){(unsigned int)use->pid,
                                         is_hidden(&state, use->pid) ? NOT_AVAILABLE : use->used * MIB, ~0U, ~0U};
        found++;
    }
    code = found > *places ? INSUFFICIENT_SIZE : SUCCESS;
    *places = found;
    return code;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *places, Process *processes) {
    return list(handle, places, processes, 0, 1);
}

int nvmlDeviceGetComputeRunningProcesses_v2(void *handle, unsigned int *places, Process *processes) {
    return list(handle, places, processes, 0, 0);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned int *places, Process *processes) {
    return list(handle, places, processes, 1, 1);
}

int nvmlDeviceGetGraphicsRunningProcesses_v2(void *handle, unsigned int *places, Process *processes) {
    return list(handle, places, processes, 1, 0);
}
