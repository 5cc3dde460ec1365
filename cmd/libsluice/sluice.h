/* libsluice runs large language models inside a program. See docs/library.md.
 *
 * Texts are UTF-8. Functions may be called from any thread, also for one model at a time from several. A function that
 * fails returns 0 or -1, as it says, and sluice_error then has a text for the calling thread. Nothing is printed.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A model that is loaded; 0 is none. */
typedef uint64_t sluice_model;

/* What a piece of an answer is. */
enum { SLUICE_TEXT = 0, SLUICE_THOUGHT = 1 };

/* Takes a piece of an answer: bytes at text, which are valid during the call and end by a zero that does not count.
 * It returns 0 to go on; anything else ends the answer. */
typedef int (*sluice_take)(void *user, int kind, const char *text, size_t bytes);

/* Loads a model: a GGUF file, a folder of safetensors, the name of one that `sluice pull` has got, or NULL for the small
 * one that is part of the library. options are NULL, or a JSON object with any of
 *   "context", "memory", "vram", "device", "threads", "kv", "sequences"
 * as docs/library.md describes them. Returns 0 on an error. */
sluice_model sluice_open(const char *name, const char *options);

/* Answers a request, a JSON object with
 *   "messages": [{"role": "user", "content": "..."}], or "prompt": "..."
 * and any of "max_tokens", "stop", "schema", "think", "temperature", "top_k", "top_p", "min_p", "seed". take is called,
 * on this thread, for each piece of the answer; it may be NULL. When the answer has ended, or take ends it, returns how
 * many tokens were generated, some of which take may not have seen; -1 on an error. */
int64_t sluice_generate(sluice_model model, const char *request, sluice_take take, void *user);

/* Writes the vector of a text, of the length 1, to an array with room for so many numbers. Returns how many numbers it
 * has; if that is more than room, nothing was written. -1 on an error. */
int64_t sluice_embed(sluice_model model, const char *text, float *vector, size_t room);

/* Frees a model. What is still answered ends with an error. Returns 0, or -1 on an error. */
int sluice_close(sluice_model model);

/* What went wrong in this thread's last call that failed; "" if none did. Valid until this thread's next call. */
const char *sluice_error(void);

/* The library's version. */
const char *sluice_version(void);

#ifdef __cplusplus
}
#endif

#endif
