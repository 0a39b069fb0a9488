/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rows that this turn has read or written: each row is read once in a turn. This part knows no
 * statement.
 */
#ifndef TWJOBD_ROWS_H
#define TWJOBD_ROWS_H

#include "../store.h"

/*
 * ROW_READ: another transaction may change the row meanwhile. ROW_LOCKED: no other transaction
 * changes the row until the turn ends. ROW_BUSY: another transaction is changing the row.
 */
enum row_state {
	ROW_ABSENT, ROW_READ, ROW_LOCKED, ROW_BUSY,
};

struct row {
	struct row *next;
	enum row_state state;
	bool has_body;
	bool unread;		/* it was claimed without its body */
	struct bytes body;
	struct job job;
	struct rule *rule;	/* NULL: the rule has not been read */
};

struct row *rows_find(int64_t id);
/* Adds the row, or returns the row that is there. */
struct row *rows_add(int64_t id);
void row_set_body(struct row *row, struct bytes body);
void row_forget_body(struct row *row);
void row_set_rule(struct row *row, const struct rule *rule);
void rows_clear(void);

#endif /* TWJOBD_ROWS_H */
