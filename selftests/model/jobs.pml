/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * jobs.pml: the order of operations by which twjobd keeps its store and its wheel in step, with a
 * crash at each of them.
 *
 * What is modelled, and where it is in userspace/daemons/twjobd:
 *   put()      verb_put() and add_job() in verbs_job.c: the token is registered, then the row is
 *              added
 *   change()   verb_cancel(), verb_move(), and a put with REPLACE, in verbs_job.c: the row changes,
 *              and the wheel is told after the commit
 *   take()     take_event() in take.c: a delivery is read, and compared with its row
 *   answer()   find_delivery(), verb_ack(), verb_nack() and verb_bury() in verbs_answer.c, by a
 *              receipt that was sent, of the last delivery or of the delivery before
 *   end_turn() turn_end() in turn.c: the commit, and then apply() of the changes, or undo()
 *   apply()    queue_apply() in queue.c
 *   take_back() queue_take_back() in queue.c: a delivery that no worker has got ends
 *   finish()   finish() in conn.c: the turn ends, and its answers are sent
 *   start()    keep_start() in keep.c: the wheel is opened, or made again, and is told the last
 *              turn's changes once more. A new wheel gets its stamp.
 *   load()     load_slice() and end_load() in keep.c
 *   sweep()    compare_tokens() in keep.c
 *   kernel     time passes; the lease of a delivery is over
 *   crasher    the daemon is killed, and the service manager has kept the wheel's file or has not,
 *              or the machine is started again, and the wheel is gone
 *
 * The store's transaction and each operation of the wheel are one step.
 *
 * Bounds: one job, and one delivery that has not been sent. A put therefore needs a free place in
 * the wheel. A lease outlasts the turn in which its delivery is answered, because the answer has
 * extended it.
 *
 * Properties, for every interleaving:
 *   J1  a job whose put was answered is in the store until it is removed, and a job whose end was
 *       answered is not in the store
 *   J2  no job is handed out before it is due or while another worker has it, and only the receipt
 *       of the delivery that is out is accepted, once
 *   J3  a token is delivered again only after a delivery that a worker may have got, or whose lease
 *       was over
 *   J4  after each turn, whatever crash came before, a job has its token, which is not late
 *   J6  there is no token without a job, except a token that a crash has left between its
 *       registration and the commit
 */

#ifndef CHANGES
#define CHANGES 0
#endif
#ifndef TAKES
#define TAKES 0
#endif
#ifndef ANSWERS
#define ANSWERS 0
#endif
#ifndef FAILS
#define FAILS 0		/* commits that may fail */
#endif
#ifndef KILLS
#define KILLS 0
#endif
#ifndef REBOOTS
#define REBOOTS 0
#endif

#define LAST 2		/* last point of time */
#define PARKED 3	/* never, the deadline of a buried job's token */

/* These are the states of the token. */
#define NONE 0
#define PENDING 1
#define HELD 2

/* A change makes one of these of the token. */
#define NOTHING 0
#define GONE 1
#define MOVED 2
#define NEW 3

byte now = 1;

/*
 * The store as it is on the disk, with the list of the last turn's changes, of which
 * there is one here.
 */
bit row;
byte row_due;
byte row_epoch;
byte list_to, list_handle, list_due, list_number;

/*
 * These variables are the wheel. Its stamp is the epoch of the row for which it was
 * made, and complete tells whether it has all jobs. A number counts the deliveries of
 * a token.
 */
byte stamp;
bit complete;
byte token = NONE;
byte deadline;
byte handle;
byte number;
byte handles;

/*
 * The daemon's turn: the rows of its transaction, and the change that the wheel is to
 * be told.
 */
bit begun;
bit turn_row;
byte turn_due;
byte to, to_handle, to_due, to_number;
byte registered;	/* handle of a new job's token */
bit unsettled;		/* pending tokens are moved or ended */
bit loaded;

/* These are answers until the turn ends, and then final answers until they are sent. */
bit says_put, says_end;
bit final_put, final_end;
byte unsent;		/* number of the delivery that is not sent, over all deliveries */
byte unsent_handle, unsent_number;
bit unsent_final;

