// SPDX-License-Identifier: GPL-2.0-only
/*
 * HTTP: requests and answers. A request that is refused is refused before twjobd is asked
 * anything.
 */
#include <strings.h>

#include "web.h"

#define MOST_CONNECTIONS	64
/* The bytes that the head of a request may have. */
#define HEAD_SIZE		32768
/* The seconds that a browser has to send something. */
#define PATIENCE		20

/* Browsers are told these fields with each answer. */
static const char * const headers[][2] = {
	{ "Cache-Control", "no-store" },
	{ "Content-Security-Policy",
	  "default-src 'none'; style-src 'self'; form-action 'self'; "
	  "base-uri 'none'; frame-ancestors 'none'" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Referrer-Policy", "no-referrer" },
	{ "X-Content-Type-Options", "nosniff" },
};

static bool fits(struct exchange *exchange, const char *pattern)
{
	int part = 0, names = 0;

	for (; part < exchange->nr_path; part++) {
		const struct part *given = &exchange->path[part];
		size_t length;

		if (part && *pattern++ != '/')
			return false;
		length = strcspn(pattern, "/");
		if (*pattern == '*' && given->length)
			exchange->name[names++] = *given;
		else if (given->length != length || memcmp(given->text, pattern, length))
			return false;
		pattern += length;
	}
	return !*pattern;
}

static void find_route(struct exchange *exchange)
{
	const struct route *route;

	for (route = routes; route->pattern && !exchange->route; route++) {
		if (fits(exchange, route->pattern))
			exchange->route = route;
	}
	if (!exchange->route)
		page_wrong(exchange, MHD_HTTP_NOT_FOUND, "There is no such page.");
}

/* Looks at what is asked for. If it is refused, the exchange has its answer. */
static void look_at_path(struct exchange *exchange)
{
	if (!exchange->uri || !path_parse(exchange))
		page_wrong(exchange, MHD_HTTP_BAD_REQUEST, "This address is not written right.");
	else if (!door_host(exchange))
		page_wrong(exchange, MHD_HTTP_MISDIRECTED_REQUEST,
			   "This server is on your own machine, and not known by that name.");
	else if (!door_token(exchange))
		page_wrong(exchange, MHD_HTTP_FORBIDDEN,
			   "The address has to be the whole one that 'twjob web' has printed.");
	else if (!exchange->nr_path)
		page_go(exchange, NULL, 0);
	else
		find_route(exchange);
}

static void look_at_method(struct exchange *exchange, const char *method)
{
	bool post = !strcmp(method, MHD_HTTP_METHOD_POST);

	if (post || !strcmp(method, MHD_HTTP_METHOD_GET) ||
	    !strcmp(method, MHD_HTTP_METHOD_HEAD)) {
		if (post == exchange->route->change)
			return;
	}
	page_wrong(exchange, MHD_HTTP_METHOD_NOT_ALLOWED,
		   exchange->route->change ? "This changes something, and takes a POST." :
					     "This page takes a GET.");
}

static const char *header_of(struct exchange *exchange, const char *name)
{
	const char *value = MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND,
							name);

	return value ? value : "";
}

/* Looks at the head of a change, before its form comes. */
static void look_at_change(struct exchange *exchange)
{
	const char *length = header_of(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
	const char *type = header_of(exchange, MHD_HTTP_HEADER_CONTENT_TYPE);
	uint64_t number;

	if (web.read_only)
		page_wrong(exchange, MHD_HTTP_FORBIDDEN, "Here nothing can be changed.");
	else if (!door_origin(exchange))
		page_wrong(exchange, MHD_HTTP_FORBIDDEN,
			   "Changes are made from this server's own pages only.");
	else if (!*length)
		page_wrong(exchange, MHD_HTTP_LENGTH_REQUIRED, "The form has to tell its length.");
	else if (!number_parse(length, 0, FORM_SIZE, &number))
		page_wrong(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "No form here is as long.");
	else if (number && strncasecmp(type, MHD_HTTP_POST_ENCODING_FORM_URLENCODED,
				       strlen(MHD_HTTP_POST_ENCODING_FORM_URLENCODED)))
		page_wrong(exchange, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
			   "A form has to be of " MHD_HTTP_POST_ENCODING_FORM_URLENCODED ".");
}

static void run(struct exchange *exchange)
{
	if (exchange->route->change && !fields_parse(exchange, exchange->form))
		page_wrong(exchange, MHD_HTTP_BAD_REQUEST, "This form is not written right.");
	else
		exchange->route->run(exchange);
}

static void add_headers(struct exchange *exchange, struct MHD_Response *response)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(headers); i++)
		MHD_add_response_header(response, headers[i][0], headers[i][1]);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, exchange->type);
	if (exchange->location)
		MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, exchange->location);
	if (exchange->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
					exchange->route->change ? "POST" : "GET, HEAD");
}

