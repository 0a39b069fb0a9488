/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle connections of programs that cannot be changed. reap.c has the verb and its loop,
 * reap_find.c finds the connections of processes, reap_diag.c lists the kernel's connections
 * and ends them. libtimewheel asks the kernel how long they have been idle.
 */
#ifndef TWCTL_REAP_H
#define TWCTL_REAP_H

#include <limits.h>
#include <linux/inet_diag.h>

#include "twctl.h"

/*
 * A network namespace. @diag: a socket of sock_diag(7) in it. @look: the number of the last
 * look that has used it.
 */
struct space {
	struct space	*next;
	dev_t		dev;
	ino_t		ino;
	int		diag;
	unsigned int	look;
};

enum conn_state {
	CONN_NEW,		/* the connection is to get a token */
	CONN_EXPECTED,		/* its token has the cookie as id */
	CONN_LEFT,		/* it is left alone from now on */
};

/*
 * A connection, or a socket that listens. @tcp and @space name it to the kernel: no other
 * connection ever has its cookie. @inode: the number by which a process' files are compared
 * with it, 0 while no process has accepted it. @look: number of the last look that has found
 * it, @since: when the first one did.
 */
struct conn {
	struct tw_tcp		tcp;
	struct space		*space;
	uint32_t		inode;
	bool			listens;
	bool			multipath;
	uint8_t			state;
	unsigned int		look;
	uint64_t		since;
};

struct conns {
	struct conn	*conn;
	size_t		count;
	size_t		room;
};

/* sock_diag(7) (reap_diag.c) */

static inline uint64_t conn_cookie(const struct conn *conn)
{
	return conn->tcp.id.idiag_cookie[0] |
	       (uint64_t)conn->tcp.id.idiag_cookie[1] << 32;
}

void conns_add(struct conns *conns, const struct conn *conn);
struct space *space_of(struct space **spaces, const char *process);
void spaces_trim(struct space **spaces, unsigned int look);
int diag_sockets(struct space *space, uint16_t port, struct conns *conns);
int diag_end(const struct conn *conn);
int diag_can_end(struct space *space);

/*
 * @pidfd: of the process @pid; -1 if the program is the control group of the path @group, or
 * if that is "" all that has a connection of @port. @port: only connections of this local
 * port, 0 for all that were accepted. @known: those connections that the last looks have
 * found, sorted by their cookies. @told: bits of enum once. @denied: a process could not be
 * looked at for want of a right.
 */
struct reap {
	pid_t			pid;
	int			pidfd;
	char			group[PATH_MAX];
	uint16_t		port;
	uint64_t		idle;
	uint64_t		grace;
	bool			received;
	bool			dry;
	struct tw_wheel		*wheel;
	struct tw_events	*events;
	struct conns		known;
	struct space		*spaces;
	unsigned int		look;
	unsigned int		told;
	bool			denied;
};

/* Processes and their connections (reap_find.c) */

void reap_target(struct reap *reap, const struct args *args);
bool reap_look(struct reap *reap);
enum conn_state conn_expect(struct reap *reap, const struct conn *conn,
			    uint64_t delay);
struct conn *conn_known(const struct reap *reap, uint64_t cookie);

/* Messages (reap_fail.c) */

/* Messages that are printed only once. */
enum once {
	ONCE_PTRACE,
	ONCE_FILES,
	ONCE_SPACE,
	ONCE_MPTCP,
	ONCE_FULL,
};

bool may(int capability);
void tell_ptrace(struct reap *reap, pid_t pid);
void tell_files(struct reap *reap, pid_t pid);
void tell_space(struct reap *reap, pid_t pid);
void tell_multipath(struct reap *reap);
void tell_full(struct reap *reap);
enum status diag_trouble(int err);

#endif /* TWCTL_REAP_H */
