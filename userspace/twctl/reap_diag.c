// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lists the kernel's TCP connections, and ends them, by sock_diag(7). A socket of
 * sock_diag knows the network namespace in which it was opened, so there is one for
 * each. The kernel answers each request before send(2) returns, or as it is read.
 */
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include "reap.h"

/* The most that the kernel puts into one message of an answer. */
#define ANSWER_SIZE	32768

/* The states of a connection that has not been accepted yet. */
#define QUEUED		(1 << TCP_ESTABLISHED | 1 << TCP_CLOSE_WAIT)

/* Listening, or connected: a program may have such a socket open. */
#define STATES		(QUEUED | 1 << TCP_LISTEN | 1 << TCP_FIN_WAIT1 | \
			 1 << TCP_FIN_WAIT2 | 1 << TCP_LAST_ACK | 1 << TCP_CLOSING)

#define PORTS		65536

struct request {
	struct nlmsghdr			header;
	struct inet_diag_req_v2		body;
};

/* The work to do with each socket that the kernel tells of. */
struct answer {
	void	(*each)(struct answer *answer, const struct nlmsghdr *message);
	void	*data;
};

void conns_add(struct conns *conns, const struct conn *conn)
{
	if (conns->count == conns->room) {
		conns->room = conns->room ? 2 * conns->room : 64;
		conns->conn = reallocarray(conns->conn, conns->room,
					   sizeof(*conns->conn));
		if (!conns->conn)
			die(STATUS_FAILED, "no memory for connections");
	}
	conns->conn[conns->count++] = *conn;
}

/* Opens a socket of sock_diag in the network namespace @there. Returns it, or -1 and errno. */
static int open_diag(int there, const struct stat *number)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int fd = -1, err;
	struct stat own;
	bool other, away = false;

	if (here < 0 || fstat(here, &own) < 0)
		return -1;
	other = own.st_ino != number->st_ino || own.st_dev != number->st_dev;
	if (other)
		away = !setns(there, CLONE_NEWNET);
	if (away == other)
		fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
			    NETLINK_SOCK_DIAG);
	err = errno;
	if (away && setns(here, CLONE_NEWNET) < 0)
		die(STATUS_FAILED, "cannot leave a network namespace: %s",
		    strerror(errno));
	close(here);
	errno = err;
	return fd;
}

/*
 * Finds the network namespace of a process by its name in /proc, and adds it to the list if it
 * is new. Returns NULL and sets errno if that fails.
 */
struct space *space_of(struct space **spaces, const char *process)
{
	struct space *space;
	struct stat stat;
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%s/ns/net", process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat) < 0)
		return NULL;
	for (space = *spaces; space; space = space->next) {
		if (space->ino == stat.st_ino && space->dev == stat.st_dev)
			break;
	}
	if (!space) {
		space = malloc(sizeof(*space));
		if (!space)
			die(STATUS_FAILED, "no memory for a network namespace");
		*space = (struct space) {
			.next = *spaces,
			.dev = stat.st_dev,
			.ino = stat.st_ino,
			.diag = open_diag(fd, &stat),
		};
		err = errno;
		if (space->diag < 0) {
			free(space);
			space = NULL;
		} else {
			*spaces = space;
		}
		errno = err;
	}
	close(fd);
	return space;
}

/* Frees the network namespaces that the last look has not used. */
void spaces_trim(struct space **spaces, unsigned int look)
{
	struct space *space;

	while ((space = *spaces)) {
		if (space->look == look) {
			spaces = &space->next;
			continue;
		}
		*spaces = space->next;
		close(space->diag);
		free(space);
	}
}

/* Goes through one message of the answer. Returns 1 for more, 0 at the end, or -errno. */
static int take_answer(const void *buffer, ssize_t length, uint32_t number,
		       struct answer *answer)
{
	const struct nlmsghdr *message = buffer;
	const struct nlmsgerr *error;
	int more = 1;

	for (; NLMSG_OK(message, length); message = NLMSG_NEXT(message, length)) {
		if (message->nlmsg_seq != number)
			continue;
		switch (message->nlmsg_type) {
		case NLMSG_ERROR:
			error = NLMSG_DATA(message);
			return error->error;
		case NLMSG_DONE:
			return *(const int *)NLMSG_DATA(message);
		default:
			answer->each(answer, message);
			more = message->nlmsg_flags & NLM_F_MULTI ? 1 : 0;
		}
	}
	return more;
}

