#include <stdio.h>
#include <string.h>

#include "count.h"

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("tally " TALLY_VERSION);
		return 0;
	}
	for (int i = 1; i < argc; i++)
		printf("%zu %s\n", count_words(argv[i]), argv[i]);
	return 0;
}
