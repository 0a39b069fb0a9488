// SPDX-License-Identifier: GPL-2.0-only
/*
 * Draws the ring as text, once a second: on a terminal as a picture in place, else as
 * one line.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "demo.h"

#define ROWS	21
#define COLUMNS	79

/* The ring's centre and radius; a letter is about twice as high as wide. */
#define ROW	10
#define COLUMN	23
#define HIGH	9
#define WIDE	19

static char canvas[ROWS][COLUMNS + 1];
static bool terminal, drawn;

/* Leaves out text that does not fit. */
__printf(3, 4)
static void put(int row, int column, const char *format, ...)
{
	char text[COLUMNS + 1];
	va_list args;
	size_t length;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	length = strlen(text);
	if (row >= 0 && row < ROWS && column >= 0 &&
	    column + length <= COLUMNS)
		memcpy(&canvas[row][column], text, length);
}

/* Where a slot is: slot 0 on top, the others clockwise. @radius: 1 the rim. */
static void place(unsigned int slot, double radius, int *row, int *column)
{
	double angle = 2 * M_PI * slot / SLOTS;

	*row = (int)lround(ROW - radius * HIGH * cos(angle));
	*column = (int)lround(COLUMN + radius * WIDE * sin(angle));
}

static void put_slot(unsigned int slot, unsigned int users)
{
	int row, column;

	place(slot, 1, &row, &column);
	put(row, column - 2, "[%2u]", slot);
	if (users)
		put(row + 1, column - 2, "%4u", users);
	else
		put(row + 1, column - 2, "   .");
}

static void put_hand(unsigned int slot)
{
	int row, column;
	double radius;

	for (radius = 0.1; radius < 0.75; radius += 0.04) {
		place(slot, radius, &row, &column);
		put(row, column, "*");
	}
	put(ROW, COLUMN, "O");
	place(slot, 1, &row, &column);
	put(row, column - 3, ">[%2u]<", slot);
}

static void put_figures(const struct picture *p)
{
	const int column = 49;
	unsigned int i;
	int row = 0;

	put(row++, column, "second     %10llu", p->second);
	put(row++, column, "lap        %10llu", p->lap);
	put(row++, column, "hand: tick %10llu", p->hand);
	put(row++, column, "      slot %10llu", p->hand % SLOTS);
	row++;
	put(row++, column, "online     %10u", p->online);
	put(row++, column, "offline    %10u", p->offline);
	row++;
	put(row++, column, "packets/s  %10u", p->rate);
	put(row++, column, "packets    %10llu", p->packets);
	put(row++, column, "touches    %10llu", p->touches);
	put(row++, column, "  in calls %10llu", p->calls);
	put(row++, column, "asked      %10llu", p->asked);
	put(row++, column, "callbacks  %10llu", p->callbacks);
	row++;
	put(row++, column, "last to go offline:");
	for (i = 0; i < p->nr_recent; i++)
		put(row + i / 3, column + i % 3 * 8, "%llu", p->recent[i]);
}

static void draw_picture(const struct picture *p)
{
	unsigned int slot;
	int row;

	memset(canvas, ' ', sizeof(canvas));
	put_figures(p);
	for (slot = 0; slot < SLOTS; slot++)
		put_slot(slot, p->slots[slot]);
	put_hand(p->hand % SLOTS);
	for (row = 0; row < ROWS; row++)
		canvas[row][COLUMNS] = '\0';

	if (drawn)
		printf("\033[%dA", ROWS);
	for (row = 0; row < ROWS; row++)
		printf("%s\033[K\n", canvas[row]);
}

static void draw_line(const struct picture *p)
{
	unsigned int slot, hand = p->hand % SLOTS;

	printf("%3llus %3llu ", p->second, p->lap);
	for (slot = 0; slot < SLOTS; slot++) {
		char mark = slot == hand ? '>' : ' ';

		if (p->slots[slot])
			printf("%c%4u", mark, p->slots[slot]);
		else
			printf("%c   .", mark);
	}
	printf(" %5u %4u\n", p->online, p->offline);
}

/* A serial line does not know its size, and a log has none: they get lines. */
static bool on_terminal(void)
{
	const char *wish = getenv("TW_DEMO_TTY");
	struct winsize size;

	if (wish)
		return atoi(wish);
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
	       size.ws_row > ROWS && size.ws_col > COLUMNS;
}

void draw_start(void)
{
	unsigned int slot;

	terminal = on_terminal();
	puts("\nThe ring, each second: slots, and how many users are due in each,\n"
	     "as the wheel says when asked. The hand is drawn by > and moves one\n"
	     "slot a second; packets carry users along just behind it.\n");
	if (terminal)
		return;
	printf("  s lap ");
	for (slot = 0; slot < SLOTS; slot++)
		printf(" [%2u]", slot);
	printf(" online off\n");
}

void draw(const struct picture *picture)
{
	if (terminal)
		draw_picture(picture);
	else
		draw_line(picture);
	fflush(stdout);
	drawn = true;
}