/* Sends a request, and goes through its answer. Returns 0, or an errno. */
static int ask(int diag, struct request *request, struct answer *answer)
{
	static char buffer[ANSWER_SIZE] __attribute__((aligned(8)));
	static uint32_t number;
	ssize_t length;
	int more;

	request->header.nlmsg_len = sizeof(*request);
	request->header.nlmsg_flags |= NLM_F_REQUEST;
	request->header.nlmsg_seq = ++number;
	request->body.sdiag_protocol = IPPROTO_TCP;
	if (send(diag, request, sizeof(*request), 0) < 0)
		return errno;
	do {
		length = recv(diag, buffer, sizeof(buffer), 0);
		if (length < 0)
			return errno;
		more = take_answer(buffer, length, number, answer);
	} while (more > 0);
	return -more;
}

/* The connections of a namespace as the kernel tells them, and which ports have a listener. */
struct dump {
	struct conns	*conns;
	struct space	*space;
	bool		listening[PORTS];
};

/* A path of an MPTCP connection is a TCP connection whose upper protocol is "mptcp". */
static void find_protocol(struct conn *conn, const struct inet_diag_msg *socket,
			  const char *end)
{
	const struct nlattr *attr = (const void *)(socket + 1), *name;

	while ((const char *)(attr + 1) <= end && attr->nla_len >= sizeof(*attr)) {
		name = attr + 1;
		if (attr->nla_type == INET_DIAG_ULP_INFO &&
		    name->nla_type == INET_ULP_INFO_NAME)
			conn->multipath = !strcmp((const char *)(name + 1), "mptcp");
		attr = (const void *)((const char *)attr + NLA_ALIGN(attr->nla_len));
	}
}

static void add_socket(struct answer *answer, const struct nlmsghdr *message)
{
	const struct inet_diag_msg *socket = NLMSG_DATA(message);
	struct dump *dump = answer->data;
	struct conn conn = {
		.tcp.id = socket->id,
		.tcp.family = socket->idiag_family,
		.space = dump->space,
		.inode = socket->idiag_inode,
		.listens = socket->idiag_state == TCP_LISTEN,
	};

	find_protocol(&conn, socket, (const char *)message + message->nlmsg_len);
	if (conn.listens)
		dump->listening[ntohs(socket->id.idiag_sport)] = true;
	/* All other sockets are closed, and not yet forgotten. */
	if (conn.inode || 1 << socket->idiag_state & QUEUED)
		conns_add(dump->conns, &conn);
}

/*
 * Adds the sockets of a network namespace that have the local port @port; for 0 the sockets at
 * whose local port a socket listens. The kernel gives such a port to no connection that a
 * program makes. Returns 0, or an errno.
 */
int diag_sockets(struct space *space, uint16_t port, struct conns *conns)
{
	static const uint8_t families[] = { AF_INET, AF_INET6 };
	static struct dump dump;
	struct answer answer = { add_socket, &dump };
	size_t i, from = conns->count;
	int err = 0;

	memset(&dump, 0, sizeof(dump));
	dump.conns = conns;
	dump.space = space;
	for (i = 0; i < ARRAY_SIZE(families) && !err; i++) {
		struct request request = {
			.header = { .nlmsg_type = SOCK_DIAG_BY_FAMILY,
				    .nlmsg_flags = NLM_F_DUMP },
			.body = { .sdiag_family = families[i],
				  /* Without this extension the kernel tells nothing of MPTCP. */
				  .idiag_ext = 1 << (INET_DIAG_INFO - 1),
				  .idiag_states = STATES },
		};

		err = ask(space->diag, &request, &answer);
	}
	for (i = from; i < conns->count; i++) {
		uint16_t local = ntohs(conns->conn[i].tcp.id.idiag_sport);

		if (port ? local == port : dump.listening[local])
			conns->conn[from++] = conns->conn[i];
	}
	conns->count = from;
	return err;
}

/*
 * Ends a connection: its peer gets a reset, and its program reads ECONNABORTED. Returns 0, or
 * an errno: ENOENT if it has ended, EPERM, or EOPNOTSUPP if the kernel cannot end it.
 */
int diag_end(const struct conn *conn)
{
	struct request request = {
		.header = { .nlmsg_type = SOCK_DESTROY,
			    .nlmsg_flags = NLM_F_ACK },
		.body = { .sdiag_family = conn->tcp.family,
			  .idiag_states = -1,
			  .id = conn->tcp.id },
	};

	return ask(conn->space->diag, &request, NULL);
}

/*
 * Asks whether the kernel ends connections at all, by one that cannot exist. Returns 0, or an
 * errno.
 */
int diag_can_end(struct space *space)
{
	const struct conn none = {
		.tcp.id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
		.tcp.family = AF_INET,
		.space = space,
	};
	int err = diag_end(&none);

	return err == ENOENT ? 0 : err;
}
