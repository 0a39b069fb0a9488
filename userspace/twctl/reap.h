/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle connections of programs that cannot be changed. reap.c has the verb and its
 * loop, reap_find.c finds the connections that processes have accepted, reap_diag.c
 * asks the kernel about connections and ends them.
 */
#ifndef TWCTL_REAP_H
#define TWCTL_REAP_H

#include <limits.h>
#include <linux/inet_diag.h>

#include "twctl.h"

/*
 * A network namespace. @diag: a socket of sock_diag(7) in it. @look: number of the last
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
	CONN_NEW,		/* is to be watched */
	CONN_WATCHED,
	CONN_LEFT,		/* is left alone from now on */
};

/*
 * A connection. @id, @cookie and @space name it to the kernel: no other connection ever
 * has this cookie. @inode: by which a process' files are compared with it. @look:
 * number of the last look that has found it, @since: when the first one did.
 */
struct conn {
	struct inet_diag_sockid	id;
	uint64_t		cookie;
	struct space		*space;
	uint32_t		inode;
	uint8_t			family;
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

void conns_add(struct conns *conns, const struct conn *conn);
struct space *space_of(struct space **spaces, pid_t pid);
void spaces_trim(struct space **spaces, unsigned int look);
int diag_accepted(struct space *space, uint16_t port, struct conns *conns);
int diag_idle(const struct conn *conn, bool received, uint64_t *idle);
int diag_end(const struct conn *conn);
int diag_can_end(struct space *space);

/*
 * @pidfd: of the process @pid; -1 if the program is the control group of the path @group.
 * @port: only connections of this local port, 0 for all that were accepted. @known:
 * those that the last looks have found, sorted by their cookies. @told: bits of enum
 * once. @denied: a process could not be looked at for want of a right.
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

enum conn_state conn_watch(struct reap *reap, const struct conn *conn, int fd);

/* Processes and their connections (reap_find.c) */

void reap_target(struct reap *reap, const struct args *args);
bool reap_look(struct reap *reap);
struct conn *conn_known(const struct reap *reap, uint64_t cookie);

/* Messages (reap_fail.c) */

/* What is told once only. */
enum once {
	ONCE_PTRACE,
	ONCE_FILES,
	ONCE_SPACE,
	ONCE_MPTCP,
	ONCE_SOCKMAP,
	ONCE_FULL,
	ONCE_OTHER,
};

bool may(int capability);
void tell_ptrace(struct reap *reap, pid_t pid);
void tell_files(struct reap *reap, pid_t pid);
void tell_space(struct reap *reap, pid_t pid);
enum conn_state tell_refused(struct reap *reap, int err);
enum status diag_trouble(int err);

#endif /* TWCTL_REAP_H */