/* Two receipts were sent, and the last one is the first here. */
byte got[2], got_epoch[2], got_handle[2], got_number[2];

/* Ghosts exist only in the model. */
byte deliveries;
byte out;		/* the delivery that is out, or 0 */
byte used;		/* the delivery that was answered last */
bit extended;		/* the lease lasts to the end of the turn */
bit told_put, told_end;
bit removed;		/* a commit has removed the job */
bit orphan;		/* a crash has left a token without a job */
bit handed;		/* a worker may have got a delivery of this token */
byte epochs;
bit down;		/* the daemon has ended */
byte changes = CHANGES, takes = TAKES, answers = ANSWERS, fails = FAILS;

#define LATE (deadline > row_due && deadline > now)
#define IS(h) (token != NONE && handle == h)

/* The following operations are the wheel's. */
inline register(when)
{
	if
	:: token == NONE ->
		handles++;
		handle = handles; token = PENDING; deadline = when; number = 0; handed = 0
	:: else		/* EEXIST */
	fi
}

/* A token that is held is deleted only if its job has ended. */
inline delete(h)
{
	if
	:: IS(h) ->
		assert(!out || !row);
		token = NONE; out = 0; orphan = 0
	:: else
	fi
}

inline give_back(h, n, when)
{
	if
	:: IS(h) && token == HELD && number == n ->
		token = PENDING; deadline = when; out = 0
	:: else
	fi
}

inline make_new(h, when)
{
	d_step {
#ifdef BUG_REPEAT_BY_ID
		delete(handle);
#else
		delete(h);
#endif
		register(when)
	}
}

/* The caller is within a d_step. */
inline take_back(h, n, when)
{
#ifdef BUG_GIVE_BACK
	give_back(h, n, when)
#else
	if
	:: n == 1 && IS(h) && token == HELD && number == n -> token = NONE; out = 0; register(when)
	:: else -> give_back(h, n, when)
	fi
#endif
}

inline make_pending(h, n, when)
{
	if
	:: d_step { IS(h) && token == HELD && n && number == n -> give_back(h, n, when) }
	:: d_step { IS(h) && token == PENDING -> deadline = when }
	:: !IS(h) -> make_new(h, when)
	:: IS(h) && token == HELD && !(n && number == n)
	fi
}

inline apply(what, h, n, when)
{
	if
	:: what == GONE -> d_step { delete(h) }
	:: what == MOVED -> make_pending(h, n, when)
	:: what == NEW -> make_new(h, when)
	:: what == NOTHING
	fi
}

inline begin()
{
	begun = 1
}

/* A commit makes the turn's rows and changes the store's. */
inline commit()
{
	d_step {
		removed = removed || (row && !turn_row) || (registered && !turn_row);
		row = turn_row; row_due = turn_due;
#ifndef BUG_LIST_LATER
		list_to = to; list_handle = to_handle; list_due = to_due; list_number = to_number;
#endif
		registered = 0;
		extended = 0
	}
#ifdef BUG_LIST_LATER
	;
	d_step { list_to = to; list_handle = to_handle; list_due = to_due; list_number = to_number }
#endif
}

/* The commit has failed, and its answers become errors. */
inline undo()
{
	d_step { turn_row = row; turn_due = row_due; extended = 0; used = 0 };
#ifndef BUG_KEEP_REGISTERED
	d_step {
		if
		:: registered -> delete(registered); registered = 0
		:: else
		fi
	};
#endif
#ifndef BUG_ANSWERS_STAND
	d_step {
		says_put = 0; says_end = 0;
		if
		:: unsent && !unsent_final ->
			take_back(unsent_handle, unsent_number, now);
			unsent = 0
		:: else
		fi
	}
#endif
}

