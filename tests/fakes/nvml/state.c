/* Reads the file that a test or a demo writes (tests/fakes/gpu.py), and the claims of the programs that play along.
 *
 * A line of the file is a word and what belongs to it:
 *
 *     init 0                                  what nvmlInit returns; anything but 0: there is no driver, for any call
 *     hang 0                                  milliseconds that each question about memory takes
 *     lists 0                                 what the lists of processes return; 3 = not supported
 *     old 0                                   1: the calls that came with newer drivers are not there; 2: more of them
 *     lag 0                                   milliseconds for which a dead process's memory stays in use
 *     claims /tmp/x/claims                    a folder; a file named as a pid holds "MIB UUID" for each card it uses
 *     card UUID TOTAL RESERVED BASE ERROR SPLIT NAME    sizes in MiB; ERROR is what asking for it returns
 *     part UUID TOTAL RESERVED BASE ERROR PARENT NAME   of the card numbered PARENT, which is split (MIG)
 *     use UUID PID MIB c|g|cg                 a process that computes, draws, or both
 *     hidden PID                              it is listed, but how much it uses is not available
 */
#include "state.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

static int is_alive(int pid) {
    char path[64], text[256], *end;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    end = strrchr(text, ')'); /* a zombie has given its memory back */
    return end && end[1] && !strchr("ZXx", end[2]);
}

static void add_use(State *state, const char *uuid, int pid, unsigned long long used, const char *kind) {
    if (state->uses == MOST_USES) return;
    Use *use = &state->use[state->uses++];
    snprintf(use->uuid, sizeof use->uuid, "%s", uuid);
    use->pid = pid;
    use->used = used;
    use->computes = strchr(kind, 'c') != NULL;
    use->draws = strchr(kind, 'g') != NULL;
}

static void add_claim(State *state, const char *path, int pid) {
    char uuid[96];
    unsigned long long used;
    FILE *file = fopen(path, "r");
    if (!file) return;
    while (fscanf(file, "%llu %95s", &used, uuid) == 2) add_use(state, uuid, pid, used, "c");
    fclose(file);
}

/* Of the dead: kept under another name, dated by when that was seen, until the lag is over. */
static void add_dead(State *state, const char *path) {
    struct stat about;
    struct timespec now;
    if (stat(path, &about)) return;
    clock_gettime(CLOCK_REALTIME, &now);
    long long age = (now.tv_sec - about.st_mtim.tv_sec) * 1000LL + (now.tv_nsec - about.st_mtim.tv_nsec) / 1000000LL;
    if (age >= state->lag)
        unlink(path);
    else
        add_claim(state, path, 0);
}

static void add_claims(State *state) {
    char path[1024], dead[1024];
    struct dirent *entry;
    DIR *folder = state->claims[0] ? opendir(state->claims) : NULL;
    if (!folder) return;
    while ((entry = readdir(folder))) {
        snprintf(path, sizeof path, "%s/%s", state->claims, entry->d_name);
        if (!strncmp(entry->d_name, "dead-", 5)) {
            add_dead(state, path);
        } else if (isdigit((unsigned char)entry->d_name[0]) && !strpbrk(entry->d_name, ".")) {
            int pid = atoi(entry->d_name);
            if (is_alive(pid)) {
                add_claim(state, path, pid);
            } else {
                snprintf(dead, sizeof dead, "%s/dead-%d", state->claims, pid);
                if (!rename(path, dead)) utime(dead, NULL);
                add_dead(state, dead);
            }
        }
    }
    closedir(folder);
}

static void add_card(State *state, const char *rest, int is_part) {
    if (state->cards == MOST_CARDS) return;
    Card *card = &state->card[state->cards];
    int other = 0;
    if (sscanf(rest, "%95s %llu %llu %llu %d %d %95[^\n]", card->uuid, &card->total, &card->reserved, &card->base,
               &card->error, &other, card->name) != 7)
        return;
    card->is_split = is_part ? 0 : other;
    card->parent = is_part ? other : NOBODY;
    state->cards++;
}

static void add_line(State *state, const char *line) {
    char word[16], uuid[96], kind[8];
    unsigned long long used;
    int at = 0, pid;
    if (sscanf(line, "%15s %n", word, &at) != 1) return;
    const char *rest = line + at;
    if (!strcmp(word, "init")) state->init = atoi(rest);
    else if (!strcmp(word, "hang")) state->hang = atoi(rest);
    else if (!strcmp(word, "lists")) state->lists = atoi(rest);
    else if (!strcmp(word, "old")) state->old = atoi(rest);
    else if (!strcmp(word, "lag")) state->lag = atoi(rest);
    else if (!strcmp(word, "claims")) sscanf(rest, "%511[^\n]", state->claims);
    else if (!strcmp(word, "card")) add_card(state, rest, 0);
    else if (!strcmp(word, "part")) add_card(state, rest, 1);
    else if (!strcmp(word, "use") && sscanf(rest, "%95s %d %llu %7s", uuid, &pid, &used, kind) == 4)
        add_use(state, uuid, pid, used, kind);
    else if (!strcmp(word, "hidden") && state->hiddens < MOST_USES) state->hidden[state->hiddens++] = atoi(rest);
}

void look(State *state) {
    char line[1024];
    const char *path = getenv("QMSUP_FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    memset(state, 0, sizeof *state);
    state->init = 9; /* the driver is not loaded */
    if (!file) return;
    while (fgets(line, sizeof line, file)) add_line(state, line);
    fclose(file);
    add_claims(state);
}