static enum MHD_Result answer(struct exchange *exchange)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	if (!exchange->page || fclose(exchange->page))
		die(STATUS_FAILED, "no memory for a page");
	exchange->page = NULL;
	response = MHD_create_response_from_buffer(exchange->size, exchange->text,
						   MHD_RESPMEM_MUST_FREE);
	if (!response)
		die(STATUS_FAILED, "no memory for a page");
	exchange->text = NULL;
	add_headers(exchange, response);
	result = MHD_queue_response(exchange->connection, exchange->status, response);
	MHD_destroy_response(response);
	return result;
}

/* Begins an exchange, before its head is complete and before anybody has looked at the address. */
static void *begin(void *cls, const char *uri, struct MHD_Connection *connection)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	(void)cls;
	if (!exchange)
		die(STATUS_FAILED, "no memory for a request");
	exchange->connection = connection;
	exchange->uri = strdup(uri);
	exchange->page = open_memstream(&exchange->text, &exchange->size);
	return exchange;
}

static void end(void *cls, struct MHD_Connection *connection, void **place,
		enum MHD_RequestTerminationCode code)
{
	struct exchange *exchange = *place;

	(void)cls;
	(void)connection;
	(void)code;
	*place = NULL;
	if (!exchange)
		return;
	if (exchange->page)
		fclose(exchange->page);
	free(exchange->text);
	free(exchange->location);
	free(exchange->uri);
	free(exchange);
}

/* Looks at the head. Without an answer the exchange goes on. */
static enum MHD_Result begin_exchange(struct exchange *exchange, const char *method)
{
	exchange->begun = true;
	look_at_path(exchange);
	if (!exchange->status)
		look_at_method(exchange, method);
	if (!exchange->status && exchange->route->change)
		look_at_change(exchange);
	return exchange->status ? answer(exchange) : MHD_YES;
}

/* Takes a piece of a form. A form is not longer than its head has told. */
static enum MHD_Result take_piece(struct exchange *exchange, const char *piece, size_t *size)
{
	if (*size > FORM_SIZE - exchange->form_length)
		return MHD_NO;
	memcpy(exchange->form + exchange->form_length, piece, *size);
	exchange->form_length += *size;
	*size = 0;
	return MHD_YES;
}

/* Called for the head, for each piece of a form, and for the end. */
static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *size, void **place)
{
	struct exchange *exchange = *place;

	(void)cls;
	(void)connection;
	(void)url;
	(void)version;
	if (!exchange->begun)
		return begin_exchange(exchange, method);
	if (*size)
		return take_piece(exchange, upload, size);
	run(exchange);
	return answer(exchange);
}

/* This program decodes addresses itself. */
static size_t leave_as_it_is(void *cls, struct MHD_Connection *connection, char *text)
{
	(void)cls;
	(void)connection;
	return strlen(text);
}

struct MHD_Daemon *http_start(int listening)
{
	return MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, handle, NULL,
				MHD_OPTION_LISTEN_SOCKET, listening,
				MHD_OPTION_URI_LOG_CALLBACK, begin, NULL,
				MHD_OPTION_UNESCAPE_CALLBACK, leave_as_it_is, NULL,
				MHD_OPTION_NOTIFY_COMPLETED, end, NULL,
				MHD_OPTION_CONNECTION_LIMIT, MOST_CONNECTIONS,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_SIZE,
				MHD_OPTION_CONNECTION_TIMEOUT, PATIENCE, MHD_OPTION_END);
}
