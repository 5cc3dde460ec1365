//go:build cgo

#include <string.h>

#include "thread.h"

/* One of these is in each thread: Go's goroutines run on the thread that called them as long as a call lasts. */
static _Thread_local char fault[2048];

const char *sluice_error(void) { return fault; }

void sluice_fail(const char *text, size_t bytes) {
	if (bytes >= sizeof fault) {
		bytes = sizeof fault - 1;
		while (bytes > 0 && ((unsigned char)text[bytes] & 0xC0) == 0x80) {
			bytes--; /* no half character stays */
		}
	}
	memcpy(fault, text, bytes);
	fault[bytes] = 0;
}

int sluice_give(sluice_take take, void *user, int kind, const char *text, size_t bytes) {
	return take(user, kind, text, bytes);
}
