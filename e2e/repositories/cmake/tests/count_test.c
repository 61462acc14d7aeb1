#include <stdio.h>

#include "count.h"

static int failures;

static void want(const char *text, size_t words)
{
	size_t got = count_words(text);

	if (got != words) {
		fprintf(stderr, "\"%s\": %zu words, not %zu\n", text, got, words);
		failures++;
	}
}

int main(void)
{
	want("", 0);
	want("  \n", 0);
	want("one", 1);
	want(" one\ttwo\nthree ", 3);
	return failures != 0;
}
