/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for tests of watched tokens: TCP connections of this machine with itself,
 * wheels that watch them, and when their events may come.
 */
#ifndef TW_WATCH_H
#define TW_WATCH_H

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "tw_test.h"

/* The longest that a test waits for what should come at once: guests may be emulated. */
#define TW_SOON		(20 * TW_SEC)

/* A timeout that no test waits for. */
#define TW_AN_HOUR	(3600 * TW_SEC)

/* A connection: @a connected, @b was accepted. */
struct tw_conn {
	int a, b;
};

/* Which address a socket has. */
union tw_address {
	struct sockaddr		any;
	struct sockaddr_in	v4;
	struct sockaddr_in6	v6;
};

/* When something happened: not before @from, and not after @to. */
struct tw_span {
	__u64 from, to;
};

static inline int tw_setup_watch(int fd, __u64 tick, __u64 max_tokens, __u32 flags)
{
	return tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 1024, tick, max_tokens,
			TIMEWHEEL_SETUP_WATCH | flags, 0);
}

static inline struct timewheel_op tw_watch_op(__u64 id, int socket, __u64 timeout,
					      __u32 flags)
{
	return (struct timewheel_op) {
		.size = sizeof(struct timewheel_op), .code = TIMEWHEEL_OP_WATCH,
		.flags = flags, .id = id, .fd = socket, .time = timeout,
	};
}

/* Returns the result, or -errno. */
static inline int tw_watch(int fd, __u64 id, int socket, __u64 timeout, __u32 flags)
{
	struct timewheel_op op = tw_watch_op(id, socket, timeout, flags);

	return tw_ret(tw_op(fd, &op));
}

static inline socklen_t tw_address_size(const union tw_address *address)
{
	return address->any.sa_family == AF_INET ? sizeof(address->v4) :
						   sizeof(address->v6);
}

/* 127.0.0.1 or ::1, and a port that the kernel chooses. */
static inline union tw_address tw_loopback(int family)
{
	union tw_address address = { .any = { .sa_family = family } };

	if (family == AF_INET)
		address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		address.v6.sin6_addr = in6addr_loopback;
	return address;
}

/* A listening socket; *@address is filled in. Returns -1 and errno if it cannot be. */
static inline int tw_listen(union tw_address *address, int protocol)
{
	socklen_t size = tw_address_size(address);
	int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC,
			protocol);
	const int yes = 1;

	if (fd < 0)
		return -1;
	if (!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) &&
	    !bind(fd, &address->any, size) && !listen(fd, 1000) &&
	    !getsockname(fd, &address->any, &size))
		return fd;
	close(fd);
	return -1;
}

/* Connects to a listening socket. Returns false if that fails: then both ends are -1. */
static inline bool tw_connect_to(int listener, const union tw_address *address,
				 struct tw_conn *conn)
{
	conn->b = -1;
	conn->a = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (conn->a < 0)
		return false;
	if (!connect(conn->a, &address->any, tw_address_size(address)))
		conn->b = accept(listener, NULL, NULL);
	if (conn->b >= 0)
		return true;
	close(conn->a);
	conn->a = -1;
	return false;
}

static inline bool tw_connect(int family, struct tw_conn *conn)
{
	union tw_address address = tw_loopback(family);
	int listener = tw_listen(&address, 0);
	bool ok = listener >= 0 && tw_connect_to(listener, &address, conn);

	if (listener >= 0)
		close(listener);
	return ok;
}

static inline void tw_disconnect(struct tw_conn *conn)
{
	if (conn->a >= 0)
		close(conn->a);
	if (conn->b >= 0)
		close(conn->b);
	conn->a = -1;
	conn->b = -1;
}

/* Closes a socket at once and for good: its peer is told by a reset. */
static inline void tw_reset(int *fd)
{
	const struct linger now = { .l_onoff = 1 };

	setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(*fd);
	*fd = -1;
}

/* From now on the socket gets nothing, and does not say so, as if a cable was cut. */
static inline bool tw_cut(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = { .len = 1, .filter = &nothing };

	return !setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			   sizeof(program));
}

static inline bool tw_mend(int fd)
{
	return !setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, NULL, 0);
}

static inline __u64 tw_socket_cookie(int fd)
{
	__u64 cookie = 0;
	socklen_t size = sizeof(cookie);

	if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size))
		return 0;
	return cookie;
}

static inline struct tcp_info tw_tcp_info(int fd)
{
	struct tcp_info info = { };
	socklen_t size = sizeof(info);

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
	return info;
}

/* Waits for a connection to get into this state, such as TCP_CLOSE_WAIT. */
static inline bool tw_state_becomes(int fd, int state)
{
	for (int i = 0; i < 20000 && tw_tcp_info(fd).tcpi_state != state; i++)
		tw_sleep_ms(1);
	return tw_tcp_info(fd).tcpi_state == state;
}

/*
 * Lockdep of a kernel before 6.12 finds fault with sockmaps themselves, which take a
 * spinlock inside a raw one. Then it sees nothing more, and so it must not come to that.
 */
static inline bool tw_may_sockmap(void)
{
	return access("/proc/lockdep_stats", F_OK);
}

/*
 * A map of the kind that has its sockets' data taken by BPF, with this one in it.
 * Returns the map's file, or -1 and errno.
 */
