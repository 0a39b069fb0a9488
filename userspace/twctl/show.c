// SPDX-License-Identifier: GPL-2.0-only
/*
 * show: draws the ring. Cells, each of which is a slot or several slots, stand
 * around the wheel's figures. The lines below tell in how many laps tokens are due.
 */
#include <stdarg.h>

#include "twctl.h"

enum {
	SLOT, HAND, TOKENS, LAP, LATER, LEFT,
};

const struct column slot_columns[] = {
	[SLOT] = { "SLOT", COL_NUMBER, "the slot" },
	[HAND] = { "HAND", COL_BOOL, "the hand is on it" },
	[TOKENS] = { "TOKENS", COL_NUMBER, "its tokens" },
	[LAP] = { "LAP", COL_NUMBER, "those due before the hand has made a whole lap" },
	[LATER] = { "LATER", COL_NUMBER, "those due in later laps" },
	[LEFT] = { "LEFT", COL_NUMBER, "time until the first of them is due" },
	{ }
};

/*
 * Cells stand on the rim of a grid, which has room for 32 of them: from its
 * upper left corner clockwise.
 */
#define ACROSS		11
#define DOWN		7
#define MOST_CELLS	(2 * (ACROSS + DOWN - 2))
#define CELL_WIDTH	7
#define CELL_HEIGHT	3
#define ROWS		(DOWN * CELL_HEIGHT)
#define COLUMNS		(ACROSS * CELL_WIDTH)

struct picture {
	char		text[ROWS][COLUMNS];
	unsigned int	per_cell;
	unsigned int	cells;
};

/* Leaves out text that does not fit. */
static __printf(4, 5)
void put(struct picture *picture, int row, int column, const char *format, ...)
{
	char text[COLUMNS + 1];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (row >= 0 && row < ROWS && column >= 0 && column + length <= COLUMNS)
		memcpy(&picture->text[row][column], text, length);
}

/* Writes a count in at most four characters. */
static void short_count(char *text, size_t size, uint64_t count)
{
	if (count < 10000)
		snprintf(text, size, "%llu", (unsigned long long)count);
	else if (count < 1000000)
		snprintf(text, size, "%lluk", (unsigned long long)count / 1000);
	else
		snprintf(text, size, "%lluM", (unsigned long long)count / 1000000);
}

/* Finds where on the rim a cell stands: few cells are spread over the whole rim. */
static void place(const struct picture *picture, unsigned int cell, int *row,
		  int *column)
{
	int at = cell * MOST_CELLS / picture->cells;
	int x, y;

	if (at < ACROSS) {
		x = at;
		y = 0;
	} else if (at < ACROSS + DOWN - 1) {
		x = ACROSS - 1;
		y = at - ACROSS + 1;
	} else if (at < 2 * ACROSS + DOWN - 2) {
		x = 2 * ACROSS + DOWN - 3 - at;
		y = DOWN - 1;
	} else {
		x = 0;
		y = MOST_CELLS - at;
	}
	*row = y * CELL_HEIGHT;
	*column = x * CELL_WIDTH;
}

/* Prints a cell: its first slot, the tokens due within a lap and, after "+", the later tokens. */
static void put_cell(struct picture *picture, const struct ring *ring,
		     const struct timewheel_info *info, unsigned int cell)
{
	unsigned int slot = cell * picture->per_cell;
	unsigned int end = slot + picture->per_cell, i;
	unsigned int hand = info->hand % info->slots;
	uint64_t lap = 0, tokens = 0;
	char count[24];
	int row, column;

	for (i = slot; i < end && i < info->slots; i++) {
		lap += ring->slots[i].lap;
		tokens += ring->slots[i].tokens;
	}
	place(picture, cell, &row, &column);
	put(picture, row, column, hand >= slot && hand < end ? ">%u<" : "[%u]",
	    slot);
	short_count(count, sizeof(count), lap);
	put(picture, row + 1, column, "%5s", tokens ? count : ".");
	short_count(count, sizeof(count), tokens - lap);
	if (tokens > lap)
		put(picture, row + 2, column, "+%s", count);
}

