/* Preloaded into the program: write(2) of one file (FAULT_FILE; none: of every file) takes only a part.
 *
 * FAULT_NUMBER   which write on that file it happens to, from 1 on; 0: to every one of more than a byte
 * FAULT_TAKES    how much is taken: "one" byte, "half", or all "but-one"
 * FAULT_THEN     "go" on, "refuse" every later write on that file (ENOSPC), or "die"
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int written, broken;

static int is_it(int fd)
{
    const char *wanted = getenv("FAULT_FILE");
    char link[64], path[4096];
    if (wanted == NULL)
        return 1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return strcmp(path, wanted) == 0;
}

ssize_t write(int fd, const void *data, size_t size)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (real == NULL)
        real = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    const char *number = getenv("FAULT_NUMBER"), *takes = getenv("FAULT_TAKES"), *then = getenv("FAULT_THEN");
    if (number == NULL || takes == NULL || then == NULL || !is_it(fd))
        return real(fd, data, size);
    if (broken) {
        errno = ENOSPC;
        return -1;
    }
    if (size < 2 || (atoi(number) != 0 && ++written != atoi(number)))
        return real(fd, data, size);
    size_t part = strcmp(takes, "one") == 0 ? 1 : strcmp(takes, "half") == 0 ? size / 2 : size - 1;
    ssize_t done = real(fd, data, part);
    if (strcmp(then, "die") == 0)
        kill(getpid(), SIGKILL);
    broken = strcmp(then, "refuse") == 0;
    return done;
}
