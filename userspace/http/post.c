// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posts to one address, many at a time, by libcurl's multi interface. An epoll has all of
 * libcurl's sockets, and the caller waits for one fd. This file does not know what an answer
 * means.
 */
#include <stdarg.h>
#include <sys/epoll.h>
#include <time.h>

#include "http.h"

#define FORM	"an address such as https://example.com/hook, of http or https"

/* @got: the bytes in @text. @all: the bytes of the whole answer so far. */
struct post {
	CURL			*easy;
	struct curl_slist	*headers;
	void			*job;
	char			error[CURL_ERROR_SIZE];
	char			text[ANSWER_SIZE];
	size_t			got;
	size_t			all;
};

static const char *post_url;

static CURLM *multi;
static int sockets = -1;
static uint64_t next = NEVER;

/* Refuses a password in the address, which all who list the processes would see. */
static void check_url(const char *text)
{
	CURLU *url = curl_url();
	char *scheme = NULL, *user = NULL;

	if (!url || curl_url_set(url, CURLUPART_URL, text, 0) ||
	    curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) ||
	    (strcmp(scheme, "http") && strcmp(scheme, "https")))
		die_usage("--url", text, FORM);
	if (!curl_url_get(url, CURLUPART_USER, &user, 0))
		die(STATUS_USAGE,
		    "--url: an address with a user would show the password to all users of this machine; see --secret-file");
	curl_free(scheme);
	curl_url_cleanup(url);
}

static int watch(CURL *easy, curl_socket_t fd, int what, void *of, void *known)
{
	struct epoll_event event = { .data.fd = fd };

	(void)easy;
	(void)of;
	(void)known;
	if (what == CURL_POLL_REMOVE) {
		epoll_ctl(sockets, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	if (what & CURL_POLL_IN)
		event.events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		event.events |= EPOLLOUT;
	if (epoll_ctl(sockets, EPOLL_CTL_ADD, fd, &event) && errno == EEXIST)
		epoll_ctl(sockets, EPOLL_CTL_MOD, fd, &event);
	return 0;
}

static int set_next(CURLM *of, long ms, void *known)
{
	(void)of;
	(void)known;
	next = ms < 0 ? NEVER : end_after(ms * NSEC_PER_MSEC);
	return 0;
}

/* @most: the most posts at a time. Their connections are all kept for later posts. */
void posts_begin(const char *url, long most)
{
	check_url(url);
	post_url = url;
	sockets = epoll_create1(EPOLL_CLOEXEC);
	multi = curl_global_init(CURL_GLOBAL_DEFAULT) ? NULL : curl_multi_init();
	if (sockets < 0 || !multi)
		die(STATUS_FAILED, "no memory for libcurl");
	curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, most);
	curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
	curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_next);
}

int posts_fd(void)
{
	return sockets;
}

/* Returns the time when posts_run() has something to do, also without an event. */
uint64_t posts_next(void)
{
	return next;
}

/* Keeps the first bytes of an answer. */
static size_t take_text(char *part, size_t size, size_t count, void *of)
{
	struct post *post = of;
	size_t length = size * count, room = sizeof(post->text) - post->got;

	memcpy(post->text + post->got, part, length < room ? length : room);
	post->got += length < room ? length : room;
	post->all += length;
	return post->all > MOST_ANSWER ? 0 : length;
}

/*
 * Sets all options: nothing in the environment changes a post, and nothing that the server
 * says sends the job elsewhere. The end of a post does not wait until the server's name is
 * found.
 */
static void set_options(struct post *post)
{
	CURL *easy = post->easy;

	curl_easy_setopt(easy, CURLOPT_URL, post_url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "twjob/" VERSION);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, post);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, post->error);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_text);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, post);
}

/*
 * Makes a post, which sends one message after the other. @job: posts_run() tells it at their
 * ends.
 */
