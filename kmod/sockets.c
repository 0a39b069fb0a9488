// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sockets: TCP connections that tokens watch: who they are, whether they can be
 * watched, and when they last carried data.
 *
 * Nothing is held of a connection between two questions: no file, no socket, no
 * network namespace. It is found each time by its addresses and ports, as TCP finds
 * it for a segment, and known by its cookie, which no other socket has had since
 * the machine was started.
 *
 * A network namespace is known by a number, which it gets with the first of its
 * connections that is watched, and which its end takes out of tw_nets. The numbers
 * go round: one comes again only after all others. The namespace that the machine
 * starts with has number 0: it never ends, so it is found in fewer instructions.
 *
 * What is read of a socket is read without its lock, which a program can hold for
 * as long as it likes. TCP writes the times of the last data as jiffies, and only
 * these count here. A segment at jiffy s came before jiffy s + 1. So at jiffy j at
 * least j - s - 1 jiffies have passed since then, and the token is due when these
 * are the timeout: at the beginning of a jiffy.
 */
#include <linux/delay.h>
#include <linux/in6.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/net.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/skmsg.h>
#include <linux/sock_diag.h>
#include <linux/timekeeping.h>
#include <linux/user_namespace.h>
#include <linux/xarray.h>
#include <net/inet6_hashtables.h>
#include <net/inet_connection_sock.h>
#include <net/inet_hashtables.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "sockets.h"

/* Jiffies that a timeout may have: ages are compared in 32 bits. */
#define TW_MAX_JIFFIES	(BIT(31) - 1)

/**
 * struct tw_netns - what is kept for each network namespace
 * @number: its index in tw_nets, 0 if it has none yet; set once, by cmpxchg()
 */
struct tw_netns {
	u32	number;
};

static unsigned int tw_netns_id __ro_after_init;
static DEFINE_XARRAY_ALLOC1(tw_nets);	/* its own lock; look-ups by RCU */
static u32 tw_next_number;			/* xa_lock of tw_nets */

/*
 * When jiffy 0 began, or would have begun, on the MONOTONIC clock, at the latest, in
 * ns. All jiffies are equally long, so that each reading of both clocks can bring
 * this nearer to the truth. Threads that write at once lose a little of that.
 * A jiffy that should be over may be late, which is made up for; or the machine has
 * lost some, which it does not make up for; or their number has wrapped: each time
 * this begins again with what is seen.
 */
static s64 tw_jiffy_base = S64_MAX;
/* The jiffy in which it was last made sure of. */
static u32 tw_jiffy_learnt;

/* A network namespace's number, or -ENOSPC or -ENOMEM. Its caller holds it. */
static int tw_netns_number(struct net *net)
{
	struct tw_netns *mine = net_generic(net, tw_netns_id);
	u32 number = READ_ONCE(mine->number);
	u32 other;
	int err;

	if (number || net_eq(net, &init_net))
		return number;
	/* The caller has a spinlock. */
	err = xa_alloc_cyclic(&tw_nets, &number, net, XA_LIMIT(1, U16_MAX),
			      &tw_next_number, GFP_ATOMIC | __GFP_NOWARN);
	if (err < 0)
		return err == -EBUSY ? -ENOSPC : err;
	other = cmpxchg(&mine->number, 0, number);
	if (!other)
		return number;
	xa_erase(&tw_nets, number);

	return other;
}

/*
 * A network namespace ends: from now on no look-up finds it. A grace period
 * follows, so that a look-up which has found it is over before it is freed.
 */
static void __net_exit tw_netns_exit(struct net *net)
{
	const struct tw_netns *mine = net_generic(net, tw_netns_id);

	if (mine->number)
		xa_erase(&tw_nets, mine->number);
}

/* A connection's network namespace, NULL if that has ended. Under RCU. */
static struct net *tw_netns_of(const struct tw_socket *socket)
{
	return socket->net ? xa_load(&tw_nets, socket->net) : &init_net;
}

static struct pernet_operations tw_netns_ops = {
	.pre_exit	= tw_netns_exit,
	.id		= &tw_netns_id,
	.size		= sizeof(struct tw_netns),
};

/* Learns when jiffies begin, in one that has just been read. */
static void tw_jiffy_learn(u32 jiffy)
{
	s64 latest = ktime_get_ns() - (u64)jiffy * TICK_NSEC;
	s64 base = READ_ONCE(tw_jiffy_base);

	if (latest < base || latest - base >= TICK_NSEC)
		WRITE_ONCE(tw_jiffy_base, latest);
	/* Pairs with the acquire in tw_jiffy_begun(). */
	smp_store_release(&tw_jiffy_learnt, jiffy);
}

