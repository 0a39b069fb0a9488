// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watched tokens, with what a kernel has in modules of its own: kernel TLS (tls, gcm,
 * ctr, ghash-generic) and news of sockets' ends (tcp_diag), which are to be loaded.
 */
#define _GNU_SOURCE
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tls.h>

#include "tw_watch.h"

#define SHORT	(80 * TW_MS)	/* a timeout that tests wait for */

/* A wheel that watches, and tells of ends, and a connection. */
FIXTURE(network) {
	int fd;
	struct tw_conn conn;
};

FIXTURE_SETUP(network)
{
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_watch(self->fd, TW_MS, 1000,
				    TIMEWHEEL_SETUP_TELL_ENDED));
	ASSERT_TRUE(tw_connect(AF_INET, &self->conn));
}

FIXTURE_TEARDOWN(network)
{
	tw_disconnect(&self->conn);
	close(self->fd);
}

/* Waits for the kernel to say that this socket is no more. */
static bool is_destroyed(int diag, __u64 cookie, __u64 limit)
{
	__u64 end = tw_now(CLOCK_MONOTONIC) + limit;
	struct pollfd p = { .fd = diag, .events = POLLIN };

	while (tw_now(CLOCK_MONOTONIC) < end) {
		union {
			struct nlmsghdr header;
			char room[4096];
		} message;
		const struct inet_diag_msg *about = NLMSG_DATA(&message.header);

		if (poll(&p, 1, 100) == 1 &&
		    recv(diag, &message, sizeof(message), 0) > 0 &&
		    (about->id.idiag_cookie[0] |
		     (__u64)about->id.idiag_cookie[1] << 32) == cookie)
			return true;
	}
	return false;
}

/* As by "ss -E". Returns -1 where the kernel does not tell. */
static int open_destroy_events(void)
{
	const struct sockaddr_nl address = {
		.nl_family = AF_NETLINK,
		.nl_groups = 1U << (SKNLGRP_INET_TCP_DESTROY - 1),
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	struct tw_conn conn;
	__u64 cookie;

	if (fd >= 0 && !bind(fd, (const struct sockaddr *)&address,
			     sizeof(address)) && tw_connect(AF_INET, &conn)) {
		cookie = tw_socket_cookie(conn.a);
		tw_reset(&conn.a);
		tw_disconnect(&conn);
		if (is_destroyed(fd, cookie, 2 * TW_SEC))
			return fd;
	}
	close(fd);
	return -1;
}

/* The socket is freed as soon as it is closed, and the kernel tells so. */
TEST_F(network, socket_is_destroyed_at_once)
{
	struct tw_conn *c = &self->conn;
	__u64 cookie = tw_socket_cookie(c->a);
	int diag;

	TW_NEEDS_ROOT();
	diag = open_destroy_events();
	ASSERT_LE(0, diag) {
		TH_LOG("the kernel does not tell of sockets' ends: modprobe tcp_diag");
	}
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, c->a, 1, 0));
	tw_deadline_of(self->fd, 1);
	tw_reset(&c->a);
	EXPECT_TRUE(is_destroyed(diag, cookie, TW_SOON));
	close(diag);
}

/* TLS by the kernel is TCP like any other. */
TEST_F(network, ktls)
{
	struct tls12_crypto_info_aes_gcm_128 keys = {
		.info = {
			.version = TLS_1_2_VERSION,
			.cipher_type = TLS_CIPHER_AES_GCM_128,
		},
	};
	struct tw_conn *c = &self->conn;
	struct timewheel_event event;
	struct tw_span span;

	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, TW_AN_HOUR, 0));
	ASSERT_EQ(0, setsockopt(c->a, IPPROTO_TCP, TCP_ULP, "tls", 3)) {
		TH_LOG("no kernel TLS: modprobe tls");
	}
	ASSERT_EQ(0, setsockopt(c->b, IPPROTO_TCP, TCP_ULP, "tls", 3));
	ASSERT_EQ(0, setsockopt(c->a, SOL_TLS, TLS_TX, &keys, sizeof(keys)));
	ASSERT_EQ(0, setsockopt(c->b, SOL_TLS, TLS_RX, &keys, sizeof(keys)));
	ASSERT_EQ(0, tw_watch(self->fd, 2, c->b, TW_AN_HOUR, 0));
	for (int i = 0; i < 5; i++) {
		tw_sleep_ms(20);
		ASSERT_TRUE(tw_say(c->a, c->b, &span));
		tw_expect_deadline(tw_deadline_of(self->fd, 1), span, TW_AN_HOUR);
		tw_expect_deadline(tw_deadline_of(self->fd, 2), span, TW_AN_HOUR);
	}
	ASSERT_EQ(0, tw_watch(self->fd, 3, c->a, SHORT, 0));
	tw_expect_event(self->fd, 3, 0, &event);
}

TEST_HARNESS_MAIN
