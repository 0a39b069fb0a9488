// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tables, for people and as JSON. A verb has an array of columns and fills in the
 * ones that are shown. In JSON, and with --bytes, sizes and times are numbers.
 */
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdarg.h>
#include <strings.h>

#include "tool.h"

#define MOST_COLUMNS	32

/* Lines that are kept to find out how wide columns are. */
#define MOST_LINES	4096

struct out {
	struct libscols_table	*table;
	struct libscols_line	*line;
	int			place[MOST_COLUMNS];	/* -1: not shown */
	int			shown;
	int			lines;
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

static void show(struct out *out, const struct column *columns, int column)
{
	const struct column *def = &columns[column];
	int flags = def->flags & COL_NUMBER ? SCOLS_FL_RIGHT : 0;
	struct libscols_column *made;

	if (out->place[column] >= 0)
		return;
	made = scols_table_new_column(out->table, def->name, 0, flags);
	if (!made)
		no_memory();
	scols_column_set_json_type(made,
				   def->flags & COL_NUMBER ? SCOLS_JSON_NUMBER :
				   def->flags & COL_BOOL ? SCOLS_JSON_BOOLEAN :
							   SCOLS_JSON_STRING);
	out->place[column] = out->shown++;
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

static void show_named(struct out *out, const struct column *columns,
		       const char *name, size_t length)
{
	int i;

	for (i = 0; columns[i].name; i++) {
		if (strlen(columns[i].name) == length &&
		    !strncasecmp(columns[i].name, name, length)) {
			show(out, columns, i);
			return;
		}
	}
	no_such_column(columns, name, length);
}

static void show_columns(struct out *out, const struct column *columns,
			 const char *list)
{
	size_t length;
	int i;

	if (!list || *list == '+') {
		for (i = 0; columns[i].name; i++) {
			if (out->json || !(columns[i].flags & COL_HIDDEN))
				show(out, columns, i);
		}
		if (!list)
			return;
		list++;
	}
	for (;;) {
		length = strcspn(list, ",");
		show_named(out, columns, list, length);
		if (!list[length])
			return;
		list += length + 1;
	}
}

/* Arguments are checked here, so it is to be called before anything is done. */
struct out *out_begin(const struct args *args, const struct column *columns,
		      const char *name)
{
	struct out *out = calloc(1, sizeof(*out));
	int i;

	if (!out)
		no_memory();
	scols_init_debug(0);
	out->table = scols_new_table();
	if (!out->table)
		no_memory();
	for (i = 0; i < MOST_COLUMNS; i++)
		out->place[i] = -1;
	out->json = args->option[OPT_JSON];
	out->raw = out->json || args->option[OPT_BYTES];
	scols_table_set_name(out->table, name);
	scols_table_enable_json(out->table, out->json);
	scols_table_enable_noheadings(out->table,
				      !!args->option[OPT_NO_HEADINGS]);
	scols_table_enable_colors(out->table, colors_wanted());
	/* print_table() cuts lines, so that no column is made narrower. */
	scols_table_set_termforce(out->table, SCOLS_TERMFORCE_NEVER);
	show_columns(out, columns, args->option[OPT_OUTPUT]);
	return out;
}

static void print_table(const struct out *out)
{
	int width = out->json ? 0 : screen_width();
	char *text = NULL;
	size_t size;
	FILE *lines;

	if (!width) {
		scols_print_table(out->table);
		return;
	}
	lines = open_memstream(&text, &size);
	if (!lines)
		no_memory();
	scols_table_set_stream(out->table, lines);
	scols_print_table(out->table);
	scols_table_set_stream(out->table, stdout);
	if (fclose(lines))
		no_memory();
	cut_lines(text, width);
	fputs(text, stdout);
	free(text);
}

/* Prints the lines kept so far; later lines get widths of their own. */
static void out_flush(struct out *out)
{
	if (!out->lines)
		return;
	print_table(out);
	scols_table_remove_lines(out->table);
	scols_table_enable_noheadings(out->table, 1);
	out->lines = 0;
}

void out_row(struct out *out)
{
	int i;

	if (out->lines == MOST_LINES && !out->json)
		out_flush(out);
	out->line = scols_table_new_line(out->table, NULL);
	if (!out->line)
		no_memory();
	out->lines++;
	/* An empty cell: null in JSON. */
	for (i = 0; i < out->shown && !out->json; i++)
		scols_line_set_data(out->line, i, "-");
}

bool out_wants(const struct out *out, int column)
{
	return out->place[column] >= 0;
}

void out_text(struct out *out, int column, const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	if (!out_wants(out, column))
		return;
	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0 ||
	    scols_line_refer_data(out->line, out->place[column], text))
		no_memory();
}

/* A number of JSON; beyond what a double holds exactly, a string with its digits. */
const char *json_number(char text[NUMBER_TEXT], uint64_t number, bool less)
{
	const char *quote = number > 1ULL << 53 ? "\"" : "";

	snprintf(text, NUMBER_TEXT, "%s%s%" PRIu64 "%s", quote, less ? "-" : "", number,
		 quote);
	return text;
}

void out_number(struct out *out, int column, uint64_t number)
{
	char text[NUMBER_TEXT];

	if (out->json)
		out_text(out, column, "%s", json_number(text, number, false));
	else
		out_text(out, column, "%" PRIu64, number);
}

void out_bool(struct out *out, int column, bool yes)
{
	if (out->json)
		out_number(out, column, yes);
	else
		out_text(out, column, "%s", yes ? "yes" : "no");
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
		out_text(out, column, "%" PRId64, ns);
		return;
	}
	span_text(text, sizeof(text), ns);
	out_text(out, column, "%s", text);
}

/* Local time. */
void out_real(struct out *out, int column, uint64_t ns)
{
	char text[TIME_TEXT];

	real_text(text, sizeof(text), ns, out->json);
	out_text(out, column, "%s", text);
}

void out_end(struct out *out)
{
	if (out->json || out->lines)
		print_table(out);
	scols_unref_table(out->table);
	free(out);
}
