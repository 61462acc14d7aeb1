#ifndef COUNT_H
#define COUNT_H

#include <stddef.h>

/* count_words returns how many words a text has; spaces and line ends stand between them. */
size_t count_words(const char *text);

#endif