/* A turn ends, even if it has done nothing. */
inline end_turn()
{
	if
	:: begun && fails > 0 -> fails--; undo()
	:: begun ->
#ifdef BUG_WHEEL_FIRST
		apply(to, to_handle, to_number, to_due);
		commit()
#else
		commit();
#ifdef BUG_REGISTER_LATE
		d_step {
			if
			:: turn_row -> register(turn_due)
			:: else
			fi
		};
#endif
		apply(to, to_handle, to_number, to_due)
#endif
	:: !begun
	fi;
	d_step {
		begun = 0; to = NOTHING; to_handle = 0; to_due = 0; to_number = 0;
		registered = 0; unsettled = 0;
		final_put = final_put || says_put; says_put = 0;
		final_end = final_end || says_end; says_end = 0;
		unsent_final = (unsent > 0);
		handed = handed || unsent_final
	}
}

inline send()
{
	d_step {
		told_put = told_put || final_put; final_put = 0;
		told_end = told_end || final_end; final_end = 0;
		if
		:: unsent ->
			got[1] = got[0]; got_epoch[1] = got_epoch[0];
			got_handle[1] = got_handle[0]; got_number[1] = got_number[0];
			got[0] = unsent; got_epoch[0] = row_epoch;
			got_handle[0] = unsent_handle; got_number[0] = unsent_number;
			unsent = 0; unsent_handle = 0; unsent_number = 0; unsent_final = 0
		:: else
		fi
	}
}

inline check()
{
	d_step {
		assert(!told_put || row || removed);
		assert(!(told_end && row));
		if
		:: loaded && row -> assert(token == HELD || (token == PENDING && deadline >= row_due && !LATE))
		:: loaded && !row -> assert(token == NONE || orphan)
		:: else
		fi
	}
}

inline finish()
{
	end_turn();
	send();
	check()
}

inline choose(when)
{
	if
	:: when = 1
	:: when = LAST
	fi
}

inline put()
{
	choose(when);
	begin();
#ifndef BUG_REGISTER_LATE
	d_step { register(when); registered = handle };
#endif
	d_step { turn_row = 1; turn_due = when; says_put = 1; when = 0 };
#ifdef BUG_ANSWER_EARLY
	told_put = 1
#endif
}

/* If the load has not yet registered a job's token, it is registered now. */
inline find()
{
	if
	:: to != NOTHING -> end_turn()
	:: else
	fi;
	d_step {
		if
		:: turn_row && token == NONE -> assert(!loaded); register(turn_due)
		:: else
		fi
	}
}

inline change()
{
	find();
	if
	:: turn_row && token == PENDING ->
		begin();
		if
		:: d_step { turn_row = 0; to = GONE; says_end = 1 }
		:: choose(when);
		   d_step { turn_due = when; to_due = when; when = 0 };
		   if
		   :: to = MOVED
		   :: to = NEW
		   fi
		fi;
		d_step { to_handle = handle; unsettled = 1 }
	:: else		/* the job is unknown, or its token is HELD */
	fi
}

inline take()
{
	if
#ifndef BUG_READ_UNSETTLED
	:: unsettled -> end_turn()
#endif
	:: unsent -> finish()
	:: else
	fi;
	if
	:: d_step { token == PENDING && deadline <= now ->
		assert(!out);
		assert(!number || handed);
		token = HELD; number++;
		deliveries++;
		out = deliveries };
	   if
	   :: d_step { !turn_row -> assert(orphan); delete(handle) }
	   :: turn_row ->
		assert(turn_due <= now);
		if
		:: begin()	/* a command about another job began the turn */
		:: number == 1
		fi;
		d_step { unsent = deliveries; unsent_handle = handle; unsent_number = number }
	   fi
	:: !(token == PENDING && deadline <= now)
	fi
}

#ifdef BUG_NO_NUMBER
#define BY_NUMBER true
#else
#define BY_NUMBER (number == got_number[which])
#endif
#ifdef BUG_NO_HANDLE
#define BY_HANDLE true
#else
#define BY_HANDLE (handle == got_handle[which])
#endif
#ifdef BUG_NO_EPOCH
#define BY_EPOCH true
#else
#define BY_EPOCH (row_epoch == got_epoch[which])
#endif
#ifdef BUG_USED_TWICE
#define UNCHANGED true
#else
#define UNCHANGED (to == NOTHING)
#endif

