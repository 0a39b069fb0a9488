// SPDX-License-Identifier: GPL-2.0-only
/* Finds the word that somebody may have meant who wrote another word. */
#include "tool.h"

/* Longer words are not compared. */
#define LONGEST	32

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Counts how many letters are wrong, missing, too many, or swapped with their neighbour. */
static int distance(const char *one, const char *other)
{
	int costs[LONGEST + 1][LONGEST + 1];
	int rows = strlen(one), columns = strlen(other), i, j;

	for (i = 0; i <= rows; i++) {
		for (j = 0; j <= columns; j++) {
			if (!i || !j) {
				costs[i][j] = i + j;
				continue;
			}
			costs[i][j] = least(costs[i - 1][j - 1] + (one[i - 1] != other[j - 1]),
					    least(costs[i - 1][j], costs[i][j - 1]) + 1);
			if (i > 1 && j > 1 && one[i - 1] == other[j - 2] &&
			    one[i - 2] == other[j - 1])
				costs[i][j] = least(costs[i][j], costs[i - 2][j - 2] + 1);
		}
	}
	return costs[rows][columns];
}

/* A third of a word's letters may be wrong. */
void near_begin(struct near *near, const char *word)
{
	*near = (struct near) { .word = word, .distance = strlen(word) / 3 + 1 };
}

void near_try(struct near *near, const char *name)
{
	int far;

	if (strlen(near->word) > LONGEST || strlen(name) > LONGEST)
		return;
	far = distance(near->word, name);
	if (far < near->distance) {
		near->name = name;
		near->distance = far;
	}
}
