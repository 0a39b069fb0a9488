/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sockets: TCP connections that tokens watch: who they are, whether they can be
 * watched, and when they last carried data. Knows the network, and neither rings
 * nor lists.
 */
#ifndef TW_SOCKETS_H
#define TW_SOCKETS_H

#include <linux/in6.h>
#include <linux/timewheel.h>
#include <linux/types.h>

#include "watch.h"

/**
 * struct tw_socket - who a connection is, of which nothing is held
 * @local: its own address; one of IPv4 is mapped to IPv6
 * @remote: its peer's
 * @local_port: its own port, in host order
 * @remote_port: its peer's
 * @interface: that the socket is bound to, 0 for none
 * @received: only what it has received counts
 * @cookie: the socket's cookie. Cookies count from 0 up, and down for those that are
 *	made in interrupts: 2^47 of each.
 * @net: number of its network namespace, see sockets.c
 *
 * Constant once the token is ARMED.
 */
struct tw_socket {
	struct in6_addr	local;
	struct in6_addr	remote;
	u16		local_port;
	__be16		remote_port;
	u32		interface : 31;
	u32		received : 1;
	s64		cookie : 48;
	u64		net : 16;
};

#if IS_ENABLED(CONFIG_INET)

#define TW_CAN_WATCH	(TIMEWHEEL_SETUP_WATCH | TIMEWHEEL_SETUP_TELL_ENDED)

int tw_socket_get(struct tw_socket *socket, int fd, bool received);
tw_ask_t tw_socket_ask;
void tw_socket_tell(const struct tw_socket *socket,
		    struct timewheel_token *told);
u64 tw_socket_max_timeout(void);
int tw_sockets_init(void);
void tw_sockets_exit(void);

#else

#define TW_CAN_WATCH	0
#define tw_socket_ask	NULL

static inline int tw_socket_get(struct tw_socket *socket, int fd, bool received)
{
	return -EAFNOSUPPORT;
}

static inline void tw_socket_tell(const struct tw_socket *socket,
				  struct timewheel_token *told)
{
}

static inline u64 tw_socket_max_timeout(void)
{
	return 0;
}

static inline int tw_sockets_init(void)
{
	return 0;
}

static inline void tw_sockets_exit(void)
{
}

#endif

#endif /* TW_SOCKETS_H */
