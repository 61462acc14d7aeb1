#include <config.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* rotate moves a letter of the alphabet by thirteen places. */
static int rotate(int c)
{
	if (c >= 'a' && c <= 'z')
		return 'a' + (c - 'a' + 13) % 26;
	if (c >= 'A' && c <= 'Z')
		return 'A' + (c - 'A' + 13) % 26;
	return c;
}

int main(int argc, char **argv)
{
	int c;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts(PACKAGE_STRING);
		return 0;
	}
	while ((c = getchar()) != EOF)
		putchar(rotate(c));
	return 0;
}
