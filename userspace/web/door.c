// SPDX-License-Identifier: GPL-2.0-only
/*
 * The door decides who may ask. The mode of a socket of the file system says who may connect.
 * An address asks each browser for the token in its path. A browser has to call this server by
 * a name of this machine: otherwise a page from elsewhere could make its own name lead to this
 * server. A change has to come from a page of this server.
 */
#include "web.h"

static const char * const own_names[] = { "127.0.0.1", "localhost", "[::1]" };

static const char *header(struct exchange *exchange, const char *name)
{
	return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result count_host(void *cls, enum MHD_ValueKind kind, const char *name,
				  const char *value)
{
	(void)kind;
	(void)value;
	*(int *)cls += !strcasecmp(name, MHD_HTTP_HEADER_HOST);
	return MHD_YES;
}

/* Through a tunnel, any port may lead to a socket of the file system. */
static bool is_own_port(const char *port)
{
	char own[16];

	snprintf(own, sizeof(own), ":%u", web.port);
	if (!web.unix_socket)
		return !strcmp(port, own) || (!*port && web.port == 80);
	return !*port || (*port == ':' && strspn(port + 1, "0123456789") == strlen(port + 1));
}

bool door_host(struct exchange *exchange)
{
	const char *host = header(exchange, MHD_HTTP_HEADER_HOST);
	int hosts = 0;
	size_t i;

	MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, count_host, &hosts);
	if (!host || hosts != 1)
		return false;
	for (i = 0; i < ARRAY_SIZE(own_names); i++) {
		size_t length = strlen(own_names[i]);

		if (!strncasecmp(host, own_names[i], length) && is_own_port(host + length))
			return true;
	}
	return false;
}

/*
 * Takes the token from the path. The time that it takes does not tell how much of the token is
 * right.
 */
bool door_token(struct exchange *exchange)
{
	const struct part *given = &exchange->path[0];
	unsigned char different = 0;
	size_t i;

	if (web.unix_socket)
		return true;
	if (given->length != TOKEN_SIZE - 1)
		return false;
	for (i = 0; i < TOKEN_SIZE - 1; i++)
		different |= given->text[i] ^ web.token[i];
	exchange->nr_path--;
	memmove(exchange->path, exchange->path + 1, exchange->nr_path * sizeof(*exchange->path));
	return !different;
}

/*
 * A form of this server's pages comes from the origin "null", because the pages ask browsers to
 * tell nobody where a form comes from. In this case the browser says that form and server are
 * of one site.
 */
bool door_origin(struct exchange *exchange)
{
	const char *origin = header(exchange, MHD_HTTP_HEADER_ORIGIN);
	const char *host = header(exchange, MHD_HTTP_HEADER_HOST);
	const char *site = header(exchange, "Sec-Fetch-Site");

	if (!origin || !host)
		return false;
	if (!strcmp(origin, "null"))
		return site && !strcmp(site, "same-origin");
	return !strncmp(origin, "http://", 7) && !strcasecmp(origin + 7, host);
}
