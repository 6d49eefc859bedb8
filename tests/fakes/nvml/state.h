/* What a fake driver knows at one moment. */
#ifndef STATE_H
#define STATE_H

#define MOST_CARDS 16
#define MOST_USES 256
#define NOBODY (-1)

typedef struct {
    char uuid[96], name[96];
    unsigned long long total, reserved, base; /* MiB */
    int error, is_split, parent;              /* parent: NOBODY for a whole card */
} Card;

typedef struct {
    char uuid[96];
    int pid; /* 0: of a process that is gone; in use, and nobody's */
    unsigned long long used;
    int computes, draws;
} Use;

typedef struct {
    int init, hang, lists, old, lag;
    char claims[512];
    int cards, uses, hiddens;
    Card card[MOST_CARDS];
    Use use[MOST_USES];
    int hidden[MOST_USES];
} State;

/* What the file named by QMSUP_FAKE_NVML says now, and who claims memory; no driver without such a file. */
void look(State *state);

#endif
