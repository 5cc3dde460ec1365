/* What exports.go asks of C. */
#include "sluice.h"

/* A string that is only read, for Go, which has no const. */
typedef const char sluice_char;

/* Sets what sluice_error returns in this thread. */
void sluice_fail(const char *text, size_t bytes);

/* Calls take. */
int sluice_give(sluice_take take, void *user, int kind, const char *text, size_t bytes);