/* By its receipt a job is done, or comes again. */
inline answer()
{
	if
	:: which = 0
	:: which = 1
	fi;
	if
	:: d_step { got[which] && BY_EPOCH && UNCHANGED && turn_row && token == HELD && BY_HANDLE &&
		    BY_NUMBER ->
		assert(out == got[which] && used != got[which]);
		used = got[which];
#ifndef BUG_NO_EXTEND
		extended = 1
#endif
	   };
	   begin();
	   if
	   :: d_step { turn_row = 0; to = GONE; says_end = 1 }
	   :: if
	      :: choose(when)
	      :: when = PARKED
	      fi;
	      d_step { turn_due = when; to_due = when; when = 0; to = MOVED; unsettled = 1 }
	   fi;
	   d_step { to_handle = got_handle[which]; to_number = got_number[which] }
	:: else		/* the receipt is STALE */
	fi;
	which = 0
}

/* All tokens of the wheel are gone. */
inline forget_wheel()
{
	token = NONE; orphan = 0; handles = 0; handle = 0; number = 0; deadline = 0; handed = 0;
	stamp = 0; complete = 0
}

inline start()
{
	d_step { turn_row = row; turn_due = row_due };
	if
	:: stamp && stamp == row_epoch ->
#ifndef BUG_NO_REPEAT
		apply(list_to, list_handle, list_number, list_due);
#endif
		loaded = complete
	:: else ->
		assert(!out);
		d_step { forget_wheel() };
		/* The row's new epoch is a commit, whose list is empty. */
		d_step {
			epochs++;
			row_epoch = epochs;
			list_to = NOTHING; list_handle = 0; list_due = 0; list_number = 0
		}
#ifndef BUG_STAMP_LATE
		;
		stamp = row_epoch
#endif
#ifdef BUG_LOADED_EARLY
		;
		complete = 1
#endif
	fi;
	check()
}

inline load()
{
	end_turn();
	d_step {
		if
		:: row -> register(row_due)
		:: else
		fi
	};
	d_step { stamp = row_epoch; complete = 1; loaded = 1 }
}

inline sweep()
{
	end_turn();
	if
	:: d_step { loaded && token != NONE && !row -> assert(orphan); delete(handle) }
	:: !(loaded && token != NONE && !row)
	fi
}

inline serve()
{
	start();
end:	do
	:: !turn_row && !removed && !told_put && token == NONE -> put()
	:: changes > 0 -> changes--; change()
	:: takes > 0 -> takes--; take()
	:: answers > 0 && got[0] -> answers--; answer()
	:: begun || unsent || final_put || final_end -> finish()
	:: !loaded -> load()
	:: orphan -> sweep()
	od
}

proctype daemon()
{
	byte when, which;

restart:
	{ serve() } unless { down };
	d_step { down = 0; when = 0; which = 0 };
	goto restart
}

proctype kernel()
{
end:	do
	:: now < LAST -> now++
	:: d_step { token == HELD && !extended -> token = PENDING; deadline = now; out = 0; handed = 1 }
	od
}

/* A crash loses the daemon's memory, and the connections with their answers. */
inline crash()
{
	orphan = orphan || (registered && IS(registered));
	handed = handed || token == HELD;
	begun = 0; to = NOTHING; to_handle = 0; to_due = 0; to_number = 0;
	registered = 0; unsettled = 0; loaded = 0; extended = 0;
	used = 0;
	says_put = 0; says_end = 0; final_put = 0; final_end = 0;
	unsent = 0; unsent_handle = 0; unsent_number = 0; unsent_final = 0;
	down = 1
}

proctype crasher()
{
	byte kills = KILLS, reboots = REBOOTS;

end:	do
	:: d_step { kills > 0 && !down -> kills--; crash() }
	:: d_step { kills > 0 && !down -> kills--; crash();
		if
		:: token == HELD -> token = PENDING; deadline = now; out = 0
		:: else
		fi }
	:: d_step { reboots > 0 && !down -> reboots--; crash(); forget_wheel(); out = 0 }
	od
}

init {
	atomic { run daemon(); run kernel(); run crasher() }
}
