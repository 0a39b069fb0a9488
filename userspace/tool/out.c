// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tables, for people and as JSON. A verb has an array of columns and fills in the
 * ones that are shown. In JSON, and with --bytes, sizes and times are numbers.
 *
 * A wheel may have millions of tokens, a row for each. So the cells of all rows that
 * are kept share one buffer, and rows are printed from time to time.
 */
#include <ctype.h>
#include <stdarg.h>
#include <strings.h>
#include <wchar.h>

#include "tool.h"

#define MOST_COLUMNS	32

/* Rows that are kept to find out how wide columns are. */
#define MOST_ROWS	4096

/* @text: where its text begins. @width: its width in columns of a terminal. */
struct cell {
	size_t		text;
	int		width;
};

/*
 * A column that is shown. @member: its name in JSON. @width: the width of its widest cell so
 * far.
 */
struct shown {
	const struct column	*column;
	char			*member;
	int			width;
};

/* @cell: the cells of all rows that are kept, one row behind the other. */
struct out {
	const struct column	*columns;
	const char		*name;
	struct shown		shown[MOST_COLUMNS];
	int			count;
	int			place[MOST_COLUMNS];	/* -1: the column is not shown */
	struct cell		*cell;
	char			*text;
	size_t			used;
	size_t			room;
	FILE			*file;
	int			rows;
	bool			begun;
	bool			headings;
	bool			json;
	bool			raw;
};

/* Colours are for terminals only, and not if NO_COLOR is set. */
bool colors_wanted(void)
{
	const char *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no && *no);
}

static void no_memory(void)
{
	die(STATUS_FAILED, "no memory for the table");
}

/* Returns the text before a value of a JSON object. */
static char *member_of(const char *name, bool first)
{
	char *text, *letter;

	if (asprintf(&text, "%c\"%s\":", first ? '{' : ',', name) < 0)
		no_memory();
	for (letter = text; *letter; letter++)
		*letter = tolower((unsigned char)*letter);
	return text;
}

static void show(struct out *out, int column)
{
	if (out->place[column] >= 0)
		return;
	out->place[column] = out->count;
	out->shown[out->count] = (struct shown) {
		.column = &out->columns[column],
		.member = member_of(out->columns[column].name, !out->count),
		.width = out->headings ? strlen(out->columns[column].name) : 1,
	};
	out->count++;
}

static __noreturn void no_such_column(const struct column *columns,
				      const char *name, size_t length)
{
	char names[1024] = "";
	size_t used = 0;
	int i;

	for (i = 0; columns[i].name; i++)
		used += snprintf(names + used, sizeof(names) - used, "%s%s",
				 i ? "," : "", columns[i].name);
	die(STATUS_USAGE, "--output '%.*s': not one of %s", (int)length, name,
	    names);
}

static void show_named(struct out *out, const char *name, size_t length)
{
	const struct column *columns = out->columns;
	int i;

	for (i = 0; columns[i].name; i++) {
		if (strlen(columns[i].name) == length &&
		    !strncasecmp(columns[i].name, name, length)) {
			show(out, i);
			return;
		}
	}
	no_such_column(columns, name, length);
}

static void show_columns(struct out *out, const char *list)
{
	const struct column *columns = out->columns;
	size_t length;
	int i;

	if (!list || *list == '+') {
		for (i = 0; columns[i].name; i++) {
			if (out->json || !(columns[i].flags & COL_HIDDEN))
				show(out, i);
		}
		if (!list)
			return;
		list++;
	}
	for (;;) {
		length = strcspn(list, ",");
		show_named(out, list, length);
		if (!list[length])
			return;
		list += length + 1;
	}
}

/* This part fills cells. The buffer's first text is the one of an empty cell. */

static void make_room(struct out *out, size_t length)
{
	if (out->room - out->used >= length)
		return;
	out->room = 2 * out->room + length;
	out->text = realloc(out->text, out->room);
	if (!out->text)
		no_memory();
}

static const char *empty_text(const struct out *out)
{
	return out->json ? "null" : "-";
}

static void forget_rows(struct out *out)
{
	size_t size = strlen(empty_text(out)) + 1;

	out->rows = 0;
	out->used = 0;
	make_room(out, size);
	memcpy(out->text, empty_text(out), size);
	out->used = size;
}

