/* Asks a model one question, and prints the answer as it comes.
 *
 *   go build -buildmode=c-shared -o libsluice.so ./cmd/libsluice
 *   cc -o ask cmd/libsluice/example/ask.c -Icmd/libsluice -L. -lsluice -Wl,-rpath,'$ORIGIN'
 *   ./ask                     the small model that is part of the library
 *   ./ask model.gguf
 */
#include <stdio.h>
#include <stdlib.h>

#include "sluice.h"

static int print(void *user, int kind, const char *text, size_t bytes) {
	if (kind == SLUICE_TEXT) {
		fwrite(text, 1, bytes, user);
		fflush(user);
	}
	return 0;
}

int main(int count, char **words) {
	sluice_model model = sluice_open(count > 1 ? words[1] : NULL, "{\"context\": 512}");
	if (model == 0) {
		fprintf(stderr, "ask: %s\n", sluice_error());
		return EXIT_FAILURE;
	}
	const char *request = "{\"messages\": [{\"role\": \"user\", \"content\": \"What is the capital of France?\"}],"
	                      " \"temperature\": 0}";
	int64_t tokens = sluice_generate(model, request, print, stdout);
	if (tokens < 0) {
		fprintf(stderr, "ask: %s\n", sluice_error());
	} else {
		printf("\n");
	}
	sluice_close(model);
	return tokens < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