/* When a jiffy that has just been read began, at the latest. */
static u64 tw_jiffy_begun(u32 jiffy)
{
	/* Pairs with the release in tw_jiffy_learn(). */
	if (smp_load_acquire(&tw_jiffy_learnt) != jiffy)
		tw_jiffy_learn(jiffy);

	return READ_ONCE(tw_jiffy_base) + (u64)jiffy * TICK_NSEC;
}

/* The best moment to learn is when a jiffy has just begun. */
static void __init tw_jiffy_init(void)
{
	u32 before = tcp_jiffies32;

	do {
		usleep_range(20, 50);
		tw_jiffy_learn(tcp_jiffies32);
	} while (tcp_jiffies32 == before);
	tw_jiffy_learn(tcp_jiffies32);
}

int __init tw_sockets_init(void)
{
	tw_jiffy_init();

	return register_pernet_subsys(&tw_netns_ops);
}

/* No token watches anything. */
void tw_sockets_exit(void)
{
	unregister_pernet_subsys(&tw_netns_ops);
	xa_destroy(&tw_nets);
}

/* Writes down who a socket is. It may change meanwhile: tw_socket_ask() tells. */
static void tw_socket_fill(struct tw_socket *socket, struct sock *sk)
{
	u32 cookie[2];

	/* Not for its own sake: this gives the socket a cookie. */
	sock_diag_save_cookie(sk, cookie);
	socket->cookie = atomic64_read(&sk->sk_cookie);
	socket->interface = READ_ONCE(sk->sk_bound_dev_if);
	socket->local_port = READ_ONCE(sk->sk_num);
	socket->remote_port = READ_ONCE(sk->sk_dport);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		socket->local = sk->sk_v6_rcv_saddr;
		socket->remote = sk->sk_v6_daddr;
		return;
	}
#endif
	ipv6_addr_set_v4mapped(READ_ONCE(sk->sk_rcv_saddr), &socket->local);
	ipv6_addr_set_v4mapped(READ_ONCE(sk->sk_daddr), &socket->remote);
}

/* Why a socket is none that can be watched, by its kind. */
static int tw_socket_check(const struct sock *sk)
{
	if (sk->sk_family != AF_INET && sk->sk_family != AF_INET6)
		return -EAFNOSUPPORT;
	if (sk->sk_type != SOCK_STREAM)
		return -EPROTOTYPE;
	if (sk->sk_protocol != IPPROTO_TCP)
		return -EPROTONOSUPPORT;
	switch (inet_sk_state_load(sk)) {
	case TCP_LISTEN:
		return -EOPNOTSUPP;
	case TCP_CLOSE:
	case TCP_SYN_SENT:
		return -ENOTCONN;
	default:
		return 0;
	}
}

/**
 * tw_socket_get() - write down who a connection is
 * @socket: where
 * @fd: a file descriptor of the calling process
 * @received: only what it receives counts
 *
 * Does not sleep. The connection may have ended, or be none that can be watched:
 * tw_socket_ask() tells.
 *
 * Return: 0; -EAFNOSUPPORT; -EBADF; -ENOMEM; -ENOSPC; -ENOTCONN; -ENOTSOCK;
 * -EOPNOTSUPP; -EPROTONOSUPPORT; -EPROTOTYPE.
 */
int tw_socket_get(struct tw_socket *socket, int fd, bool received)
{
	int err;
	struct socket *sock = sockfd_lookup(fd, &err);

	if (!sock)
		return err;
	tw_jiffy_learn(tcp_jiffies32);
	memset(socket, 0, sizeof(*socket));
	socket->received = received;
	err = tw_socket_check(sock->sk);
	if (!err)
		err = tw_netns_number(sock_net(sock->sk));
	if (err >= 0) {
		socket->net = err;
		tw_socket_fill(socket, sock->sk);
		err = 0;
	}
	sockfd_put(sock);

	return err;
}

/* The socket that TCP would find for a segment; with a reference. Under RCU. */
static struct sock *tw_socket_look_up(struct net *net,
				      const struct tw_socket *socket)
{
	const int interface = socket->interface;

	if (ipv6_addr_v4mapped(&socket->local))
		return TW_LOOKUP(__inet_lookup_established, net,
				 net->ipv4.tcp_death_row.hashinfo,
				 socket->remote.s6_addr32[3],
				 socket->remote_port,
				 socket->local.s6_addr32[3],
				 socket->local_port, interface, 0);
#if IS_ENABLED(CONFIG_IPV6)
	return TW_LOOKUP(__inet6_lookup_established, net,
			 net->ipv4.tcp_death_row.hashinfo, &socket->remote,
			 socket->remote_port, &socket->local,
			 socket->local_port, interface, 0);
#else
	return NULL;
#endif
}