static void put_figures(struct picture *picture, const struct ring *ring,
			const struct wheel *wheel)
{
	const struct timewheel_info *info = &wheel->info;
	const int column = 3 * CELL_WIDTH;
	char tick[TIME_TEXT], lap[TIME_TEXT], next[TIME_TEXT] = "never";
	int row = ROWS / 2 - 5;

	span_text(tick, sizeof(tick), info->tick);
	span_text(lap, sizeof(lap), info->tick * info->slots);
	if (info->next <= info->now)
		strcpy(next, "now");
	else if (info->next != TIMEWHEEL_NEVER)
		span_text(next, sizeof(next), info->next - info->now);
	put(picture, row++, column, "%.28s", wheel->name);
	if (info->state)
		put(picture, row++, column, "%s", state_name(info->state));
	put(picture, row++, column, "%u slots of %s", info->slots, tick);
	put(picture, row++, column, "a lap takes %s", lap);
	put(picture, row++, column, "hand: slot %llu of lap %llu",
	    (unsigned long long)(info->hand % info->slots),
	    (unsigned long long)(info->hand / info->slots));
	put(picture, row++, column, "pending %llu of %llu",
	    (unsigned long long)info->pending,
	    (unsigned long long)info->max_tokens);
	if (info->lease)
		put(picture, row++, column, "held %llu of %u",
		    (unsigned long long)info->held, info->max_held);
	put(picture, row++, column, "due %llu",
	    (unsigned long long)ring->due);
	put(picture, row++, column, "next look: %s", next);
	if (picture->per_cell > 1)
		put(picture, row, column, "[n]: slots n to n+%u",
		    picture->per_cell - 1);
}

/* Colours a row: no text but that of the hand stands between > and <. */
static void print_row(const char *text, bool colors)
{
	int length = COLUMNS, width = screen_width(), i;

	if (width && width < length)
		length = width;
	while (length && text[length - 1] == ' ')
		length--;
	for (i = 0; i < length; i++) {
		if (colors && text[i] == '>')
			fputs("\033[1;32m", stdout);
		putchar(text[i]);
		if (colors && text[i] == '<')
			fputs("\033[0m", stdout);
	}
	putchar('\n');
}

static void draw(const struct wheel *wheel, const struct ring *ring)
{
	unsigned int slots = wheel->info.slots, cell;
	struct picture picture;
	int row;

	memset(picture.text, ' ', sizeof(picture.text));
	picture.per_cell = (slots + MOST_CELLS - 1) / MOST_CELLS;
	picture.cells = (slots + picture.per_cell - 1) / picture.per_cell;
	for (cell = 0; cell < picture.cells; cell++)
		put_cell(&picture, ring, &wheel->info, cell);
	put_figures(&picture, ring, wheel);
	for (row = 0; row < ROWS; row++)
		print_row(picture.text[row], colors_wanted());
}

/* Prints the counts of tokens by Cycle-Num. */
static void print_laps(const struct ring *ring)
{
	const size_t last = ARRAY_SIZE(ring->laps) - 1;
	size_t i;

	printf("laps to go:");
	for (i = 0; i <= last; i++) {
		if (ring->laps[i])
			printf("  %zu%s: %llu", i, i == last ? " and more" : "",
			       (unsigned long long)ring->laps[i]);
	}
	printf("%s\n", ring->tokens ? "" : " -");
}

static void put_slots(struct out *out, const struct wheel *wheel,
		      const struct ring *ring)
{
	const struct timewheel_info *info = &wheel->info;
	unsigned int i;

	for (i = 0; i < info->slots; i++) {
		const struct slot *slot = &ring->slots[i];

		if (!slot->tokens)
			continue;
		out_row(out);
		out_number(out, SLOT, i);
		out_bool(out, HAND, i == info->hand % info->slots);
		out_number(out, TOKENS, slot->tokens);
		out_number(out, LAP, slot->lap);
		out_number(out, LATER, slot->tokens - slot->lap);
		out_span(out, LEFT, slot->earliest - info->now);
	}
}

enum status verb_show(const struct args *args)
{
	struct out *out = out_begin(args, slot_columns, "slots");
	struct wheel wheel;
	struct ring ring;

	wheel_open(&wheel, args->arg[0], O_RDONLY);
	if (ring_count(&ring, &wheel) < 0)
		return wheel_trouble(wheel.name);
	if (args->option[OPT_JSON] || args->option[OPT_OUTPUT]) {
		put_slots(out, &wheel, &ring);
		out_end(out);
	} else {
		draw(&wheel, &ring);
		print_laps(&ring);
	}
	ring_free(&ring);
	wheel_close(&wheel);
	return STATUS_OK;
}
