/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The benchmark of twjobd beside other keepers of jobs, in a guest: all on the same
 * disk, with the same jobs, by the same load generator, one after the other.
 *
 * main.c	what is measured
 * load.c	connections, each of which waits for its answer
 * speak.c	requests to each server, by a socket
 * postgres.c	the same by libpq
 * server.c	servers: started, ended, and what they use
 * util.c	time, and errors
 * loads.c	a program of its own: loads for "databases" and "durable", on the host
 */
#ifndef JOBS_BENCH_H
#define JOBS_BENCH_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#define BODY		100	/* bytes */
#define DISK		"/tmp/disk"
/* A server keeps its files in this folder, which is empty at its start. */
#define STORE		DISK "/store"
#define SOCKET		"/tmp/bench.socket"

enum command { PUT, TAKE, ACK };

/* @job: the words that end the job that was taken. */
struct conn {
	int fd;
	PGconn *pg;
	enum command command;	/* the command sent last */
	bool got;		/* a take has got a job */
	double sent;
	char job[128];
	char in[1024];
	size_t length;
};

struct kind;

/* The way a client speaks: receive() is called when something has come. */
struct speaker {
	void (*connect)(struct conn *conn);
	void (*send)(const struct kind *kind, struct conn *conn, enum command command);
	/* Returns whether the answer is complete. */
	bool (*receive)(const struct kind *kind, struct conn *conn);
	void (*close)(struct conn *conn);
};

/* A server. Only servers with a socket have @format and @parse. */
struct kind {
	const char *name;
	const char *version;	/* a shell command that prints it */
	const char *command;	/* the shell command that starts it */
	uid_t user;
	const struct speaker *speaker;
	void (*prepare)(void);	/* called before its start */
	/* Called with the first connection. */
	void (*set_up)(struct conn *conn);
	int (*format)(char *out, size_t size, const struct conn *conn,
		      enum command command);
	/* Returns the length of the answer, 0 if there is more to come. Sets @got and @job. */
	size_t (*parse)(struct conn *conn);
	bool polled;		/* a worker asks each second */
};

extern const struct kind kinds[];
extern const unsigned int nr_kinds;
/* This is twjobd with keys for its jobs; its store stays as it is. */
extern const struct kind keyed;

extern const struct speaker socket_speaker, postgres_speaker;
void postgres_set_up(struct conn *conn);
/* Returns a number that no job has yet. */
unsigned int new_number(void);
/* Makes a body of BODY bytes and a '\0'. The body begins with a number. */
void make_body(char body[BODY + 1], unsigned int number);

#define NEED(condition) \
	((condition) ? (void)0 : fail(__FILE__, __LINE__, #condition))
void fail(const char *file, int line, const char *what);
double now(void);
void sleep_for(double seconds);

/* Sends a command of RESP with these words, up to NULL; its answer is in @conn->in. */
void ask(struct conn *conn, ...) __attribute__((__sentinel__));
/* Returns a figure of TW.STATS. */
long long figure(struct conn *conn, const char *name);

struct server {
	const struct kind *kind;
	pid_t pid;
};

/* Starts a server. If it is @fresh, its store is empty. */
struct server server_start(const struct kind *kind, bool fresh);
void server_end(struct server *server);
long long server_memory(const struct server *server);	/* kB, without files */
/* @flush: the ms that each flush takes longer; 0 for the disk as it is. */
void disk_mount(int flush);
void disk_unmount(void);

struct crew {
	const struct kind *kind;
	int count;
	struct conn *conns;
	int epoll;
};

struct crew crew_connect(const struct kind *kind, int count);
void crew_close(struct crew *crew);

/* The result of a load. */
struct result {
	uint64_t done;		/* jobs put, or taken and acked */
	double seconds;
	/* The ms from a command to its answer, for half of them and for 99 of 100. */
	double median, p99;
};

/* Each connection puts job after job or, if @work, takes and acks job after job. */
struct result crew_load(struct crew *crew, bool work, double seconds);

#endif /* JOBS_BENCH_H */