static inline int tw_sockmap(int fd)
{
	const __u32 key = 0;
	const __u32 value = fd;
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_SOCKMAP, .key_size = sizeof(key),
		.value_size = sizeof(value), .max_entries = 1,
	};
	int map = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	int err;

	if (map < 0)
		return -1;
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = map;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)&value;
	if (!syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr)))
		return map;
	err = errno;
	close(map);
	errno = err;
	return -1;
}

/* Sets an interface up, as "lo" in a new network namespace. */
static inline bool tw_interface_up(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { };
	bool ok;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	ok = fd >= 0 && !ioctl(fd, SIOCGIFFLAGS, &request);
	request.ifr_flags |= IFF_UP;
	ok = ok && !ioctl(fd, SIOCSIFFLAGS, &request);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* The length of a jiffy in ns: the coarse clocks go by it. */
static inline __u64 tw_jiffy(void)
{
	struct timespec ts;

	clock_getres(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_nsec;
}

/*
 * A time that is not later than the end of the jiffy which data that is carried from
 * now on is counted for. It is not the time itself: a machine that is late with its
 * jiffies, as a guest that had no CPU, counts such data for one that should be over.
 */
static inline __u64 tw_span_begins(void)
{
	return tw_now(CLOCK_MONOTONIC_COARSE);
}

/* Sends a byte, and waits until it is received. */
static inline bool tw_say(int from, int to, struct tw_span *span)
{
	char byte = 'x';

	span->from = tw_span_begins();
	if (send(from, &byte, 1, MSG_NOSIGNAL) != 1 || recv(to, &byte, 1, 0) != 1)
		return false;
	span->to = tw_now(CLOCK_MONOTONIC);
	return true;
}

/* When the connection with the other end of a pair was made. */
static inline bool tw_connect_spanned(int family, struct tw_conn *conn,
				      struct tw_span *span)
{
	span->from = tw_span_begins();
	if (!tw_connect(family, conn))
		return false;
	span->to = tw_now(CLOCK_MONOTONIC);
	return true;
}

#ifndef TW_NO_HARNESS

/*
 * A deadline is @timeout after data that was carried in @span. It is later by a jiffy and
 * a tick, and by as much as the machine is late with its jiffies, for which a second is
 * left; watch.c has a test of how late it is at least now and then.
 */
static inline void _tw_expect_deadline(struct __test_metadata *_metadata,
				       __u64 deadline, struct tw_span span,
				       __u64 timeout, __u64 tick, int line)
{
	const __u64 late = 2 * tw_jiffy() + tick + TW_SEC;

	EXPECT_LE(span.from + timeout, deadline) {
		TH_LOG("early by %llu us, in line %d",
		       (span.from + timeout - deadline) / 1000, line);
	}
	EXPECT_GE(span.to + timeout + late, deadline) {
		TH_LOG("late by %llu us, in line %d",
		       (deadline - span.to - timeout) / 1000, line);
	}
}

#define tw_expect_deadline(deadline, span, timeout)			\
	_tw_expect_deadline(_metadata, deadline, span, timeout, TW_MS, __LINE__)

/* The deadline that GET tells. */
static inline __u64 _tw_deadline_of(struct __test_metadata *_metadata, int fd,
				    __u64 id, int line)
{
	struct timewheel_token token = { };

	EXPECT_EQ(0, tw_ret(tw_get(fd, 0, id, &token))) {
		TH_LOG("token %llu, in line %d", id, line);
	}
	return token.deadline;
}

#define tw_deadline_of(fd, id)	_tw_deadline_of(_metadata, fd, id, __LINE__)

/* Reads an event, also from a file that does not block. */
static inline void _tw_expect_event(struct __test_metadata *_metadata, int fd,
				    __u64 id, __u32 error,
				    struct timewheel_event *event, int line)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int ret;

	do {
		ASSERT_EQ(1, poll(&p, 1, TW_SOON / TW_MS)) {
			TH_LOG("no event of %llu, in line %d", id, line);
		}
		ret = tw_read(fd, event, 1);
	} while (ret < 0 && errno == EAGAIN);
	ASSERT_EQ(1, ret);
	EXPECT_EQ(id, event->id) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(error, event->error) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(0U, event->delivery);
	EXPECT_LE(event->deadline, event->taken);
}

#define tw_expect_event(fd, id, error, event)				\
	_tw_expect_event(_metadata, fd, id, error, event, __LINE__)

/* The wheel has counted so many; looks at it count, too. */
static inline void _tw_expect_ended(struct __test_metadata *_metadata, int fd,
				    __u64 ended, int line)
{
	struct timewheel_info info;
	__u64 until = tw_now(CLOCK_MONOTONIC) + TW_SOON;

	do {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		EXPECT_EQ(0, poll(&p, 1, 1)) {
			TH_LOG("an event, in line %d", line);
		}
		ASSERT_EQ(0, tw_info(fd, &info));
	} while (info.ended < ended && tw_now(CLOCK_MONOTONIC) < until);
	EXPECT_EQ(ended, info.ended) {
		TH_LOG("in line %d", line);
	}
}

/* Waits until so many tokens have ended with their connections, and no event comes. */
#define tw_expect_ended(fd, ended)	_tw_expect_ended(_metadata, fd, ended, __LINE__)

#endif /* TW_NO_HARNESS */

#endif /* TW_WATCH_H */