/* Checks the arguments about output. A verb calls it before it does anything else. */
struct out *out_begin(const struct args *args, const struct column *columns,
		      const char *name)
{
	struct out *out = calloc(1, sizeof(*out));
	int i;

	if (!out)
		no_memory();
	for (i = 0; i < MOST_COLUMNS; i++)
		out->place[i] = -1;
	out->columns = columns;
	out->name = name;
	out->file = stdout;
	out->json = args->option[OPT_JSON];
	out->raw = out->json || args->option[OPT_BYTES];
	out->headings = !out->json && !args->option[OPT_NO_HEADINGS];
	show_columns(out, args->option[OPT_OUTPUT]);
	out->cell = calloc((size_t)MOST_ROWS * out->count, sizeof(*out->cell));
	if (!out->cell)
		no_memory();
	forget_rows(out);
	return out;
}

static bool is_plain(const char *text)
{
	while (*text >= ' ' && *text <= '~')
		text++;
	return !*text;
}

/*
 * Replaces characters that a terminal would not show, in the text at the end of the buffer, by
 * their bytes in hexadecimal. Returns the width of the text.
 */
static int make_plain(struct out *out, size_t at)
{
	char *copy = strdup(out->text + at), *from = copy, *to;
	int width = 0;

	if (!copy)
		no_memory();
	make_room(out, 4 * strlen(copy) + 1);
	for (to = out->text + at; *from;) {
		wchar_t letter;
		int length = mbtowc(&letter, from, MB_CUR_MAX);

		if (length > 0 && wcwidth(letter) >= 0) {
			to = mempcpy(to, from, length);
			width += wcwidth(letter);
			from += length;
		} else {
			width += sprintf(to, "\\x%02x", (unsigned char)*from++);
			to += 4;
		}
	}
	*to = '\0';
	out->used = to + 1 - out->text;
	free(copy);
	return width;
}

/* Makes the text at the end of the buffer the text of a cell. */
static void set_cell(struct out *out, int column, size_t length)
{
	int place = out->place[column];
	struct cell *cell = &out->cell[(out->rows - 1) * out->count + place];
	size_t at = out->used;

	out->used += length + 1;
	cell->text = at;
	if (out->json)
		return;
	cell->width = is_plain(out->text + at) ? (int)length : make_plain(out, at);
	if (cell->width > out->shown[place].width)
		out->shown[place].width = cell->width;
}

/* This part prints. */

static void put_padding(const struct out *out, int width)
{
	while (width-- > 0)
		putc_unlocked(' ', out->file);
}

/* Text at the right end of a line is not followed by spaces. */
static void put_cell(const struct out *out, int place, const char *text, int width)
{
	const struct shown *shown = &out->shown[place];
	bool right = shown->column->flags & COL_NUMBER;

	if (place)
		putc_unlocked(' ', out->file);
	if (right)
		put_padding(out, shown->width - width);
	fputs_unlocked(text, out->file);
	if (!right && place + 1 < out->count)
		put_padding(out, shown->width - width);
	if (place + 1 == out->count)
		putc_unlocked('\n', out->file);
}

static void put_headings(struct out *out)
{
	int i;

	for (i = 0; i < out->count && out->headings; i++)
		put_cell(out, i, out->shown[i].column->name,
			 strlen(out->shown[i].column->name));
	out->headings = false;
}

static void put_table(struct out *out)
{
	const struct cell *cell = out->cell;
	int row, i;

	put_headings(out);
	for (row = 0; row < out->rows; row++) {
		for (i = 0; i < out->count; i++, cell++)
			put_cell(out, i, out->text + cell->text, cell->width);
	}
}

static void put_member(const struct out *out, int place, const struct cell *cell)
{
	const struct column *column = out->shown[place].column;
	const char *text = out->text + cell->text;

	fputs_unlocked(out->shown[place].member, out->file);
	if (!cell->text || column->flags & (COL_NUMBER | COL_BOOL))
		fputs_unlocked(text, out->file);
	else
		json_text(out->file, text);
}

