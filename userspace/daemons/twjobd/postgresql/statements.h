/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The statements for the database. Each statement is prepared when a connection has been made.
 * Numbers are bigints, names are texts, and all other values are bytea.
 */
#ifndef TWJOBD_STATEMENTS_H
#define TWJOBD_STATEMENTS_H

enum statement {
	BEGIN, COMMIT, ROLL_BACK, BEGIN_TURN, HAS_QUORUM,
	NOW, GET_LIST, QUEUES, GET, LOCK, LOCK_KEY, GET_BODY, NEXT, NEXT_BURIED, OWN, FIND_OWN,
	NEXT_RULES, RULES, COUNT_RULES, GET_OPTIONS, GET_FAILURE, NEXT_DONE, FIGURES,
	/* The statements from here on change something. */
	JOIN, BEGIN_SESSION, RENEW, LEAVE, FENCE_NODE, EMPTY_SOON, EMPTY_NODE, SET_LIST,
	ADD_QUEUE, SAVE_QUEUE, COUNT_QUEUE, DROP_QUEUE,
	REMOVE_QUEUES, WANT_QUEUES, FOLD,
	NEXT_IDS, ADD, ADD_WITH_KEY, CHANGE, CHANGE_BODY, EXTEND, RELEASE, REMOVE, SAVE_RULE,
	SAVE_OPTIONS, SAVE_FAILURE, ADD_DONE, END_DONE,
	CLAIM, TAKE_IN, GIVE_OUT, CLEAR_INBOX,
	STATEMENTS
};

extern const char * const statement_texts[STATEMENTS];

#endif /* TWJOBD_STATEMENTS_H */
