// SPDX-License-Identifier: GPL-2.0-only
/* HTML. All text that may come from somebody else goes through text() or url(). */
#include <ctype.h>
#include <stdarg.h>

#include "web.h"

void html(struct exchange *exchange, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(exchange->page, format, args);
	va_end(args);
}

static const char *entity(char letter)
{
	switch (letter) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

/* Whether a character is not seen, or changes the order in which others are seen. */
static bool is_hidden(const char *at, size_t length)
{
	const unsigned char *byte = (const unsigned char *)at;

	if (length == 1)
		return (*byte < ' ' && *byte != '\n' && *byte != '\t') || *byte == 0x7f;
	if (length == 2)
		return *byte == 0xc2 && byte[1] < 0xa0;
	if (length != 3 || *byte != 0xe2)
		return false;
	return (byte[1] == 0x80 && ((byte[2] >= 0x8b && byte[2] <= 0x8f) ||
				    (byte[2] >= 0xa8 && byte[2] <= 0xae))) ||
	       (byte[1] == 0x81 && byte[2] >= 0xa0);
}

/* Bytes that cannot be shown are told in hexadecimal. */
void text(struct exchange *exchange, const char *bytes, size_t length)
{
	while (length) {
		size_t one = utf8_length(bytes, length), i;
		const char *name = entity(*bytes);

		if (name)
			fputs(name, exchange->page);
		else if (one && !is_hidden(bytes, one))
			fwrite(bytes, 1, one, exchange->page);
		else
			for (i = 0; i < (one ? one : 1); i++)
				fprintf(exchange->page, "\\x%02x", (unsigned char)bytes[i]);
		bytes += one ? one : 1;
		length -= one ? one : 1;
	}
}

void text_of(struct exchange *exchange, const char *string)
{
	text(exchange, string, strlen(string));
}

static void put_url(FILE *file, const char *bytes, size_t length)
{
	for (; length; bytes++, length--) {
		if (isalnum((unsigned char)*bytes) || strchr("-_.~", *bytes ? *bytes : ' '))
			putc(*bytes, file);
		else
			fprintf(file, "%%%02X", (unsigned char)*bytes);
	}
}

void url(struct exchange *exchange, const char *bytes, size_t length)
{
	put_url(exchange->page, bytes, length);
}

static void put_navigation(struct exchange *exchange)
{
	static const char * const pages[][2] = {
		{ "", "Queues" }, { "rules", "Rules" }, { "connections", "Connections" },
	};
	size_t i;

	html(exchange, "<nav>");
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		html(exchange, "<a href=\"%s/%s\">%s</a> ", web.prefix, pages[i][0],
		     pages[i][1]);
	html(exchange, "</nav>\n");
}

/* @title: a text of this program, or a text that is escaped again where it is put. */
void page_begin(struct exchange *exchange, unsigned int status, const char *title)
{
	exchange->status = status;
	exchange->type = "text/html; charset=utf-8";
	html(exchange, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	     "<title>");
	text_of(exchange, title);
	html(exchange, " - twjob</title>\n"
	     "<link rel=\"stylesheet\" href=\"%s/style.css\">\n</head>\n<body>\n", web.prefix);
	put_navigation(exchange);
	html(exchange, "<main>\n<h1>");
	text_of(exchange, title);
	html(exchange, "</h1>\n");
}

void page_end(struct exchange *exchange)
{
	html(exchange, "</main>\n</body>\n</html>\n");
}

/* A browser without the token must get no address that has the token. */
static void begin_bare(struct exchange *exchange, unsigned int status)
{
	exchange->status = status;
	exchange->type = "text/html; charset=utf-8";
	html(exchange, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	     "<title>%u</title>\n</head>\n<body>\n<main>\n", status);
}

/* Puts a page that says what is wrong. All that was put before is forgotten. */
void page_wrong(struct exchange *exchange, unsigned int status, const char *format, ...)
{
	char *line;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&line, format, args);
	va_end(args);
	if (length < 0)
		die(STATUS_FAILED, "no memory for a page");
	rewind(exchange->page);
	if (exchange->route)
		page_begin(exchange, status, "This did not work");
	else
		begin_bare(exchange, status);
	html(exchange, "<p class=\"wrong\">");
	text(exchange, line, length);
	html(exchange, "</p>\n");
	page_end(exchange);
	free(line);
}

/*
 * Sends the browser to the page of a job, with an @id of 0 to the page of its queue, without a
 * queue to the first page.
 */
void page_go(struct exchange *exchange, const struct part *queue, long long id)
{
	size_t size;
	FILE *file = open_memstream(&exchange->location, &size);

	if (!file)
		die(STATUS_FAILED, "no memory for a page");
	fprintf(file, "%s/", web.prefix);
	if (queue) {
		fputs("queue/", file);
		put_url(file, queue->text, queue->length);
	}
	if (id)
		fprintf(file, "/job/%lld", id);
	if (fclose(file))
		die(STATUS_FAILED, "no memory for a page");
	page_begin(exchange, MHD_HTTP_SEE_OTHER, "Go on");
	html(exchange, "<p><a href=\"%s\">Go on</a></p>\n", exchange->location);
	page_end(exchange);
}