/* The head of the JSON is put before the first rows, at the latest at the end. */
static void put_objects(struct out *out)
{
	const struct cell *cell = out->cell;
	int row, i;

	if (!out->begun)
		fprintf(out->file, "{\n   \"%s\": [", out->name);
	for (row = 0; row < out->rows; row++) {
		fputs(out->begun ? ",\n      " : "\n      ", out->file);
		out->begun = true;
		for (i = 0; i < out->count; i++, cell++)
			put_member(out, i, cell);
		putc_unlocked('}', out->file);
	}
}

/* Lines are cut to the width of a terminal. */
static void put_cut(struct out *out, int width)
{
	char *text = NULL;
	size_t size;

	out->file = open_memstream(&text, &size);
	if (!out->file)
		no_memory();
	put_table(out);
	if (fclose(out->file))
		no_memory();
	out->file = stdout;
	cut_lines(text, width);
	fputs(text, stdout);
	free(text);
}

/* Prints the rows kept so far. */
static void out_flush(struct out *out)
{
	int width = out->json ? 0 : screen_width();

	if (out->json && (out->rows || !out->begun))
		put_objects(out);
	else if (!out->json && out->rows && width)
		put_cut(out, width);
	else if (!out->json && out->rows)
		put_table(out);
	forget_rows(out);
}

void out_row(struct out *out)
{
	int i;

	if (out->rows == MOST_ROWS)
		out_flush(out);
	for (i = 0; i < out->count; i++)
		out->cell[out->rows * out->count + i] = (struct cell) {
			.width = strlen(empty_text(out)),
		};
	out->rows++;
}

static bool out_wants(const struct out *out, int column)
{
	return out->place[column] >= 0;
}

void out_text(struct out *out, int column, const char *format, ...)
{
	int length, tries = 0;
	va_list args;

	if (!out_wants(out, column))
		return;
	do {
		make_room(out, tries ? length + 1 : TIME_TEXT);
		va_start(args, format);
		length = vsnprintf(out->text + out->used, out->room - out->used, format,
				   args);
		va_end(args);
		if (length < 0)
			no_memory();
	} while (!tries++ && (size_t)length >= out->room - out->used);
	set_cell(out, column, length);
}

/* Puts a text that is not empty into a cell. */
static void put_text(struct out *out, int column, const char *text)
{
	size_t length;

	if (!out_wants(out, column))
		return;
	length = strlen(text);
	make_room(out, length + 1);
	memcpy(out->text + out->used, text, length + 1);
	set_cell(out, column, length);
}

static void put_number(struct out *out, int column, uint64_t number, bool less)
{
	char text[NUMBER_TEXT];

	put_text(out, column, number_text(text, number, less, out->json));
}

void out_number(struct out *out, int column, uint64_t number)
{
	put_number(out, column, number, false);
}

void out_bool(struct out *out, int column, bool yes)
{
	if (out->json)
		put_text(out, column, yes ? "true" : "false");
	else
		put_text(out, column, yes ? "yes" : "no");
}

void out_size(struct out *out, int column, uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	double size = bytes;
	int unit = -1;

	for (; size >= 1023.5; unit++)
		size /= 1024;
	if (out->raw || unit < 0)
		out_number(out, column, bytes);
	else
		out_text(out, column, "%.*f%c", size < 9.95, size, units[unit]);
}

void out_span(struct out *out, int column, int64_t ns)
{
	char text[TIME_TEXT];

	if (out->raw) {
		put_number(out, column, ns < 0 ? -(uint64_t)ns : (uint64_t)ns, ns < 0);
	} else if (out_wants(out, column)) {
		span_text(text, sizeof(text), ns);
		put_text(out, column, text);
	}
}

/* Puts a point of time into a cell, in local time. */
void out_real(struct out *out, int column, uint64_t ns)
{
	char text[TIME_TEXT];

	if (!out_wants(out, column))
		return;
	real_text(text, sizeof(text), ns, out->json);
	put_text(out, column, text);
}

void out_end(struct out *out)
{
	int i;

	out_flush(out);
	if (out->json)
		puts("\n   ]\n}");
	for (i = 0; i < out->count; i++)
		free(out->shown[i].member);
	free(out->cell);
	free(out->text);
	free(out);
}
