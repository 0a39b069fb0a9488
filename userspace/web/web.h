/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twjob-web: declarations for all its files. 'twjob web' runs it. It is an ordinary client of
 * twjobd; code that it shares with twjob is in ../twjob/twjob.h.
 *
 * All that a page shows may be written by somebody else, and is put by text() or url(), never
 * by html().
 */
#ifndef TWJOB_WEB_H
#define TWJOB_WEB_H

#include <microhttpd.h>

#include "overview.h"

/* The most parts of a path, and the most fields of a form, that are read. */
#define MOST_PARTS	8
#define MOST_FIELDS	8
/* The most bytes of a form. */
#define FORM_SIZE	4096
/* The length of the token of an address: 128 bits, in hexadecimal. */
#define TOKEN_SIZE	33

/* Bytes that a browser sent, decoded, with a zero behind them. */
struct part {
	char	*text;
	size_t	length;
};

/* @name: the name of a question's or form's field. */
struct field {
	struct part name, value;
};

/*
 * The request of a browser, and the answer. @uri: the address as it came. @name: the parts of
 * the path that are names, as the route tells. @status: the status of the answer, 0 until it
 * is known. @page: the page so far. @location: the address to which the browser is sent.
 */
struct exchange {
	struct MHD_Connection	*connection;
	char			*uri;
	struct part		path[MOST_PARTS];
	int			nr_path;
	struct part		name[2];
	struct field		fields[MOST_FIELDS];
	int			nr_fields;
	const struct route	*route;
	char			form[FORM_SIZE + 1];
	size_t			form_length;
	unsigned int		status;
	const char		*type;
	FILE			*page;
	char			*text;
	size_t			size;
	char			*location;
	bool			begun;
};

/*
 * @pattern: the path below the token, with * for a name. @change: the route changes something
 * and takes a POST, and no page of a read-only server leads to it.
 */
struct route {
	const char	*pattern;
	bool		change;
	void		(*run)(struct exchange *exchange);
};

extern const struct route routes[];

/* The settings of the command line (web.c). @prefix: the beginning of each path, "" or "/TOKEN". */
extern struct settings {
	bool		read_only;
	bool		unix_socket;
	char		token[TOKEN_SIZE];
	char		prefix[TOKEN_SIZE + 1];
	unsigned int	port;
} web;

/* Input of a browser (request.c) */

bool path_parse(struct exchange *exchange);
bool fields_parse(struct exchange *exchange, char *text);
const struct part *field_of(const struct exchange *exchange, const char *name);

/* Who may ask (door.c) */

bool door_host(struct exchange *exchange);
bool door_token(struct exchange *exchange);
bool door_origin(struct exchange *exchange);

/* The exchange (http.c) */

struct MHD_Daemon *http_start(int listening);

/* The connection to twjobd (server.c). NULL: there is no answer, and the page says so. */

redisReply *web_ask(struct request *request);
redisReply *web_answer(struct exchange *exchange, struct request *request);
void page_lost(struct exchange *exchange);
void page_refused(struct exchange *exchange, const redisReply *reply);

/* HTML (html.c) */

__printf(2, 3)
void html(struct exchange *exchange, const char *format, ...);
void text(struct exchange *exchange, const char *bytes, size_t length);
void text_of(struct exchange *exchange, const char *string);
void url(struct exchange *exchange, const char *bytes, size_t length);
void page_begin(struct exchange *exchange, unsigned int status, const char *title);
void page_end(struct exchange *exchange);
__printf(3, 4)
void page_wrong(struct exchange *exchange, unsigned int status, const char *format, ...);
void page_go(struct exchange *exchange, const struct part *queue, long long id);

/* Values of answers (values.c) */

void put_label(struct exchange *exchange, const char *name);
void put_value(struct exchange *exchange, const char *name, const redisReply *value);
void put_map(struct exchange *exchange, const redisReply *map);
void put_body(struct exchange *exchange, const redisReply *body);

/* Pages (queues.c, jobs.c, changes.c). With an @id of 0 a form is about the queue. */

void put_queue_link(struct exchange *exchange, const char *name, size_t length);
void form_begin(struct exchange *exchange, const struct part *queue, long long id,
		const char *action);
void form_end(struct exchange *exchange, const char *action);
void put_actions(struct exchange *exchange, const struct part *queue, const redisReply *stats);
void page_style(struct exchange *exchange);
void page_queues(struct exchange *exchange);
void page_connections(struct exchange *exchange);
void page_queue(struct exchange *exchange);
void page_done(struct exchange *exchange);
void page_rules(struct exchange *exchange);
void page_find(struct exchange *exchange);
void page_job(struct exchange *exchange);
void change_queue(struct exchange *exchange);
void change_job(struct exchange *exchange);
void change_move(struct exchange *exchange);

enum status verb_serve(const struct args *args);

#endif /* TWJOB_WEB_H */