/*
 * Jiffies from when a connection last carried data, or began, to @now. The clock is
 * read last, so that no age is below 0. Returns false if this is not known: a
 * connection that both sides have begun has received nothing before its first data.
 */
static bool tw_socket_age(const struct sock *sk, bool received, u32 *now,
			  u32 *age)
{
	u32 came = READ_ONCE(inet_csk(sk)->icsk_ack.lrcvtime);
	u32 went = READ_ONCE(tcp_sk(sk)->lsndtime);
	bool any = came || READ_ONCE(tcp_sk(sk)->data_segs_in);

	/* TCP reads the clock before it writes what is read here. */
	smp_rmb();
	*now = tcp_jiffies32;
	if (received) {
		*age = *now - came;
		return any;
	}
	*age = any ? min(*now - came, *now - went) : *now - went;

	return true;
}

/* The tick, later than @now if so is the jiffy, on which a token is due. */
static u64 tw_socket_due(u32 jiffy, u32 age, u64 timeout, u64 now, u64 tick)
{
	u64 whole = DIV64_U64_ROUND_UP(timeout, TICK_NSEC) + 1;
	u64 begun = tw_jiffy_begun(jiffy);
	u64 due;

	if (age >= whole)
		return DIV64_U64_ROUND_UP(begun - min((age - whole) * TICK_NSEC,
						      begun), tick);
	due = DIV64_U64_ROUND_UP(begun + (whole - age) * TICK_NSEC, tick);

	return max(due, now + 1);
}

/* Whether a BPF program takes the data, of which TCP then knows nothing. */
static bool tw_socket_is_diverted(const struct sock *sk)
{
	return IS_ENABLED(CONFIG_NET_SOCK_MSG) && sk_psock(sk);
}

/* What a socket that was found says. */
static struct tw_asked tw_socket_answer(const struct sock *sk,
					const struct tw_socket *socket,
					u64 timeout, u64 now, u64 tick)
{
	struct tw_asked asked = { };
	u32 jiffy, age;

	if (!sk_fullsock(sk) || atomic64_read(&sk->sk_cookie) != socket->cookie ||
	    inet_sk_state_load(sk) == TCP_CLOSE || sock_flag(sk, SOCK_DEAD))
		asked.error = ENOTCONN;
	else if (tw_socket_is_diverted(sk))
		asked.error = EBUSY;
	else if (tw_socket_age(sk, socket->received, &jiffy, &age))
		asked.due = tw_socket_due(jiffy, age, timeout, now, tick);

	return asked;
}

/**
 * tw_socket_ask() - ask a connection when it last carried data
 * @watch: struct tw_socket
 * @timeout: ns
 * @now: the tick that the hand is on
 * @tick: ns per tick
 *
 * Return: when a token with this timeout is due, no time if nothing was received;
 * ENOTCONN the connection has ended; EBUSY it can no longer be asked.
 */
struct tw_asked tw_socket_ask(const void *watch, u64 timeout, u64 now, u64 tick)
{
	const struct tw_socket *socket = watch;
	struct tw_asked asked = { .error = ENOTCONN };
	struct sock *sk = NULL;
	struct net *net;

	/* Keeps the namespace: see tw_netns_exit(). */
	rcu_read_lock();
	net = tw_netns_of(socket);
	if (net)
		sk = tw_socket_look_up(net, socket);
	if (sk) {
		asked = tw_socket_answer(sk, socket, timeout, now, tick);
		sock_gen_put(sk);
	}
	rcu_read_unlock();

	return asked;
}

/* The longest timeout in ns. */
u64 tw_socket_max_timeout(void)
{
	return (u64)TW_MAX_JIFFIES * TICK_NSEC;
}

/* Whether the calling process may know addresses of a network namespace. */
static bool tw_netns_may_see(const struct net *net)
{
	return net == current->nsproxy->net_ns ||
	       ns_capable_noaudit(net->user_ns, CAP_NET_ADMIN);
}

/* Tells who a connection is, as far as the calling process may know it. */
void tw_socket_tell(const struct tw_socket *socket,
		    struct timewheel_token *told)
{
	const struct net *net;

	told->socket = socket->cookie;
	rcu_read_lock();
	net = tw_netns_of(socket);
	if (net && tw_netns_may_see(net)) {
		memcpy(told->local, &socket->local, sizeof(told->local));
		memcpy(told->remote, &socket->remote, sizeof(told->remote));
		told->local_port = socket->local_port;
		told->remote_port = ntohs(socket->remote_port);
		told->interface = socket->interface;
	}
	rcu_read_unlock();
}