struct post *post_new(void *job)
{
	struct post *post = calloc(1, sizeof(*post));

	if (post)
		post->easy = curl_easy_init();
	if (!post || !post->easy)
		die(STATUS_FAILED, "no memory for a post");
	post->job = job;
	set_options(post);
	return post;
}

__printf(2, 3)
static void add_header(struct post *post, const char *format, ...)
{
	struct curl_slist *more = NULL;
	va_list args;
	char *line;

	va_start(args, format);
	if (vasprintf(&line, format, args) >= 0) {
		more = curl_slist_append(post->headers, line);
		free(line);
	}
	va_end(args);
	if (!more)
		die(STATUS_FAILED, "no memory for a header");
	post->headers = more;
}

/* Adds the key, which may have any bytes. */
static void add_key(struct post *post, const struct message *message)
{
	char *key = curl_easy_escape(post->easy, message->key, message->key_length);

	if (!key)
		die(STATUS_FAILED, "no memory for a header");
	add_header(post, "TW-Key: %s", key);
	curl_free(key);
}

static void add_signature(struct post *post, const struct message *message)
{
	char timestamp[24], *signature;

	snprintf(timestamp, sizeof(timestamp), "%lld", (long long)time(NULL));
	add_header(post, "webhook-id: %s", message->id);
	add_header(post, "webhook-timestamp: %s", timestamp);
	signature = secret_sign(message->id, timestamp, message->body, message->body_length);
	if (signature)
		add_header(post, "webhook-signature: %s", signature);
	free(signature);
}

/* @message: its texts have to stay until the end of the post. */
void post_start(struct post *post, const struct message *message)
{
	CURL *easy = post->easy;

	curl_slist_free_all(post->headers);
	post->headers = NULL;
	post->error[0] = '\0';
	post->got = 0;
	post->all = 0;
	/* The receiver has to see the bytes as they are, because the signature is about them. */
	add_header(post, "Content-Type: application/octet-stream");
	add_header(post, "Expect:");
	add_header(post, "TW-Queue: %s", message->queue);
	add_header(post, "TW-Job: %lld", message->job);
	add_header(post, "TW-Try: %lld", message->try);
	if (message->key)
		add_key(post, message);
	add_signature(post, message);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, post->headers);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)message->body_length);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, message->body);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, message->timeout);
	if (curl_multi_add_handle(multi, easy))
		die(STATUS_FAILED, "no memory for a post");
}

/* Tells the end of a post. A status such as 103 is not the last one of an answer. */
static void tell_end(struct post *post, CURLcode result,
		     void (*ended)(void *job, const struct answer *answer))
{
	struct answer answer = { .text = post->text, .length = post->got };
	struct curl_header *header;

	curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &answer.status);
	if (answer.status < 200) {
		answer.status = 0;
		answer.text = post->error[0] ? post->error : curl_easy_strerror(result);
		answer.length = strlen(answer.text);
	}
	if (!curl_easy_header(post->easy, "Retry-After", 0, CURLH_HEADER, -1, &header))
		answer.retry_after = header->value;
	curl_multi_remove_handle(multi, post->easy);
	ended(post->job, &answer);
}

/* Does what is due, and tells which posts have ended. */
void posts_run(void (*ended)(void *job, const struct answer *answer))
{
	struct epoll_event events[64];
	int i, running, left, count = epoll_wait(sockets, events, ARRAY_SIZE(events), 0);
	CURLMsg *message;

	for (i = 0; i < count; i++)
		curl_multi_socket_action(multi, events[i].data.fd,
					 (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
					 (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
					 (events[i].events & (EPOLLERR | EPOLLHUP) ?
					  CURL_CSELECT_ERR : 0), &running);
	if (next <= end_after(0)) {
		next = NEVER;
		curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	while ((message = curl_multi_info_read(multi, &left))) {
		struct post *post;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &post);
		tell_end(post, message->data.result, ended);
	}
}
