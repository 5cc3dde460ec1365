/* Calls the library as it is not meant, and from several threads: TestLibrary runs it. It wants the file of an embedding
 * model. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sluice.h"

#define WANT(what)                                                                       \
	do {                                                                             \
		if (!(what)) {                                                           \
			printf("line %d: %s: %s\n", __LINE__, #what, sluice_error());    \
			exit(EXIT_FAILURE);                                              \
		}                                                                        \
	} while (0)

static const char question[] =
	"{\"messages\": [{\"role\": \"user\", \"content\": \"What is the capital of France?\"}], \"temperature\": 0}";
static const char paris[] = "The capital of France is Paris.";

/* An answer, as far as it came, and how many pieces may still come. */
struct answer {
	char text[1000];
	int pieces;
};

static int take(void *user, int kind, const char *text, size_t bytes) {
	struct answer *a = user;
	WANT(kind == SLUICE_TEXT && bytes > 0 && strlen(text) == bytes && strlen(a->text) + bytes < sizeof a->text);
	strcat(a->text, text);
	return --a->pieces == 0;
}

static sluice_model model;

static void *ask(void *unused) {
	struct answer a = {"", -1};
	WANT(sluice_generate(model, question, take, &a) > 0);
	WANT(strcmp(a.text, paris) == 0);
	WANT(sluice_generate(0, question, NULL, NULL) == -1 && strstr(sluice_error(), "no such model"));
	return unused;
}

/* A thread that did nothing wrong has no error, whatever others have. */
static void *innocent(void *unused) {
	WANT(strcmp(sluice_error(), "") == 0);
	return unused;
}

static void in_thread(void *(*run)(void *), int count) {
	pthread_t threads[8];
	for (int i = 0; i < count; i++) {
		WANT(pthread_create(&threads[i], NULL, run, NULL) == 0);
	}
	for (int i = 0; i < count; i++) {
		WANT(pthread_join(threads[i], NULL) == 0);
	}
}

static void open_refuses(void) {
	WANT(strcmp(sluice_error(), "") == 0 && strlen(sluice_version()) > 0);
	WANT(sluice_open("none.gguf", NULL) == 0 && strstr(sluice_error(), "none.gguf"));
	WANT(sluice_open(NULL, "{") == 0 && strstr(sluice_error(), "options: it ends too early"));
	WANT(sluice_open(NULL, "{\"contexts\": 1}") == 0 && strstr(sluice_error(), "contexts"));
	WANT(sluice_open(NULL, "{\"threads\": -1}") == 0 && strstr(sluice_error(), "Options.Threads is -1"));
	char *name = malloc(100001); /* its error is longer than what is kept of one, and is cut between characters */
	WANT(name != NULL);
	for (int i = 0; i < 100000; i += 2) {
		memcpy(name + i, "\xc3\xa4", 2);
	}
	name[100000] = 0;
	WANT(sluice_open(name, NULL) == 0);
	size_t length = strlen(sluice_error());
	WANT(length > 2000 && length < 2048 && (unsigned char)sluice_error()[length - 1] == 0xa4);
	free(name);
}

static void generate(void) {
	struct answer few = {"", 2};
	WANT(sluice_generate(model, question, take, &few) >= 2 && few.pieces == 0);
	WANT(strncmp(paris, few.text, strlen(few.text)) == 0 && strlen(few.text) < strlen(paris));
	WANT(sluice_generate(model, question, NULL, NULL) > 0);
	WANT(sluice_generate(model, NULL, NULL, NULL) == -1 && strstr(sluice_error(), "request: it ends too early"));
	WANT(sluice_generate(model, "{}", NULL, NULL) == -1 && strstr(sluice_error(), "neither Messages nor a Prompt"));
	WANT(sluice_embed(model, "x", NULL, 0) == -1 && strstr(sluice_error(), "has no embeddings"));
	in_thread(innocent, 1);
	in_thread(ask, 8);
}

static void embed(const char *name) {
	sluice_model other = sluice_open(name, NULL);
	WANT(other != 0 && other != model);
	float v[4096] = {0};
	int64_t n = sluice_embed(other, "a cat", v, 1);
	WANT(n > 1 && n <= 4096 && v[0] == 0);
	WANT(sluice_embed(other, "a cat", NULL, 4096) == n);
	WANT(sluice_embed(other, "a cat", v, (size_t)n) == n);
	float sum = 0;
	for (int64_t i = 0; i < n; i++) {
		sum += v[i] * v[i];
	}
	WANT(sum > 0.9999f && sum < 1.0001f);
	WANT(sluice_close(other) == 0 && sluice_close(other) == -1 && strstr(sluice_error(), "no such model"));
	WANT(sluice_embed(other, "a cat", v, 4096) == -1);
}

int main(int count, char **words) {
	WANT(count == 2);
	open_refuses();
	model = sluice_open("", "{\"context\": 512, \"device\": \"cpu\"}");
	WANT(model != 0);
	generate();
	embed(words[1]);
	WANT(sluice_close(model) == 0 && sluice_close(0) == -1);
	WANT(sluice_generate(model, question, NULL, NULL) == -1);
	puts("all right");
	return EXIT_SUCCESS;
}
