/* What the harness needs compiled: requests to valgrind, a source of random bytes that the harness chooses, and a
 * function that leaks on purpose. Loaded with LD_PRELOAD, so that this getrandom comes before the C library's. */

#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <valgrind/callgrind.h>
#include <valgrind/memcheck.h>

int probe_on_valgrind(void) { return RUNNING_ON_VALGRIND != 0; }

/* --- memcheck: secret memory is memory that memcheck takes for uninitialized */

void probe_mark(void *memory, size_t size) { (void)VALGRIND_MAKE_MEM_UNDEFINED(memory, size); }

void probe_release(void *memory, size_t size) { (void)VALGRIND_MAKE_MEM_DEFINED(memory, size); }

/* How many of these bytes have a secret bit. Outside memcheck there are none. */
size_t probe_secret_bytes(const unsigned char *memory, size_t size)
{
    size_t secret = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char bits = 0;
        if (VALGRIND_GET_VBITS(memory + i, &bits, 1) == 1 && bits != 0)
            secret++;
    }
    return secret;
}

unsigned long probe_errors(void) { return VALGRIND_COUNT_ERRORS; }

void probe_note(const char *line) { VALGRIND_PRINTF("%s\n", line); }

/* --- callgrind: nothing is counted before the first start */

void probe_start(void) { CALLGRIND_START_INSTRUMENTATION; }

void probe_zero(void) { CALLGRIND_ZERO_STATS; }

void probe_dump(const char *label) { CALLGRIND_DUMP_STATS_AT(label); }

/* --- random bytes of the operating system, as the harness gives them */

static const unsigned char *fed;
static size_t fed_size;
static size_t asked;

/* The next `size` bytes that are asked for are these, secret where they are. They stay where they are meanwhile. */
void probe_feed(const unsigned char *bytes, size_t size)
{
    fed = bytes;
    fed_size = size;
    asked = 0;
}

/* How many bytes were asked for since then. */
size_t probe_asked(void) { return asked; }

ssize_t getrandom(void *buffer, size_t size, unsigned flags)
{
    asked += size;
    if (fed_size == 0 || size == 0)
        return syscall(SYS_getrandom, buffer, size, flags);
    if (size > fed_size)
        size = fed_size;
    /* With their marks, so that a run with public bytes is public. */
    memcpy(buffer, fed, size);
    fed += size;
    fed_size -= size;
    return (ssize_t)size;
}

/* --- the control: the position of the first difference, found as one should not */

__attribute__((noinline)) int64_t probe_leaky_control(const unsigned char *secret, size_t size)
{
    size_t i = 0;
    while (i < size && secret[i] == 0)
        i++;
    return (int64_t)i;
}

/* callgrind does not see calls that come from libffi, which moves the stack by hand. */
void probe_run_control(const unsigned char *secret, size_t size, int64_t *result)
{
    *result = probe_leaky_control(secret, size);
}
